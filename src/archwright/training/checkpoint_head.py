"""What a checkpoint's own head has to do with a task: whether it is kept, in which order its classes are, and why."""

import re
from dataclasses import dataclass
from typing import Any

from archwright.data.files import quote_all
from archwright.data.tasks.task import Task
from archwright.errors import BadInput
from archwright.networks.stock_heads import has_head, is_multi_label, stock_head
from archwright.tasks import TASK_KINDS

UNNAMED = re.compile(r"LABEL_\d+", re.IGNORECASE)
"""What transformers calls a class that nobody named."""
OTHER_HEADS = {
    "ForTokenClassification": "token classification (--task tokens)",
    "ForQuestionAnswering": "question answering (--task squad)",
    "ForMultipleChoice": "multiple choice (--choice-columns)",
    "ForSequenceClassification": "classification",
}
"""Heads that were trained for something; those of pre-training are meant to be replaced."""


@dataclass(frozen=True)
class HeadMatch:
    """A checkpoint's head and a task."""

    labels: tuple[str, ...] = ()
    """Of the task in id order, as the checkpoint spells them where it names them."""
    kept: bool = False
    """Whether the head's weights are a start."""
    trained: bool = False
    """Whether it was trained for these very classes, so that nothing has to be trained before it is made smaller."""
    note: str = "the checkpoint has no head for a task: a new one is trained"
    """What was found, in one line."""
    refusal: str | None = None
    """Why a user has to say more, and what."""

    def check(self) -> "HeadMatch":
        """Itself, or BadInput where only the user knows which class is which."""
        if self.refusal:
            raise BadInput(self.refusal)
        return self


def match_head(config: Any, task: Task, *, head: str = "auto", order: tuple[str, ...] | None = None) -> HeadMatch:
    """Whether the head of the checkpoint with this config is for this task; `order` is what --labels says."""
    labels = task.labels
    if TASK_KINDS[task.kind].teach is not None:
        return HeadMatch(
            trained=True, note=f"{task.kind}: the checkpoint's own answers are what smaller networks learn"
        )
    if head == "new":
        return HeadMatch(labels, note="--head new: the checkpoint's own head is not used, a new one is trained")
    if not has_head(config, labels, task.kind) or is_multi_label(config) != TASK_KINDS[task.kind].independent:
        return HeadMatch(labels, note=describe_foreign(config, task))
    if not labels:
        return HeadMatch(kept=True, note=f"the checkpoint's own head for {task.kind} is a start")
    names = tuple(str(config.id2label[i]) for i in range(config.num_labels))
    if same_names(names, labels) or (stock_head(task.kind).some and are_among(labels, names)):
        return recognise(names) if order is None or in_order(order, names) else contradict(names, order)
    if not all(UNNAMED.fullmatch(name) for name in names):
        note = f"the checkpoint's head is for {quote_all(names)}, not for {quote_all(labels)}: a new one is trained"
        return HeadMatch(labels, note=note)
    if len(names) != len(order or labels):
        rule = f"--labels must name all {len(names)} outputs of the checkpoint, {quote_all(names)}"
        return HeadMatch(labels, refusal=f"{rule}, got {quote_all(order or ())}; give them all, or take --head new.")
    if order is not None:
        return recognise(order)
    if task.numbered or same_names(tuple(map(str, range(len(labels)))), labels):
        return recognise(labels)
    rule = f"the checkpoint names its classes {', '.join(names)} and the rows theirs {quote_all(labels)}"
    way = f"say with --labels which is which, in the order of {', '.join(names)}, or take --head new"
    return HeadMatch(labels, refusal=f"{rule}; {way}.")


def recognise(labels: tuple[str, ...]) -> HeadMatch:
    """A head that was trained for these classes."""
    classes = ", ".join(f"{label} = {index}" for index, label in enumerate(labels))
    return HeadMatch(labels, kept=True, trained=True, note=f"head recognised ({classes})")


def same_names(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether these are the same classes, in any order, in upper or lower case."""
    return in_order(tuple(sorted(names, key=str.casefold)), tuple(sorted(others, key=str.casefold)))


def are_among(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether each of these classes is one of the others, in upper or lower case."""
    return {*map(str.casefold, names)} <= {*map(str.casefold, others)}


def in_order(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return [*map(str.casefold, names)] == [*map(str.casefold, others)]


def contradict(names: tuple[str, ...], order: tuple[str, ...]) -> HeadMatch:
    rule = f"--labels must be in the order of the checkpoint's own classes, {quote_all(names)}"
    return HeadMatch(names, refusal=f"{rule}, got {quote_all(order)}; leave it out, or take --head new.")


def describe_foreign(config: Any, task: Task) -> str:
    """One line about a head that is for something else."""
    endings = [ending for ending in OTHER_HEADS for name in config.architectures or () if name.endswith(ending)]
    if not endings:
        return HeadMatch.note
    what = "multi-label classification (--task multi-label)" if is_multi_label(config) else OTHER_HEADS[endings[0]]
    wanted = f"{task.kind} with {len(task.labels)} classes" if task.labels else task.kind
    return (
        f"the checkpoint's head is for {what} with {config.num_labels} outputs, not for {wanted}: a new one is trained"
    )
