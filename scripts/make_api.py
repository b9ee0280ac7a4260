"""Writes src/archwright/__init__.py: the commands as typed functions, made of their configs.

    python -m scripts.make_api

Editors and type checkers read signatures, not dataclasses, so they stand in the file; a test compares the two.
"""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from archwright.commands import COMMANDS
from archwright.configs.options import Option, config_options, option_docs, option_groups

FILE = Path(__file__).parents[1] / "src" / "archwright" / "__init__.py"
WIDTH = 120

HEAD = '''"""Make language models smaller, and find small ones, without guessing.

The commands as functions, with the options of the command line as keywords:

>>> import archwright as aw
>>> run = aw.compress(task="movie-reviews")
>>> run.select(params=0.5).save_pretrained("smaller")

`compress` takes objects too: a model and a tokenizer of transformers, rows as a `datasets.Dataset`, a pandas DataFrame
or a list of dictionaries, and callbacks that are told what the run does.

Importing the package loads no torch; the first call does. An option that is None is not given: it has its default, or
the value of the preset. Written by scripts/make_api.py from the configs of the commands.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from archwright.callbacks import Callback
from archwright.version import __version__

if TYPE_CHECKING:
{imports}

# fmt: off
__all__ = [
{names}
]


def _run(command: str, options: dict[str, object]) -> Any:
    """The result of the command with these options."""
    from archwright.commands import COMMANDS, call

    return call(COMMANDS[command], options)


def _run_with_objects(command: str, options: dict[str, Any]) -> Any:
    """The same with objects, which are written into the run folder first, and callbacks."""
    from archwright.callbacks import use_callbacks
    from archwright.compression.objects import write_objects

    callbacks = options.pop("callbacks")
    with use_callbacks(callbacks), write_objects(options) as written:
        return _run(command, written)

'''

OPEN_RUN = '''def open_run(folder: str | Path) -> "FinishedRun":
    """A finished run with `.front`, `.select(...)` and `.show()`, as `compress` returned it."""
    from archwright.compression.run import load_run

    return load_run(Path(folder))
'''


@dataclass(frozen=True)
class Api:
    """What a function adds to its command."""

    returns: str
    returned_from: str
    """Module of the type that comes back."""
    returns_what: str
    """Second paragraph of the docstring."""


API = {
    "compress": Api(
        "FinishedRun | MethodComparison | Preview | RunEstimate",
        "",
        "Returns the run with its front; several with `compare`, spaces with `preview`, what it costs with `dry_run`.",
    ),
    "select": Api("SelectResult", "commands.select", "Returns the pick, its neighbours and what was written."),
    "export": Api("ExportResult", "compression.export", "Returns the folder of the checkpoint and its parity report."),
    "report": Api("ReportResult", "commands.report", "Returns the page and its numbers."),
    "serve": Api(
        "ServeResult",
        "commands.serve",
        "Runs until it is interrupted; in a notebook or console it returns at once, with its address and `close()`.",
    ),
    "score": Api("ScoreTable", "commands.score", "Returns one row of scores per architecture."),
    "rank": Api("RankResult", "commands.rank", "Returns one row per proxy: how well it orders trained architectures."),
    "discover": Api(
        "DiscoverResult", "commands.discover", "Returns formulas, judged on rows kept away from the search."
    ),
    "train": Api("TrainResult", "commands.train", "Returns the log and the metrics of the trained network."),
    "design": Api("DesignResult", "commands.design", "Returns the design with the highest score within the limits."),
}
"""Commands that are public functions; `worker` only helps a run of the command line."""
OBJECTS = {
    "model": "str | Path | Saved",
    "tokenizer": "str | Path | Saved | None",
    **dict.fromkeys(("train", "validation", "test"), "str | Path | RowsInMemory | None"),
}
"""Options of `compress` that may be objects in Python: what its config has as a path."""
IN_PYTHON = {"callbacks": ("Sequence[Callback] = ()", "Told about phases, steps of trainings, trials and the end")}
"""What only the function has."""
OBJECT_TYPES = ("RowsInMemory", "Saved")
"""Of compression.objects."""
COMPRESS_RETURNS = {
    "FinishedRun": "compression.run",
    "MethodComparison": "compression.studies.comparison",
    "Preview": "compression.studies.preview",
    "RunEstimate": "compression.studies.estimate",
}
PREVIEW_OPTIONS = ("out", "seed")
"""What `compress` looks at beside `preview`."""


