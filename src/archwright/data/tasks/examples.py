"""Labelled texts as they were read: labels are still strings, nothing is split yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Examples:
    """One file's worth of labelled texts."""

    source: str
    """Where they come from, for messages."""
    texts: list[str]
    pairs: list[str] | None
    labels: list[str]
    choices: Mapping[str, list[str]] = field(default_factory=dict)
    """Multiple choice: column -> the choices it holds; none for other tasks."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class RawTask:
    """What a source of data knows about a task before it is split and its labels are numbered."""

    name: str
    train: Examples
    shares: Mapping[str, float]
    """Which splits are cut from `train`, and how much of it each takes."""
    validation: Examples | None = None
    test: Examples | None = None
    labels: tuple[str, ...] | None = None
    """Official names in id order; none: the sorted labels of `train`."""
    regression: bool | None = None
    """None: decided by the labels."""
    metric: str | None = None
    note: str = ""
