"""Where a sub-network and the original differ on the test rows: one function per kind of answer, named by task kinds.

Each gives a part of the document archwright/inspect/1: `classes` (a number of both for every label, tag or kind of
question), `confusion` where labels exclude each other, `agreement`, and `different`: texts with both answers, what the
sub-network lost first. Texts are put together from the tokens that the run keeps, so that no other file is needed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from archwright.data.batching import Batch, evaluation_batches
from archwright.data.encoding import NO_TARGET, Encoded
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import (
    WordTags,
    finite,
    in_row_order,
    map_logits,
    pair_cosines,
    predict,
    predict_logits,
    predict_spans,
    predict_tags,
    sigmoid,
)
from archwright.statistics.spans import MARKED, span_counts
from archwright.statistics.squad import ANSWER_SCORES
from archwright.tasks.token_classification import marks_spans
from archwright.training.task_data import TaskData

MOST_DIFFERENT = 100
"""Texts on which networks differ that are shown."""
LONGEST_SHOWN = 600
"""Characters of such a text."""
MOST_BLOCKS = 200
"""Test rows of a language model: its losses are by token, and a block has hundreds."""
MOST_TOKENS, FEWEST_TOKENS = 40, 3
"""Tokens whose loss changes most, and how often they must occur."""
ASKING = ("what", "who", "when", "where", "which", "why", "how")
BETWEEN = " ⏐ "
"""Between two texts of a row."""
LOST, WON, OTHER = "lost", "won", ""
Sides = Mapping[str, tuple[PrunedNetwork, TaskData]]
"""`original` and `subnetwork`."""
Values = dict[str, NDArray[Any]]
Part = dict[str, Any]


def compare_classes(sides: Sides) -> Part:
    """Errors by class, confusion matrices, and texts that are classified otherwise."""
    data = sides["subnetwork"][1]
    labels, encoded = list(data.task.labels), data.encoded["test"]
    answers = {side: predict(network, own.test) for side, (network, own) in sides.items()}
    targets = encoded.targets
    matrices = {side: confusion(given, targets, len(labels)) for side, given in answers.items()}
    totals = np.bincount(targets.astype(np.int64), minlength=len(labels))
    wrong = {side: 1 - np.diag(matrix) / np.maximum(totals, 1) for side, matrix in matrices.items()}
    names = np.array(labels, dtype=object)
    named = {side: names[given.astype(np.int64)] for side, given in answers.items()}
    return {
        **agreement(answers),
        "classes": class_table("error", labels, totals, wrong, lower_is_better=True),
        "confusion": {side: matrix.tolist() for side, matrix in matrices.items()},
        "different": changed_rows(data, encoded, named, names[targets.astype(np.int64)]),
    }


def compare_numbers(sides: Sides) -> Part:
    """Texts whose predicted numbers are furthest apart."""
    data = sides["subnetwork"][1]
    encoded = data.encoded["test"]
    answers = {side: predict(network, own.test) for side, (network, own) in sides.items()}
    order = np.argsort(-np.abs(answers["original"] - answers["subnetwork"]), kind="stable")
    return {
        "rows": len(encoded),
        "note": "Numbers have no classes; below are the texts whose numbers are furthest apart.",
        "different": number_rows(data, encoded, answers, encoded.targets, order),
    }


def compare_label_sets(sides: Sides) -> Part:
    """F1 by label, with the thresholds of each network, and texts that get other labels."""
    data = sides["subnetwork"][1]
    labels, encoded = list(data.task.labels), data.encoded["test"]
    given = {
        side: sigmoid(predict_logits(network, own.test)) > own.thresholds(network)
        for side, (network, own) in sides.items()
    }
    targets = encoded.targets.astype(bool)
    f1 = {
        side: 2 * (sets & targets).sum(0) / np.maximum(sets.sum(0) + targets.sum(0), 1) for side, sets in given.items()
    }

    def words(sets: NDArray[np.bool_]) -> NDArray[Any]:
        named = [", ".join(name for name, has in zip(labels, row, strict=True) if has) or "none" for row in sets]
        return np.array(named, dtype=object)

    return {
        **agreement(given),
        "classes": class_table("F1", labels, targets.sum(0), f1),
        "different": changed_rows(data, encoded, {side: words(sets) for side, sets in given.items()}, words(targets)),
    }


def compare_choices(sides: Sides) -> Part:
    """Rows in which another choice is taken."""
    data = sides["subnetwork"][1]
    encoded = data.encoded["test"]
    answers = {side: predict(network, own.test) for side, (network, own) in sides.items()}
    count = encoded.choices
    parts = [[row_text(data, encoded, count * at + n) for n in range(count)] for at in range(len(encoded))]
    named = {side: choice_words(parts, given) for side, given in answers.items()}
    texts = [text.split(BETWEEN)[0] for text, *_ in parts]
    return {
        **agreement(answers),
        "note": "Choices of different rows have nothing in common: there are no classes to count errors by.",
        "different": changed_rows(data, encoded, named, choice_words(parts, encoded.targets), texts=texts),
    }


def choice_words(parts: Sequence[Sequence[str]], chosen: NDArray[Any]) -> NDArray[Any]:
    """The chosen one of the texts of every row, without what all of them begin with."""
    words = [texts[int(at)].split(BETWEEN)[-1] for texts, at in zip(parts, chosen, strict=True)]
    return np.array(words, dtype=object)


def compare_spans(sides: Sides) -> Part:
    """Answers to questions: the score by kind of question, and those that are answered otherwise."""
    data = sides["subnetwork"][1]
    encoded = data.encoded["test"]
    windows = encoded.windows
    assert windows is not None
    answers, scores = {}, {}
    for side, (network, own) in sides.items():
        rows = own.encoded["test"].windows
        assert rows is not None
        answers[side] = rows.texts(predict_spans(network, own.test))
        scores[side] = np.array(ANSWER_SCORES[data.task.metric](answers[side], rows.answers))
    first = np.unique(windows.owners, return_index=True)[1]  # a window of every question
    questions = [row_text(data, encoded, int(at)).split(BETWEEN)[0] for at in first]
    kinds = np.array([asking_word(question, right) for question, right in zip(questions, windows.answers, strict=True)])
    names = [name for name in (*ASKING, "other", "no answer") if (kinds == name).any()]
    means = {side: np.array([own[kinds == name].mean() for name in names]) for side, own in scores.items()}
    apart = np.array([a != b for a, b in zip(answers["original"], answers["subnetwork"], strict=True)])
    order = np.flatnonzero(apart)
    change = scores["subnetwork"] - scores["original"]
    different = [
        {
            "text": questions[at][:LONGEST_SHOWN],
            "target": windows.answers[at][0] if windows.answers[at] else "no answer",
            "original": answers["original"][at] or "no answer",
            "subnetwork": answers["subnetwork"][at] or "no answer",
            "change": LOST if change[at] < 0 else WON if change[at] > 0 else OTHER,
        }
        for at in order[np.argsort(change[order], kind="stable")][:MOST_DIFFERENT].tolist()
    ]
    counts = np.array([(kinds == name).sum() for name in names])
    measure = data.task.metric.replace("_", " ")
    return {
        "rows": len(questions),
        "agreement": float(1 - apart.mean()),
        "classes": class_table(measure, names, counts, means),
        "different": different,
    }


def asking_word(question: str, right: Sequence[str]) -> str:
    """Which kind of question it is: by its first asking word; those without an answer are a kind of their own."""
    if not right:
        return "no answer"
    words = question.lower().replace("'", " ").split()
    return next((word for word in words if word in ASKING), "other")


def compare_tags(sides: Sides) -> Part:
    """F1 by type of span, or accuracy by tag, and sentences whose words are tagged otherwise."""
    data = sides["subnetwork"][1]
    labels, encoded = list(data.task.labels), data.encoded["test"]
    answers = {side: predict_tags(network, own.test) for side, (network, own) in sides.items()}
    before, after = answers["original"], answers["subnetwork"]
    scores: Values = {}
    if marks_spans(labels):
        names = sorted({match[2] for tag in labels if (match := MARKED.fullmatch(tag))})
        for side, words in answers.items():
            scores[side] = np.array([span_f1(words, only_type(labels, name)) for name in names])
        measure, counts = "F1 of spans", count_spans(labels, names, before.targets, before.rows)
    else:
        names, measure = labels, "accuracy"
        counts = np.bincount(before.targets, minlength=len(labels))
        for side, words in answers.items():
            right = np.bincount(words.targets, weights=words.answers == words.targets, minlength=len(labels))
            scores[side] = right / np.maximum(counts, 1)
    return {
        "rows": before.total,
        "agreement": float(np.mean(before.answers == after.answers)),
        "of": "words",
        "classes": class_table(measure, names, counts, scores),
        "different": changed_sentences(data, encoded, before, after),
    }


def span_f1(words: WordTags, tags: Sequence[str]) -> float:
    right, whole = span_counts(words.answers, words.targets, words.rows, tags=tags, total=words.total)
    return float(right.sum() / max(whole.sum(), 1.0))


def only_type(labels: Sequence[str], name: str) -> list[str]:
    """The tags, as if there were no other type of span."""
    return [tag if (match := MARKED.fullmatch(tag)) and match[2] == name else "O" for tag in labels]


def count_spans(
    labels: Sequence[str], names: Sequence[str], targets: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[Any]:
    def count(tags: Sequence[str]) -> int:
        right, _ = span_counts(targets, targets, rows, tags=tags, total=int(rows.max(initial=0)) + 1)
        return round(right.sum() / 2)

    return np.array([count(only_type(labels, name)) for name in names])


def changed_sentences(data: TaskData, encoded: Encoded, before: WordTags, after: WordTags) -> list[Part]:
    """Sentences with words that are tagged otherwise, those first in which most words were lost."""
    lost = (before.answers == before.targets).astype(int) - (after.answers == before.targets)
    apart = before.answers != after.answers
    rows = np.unique(before.rows[apart])
    net = np.bincount(before.rows, weights=lost, minlength=before.total)
    labels, different = data.task.labels, []
    for row in rows[np.argsort(-net[rows], kind="stable")][:MOST_DIFFERENT].tolist():
        own = np.flatnonzero(before.rows == row)
        words = sentence_words(data, encoded, row)
        changed = [(place, at) for place, at in enumerate(own.tolist()) if apart[at]]

        def tagged(tags: NDArray[np.int64], changed: list[tuple[int, int]] = changed, words: list[str] = words) -> str:
            return ", ".join(f"{words[place]} {labels[tags[at]]}" for place, at in changed)

        different.append(
            {
                "text": " ".join(words)[:LONGEST_SHOWN],
                "target": tagged(before.targets),
                "original": tagged(before.answers),
                "subnetwork": tagged(after.answers),
                "change": LOST if net[row] > 0 else WON if net[row] < 0 else OTHER,
            }
        )
    return different


def sentence_words(data: TaskData, encoded: Encoded, row: int) -> list[str]:
    """The words of a sentence that have a tag: their tokens, each from its first to before the next word's."""
    ids = encoded.ids[encoded.offsets[row] : encoded.offsets[row + 1]]
    starts = np.flatnonzero(encoded.targets[row][: len(ids)] != NO_TARGET)
    return [data.tokenizer.decode(part, skip_special_tokens=True).strip() for part in np.split(ids, starts)[1:]]


