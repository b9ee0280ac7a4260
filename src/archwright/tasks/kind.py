"""The record of a kind of task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

EVALUATION_TOKENS = 3072
"""Padded tokens per batch of an evaluation: large enough for the matrices, small enough for the cache."""


IMPORTANCE_TOKENS = 16_384
"""Tokens of training rows on which the importance of heads and units is measured."""


@dataclass(frozen=True)
class TimeShares:
    """What the steps of `compress` may take of --minutes; search and measuring have what they leave."""

    original: float = 0.25
    """Fine-tuning of the original."""
    training: float = 0.35
    """After this part of the time the super-network's training ends."""
    candidates: float = 0.4
    """Pruned and repaired networks, and those that are trained by themselves: few sizes that are better than shared
    weights make them."""


@dataclass(frozen=True)
class Reference:
    """Something of another room, imported when it is used: records are read where neither torch nor that room is."""

    target: str
    """module:attribute"""

    def load(self) -> Any:
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class TaskKind:
    """What a network answers, and everything that follows from it.

    A package adds one with an entry point of the group `archwright.tasks` whose object is such a record.
    """

    metric: str
    """Of tasks that have no official one: one of statistics.METRICS, ANSWER_METRICS, VECTOR_METRICS or perplexity."""
    network: Reference
    """Class of its networks, a PrunedNetwork."""
    stock_head: Reference
    """StockHead: the head that checkpoints bring for it."""
    export: Reference
    """TaskExport: how its networks are exported and used."""
    outputs: Reference
    """PrunedConfig, vectors of the norm after the last layer -> number of outputs and OutputHead, to count costs."""
    scores: Reference
    """TaskData, network, batches -> metrics by name, for reports; higher is better but for perplexity."""
    export_batches: Reference = Reference("archwright.compression.export:mixed_batches")
    """Encoded rows -> a few batches of several shapes, on which an export is compared with its network."""
    metrics: tuple[str, ...] = ()
    """Reported for tasks that nobody has made official ones for, where `scores` compares labels."""
    judged_by: tuple[str, ...] = ()
    """What --metric may name beside `metric`; a kind with one answer per row can be judged by a user's function too."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of these metrics."""
    evaluation_tokens: int = EVALUATION_TOKENS
    batch_size: int = 32
    """Texts per training step of `compress` where none are asked for."""
    importance_tokens: int = IMPORTANCE_TOKENS
    importance_span: int | None = None
    """Tokens whose effects are added up before they are squared for the Fisher information; None: all of a text."""
    shares: TimeShares = TimeShares()
    distil_epochs: float = 3.0
    """Passes over the training rows of the networks of a few sizes that `compress` trains by themselves."""
    per_row: bool = False
    """Whether a row has one answer, however its text is cut into tokens: a few numbers, kept for all rows."""
    independent: bool = False
    """Whether each output is a yes or no of its own: sigmoids, binary cross-entropy, a threshold per label."""
    several_texts: bool = False
    """Whether a row is several texts, one per label, so that inputs are rows x texts x time."""
    teach: Reference | None = None
    """RunContext, original -> RunContext whose targets are answers of the original, which is then not fine-tuned; None:
    the data holds the targets."""
    load: Reference | None = None
    """TaskRequest -> UnsplitTask, for a kind that is asked for by its name (--task NAME); None: a task is of this kind
    by what its data holds."""
    answer: Reference | None = None
    """Network, TaskData, AskedText -> what it answers to a text that somebody typed (compression/answering.py)."""
    compare: Reference | None = None
    """Both networks with their TaskData -> where they differ on test rows (compression/differences.py)."""
    asked: tuple[str, str] = ("Text", "")
    """What the live page calls the text to type, and the second one; empty: there is none."""
    needs_second: bool = False
    """Whether a text alone cannot be answered."""
    recognise: Reference | None = None
    """TaskRequest and the first row (None where files hold no lists) -> whether rows are of this kind, which has a
    `load`, though nobody asked for it by its name."""
