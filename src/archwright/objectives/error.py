"""How wrong a network, or a sub-network inside it, is on data."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from archwright.data.batching import Batch
from archwright.data.encoding import NO_TARGET
from archwright.data.windows import AnswerSpans
from archwright.errors import Failed
from archwright.networks.linear_kernel import fast_linears
from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PrunedNetwork
from archwright.statistics import ANSWER_METRICS, RATIOS
from archwright.statistics.own_metric import is_own
from archwright.statistics.paired import RowOutcomes
from archwright.statistics.spans import span_counts
from archwright.statistics.squad import ANSWER_SCORES
from archwright.statistics.vectors import neighbour_recall
from archwright.subnet.importance import evaluating
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import SubnetSpec

LONGEST_ANSWER = 30
"""Tokens of an answer to a question."""
T = TypeVar("T")


def measure_error(
    model: PrunedNetwork,
    batches: Iterable[Batch],
    spec: SubnetSpec | None = None,
    *,
    metric: str,
    positive: int | None = None,
    labels: Sequence[str] = (),
) -> float:
    """1 - metric, or the perplexity: lower is better, of the sub-network `spec` (None: the whole network).

    `positive` is the id of the class that F1 is about, for two classes whose order a checkpoint may have turned;
    `labels` are the names of the tags where words have some.
    """
    return measure_rows(model, batches, spec, metric=metric, positive=positive, labels=labels).error


def measure_rows(
    model: PrunedNetwork,
    batches: Iterable[Batch],
    spec: SubnetSpec | None = None,
    *,
    metric: str,
    positive: int | None = None,
    labels: Sequence[str] = (),
) -> RowOutcomes:
    """What the network makes of every row, in one pass: its error, and what paired comparisons need."""
    batches = list(batches)
    if metric == "perplexity":
        losses = map_logits(model, batches, spec, lambda batch, logits: text_losses(logits, batch.targets))
        tokens = [(batch.targets != NO_TARGET).sum(dim=1) for batch in batches]
        return RowOutcomes(metric, in_row_order(losses, batches), in_row_order(tokens, batches))
    if metric in ANSWER_METRICS:
        windows = batches[0].windows
        texts, right = (windows.texts(predict_spans(model, batches, spec)), windows.answers) if windows else ([], [])
        scores = np.array(ANSWER_SCORES[metric](texts, right))
        return RowOutcomes(metric, scores, np.ones_like(scores))
    if metric in RATIOS:
        return RowOutcomes(metric, *tag_counts(predict_tags(model, batches, spec), metric=metric, labels=labels))
    targets = in_row_order([batch.targets for batch in batches], batches)
    if is_own(metric):
        logits = predict_logits(model, batches, spec)
        return RowOutcomes(metric, decide(logits), targets, logits)
    if metric == "roc_auc":
        return RowOutcomes(metric, *class_scores(predict_logits(model, batches, spec), targets, positive))
    if metric == "cosine_spearman":
        answers = in_row_order(map_logits(model, batches, spec, lambda _, vectors: pair_cosines(vectors)), batches)
        return RowOutcomes("spearman", answers, targets)
    if metric == "neighbour_recall":
        vectors = in_row_order(map_logits(model, batches, spec, lambda _, x: finite(x).float().cpu()), batches)
        width = vectors.shape[-1]
        recall = neighbour_recall(vectors.reshape(-1, width), targets.reshape(-1, width))
        scores = recall.reshape(len(targets), -1).mean(axis=1)  # of the texts of a row
        return RowOutcomes(metric, scores, np.ones_like(scores))
    answers = predict(model, batches, spec)
    if positive is not None:
        answers, targets = answers == positive, targets == positive
    return RowOutcomes(metric, answers, targets)


def map_logits(
    model: PrunedNetwork, batches: Iterable[Batch], spec: SubnetSpec | None, read: Callable[[Batch, torch.Tensor], T]
) -> list[T]:
    """What is read from the logits of every batch, of which only one batch's exist at a time."""
    part = nullcontext() if spec is None else subnetwork(model, spec)
    # inference mode instead of no_grad would leak into modules that are swapped back
    with evaluating(model), torch.no_grad(), fast_linears(), part:
        return [read(batch, model(**batch.inputs).logits) for batch in (b.to(model.device) for b in batches)]


def predict(model: PrunedNetwork, batches: Iterable[Batch], spec: SubnetSpec | None = None) -> NDArray[Any]:
    """Class ids, or numbers where the network has a single output; in the order of the rows, not of the batches."""
    batches = list(batches)

    def decide(_: Batch, logits: torch.Tensor) -> torch.Tensor:  # rows x labels; the largest of NaNs is no answer
        finite(logits)
        return at_least_float32(logits.squeeze(-1) if logits.shape[-1] == 1 else logits.argmax(-1)).cpu()

    return in_row_order(map_logits(model, batches, spec, decide), batches)


class WordTags(NamedTuple):
    """Tags of all words that have one, row after row."""

    answers: NDArray[np.int64]
    targets: NDArray[np.int64]
    rows: NDArray[np.int64]
    """The row of every word, from 0 in the order of the data."""
    total: int
    """Rows, those without words included."""