def compare_vectors(sides: Sides) -> Part:
    """Similarities of pairs, or how alike the vectors of both are, the furthest apart first."""
    data = sides["subnetwork"][1]
    encoded = data.encoded["test"]
    if encoded.choices == 2:
        answers = {
            side: in_row_order(map_logits(network, own.test, None, lambda _, x: pair_cosines(x)), own.test)
            for side, (network, own) in sides.items()
        }
        order = np.argsort(-np.abs(answers["original"] - answers["subnetwork"]), kind="stable")
        scored = encoded.targets.ndim == 1
        targets = encoded.targets if scored else None
        texts = [BETWEEN.join(row_text(data, encoded, 2 * at + n) for n in (0, 1)) for at in range(len(encoded))]
        note = "Vectors have no classes; below are the pairs whose similarities are furthest apart."
        different = number_rows(data, encoded, answers, targets, order, texts=texts)
        return {"rows": len(encoded), "note": note, "different": different}
    vectors = {
        side: in_row_order(map_logits(network, own.test, None, lambda _, x: finite(x).float().cpu()), own.test)
        for side, (network, own) in sides.items()
    }
    before, after = (own.reshape(len(encoded), -1) for own in vectors.values())
    alike = np.sum(before * after, -1) / (np.linalg.norm(before, axis=-1) * np.linalg.norm(after, axis=-1))
    order = np.argsort(alike, kind="stable")
    middle, low = np.median(alike), np.quantile(alike, 0.05)
    note = (
        f"Vectors have no classes. The cosine of both vectors of a text is {middle:.3f} in the middle, below {low:.3f} "
        "for one text in twenty; below are the texts whose vectors are least alike."
    )
    different = [
        {
            "text": row_text(data, encoded, at)[:LONGEST_SHOWN],
            "target": None,
            "original": 1.0,
            "subnetwork": round(float(alike[at]), 4),
            "change": OTHER,
        }
        for at in order[:MOST_DIFFERENT].tolist()
    ]
    return {"rows": len(encoded), "note": note, "different": different}


