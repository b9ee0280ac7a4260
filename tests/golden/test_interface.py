"""What others rely on: names of options, keys of documents, public names, and that importing is cheap."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from tests.golden.cli import ROOT, call_main, inside, run_cli
from tests.golden.compare import RECORDING, check_keys, check_still_there, read_record, without
from tests.golden.conftest import PROXIES

Make = Callable[[str], dict[str, Any]]
COMMANDS = ("compress", "select", "export", "report", "score", "rank", "discover", "train", "design", "worker")
"""All but bench, which will go."""
POSITIONAL = {"select": "nowhere", "export": "nowhere", "report": "nowhere", "worker": "nowhere"}
HIDDEN_ALIASES: list[tuple[str, str]] = []
"""Further pairs of command and option that must be accepted though no help tells about them."""
NONSENSE = "--surely-no-option"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@cache
def options_in_help(command: str) -> frozenset[str]:
    """Options that stand at the beginning of a line of the help."""
    code, out, err = call_main([command, "--help"])
    assert code == 0, err
    heads = [line for line in out.splitlines() if re.match(r"  -", line)]
    return frozenset(found for line in heads for found in OPTION.findall(re.split(r"\s{2,}", line.strip())[0]))


def is_accepted(command: str, option: str) -> bool:
    """Whether the parser knows it: with a second, nonsensical option the command never runs."""
    given = [POSITIONAL[command]] if command in POSITIONAL else []
    code, _, err = call_main([command, *given, option, NONSENSE])
    assert code != 0
    return not re.search(rf"(unknown|unrecognized|no such).*{re.escape(option)}(?![\w-])", err.replace(NONSENSE, ""))


def test_the_way_to_ask_tells_right_from_wrong() -> None:
    assert is_accepted("compress", "--trials") and is_accepted("select", "--int8")
    assert not is_accepted("compress", "--trails") and not is_accepted("select", "--honesty")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_still_there(command: str) -> None:
    shown = options_in_help(command)
    assert {"--json", "--quiet", "--help"} <= shown
    hidden = set()
    if not RECORDING:
        missing = set(read_record("options")[command]) - shown
        hidden = {option for option in missing if is_accepted(command, option)}
    check_still_there("options", command, shown | hidden)


def test_hidden_aliases_are_accepted() -> None:
    assert [pair for pair in HIDDEN_ALIASES if not is_accepted(*pair)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_told(command: str) -> None:
    code, out, _ = call_main(["--help"])
    assert code == 0 and re.search(rf"^  {command} ", out, re.MULTILINE)


def test_mistakes_end_with_two() -> None:
    for words in (["compres"], ["compress", "--trails", "3"], ["select", "nowhere"]):
        code, out, err = call_main(words)
        assert code == 2 and out == "" and err.startswith("archwright: ") and err.count("\n") == 1


def run_python(code: str) -> str:
    """What it prints in a process of its own."""
    begin = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
    done = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = "print('loaded:', sorted({'torch', 'transformers', 'optuna', 'onnx'} & set(sys.modules)))"


def test_importing_loads_nothing_heavy() -> None:
    assert run_python(f"import archwright\n{HEAVY}").endswith("loaded: []\n")


def test_help_loads_nothing_heavy() -> None:
    start = (
        "import runpy; sys.argv = ['archwright', '--help']\ntry: runpy.run_module('archwright', run_name='__main__')\n"
    )
    said = run_python(f"{start}except SystemExit as end: assert not end.code\n{HEAVY}")
    assert "compress" in said and said.endswith("loaded: []\n")


def test_public_names() -> None:
    check_still_there("options", "public names", dir(aw))
    for name in ("compress", "design", "export", "open_run", "rank", "score", "select", "train"):
        assert callable(getattr(aw, name))


@pytest.fixture(scope="session")
def documents(request: pytest.FixtureRequest, place: Path) -> Make:
    """One document of every command, by name."""
    made: dict[str, dict[str, Any]] = {}
    called = {"compress": "weight-sharing", "compare": "compare"}
    lessons = {"train-text": "mlm-flexibert", "train-task": "finetune-teacher", "train-electra": "electra"}
    lessons |= {"evaluate": "evaluate", "ablate": "ablate", "train-distil": "distil"}
    fixtures = {"select": "selected", "rank": "ranked", "discover": "discovered", "discover-evolve": "evolved"}

    def make(name: str) -> dict[str, Any]:
        if name in called:
            return request.getfixturevalue("compressed")(called[name])
        if name in lessons:
            return request.getfixturevalue("trained")(lessons[name])
        if name in fixtures:
            return request.getfixturevalue(fixtures[name])
        if name == "design":
            return request.getfixturevalue("designed")("genetic")
        if name == "score":
            return request.getfixturevalue("scored")("flexibert fixed")
        if name == "export":
            make("select")
            return run_cli(["export", place / "weight-sharing", "--trial=-1", "--to", "hf", "--out", place / "as-hf"])
        if name == "preview":
            return run_cli(["compress", "--preview", request.getfixturevalue("bert")])
        make("compare"), make("compress")
        runs = [place / "weight-sharing", place / "compare"]
        return run_cli(["report", *runs, "--out", place / "report"])

    def get(name: str) -> dict[str, Any]:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return get


DOCUMENTS = (
    "compress", "compare", "train-text", "train-task", "train-electra", "train-distil",
    "evaluate", "ablate", "select", "rank", "discover", "discover-evolve", "design", "score", "export", "preview",
    "report",
)  # fmt: skip
NAMED = {"discover-evolve": ("family",), "design": ("config",), "score": ("config", "scores")}
"""Keys below these depend on what was found, not on the schema."""
SCHEMAS = {
    "compress": "compress", "compare": "compare", "train-text": "train", "select": "select", "rank": "rank",
    "discover": "discover", "design": "design", "score": "score", "export": "parity", "preview": "preview",
    "report": "protocol",
}  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_is_still_there(name: str, documents: Make) -> None:
    names = NAMED.get(name, ())
    check_keys("keys", name, without(documents(name), names))


@pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())
def test_the_schema_is_still_the_first(name: str, schema: str, documents: Make) -> None:
    assert documents(name)["schema"] == f"archwright/{schema}/1"


CLOCK = ("seconds", "latency_ms", "latency", "environment", "core_seconds", "looked", "tokens_per_second", "judged")


def test_python_and_command_line_say_the_same(documents: Make, place: Path, text: Path, rows: Path) -> None:
    """The folders are finished: the same call only tells again what is there."""
    score = {"text": text, "out": place / "scores", "batch_rows": 2, "length": 8, "workers": 1}
    again = aw.score(space="flexibert", config=place / "flexibert.json", all_proxies=True, **score).as_json()
    assert without(again, CLOCK) == without(documents("score"), CLOCK)
    ranked = documents("rank")
    more = {"proxies": tuple(PROXIES.split(",")), "samples": 50, "ablation": False, "xray": True}
    again = aw.rank(benchmark="nas-bert", data=place / "nas-bert", **score, **more).as_json()
    assert without(again, CLOCK) == without(ranked, CLOCK)
    design = {**score, "space": "nlu-tiny", "against": ("random", "local"), "scale_up": 2}
    documents("design")
    again = aw.design(**{**design, "out": place / "design-genetic"}, population=4, generations=3).as_json()
    assert without(again, CLOCK) == without(documents("design"), CLOCK)


def test_a_run_in_python(documents: Make, place: Path) -> None:
    document = documents("compress")
    with inside(place):
        run = aw.open_run("weight-sharing")
        assert run.front == document["front"]
        chosen = run.select(params=0.5)
        chosen.save_pretrained(place / "from-python")
        picked = aw.select(run=Path("weight-sharing"), params="50%").as_json()
        made = aw.export(run=Path("weight-sharing"), trial=6, to="compact", out=place / "from-export").as_json()
    assert picked["selected"]["trial"] == documents("select")["selected"]["trial"]
    assert (place / "from-python" / "model.safetensors").exists() and made["format"] == "compact"
