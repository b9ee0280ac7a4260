"""A sub-network beside the original: what both answer to a text, and on which rows and classes they differ."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from archwright.compression.answering import Answering, AskedText
from archwright.compression.differences import Comparing
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods import load_evaluator
from archwright.compression.run import load_run
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network, max_length_of
from archwright.networks.pruned import PrunedNetwork
from archwright.store import RunFolder
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import TaskData

MOST_CHARACTERS = 5000
"""Of a text to try."""


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
    """`try` a text (`text`, `pair_text`), or `inspect` the test rows."""
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
    return load_evaluator(RunFolder(path), training=False)


@lru_cache(maxsize=1)
def load_original(path: Path, changed: int) -> PrunedNetwork:
    return load_saved_network(RunFolder(path).original).eval()


def answer_text(pair: ComparedNetworks, *, trial: int, text: str, pair_text: str = "") -> dict[str, Any]:
    """Both answers and their milliseconds, schema archwright/answers/1; what an answer is depends on the task."""
    for words in (text, pair_text):
        if (words is text and not text.strip()) or len(words) > MOST_CHARACTERS:
            raise BadInput(f"the text must have 1 to {MOST_CHARACTERS:,} characters, got {len(words):,}.")
    context = pair.evaluator.context
    kind = context.task_data.task.kind
    record = TASK_KINDS[kind].answer
    if record is None:
        raise BadInput(f"tasks of the kind {kind} do not say how a text is answered; `export` the network and ask it.")
    answer: Answering = record.load()
    answers = {}
    for side, (network, data) in pair.sides.items():
        room = min(max_length_of(network), context.config.data.max_length)
        answers[side] = answer(network, data, AskedText(text, pair_text, room))
    return {"schema": "archwright/answers/1", "trial": trial, "kind": kind, "text": text, **answers}


def inspect_rows(pair: ComparedNetworks, *, trial: int) -> dict[str, Any]:
    """What differs on the test rows: errors by class and texts, as far as the task has them: archwright/inspect/1."""
    task = pair.evaluator.context.task_data.task
    empty: dict[str, Any] = {**dict.fromkeys(("rows", "note", "classes", "confusion", "agreement")), "different": []}
    document = {
        "schema": "archwright/inspect/1",
        "trial": trial,
        "kind": task.kind,
        "labels": list(task.labels),
        **empty,
    }
    record = TASK_KINDS[task.kind].compare
    if record is None:
        return document | {
            "note": f"Tasks of the kind {task.kind} do not say how two networks are compared row by row."
        }
    compare: Comparing = record.load()
    return document | compare(pair.sides)