def compare_losses(sides: Sides) -> Part:
    """Perplexity of every block of text, and the tokens whose loss changes most."""
    data = sides["subnetwork"][1]
    encoded = data.encoded["test"].first(MOST_BLOCKS)
    losses: Values = {}
    for side, (network, own) in sides.items():
        rows = evaluation_batches(own.encoded["test"].first(MOST_BLOCKS), tokens=own.evaluation_tokens)
        losses[side] = in_row_order(map_logits(network, rows, None, token_losses), rows)  # rows x time
    asked = encoded.targets != NO_TARGET
    counts = asked.sum(axis=1)
    perplexities = {side: np.exp(np.where(asked, own, 0.0).sum(1) / counts) for side, own in losses.items()}
    order = np.argsort(-np.log(perplexities["subnetwork"] / perplexities["original"]), kind="stable")
    total = len(data.encoded["test"])
    some = f"Of {total:,} test rows the first {len(encoded):,}. " if total > len(encoded) else ""
    cut = data.uncut is not None
    note = "Tokens are not the same ones where the vocabulary was cut: losses are by text alone." if cut else ""
    return {
        "rows": len(encoded),
        "of": "blocks of tokens",
        "note": f"{some}{note}".strip() or None,
        "classes": None if cut else token_table(data, encoded, losses, asked),
        "different": number_rows(data, encoded, perplexities, None, order),
        "measure": "perplexity",
    }


def token_losses(batch: Batch, logits: torch.Tensor) -> torch.Tensor:
    """Loss of every token: rows x time, 0 where nothing follows."""
    rows = [
        nn.functional.cross_entropy(scores.float(), wanted, ignore_index=NO_TARGET, reduction="none")
        for scores, wanted in zip(logits, batch.targets, strict=True)
    ]
    return finite(torch.stack(rows)).double().cpu()


def token_table(data: TaskData, encoded: Encoded, losses: Values, asked: NDArray[np.bool_]) -> Part:
    """The tokens whose losses changed most when all their places are added up."""
    ids = encoded.targets[asked]
    names, which, counts = np.unique(ids, return_inverse=True, return_counts=True)
    sums = {side: np.bincount(which, weights=own[asked]) for side, own in losses.items()}
    change = np.where(counts >= FEWEST_TOKENS, np.abs(sums["subnetwork"] - sums["original"]), -1.0)
    shown = np.argsort(-change, kind="stable")[:MOST_TOKENS]
    shown = shown[change[shown] >= 0]
    labels = [repr(data.tokenizer.decode([int(names[at])])) for at in shown]
    means = {side: own[shown] / counts[shown] for side, own in sums.items()}
    table = class_table("loss of the token, nats", labels, counts[shown], means, lower_is_better=True)
    return table | {"format": "number"}


def agreement(answers: Values) -> Part:
    """Rows, and the share of them that both answer alike."""
    same = answers["original"] == answers["subnetwork"]
    whole = same if same.ndim == 1 else same.all(axis=1)
    return {"rows": len(whole), "agreement": float(np.mean(whole))}


def class_table(
    measure: str, names: Sequence[str], counts: NDArray[Any], values: Values, *, lower_is_better: bool = False
) -> Part:
    rows = [
        {
            "name": name,
            "count": int(counts[at]),
            **{side: float(own[at]) if counts[at] else None for side, own in values.items()},
        }
        for at, name in enumerate(names)
    ]
    return {"measure": measure, "lower_is_better": lower_is_better, "format": "share", "rows": rows}


def confusion(answers: NDArray[Any], targets: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Rows are classes as labelled, columns as answered."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (targets.astype(np.int64), answers.astype(np.int64)), 1)
    return counts


def changed_rows(
    data: TaskData,
    encoded: Encoded,
    answers: Values,
    targets: NDArray[Any],
    *,
    texts: Sequence[str] | None = None,
) -> list[Part]:
    """Rows that are answered otherwise: what the sub-network lost first, then what it gained."""
    before, after = answers["original"], answers["subnetwork"]
    apart = np.flatnonzero(before != after)
    gained = (after == targets)[apart].astype(int) - (before == targets)[apart]
    return [
        {
            "text": (row_text(data, encoded, at) if texts is None else texts[at])[:LONGEST_SHOWN],
            "target": targets[at],
            "original": before[at],
            "subnetwork": after[at],
            "change": LOST if before[at] == targets[at] else WON if after[at] == targets[at] else OTHER,
        }
        for at in apart[np.argsort(gained, kind="stable")][:MOST_DIFFERENT].tolist()
    ]


def number_rows(
    data: TaskData,
    encoded: Encoded,
    answers: Values,
    targets: NDArray[Any] | None,
    order: NDArray[np.int64],
    *,
    texts: Sequence[str] | None = None,
) -> list[Part]:
    """Rows in this order with both numbers."""
    return [
        {
            "text": (row_text(data, encoded, at) if texts is None else texts[at])[:LONGEST_SHOWN],
            "target": None if targets is None else round(float(targets[at]), 4),
            **{side: round(float(own[at]), 4) for side, own in answers.items()},
            "change": OTHER,
        }
        for at in order[:MOST_DIFFERENT].tolist()
    ]


def row_text(data: TaskData, encoded: Encoded, text: int) -> str:
    """A text as the network read it, put together from its tokens; both parts of a pair."""
    ids = encoded.ids[encoded.offsets[text] : encoded.offsets[text + 1]]
    if encoded.types is None:
        return split_at_separator(data, ids)
    types = encoded.types[encoded.offsets[text] : encoded.offsets[text + 1]]
    parts = np.split(ids, np.flatnonzero(np.diff(types)) + 1)
    return BETWEEN.join(words for part in parts if (words := decode(data, part)))


def split_at_separator(data: TaskData, ids: NDArray[np.int32]) -> str:
    """Parts between separators, for tokenizers that mark a pair with them alone."""
    mark = data.tokenizer.sep_token_id
    parts = [ids] if mark is None else np.split(ids, np.flatnonzero(ids == mark))
    return BETWEEN.join(words for part in parts if (words := decode(data, part)))


def decode(data: TaskData, ids: NDArray[np.int32]) -> str:
    return str(data.tokenizer.decode(ids, skip_special_tokens=True)).strip()


Comparing = Callable[[Sides], Part]
"""What `TaskKind.compare` names."""
