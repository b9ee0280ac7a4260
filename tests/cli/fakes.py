"""A command as the jobs would list it, with every kind of field; its job ends the way the test asks for."""

import errno
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from archwright.commands import Command
from archwright.configs.options import option
from archwright.errors import BadInput, Failed
from archwright.progress import progress


def samplers() -> dict[str, str]:
    return {"random": "anything goes", "nsga2": "genetic, 100 % ours"}


@dataclass(frozen=True)
class Plan:
    """What to try."""

    trials: int = option(100, minimum=1, way_out="leave it out for 100")
    """Sub-networks to try,
    at most."""
    minutes: float | None = None
    """Stop after this many minutes."""
    sampler: str = option("nsga2", choices=samplers)
    """Who decides what to try next."""
    space: str = option("small", choices=("small", "layer"), metavar="SPACE")
    """What may be removed."""
    objectives: tuple[str, ...] = ("error", "parameters")
    """What to make small."""
    sizes: tuple[int, ...] = ()
    order: bool = True
    """Best heads first."""
    regression: bool | None = None
    """The labels are numbers."""


@dataclass(frozen=True)
class Place:
    model: str
    out: Path = Path("runs/latest")
    """Folder of the results."""
    ending: str = "well"
    seed: int = 0
    """Where chance begins."""


@dataclass(frozen=True)
class Model:
    model: str = "bert"


@dataclass(frozen=True)
class Answer:
    values: dict[str, Any]

    def show(self, console: Console) -> None:
        console.print(f"tried {self.values['trials']}")

    def as_json(self) -> dict[str, Any]:
        return self.values | {"out": str(self.values["out"])}


def stop() -> None:
    raise KeyboardInterrupt


def fail(error: BaseException) -> Callable[[], None]:
    def ending() -> None:
        raise error

    return ending


ENDINGS: dict[str, Callable[[], None]] = {
    "well": lambda: None,
    "bad input": fail(BadInput("task must exist, got 'x';\n choose 'y'.")),
    "failed": fail(Failed("the loss is not finite after step 3; lower the learning rate.")),
    "no memory": fail(MemoryError()),
    "stopped": stop,
    "missing": fail(FileNotFoundError(errno.ENOENT, "No such file or directory", "data.csv")),
    "read-only": fail(OSError(errno.EROFS, "Read-only file system", "/mnt/out")),
    "disk full": fail(OSError(errno.ENOSPC, "No space left on device")),
    "vague": fail(OSError("model 'x' is not a folder\n\nand no model of the hub")),
    "defect": fail(ZeroDivisionError("oh")),
}


@dataclass(frozen=True)
class ShrinkConfig:
    plan: Plan
    place: Place


def job(config: ShrinkConfig) -> Answer:
    plan, place = config.plan, config.place
    with progress("work", 1) as bar:
        ENDINGS[place.ending]()
        bar.advance()
    values = asdict(plan) | {"model": place.model, "out": place.out}
    return Answer(values | ({"trials": float("nan")} if place.model == "broken" else {}))


CONFIG = "tests.cli.fakes:ShrinkConfig"
COMMANDS = {
    "shrink": Command("make it smaller", "tests.cli.fakes:job", CONFIG, ("model",), "archwright shrink bert"),
    "grow": Command("make it larger", "no.such.module:job", "tests.cli.fakes:Model", ("model",)),
}