def api_source() -> str:
    """The whole file."""
    imported = COMPRESS_RETURNS | {api.returns: api.returned_from for name, api in API.items() if name != "compress"}
    lines = [f"    from archwright.{module} import {name}" for name, module in imported.items()]
    lines = sorted([*lines, f"    from archwright.compression.objects import {', '.join(OBJECT_TYPES)}"])
    names = ", ".join(f'"{name}"' for name in sorted(("__version__", "Callback", "open_run", *API)))
    head = HEAD.format(imports="\n".join(lines), names=textwrap.indent(textwrap.fill(names, WIDTH - 4), "    "))
    return "\n".join((head, *map(function_source, API), OPEN_RUN))


def function_source(name: str) -> str:
    options = parameters(name)
    forms = compress_overloads(options) if name == "compress" else []
    overloads = "".join(f"@overload\n{form} ...\n\n\n" for form in forms)
    declared = signature(name, options, API[name].returns)
    run = "_run_with_objects" if name == "compress" else "_run"
    return f'{overloads}{declared}\n{docstring(name)}    return {run}("{name}", locals())\n\n'


def parameters(name: str) -> dict[str, str]:
    """Parameter -> annotation and default, as they are written."""
    config = COMMANDS[name].config
    options = config_options(config)
    filled = {key for option in options.values() for values in option.presets.values() for key in values}
    declared = {key: parameter(option, filled=key in filled) for key, option in options.items()}
    if name == "compress":
        for key, kind in OBJECTS.items():
            declared[key] = f'"{kind}" = {declared[key].partition(" = ")[2]}'
        declared |= {key: kind for key, (kind, _) in IN_PYTHON.items()}
    return declared


def parameter(option: Option, *, filled: bool) -> str:
    """Paths may be given as text, several values as any sequence; None where a preset may fill in the value."""
    kind = "str | Path" if option.type is Path else option.type.__name__
    kind = f"Sequence[{kind}]" if option.several else f"{kind} | float" if option.number_too else kind
    kind += " | bool" if option.switch_too else ""
    if option.required:
        return kind
    default = option.field.default
    if filled or default is None:
        return f"{kind} | None = None"
    shown = str(default) if isinstance(default, Path) else default
    return f"{kind} = {shown!r}".replace("'", '"')


def signature(name: str, options: Mapping[str, str], returns: str) -> str:
    """`def` with as many parameters per line as fit; options that are words of the command line come first."""
    positional = [key for key in COMMANDS[name].positional if key in options]
    words = [f"{key}: {options[key]}" for key in positional]
    words += ["*", *(f"{key}: {text}" for key, text in options.items() if key not in positional)]
    lines = textwrap.wrap(", ".join(word.replace(" ", "\0") for word in words) + ",", WIDTH - 4, break_long_words=False)
    inner = textwrap.indent("\n".join(lines).replace("\0", " "), "    ")
    return f'def {name}(\n{inner}\n) -> "{returns}":'


def compress_overloads(options: dict[str, str]) -> list[str]:
    """One run; several methods side by side; a look at the spaces; an estimate."""
    one = {key: text for key, text in options.items() if key not in ("compare", "preview", "dry_run")}
    preview = {"preview": "str", **{key: options[key] for key in PREVIEW_OPTIONS}}
    forms = {
        "FinishedRun": one,
        "MethodComparison": {"compare": "Sequence[str]", **one},
        "Preview": preview,
        "RunEstimate": {"dry_run": "Literal[True]", **one},
    }
    return [signature("compress", form, returns) for returns, form in forms.items()]


def docstring(name: str) -> str:
    command = COMMANDS[name]
    docs = {key: doc for group in option_groups(command.config).values() for key, doc in option_docs(group).items()}
    groups = [[f.name for f in fields(group)] for group in option_groups(command.config).values()]
    lines = [f'    """{command.summary[0].upper()}{command.summary[1:]}.', "", f"    {API[name].returns_what}", ""]
    for option in (key for group in groups for key in group):
        clause = re.split(r"; |[.] (?=[A-Z])", docs.get(option, ""))[0].rstrip(".")
        lines += textwrap.wrap(f"{option}: {clause}.", WIDTH - 4, initial_indent="    ", subsequent_indent="        ")
    lines += [f"    {key}: {doc}." for key, (_, doc) in IN_PYTHON.items() if name == "compress"]
    return "\n".join([*lines, '    """']) + "\n"


if __name__ == "__main__":
    FILE.write_text(api_source(), encoding="utf-8")