def predict_tags(model: PrunedNetwork, batches: Iterable[Batch], spec: SubnetSpec | None = None) -> WordTags:
    """What the network answers at the first token of every word."""
    batches = list(batches)

    def decide(batch: Batch, logits: torch.Tensor) -> tuple[torch.Tensor, ...]:  # rows x time x tags
        asked = batch.targets != NO_TARGET
        answers = finite(logits[asked]).argmax(-1)
        return answers.cpu(), batch.targets[asked].cpu(), asked.nonzero()[:, 0].cpu()

    parts = map_logits(model, batches, spec, decide)
    answers, targets = (torch.cat([part[side] for part in parts]).numpy() for side in (0, 1))
    places = np.sort(np.concatenate([batch.rows for batch in batches]))
    rows = np.concatenate([batch.rows[part[2].numpy()] for batch, part in zip(batches, parts, strict=True)])
    rows = np.searchsorted(places, rows)
    order = np.argsort(rows, kind="stable")  # words of a row stay in their order
    return WordTags(answers[order], targets[order], rows[order], len(places))


def tag_counts(words: WordTags, *, metric: str, labels: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """What every row adds to numerator and denominator of the metric, one of RATIOS."""
    answers, targets, rows, total = words
    if metric == "entity_f1":
        return span_counts(answers, targets, rows, tags=labels, total=total)
    right = np.bincount(rows, weights=answers == targets, minlength=total)
    return right, np.bincount(rows, minlength=total).astype(np.float64)


def predict_logits(
    model: PrunedNetwork, batches: Iterable[Batch], spec: SubnetSpec | None = None
) -> NDArray[np.float64]:
    """All outputs of a network that answers per row: rows x outputs."""
    batches = list(batches)
    return in_row_order(map_logits(model, batches, spec, lambda _, logits: finite(logits).double().cpu()), batches)


def decide(logits: NDArray[np.float64]) -> NDArray[Any]:
    """Class ids, or numbers of a single output."""
    return logits[:, 0] if logits.shape[1] == 1 else logits.argmax(axis=1)


def class_scores(
    logits: NDArray[np.float64], targets: NDArray[Any], positive: int | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """What a ROC curve is made of: of two classes how much more likely the positive one is, else probabilities."""
    if logits.shape[1] == 2:
        yes = 1 if positive is None else positive
        return logits[:, yes] - logits[:, 1 - yes], targets == yes
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True), targets


def sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))


def label_outcomes(
    logits: NDArray[np.float64], targets: NDArray[np.float64], *, metric: str, thresholds: NDArray[np.float64]
) -> RowOutcomes:
    """What a network's outputs make of the rows when labels above their thresholds are given; all rows x labels."""
    probabilities = sigmoid(logits)
    if metric == "roc_auc":
        return RowOutcomes(metric, probabilities, targets)
    return label_set_outcomes((probabilities > thresholds).astype(np.float64), targets, metric=metric, logits=logits)


def label_set_outcomes(
    given: NDArray[np.float64], targets: NDArray[np.float64], *, metric: str, logits: NDArray[np.float64]
) -> RowOutcomes:
    """The same of labels that are given, 0 or 1."""
    if metric == "accuracy":  # all labels of a text are right
        return RowOutcomes(metric, (given == targets).all(axis=1), np.ones(len(given), dtype=bool))
    if metric in RATIOS:
        return RowOutcomes(metric, 2 * (given * targets).sum(1), given.sum(1) + targets.sum(1))
    return RowOutcomes(metric, given, targets, logits)


def pair_cosines(vectors: torch.Tensor) -> torch.Tensor:
    """Cosine similarities of the two texts of every row; vectors are rows x 2 x width.

    To six digits, which is what single precision holds: pairs of equal texts are then equally similar.
    """
    one, other = finite(vectors).double().unbind(1)
    return nn.functional.cosine_similarity(one, other, dim=-1).round(decimals=6).cpu()


def text_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss of the tokens with a target, added up in float64 for every text, without a copy of all logits."""
    sums = []
    for scores, wanted in zip(logits, targets, strict=True):  # time x vocabulary, time
        losses = nn.functional.cross_entropy(scores.float(), wanted, ignore_index=NO_TARGET, reduction="none")
        sums.append(finite(losses).double().sum())
    return torch.stack(sums).cpu()


def predict_spans(model: PrunedNetwork, batches: list[Batch], spec: SubnetSpec | None = None) -> AnswerSpans:
    """The best span of every window."""
    spans = map_logits(model, batches, spec, lambda batch, x: best_spans(x, batch.inputs["context_mask"]).cpu())
    score, start, end, none = in_row_order(spans, batches).T
    return AnswerSpans(score, start.astype(np.int64), end.astype(np.int64), none)


def best_spans(logits: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
    """Of rows x 2 x time scores: score, start and end of the best span, and the score of the first token (rows x 4).

    A span lies in the context behind the first token and has at most 30 tokens.
    """
    starts, ends = finite(logits).double().unbind(1)  # rows x time
    closed = context == 0
    closed[:, 0] = True
    scores = starts.masked_fill(closed, -torch.inf)[:, :, None] + ends.masked_fill(closed, -torch.inf)[:, None, :]
    allowed = torch.ones_like(scores[0], dtype=torch.bool).triu().tril(LONGEST_ANSWER - 1)  # start <= end
    best, place = scores.masked_fill(~allowed, -torch.inf).flatten(1).max(-1)
    first, last = place // scores.shape[-1], place % scores.shape[-1]
    return torch.stack([best, first.double(), last.double(), starts[:, 0] + ends[:, 0]], dim=-1)


def finite(values: torch.Tensor) -> torch.Tensor:
    if not torch.isfinite(values).all():
        raise Failed("the network answers NaN or infinity; train it again with a smaller --learning-rate.")
    return values


def in_row_order(values: Sequence[torch.Tensor], batches: Sequence[Batch]) -> NDArray[Any]:
    """One value per row, sorted by the rows' positions in the data."""
    rows = np.concatenate([batch.rows for batch in batches])
    return torch.cat(list(values)).numpy()[np.argsort(rows)]
