"""`archwright train`: pre-train, distil, fine-tune or evaluate one network."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs import training as to
from archwright.configs.validation import changed_flags, refuse_unused
from archwright.errors import BadInput
from archwright.progress import quiet
from archwright.reports.train import train_lines
from archwright.training.ablation import ablate_steps
from archwright.training.glue import train_glue
from archwright.training.pipeline import evaluate_only, first_process, run_training
from archwright.training.plan import TrainConfig

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


def train(config: to.TrainConfig) -> TrainResult:
    """The trained network with its log and its metrics, in a run folder."""
    output = config.output
    options = TrainConfig(**vars(config))
    check_lesson(options)
    folder = output.out or usual_folder(options)
    first = first_process()
    with nullcontext() if first else quiet():
        way = next((way for asked, way in WAYS if asked(options)), run_training)
        document = way(options, folder)
    return TrainResult(document, None if "evaluate_only" in document else folder, speaks=first)


WAYS: tuple[tuple[Callable[[TrainConfig], bool], Callable[[TrainConfig, Path], dict[str, Any]]], ...] = (
    (lambda options: bool(options.checks.ablate_steps), ablate_steps),
    (lambda options: options.data.glue is not None, train_glue),
    (lambda options: options.checks.evaluate_only, evaluate_only),
)
"""What is not one training, and when it is wanted."""


def check_lesson(options: TrainConfig) -> None:
    """What the lesson cannot use, before anything is read."""
    options.recipe  # noqa: B018 - raises for numbers out of range
    teacher, needs = options.lesson.teacher, options.way.teacher
    if needs and teacher is None:
        raise BadInput(f"--lesson {options.name} needs --teacher, for example minilm.")
    if needs is False and teacher is not None:
        raise BadInput(f"--lesson {options.name} learns without a teacher, got --teacher {teacher}; leave it out.")
    if needs and options.checks.evaluate_only:
        raise BadInput(
            f"--lesson {options.name} keeps no way back to its teacher; --evaluate-only needs another lesson."
        )
    check_idle(options)


TEXT_TOO = {"--max-length", "--validation-rows"}
"""What a lesson on text takes of the options about a task."""
OF_TEXT = {"--layout", "--corpus-validation"}
OF_TEACHER = {"--teacher-epochs", "--teacher-learning-rate"}
IDLE = {"--model": {"--space", "--variant", "--tokenizer", "--vocabulary"}, "--design": {"--space", "--variant"}}
"""What a network that is named in this way says by itself."""
NETWORKS = {"--config", *IDLE}


def check_idle(options: TrainConfig) -> None:
    """Refuses what would have no effect."""
    student, lesson, ablating = (
        changed_flags(options.student),
        changed_flags(options.lesson),
        bool(options.checks.ablate_steps),
    )
    on_a_task = options.way.head is None or ablating
    of_task = changed_flags(options.data) - TEXT_TOO | student & {"--pooling"}
    refuse_unused(() if on_a_task else of_task, "without a lesson on a task")
    refuse_unused(lesson & OF_TEXT if options.way.head is None else (), "without a lesson on --corpus")
    taught = on_a_task and options.lesson.teacher
    refuse_unused(() if taught else lesson & OF_TEACHER, "without a --teacher that learns the task first")
    refuse_unused(() if ablating else changed_flags(options.checks) & {"--random"}, "without --ablate-steps")
    for network, idle in IDLE.items():
        refuse_unused(
            student & idle if len(student & NETWORKS) == 1 and network in student else (), f"beside {network}"
        )


def usual_folder(options: TrainConfig) -> Path:
    """Of the network, the lesson and the data."""
    student, data = options.student, options.data
    network = student.model or (student.design and student.design.parent.name) or student.space or "network"
    what = options.lesson.corpus or data.task or data.train or data.glue or "task"
    parts = (Path(str(network)).name, options.name, Path(str(what)).stem)
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )
