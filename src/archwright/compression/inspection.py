"""A sub-network beside the original: what both answer to a text, and on which rows and classes they differ."""

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods import load_evaluator
from archwright.compression.run import load_run
from archwright.data.tasks.rows import TextRows
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network, max_length_of
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import predict
from archwright.store import RunFolder
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import TaskData

MOST_CHARACTERS = 5000
"""Of a text to try."""
ROUNDS = 5
"""Passes of which the middle one is the time of an answer."""
NEW_TOKENS = 40
MOST_DIFFERENT = 100
"""Texts on which networks differ that are shown."""
LONGEST_SHOWN = 600
"""Characters of such a text."""


class ComparedNetworks(NamedTuple):
    """A sub-network and the original, each with the rows as it reads them."""

    evaluator: SubnetEvaluator
    network: PrunedNetwork
    original: PrunedNetwork

    @property
    def sides(self) -> dict[str, tuple[PrunedNetwork, TaskData]]:
        context = self.evaluator.context
        return {
            "original": (self.original, context.original_data),
            "subnetwork": (self.network, context.task_data),
        }


def answer_question(question: str, run: str, trial: int, **more: Any) -> dict[str, Any]:
    """`try` a text (`text`, `pair`), or `inspect` the test rows."""
    questions: dict[str, Callable[..., dict[str, Any]]] = {"try": answer_text, "inspect": inspect_rows}
    path = Path(run)
    changed = (path / "result.json").stat().st_mtime_ns if (path / "result.json").exists() else 0
    return questions[question](load_pair(path, trial, changed), trial=trial, **more)


@lru_cache(maxsize=2)
def load_pair(path: Path, trial: int, changed: int) -> ComparedNetworks:
    """`changed` is the time of the result: a run that went on is loaded again."""
    config = load_run(path).member(trial).config
    evaluator = open_run(path, changed)
    return ComparedNetworks(evaluator, evaluator.extract(config), load_original(path, changed))


@lru_cache(maxsize=1)
def open_run(path: Path, changed: int) -> SubnetEvaluator:
    torch.set_num_threads(1)  # as latencies of the run are measured; the search beside it needs the others
    return load_evaluator(RunFolder(path))


@lru_cache(maxsize=1)
def load_original(path: Path, changed: int) -> PrunedNetwork:
    return load_saved_network(RunFolder(path).original).eval()


def answer_text(pair: ComparedNetworks, *, trial: int, text: str, pair_text: str = "") -> dict[str, Any]:
    """Both answers and their milliseconds, schema archwright/answers/1: labels with probabilities, or written text."""
    if not text.strip() or len(text) > MOST_CHARACTERS:
        raise BadInput(f"the text must have 1 to {MOST_CHARACTERS:,} characters, got {len(text):,}.")
    task = pair.evaluator.context.task_data.task
    answers = {}
    for side, (network, data) in pair.sides.items():
        room = min(max_length_of(network), pair.evaluator.context.config.data.max_length)
        if task.kind == "lm":
            answers[side] = write_text(network, data, text, room)
        elif task.kind in ("classification", "multi-label", "regression") and (
            task.labels or task.kind == "regression"
        ):
            answers[side] = classify(network, data, text, pair_text, room)
        else:
            raise BadInput(f"texts can be tried with classifiers and language models, not yet with {task.kind}.")
    return {"schema": "archwright/answers/1", "trial": trial, "kind": task.kind, "text": text, **answers}


def classify(network: PrunedNetwork, data: TaskData, text: str, pair_text: str, room: int) -> dict[str, Any]:
    """Probability of every label, or the number that is predicted."""
    texts = (text, pair_text) if pair_text else (text,)
    encoded = data.tokenizer(*texts, truncation=True, max_length=room, return_tensors="pt")
    names = {"input_ids", "attention_mask", "token_type_ids"}
    inputs = {name: value for name, value in encoded.items() if name in names}
    logits, milliseconds = time_answer(lambda: network(**inputs).logits[0])
    if not data.task.labels:
        return {"value": float(logits.squeeze()), "milliseconds": milliseconds, "tokens": inputs["input_ids"].shape[1]}
    independent = TASK_KINDS[data.task.kind].independent
    shares = torch.sigmoid(logits) if independent else torch.softmax(logits.float(), -1)
    labels = {name: float(share) for name, share in zip(data.task.labels, shares.tolist(), strict=True)}
    return {"labels": labels, "milliseconds": milliseconds, "tokens": int(inputs["input_ids"].shape[1])}


