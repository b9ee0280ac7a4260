"""The commands: one file each. A newcomer reads this room first."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from archwright.configs import compress as o
from archwright.configs import design as do
from archwright.configs import scoring as so
from archwright.configs import training as to
from archwright.errors import BadInput


@dataclass(frozen=True)
class Command:
    """A verb of the command line and of the Python API: a function of one config."""

    summary: str
    target: str
    """module:function; imported only when the command runs."""
    config: type
    """Frozen dataclass that the function takes: groups of options, or the options themselves."""
    positional: tuple[str, ...] = ()
    example: str = ""

    @property
    def groups(self) -> dict[str, type]:
        """The groups of options by their name in the config; empty where the config is one group."""
        hints = get_type_hints(self.config)
        return {f.name: hints[f.name] for f in fields(self.config) if is_dataclass(hints[f.name])}

    @property
    def option_types(self) -> tuple[type, ...]:
        """Every dataclass that has options, in the order of the help."""
        return tuple(self.groups.values()) or (self.config,)


COMMANDS: dict[str, Command] = {
    "compress": Command(
        "shrink a pre-trained model for a task: super-network fine-tuning + Pareto search",
        "archwright.commands.compress:compress",
        o.CompressConfig,
        example="archwright compress --task glue/SST-2 --data glue/SST-2 --out runs/sst2 --json out.json",
    ),
    "select": Command(
        "from a finished run, pick a sub-network by budget, and export it",
        "archwright.commands.select:select",
        o.SelectConfig,
        positional=("run",),
        example="archwright select runs/sst2 --params 50% --to compact",
    ),
    "export": Command(
        "a sub-network or a trained network as an ordinary checkpoint or ONNX, with a parity report",
        "archwright.commands.export:export",
        o.ExportConfig,
        positional=("run",),
        example="archwright export runs/sst2 --trial 17 --to onnx --int8",
    ),
    "report": Command(
        "several finished runs, compared as in the paper: one page with its figures",
        "archwright.commands.report:report",
        o.ReportConfig,
        positional=("runs",),
        example="archwright report runs/sst2-seed0 runs/sst2-seed1 --out report --json protocol.json",
    ),
    "score": Command(
        "training-free scores of one or many architectures",
        "archwright.commands.score:score",
        so.ScoreConfig,
        example="archwright score --space flexibert --random 5 --proxies w_pca,parameters",
    ),
    "rank": Command(
        "judge proxies on benchmarks of trained architectures",
        "archwright.commands.rank:rank",
        so.RankConfig,
        positional=("benchmark",),
        example="archwright rank nas-bert --json out.json --html rank.html",
    ),
    "discover": Command(
        "find better proxies as formulas, by evolution and exhaustively",
        "archwright.commands.discover:discover",
        so.DiscoverConfig,
        positional=("benchmark",),
        example="archwright discover nas-bert --exhaustive --unary 2 --json out.json --html discover.html",
    ),
    "train": Command(
        "pre-train, distil, fine-tune or evaluate one network",
        "archwright.commands.train:train",
        to.TrainConfig,
        example="archwright train --design runs/design/design.json --lesson mlm --corpus wiki.txt --out runs/tiny",
    ),
    "design": Command(
        "search the architecture of a small language model without training any",
        "archwright.commands.design:design",
        do.DesignConfig,
        example="archwright design --space nlu-small --proxy w_pca --json out.json",
    ),
    "worker": Command(
        "join a run on a shared store from another process or machine",
        "archwright.commands.worker:worker",
        o.WorkerConfig,
        positional=("run",),
        example="archwright worker runs/sst2",
    ),
}


def call(command: Command, options: Mapping[str, Any]) -> Any:
    """Run the command with plain options."""
    module, _, name = command.target.partition(":")
    return getattr(import_module(module), name)(make_config(command, options))


def make_config(command: Command, options: Mapping[str, Any]) -> Any:
    """The command's config from plain options; those of its preset fill in what was not given."""
    known = {f.name for group in command.option_types for f in fields(group)}
    if unknown := set(options) - known:
        raise BadInput(f"unknown option {sorted(unknown)[0]!r}; there are {', '.join(sorted(known))}.")
    for group in command.option_types:
        check_choices(group, options)
    values = {**preset_values(command, options), **options}

    def build(group: type) -> Any:
        return group(**{f.name: values[f.name] for f in fields(group) if f.name in values})

    if not command.groups:
        return build(command.config)
    return command.config(**{name: build(group) for name, group in command.groups.items()})


def preset_values(command: Command, options: Mapping[str, Any]) -> dict[str, Any]:
    """Values of other options that the chosen presets bring along."""
    presets = [f for group in command.option_types for f in fields(group) if "fills" in f.metadata]
    return {k: v for f in presets for k, v in f.metadata["fills"][options.get(f.name, f.default)].items()}


def check_choices(group: type, options: Mapping[str, Any]) -> None:
    """Raises BadInput for a name that its list does not have."""
    for field in fields(group):
        listed, value = field.metadata.get("choices", ()), options.get(field.name)
        known = listed() if callable(listed) else listed
        for name in value if isinstance(value, tuple) else (value,):
            if known and name is not None and name not in known:
                raise BadInput(f"{field.name} must be one of {', '.join(known)}, got {name!r}.")


def open_run(folder: str | Path) -> Any:
    """A finished run with `.front`, `.select(...)` and `.show()`, as `compress` returned it."""
    return import_module("archwright.compression.run").open_finished(Path(folder))
