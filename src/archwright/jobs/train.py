"""`archwright train`: pre-train, distil, fine-tune or evaluate one network."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.jobs import training_options as to
from archwright.jobs.idle import given, refuse
from archwright.jobs.lessons.ablation import ablated
from archwright.jobs.lessons.brief import Brief
from archwright.jobs.lessons.glue import all_tasks
from archwright.jobs.lessons.running import evaluated, first_process, run_course
from archwright.progress import quiet
from archwright.report.train import train_lines

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Trained:
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


def train(
    pupil: to.Pupil, lesson: to.Lesson, pace: to.Pace, data: to.Data, checks: to.Checks, output: o.Output
) -> Trained:
    """The trained network with its log and its metrics, in a run folder."""
    brief = Brief(pupil, lesson, pace, data, checks, output)
    check_lesson(brief)
    folder = output.out or usual_folder(brief)
    first = first_process()
    with nullcontext() if first else quiet():
        way = next((way for asked, way in WAYS if asked(brief)), run_course)
        document = way(brief, folder)
    return Trained(document, None if "evaluate_only" in document else folder, speaks=first)


WAYS: tuple[tuple[Callable[[Brief], bool], Callable[[Brief, Path], dict[str, Any]]], ...] = (
    (lambda brief: bool(brief.checks.ablate_steps), ablated),
    (lambda brief: brief.data.glue is not None, all_tasks),
    (lambda brief: brief.checks.evaluate_only, evaluated),
)
"""What is not one training, and when it is wanted."""


def check_lesson(brief: Brief) -> None:
    """What the lesson cannot use, before anything is read."""
    brief.recipe  # noqa: B018 - raises for numbers out of range
    teacher, needs = brief.lesson.teacher, brief.way.teacher
    if needs and teacher is None:
        raise BadInput(f"--lesson {brief.name} needs --teacher, for example minilm.")
    if needs is False and teacher is not None:
        raise BadInput(f"--lesson {brief.name} learns without a teacher, got --teacher {teacher}; leave it out.")
    if needs and brief.checks.evaluate_only:
        raise BadInput(f"--lesson {brief.name} keeps no way back to its teacher; --evaluate-only needs another lesson.")
    if brief.pace.checkpoint_seconds < 0 or brief.lesson.teacher_epochs < 0:
        raise BadInput("--checkpoint-seconds and --teacher-epochs must not be negative.")
    if brief.data.validation_rows < 0:
        raise BadInput(f"--validation-rows must not be negative, got {brief.data.validation_rows}; 0 takes all.")
    if brief.pace.minutes is not None and brief.pace.minutes <= 0:
        raise BadInput(f"--minutes must be above zero, got {brief.pace.minutes}.")
    check_idle(brief)


TEXT_TOO = {"--max-length", "--validation-rows"}
"""What a lesson on text takes of the options about a task."""
OF_TEXT = {"--layout", "--corpus-validation"}
OF_TEACHER = {"--teacher-epochs", "--teacher-learning-rate"}
IDLE = {"--model": {"--space", "--variant", "--tokenizer", "--vocabulary"}, "--design": {"--space", "--variant"}}
"""What a network that is named in this way says by itself."""
NETWORKS = {"--config", *IDLE}


def check_idle(brief: Brief) -> None:
    """Refuses what would have no effect."""
    pupil, lesson, ablating = given(brief.pupil), given(brief.lesson), bool(brief.checks.ablate_steps)
    on_a_task = brief.way.head is None or ablating
    of_task = given(brief.data) - TEXT_TOO | pupil & {"--pooling"}
    refuse(() if on_a_task else of_task, "without a lesson on a task")
    refuse(lesson & OF_TEXT if brief.way.head is None else (), "without a lesson on --corpus")
    taught = on_a_task and brief.lesson.teacher
    refuse(() if taught else lesson & OF_TEACHER, "without a --teacher that learns the task first")
    refuse(() if ablating else given(brief.checks) & {"--random"}, "without --ablate-steps")
    for network, idle in IDLE.items():
        refuse(pupil & idle if len(pupil & NETWORKS) == 1 and network in pupil else (), f"beside {network}")


def usual_folder(brief: Brief) -> Path:
    """Of the network, the lesson and the data."""
    pupil, data = brief.pupil, brief.data
    network = pupil.model or (pupil.design and pupil.design.parent.name) or pupil.space or "network"
    what = brief.lesson.corpus or data.task or data.train or data.glue or "task"
    parts = (Path(str(network)).name, brief.name, Path(str(what)).stem)
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )
