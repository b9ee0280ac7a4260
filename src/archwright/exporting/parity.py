"""Proof that an exported network computes what the sub-network computes, in numbers and in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from archwright.exporting.folder import SCHEMA
from archwright.exporting.kinds import task_export

Inputs = Mapping[str, Tensor]
Run = Callable[[Inputs], Tensor]
TestError = Callable[[Run], float]
"""Error of a network on the task's test rows."""
Latency = Callable[[Run], Mapping[str, Any]]
"""Times the exported network; its answer goes into the report: milliseconds, the original's, tokens and runtimes."""


@dataclass(frozen=True)
class Difference:
    """How far two networks are apart on some batches."""

    largest: float
    """Largest absolute difference of two logits."""
    largest_logit: float
    same_predictions: float | None
    """Share of equal answers (labels, choices, ends of a span, next tokens); None for regression."""
    shapes: list[dict[str, float]]
    """Rows, length and largest difference of every batch, and how many choices a row has if it has any."""

    @property
    def share(self) -> float:
        """The largest difference in units of the largest logit or of 1, which the limits are about."""
        return self.largest / max(1.0, self.largest_logit)


@dataclass(frozen=True)
class Int8Report:
    """The 8-bit twin of an export; its difference is reported, not limited."""

    file: str
    bytes: int
    difference: Difference
    latency: Mapping[str, Any] | None
    test_error: float | None = None
    """On the task's test rows, beside `Parity.test_error`; None where there is no task."""


@dataclass(frozen=True)
class Parity:
    """What an export is, and how far it is from the network that was exported."""

    format: str
    kind: str
    """The kind of task."""
    family: str
    layers: list[list[int]]
    """Heads and units of every layer of the network that was exported."""
    pooling: str
    limit: float
    """Largest allowed difference, in units of the largest logit or of 1."""
    difference: Difference
    parameters: int
    """Of the network that was exported."""
    stored_parameters: int
    """Of the checkpoint: zeros and a pooling layer are more, constants that were merged are fewer."""
    bytes: int
    """Size of the file with the weights."""
    files: dict[str, int]
    """Every file of the folder but the report and the model card, with its size in bytes."""
    latency: Mapping[str, Any] | None
    int8: Int8Report | None
    test_error: float | None = None
    """Of the exported network, where there is an 8-bit twin to compare it with."""
    test_rows: int | None = None
    """Rows that these errors are about."""
    weights: str = "float32"
    """Precision of the stored weights; logits are compared in float32 in any case."""
    notes: tuple[str, ...] = ()
    """What was made smaller beside the layers: tokens kept, texts touched, rank and width."""

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "difference_share": self.difference.share}


def compare_outputs(reference: Run, run: Run, batches: Sequence[Inputs], *, kind: str) -> Difference:
    """Compares the two on every batch, with at least one batch; logits of one batch at a time are in memory."""
    task, shapes, logits = task_export(kind), [], []
    same = [torch.empty(0, dtype=torch.bool)]
    for batch in batches:
        with torch.inference_mode():
            ours, theirs = reference(dict(batch)).float(), run(batch).float()
            answers = task.select_answers(ours, batch), task.select_answers(theirs, batch)
            if answers[0].shape[-1] > 1:  # a regression has a single output and no answers to compare
                same.append((answers[0].argmax(-1) == answers[1].argmax(-1)).flatten())
            ours, theirs = task.select_logits(ours, batch), task.select_logits(theirs, batch)
            logits.append(float(ours.abs().max()))
            rows, *choices, length = batch["input_ids"].shape
            shape = {"rows": rows, "length": length} | ({"choices": choices[0]} if choices else {})
            shapes.append(shape | {"largest": float((ours - theirs).abs().max())})
    equal = torch.cat(same).float()
    return Difference(
        largest=float(torch.tensor([shape["largest"] for shape in shapes]).max()),  # not a number if one is none
        largest_logit=max(logits),
        same_predictions=float(equal.mean()) if len(equal) else None,
        shapes=shapes,
    )


def varied_batches(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int = 128,
) -> list[dict[str, Tensor]]:
    """Batches of several shapes: the shortest text, the longest, the middle one, and eight of all lengths together."""
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]) + (len(pairs[row]) if pairs else 0))
    spread = [order[place * (len(order) - 1) // 7] for place in range(8)]
    chosen = [[order[0]], [order[-1]], [order[len(order) // 2]], spread, order[:3]]
    batches = []
    for rows in chosen:
        second = [pairs[row] for row in rows] if pairs else None
        options = {"padding": True, "truncation": True, "max_length": max_length, "return_tensors": "pt"}
        batches.append(dict(tokenizer([texts[row] for row in rows], second, **options)))
    return batches


def latency_words(latency: Mapping[str, Any]) -> str:
    """Milliseconds with their length and runtime beside those of the original."""
    time = "{median:.2f} ms ({low:.2f} to {high:.2f}) for one text of {length} tokens on one thread in {runtime}"
    other = "{original:.2f} ms of the original in {original_runtime} (ratio {ratio:.2f})"
    return f"{time}, {other}".format(**latency)


def difference_words(difference: Difference) -> str:
    shapes = ", ".join(" x ".join(f"{size:.0f}" for size in shape_sizes(shape)) for shape in difference.shapes)
    same = difference.same_predictions
    labels = "" if same is None else f", {same:.1%} of the predictions equal"
    return f"largest logit difference {difference.largest:.1e} on batches of {shapes}{labels}"


def shape_sizes(shape: Mapping[str, float]) -> list[float]:
    """The sizes of a batch in their order: rows, choices if there are any, length."""
    return [shape[name] for name in ("rows", "choices", "length") if name in shape]
