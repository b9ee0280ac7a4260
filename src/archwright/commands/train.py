"""`archwright train`: pre-train, distil, fine-tune or evaluate one network."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs.training import TrainConfig
from archwright.parallel.launcher import is_first
from archwright.progress import quiet
from archwright.reports.rivals import rivals_table
from archwright.reports.train import train_lines
from archwright.rivals.pipeline import add_train_rivals, check_train_rivals
from archwright.training.ablation import ablate_steps
from archwright.training.glue import train_glue
from archwright.training.pipeline import evaluate_only, run_training
from archwright.training.validation import default_folder, validate

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class TrainResult:
    """What a training came to."""

    document: Mapping[str, Any]
    folder: Path | None
    speaks: bool = True
    """Whether this process is the one that shows it."""

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    @property
    def metrics(self) -> dict[str, Any]:
        """Of the trained network on rows that it did not learn from."""
        return dict(self.document["validation"]["after"])

    def show(self, console: "Console") -> None:
        for line in train_lines(self.document, self.folder) if self.speaks else ():
            console.print(line, highlight=False, soft_wrap=True)
        if self.speaks and self.document.get("rivals"):
            console.print(rivals_table(self.document["rivals"]))


def train(config: TrainConfig) -> TrainResult:
    """The trained network with its log and its metrics, in a run folder."""
    validate(config)
    check_train_rivals(config)
    folder = config.output.out or default_folder(config)
    first = is_first()
    with nullcontext() if first else quiet():
        if config.checks.ablate_steps:
            document = ablate_steps(config, folder)
        elif config.task.glue is not None:
            document = train_glue(config, folder)
        elif config.checks.evaluate_only:
            document = evaluate_only(config)
        else:
            document = run_training(config, folder)
            if config.checks.rivals:
                document = add_train_rivals(config, folder, document)
    return TrainResult(document, None if "evaluate_only" in document else folder, speaks=first)