def time_answer(answer: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, float]:
    """The answer, and the middle of the times it took."""
    times, found = [], torch.empty(0)
    with torch.no_grad():
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            found = answer()
            times.append(1e3 * (time.perf_counter() - begun))
    return found, float(np.median(times))


def write_text(network: PrunedNetwork, data: TaskData, text: str, room: int) -> dict[str, Any]:
    """How a language model goes on, always with the likeliest token, and the time of one token."""
    ids = data.tokenizer(text, return_tensors="pt")["input_ids"][:, -max(1, room - NEW_TOKENS) :]
    begun, written = time.perf_counter(), 0
    with torch.no_grad():
        state = network(input_ids=ids, use_cache=True, logits_to_keep=1)
        tokens: list[int] = []
        for _ in range(min(NEW_TOKENS, max(1, room - ids.shape[1]))):
            token = state.logits[:, -1].argmax(-1, keepdim=True)
            if int(token) == data.tokenizer.eos_token_id:
                break
            tokens.append(int(token))
            written += 1
            state = network(input_ids=token, past_key_values=state.past_key_values, use_cache=True, logits_to_keep=1)
    seconds = time.perf_counter() - begun
    return {
        "written": data.tokenizer.decode(tokens),
        "milliseconds": 1e3 * seconds / max(1, written),
        "tokens": written,
    }


def inspect_rows(pair: ComparedNetworks, *, trial: int) -> dict[str, Any]:
    """Errors by class, confusion matrices and texts where the answers differ, on test rows: archwright/inspect/1."""
    task = pair.evaluator.context.task_data.task
    labels = list(task.labels)
    document: dict[str, Any] = {"schema": "archwright/inspect/1", "trial": trial, "labels": labels, "note": None}
    rows = task.splits["test"]
    if task.kind not in ("classification", "regression") or not isinstance(rows, TextRows):
        return document | {"note": f"Classes and texts are compared for classifiers, not for {task.kind}."}
    answers = {side: predict(network, data.test) for side, (network, data) in pair.sides.items()}
    targets = pair.evaluator.context.task_data.encoded["test"].targets
    document |= {"rows": len(targets), "different": different_texts(rows, answers, targets, labels)}
    if not labels:
        return document
    document["confusion"] = {side: confusion(given, targets, len(labels)) for side, given in answers.items()}
    document["agreement"] = float(np.mean(answers["original"] == answers["subnetwork"]))
    return document


def confusion(answers: NDArray[Any], targets: NDArray[Any], classes: int) -> list[list[int]]:
    """Rows are classes as labelled, columns as answered."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (targets.astype(np.int64), answers.astype(np.int64)), 1)
    matrix: list[list[int]] = counts.tolist()
    return matrix


def different_texts(
    rows: TextRows, answers: dict[str, NDArray[Any]], targets: NDArray[Any], labels: list[str]
) -> list[dict[str, Any]]:
    """Texts with both answers: what the sub-network lost first, then what it gained; of numbers the furthest apart."""
    before, after = answers["original"], answers["subnetwork"]
    if labels:
        apart = np.flatnonzero(before != after)
        gained = (after == targets)[apart].astype(int) + (before != targets)[apart].astype(int)
        order = apart[np.argsort(gained, kind="stable")]
    else:
        order = np.argsort(-np.abs(before - after), kind="stable")

    def word(value: Any) -> Any:
        return labels[int(value)] if labels else round(float(value), 4)

    texts = [column for column in rows.columns if column is not None]
    return [
        {
            "text": " ⏐ ".join(str(column[at])[:LONGEST_SHOWN] for column in texts),
            "target": word(targets[at]),
            "original": word(before[at]),
            "subnetwork": word(after[at]),
        }
        for at in order[:MOST_DIFFERENT].tolist()
    ]
