"""The commands: one file each. A newcomer reads this room first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from archwright.configs.options import make_config
from archwright.logs import quiet_libraries
from archwright.threads import restore_threads

Config = TypeVar("Config")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Command:
    """A verb of the command line and of the Python API: a function of one config."""

    summary: str
    target: str
    """module:function; imported only when the command runs."""
    config_target: str
    """module:class of the frozen dataclass that the function takes; imported only when options are looked at."""
    positional: tuple[str, ...] = ()
    example: str = ""
    first: tuple[str, ...] = ()
    """Options that a newcomer needs: --help shows only them, --help-all every one; empty: there are few."""
    check: str = ""
    """module:function of the config that raises BadInput for what can be known without torch; loads none."""
    processes: bool = False
    """Whether several processes, started by torchrun, can do it together."""

    @property
    def config(self) -> type:
        """Groups of options, or the options themselves."""
        config: type = load(self.config_target)
        return config


COMMANDS: dict[str, Command] = {
    "compress": Command(
        "shrink a pre-trained model for a task: super-network fine-tuning + Pareto search",
        "archwright.commands.compress:compress",
        "archwright.configs.compress:CompressConfig",
        first=(
            *("model", "task", "data", "train", "validation", "test", "text_column", "label_column", "labels"),
            *(
                "train_rows",
                "minutes",
                "trials",
                "params",
                "total_params",
                "latency_ms",
                "for_",
                "out",
                "seed",
                "threads",
            ),
        ),
        example="archwright compress --task glue/SST-2 --data glue/SST-2 --out runs/sst2 --json out.json",
        check="archwright.commands.checks:check_compress",
        processes=True,
    ),
    "select": Command(
        "from a finished run, pick a sub-network by budget, and export it",
        "archwright.commands.select:select",
        "archwright.configs.compress:SelectConfig",
        positional=("run",),
        example="archwright select runs/sst2 --params 50% --to compact",
        check="archwright.commands.checks:check_select",
        processes=True,
    ),
    "export": Command(
        "a sub-network or a trained network as an ordinary checkpoint or ONNX, with a parity report",
        "archwright.commands.export:export",
        "archwright.configs.compress:ExportConfig",
        positional=("run",),
        example="archwright export runs/sst2 --trial 17 --to onnx --int8",
        check="archwright.commands.checks:check_export",
    ),
    "report": Command(
        "several finished runs, compared as in the paper: one page with its figures",
        "archwright.commands.report:report",
        "archwright.configs.compress:ReportConfig",
        positional=("runs",),
        example="archwright report runs/sst2-seed0 runs/sst2-seed1 --out report --json protocol.json",
    ),
    "score": Command(
        "training-free scores of one or many architectures",
        "archwright.commands.score:score",
        "archwright.configs.scoring:ScoreConfig",
        example="archwright score --space flexibert --random 5 --proxies w_pca,parameters",
    ),
    "rank": Command(
        "judge proxies on benchmarks of trained architectures",
        "archwright.commands.rank:rank",
        "archwright.configs.scoring:RankConfig",
        positional=("benchmark",),
        example="archwright rank nas-bert --json out.json --html rank.html",
    ),
    "discover": Command(
        "find better proxies as formulas, by evolution and exhaustively",
        "archwright.commands.discover:discover",
        "archwright.configs.discover:DiscoverConfig",
        positional=("benchmark",),
        example="archwright discover nas-bert --exhaustive --unary 2 --json out.json --html discover.html",
    ),
    "train": Command(
        "pre-train, distil, fine-tune or evaluate one network",
        "archwright.commands.train:train",
        "archwright.configs.training:TrainConfig",
        example="archwright train --design runs/design/design.json --lesson mlm --corpus wiki.txt --out runs/tiny",
        processes=True,
    ),
    "design": Command(
        "search the architecture of a small language model without training any",
        "archwright.commands.design:design",
        "archwright.configs.design:DesignConfig",
        example="archwright design --space nlu-small --proxy w_pca --json out.json",
    ),
    "serve": Command(
        "the local web page: runs, Pareto fronts, sub-networks to try and export, proxies, architectures",
        "archwright.commands.serve:serve",
        "archwright.configs.serve:ServeConfig",
        positional=("runs",),
        example="archwright serve runs --open",
    ),
    "worker": Command(
        "join a run on a shared store from another process or machine",
        "archwright.commands.worker:worker",
        "archwright.configs.compress:WorkerConfig",
        positional=("run",),
        example="archwright worker runs/sst2",
        check="archwright.commands.checks:check_worker",
    ),
}


def load(target: str) -> Any:
    """Imports what `module:name` names, and what it needs with it."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def call(command: Command, options: Mapping[str, Any]) -> Any:
    """Run the command with plain options."""
    config: Any = make_config(command.config, options)
    check(command, config)
    return run_command(load(command.target), config)


def check(command: Command, config: Any) -> None:
    """BadInput for mistakes that are found before torch is loaded."""
    if command.check:
        load(command.check)(config)


def run_command(function: Callable[[Config], Result], config: Config) -> Result:
    """The function of a command on its config; libraries are quiet meanwhile, and torch keeps its number of threads."""
    with quiet_libraries(), restore_threads():
        return function(config)
