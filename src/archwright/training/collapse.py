"""A training that has collapsed: its network gives every row the same answer, or knows the shares of classes alone.

Watched rows are training rows, so that a network which learns them by heart is not mistaken for one that learns
nothing. The best network that looks at no text has the entropy of the watched rows' classes as its loss (for numbers:
their variance): whoever is not below it after a good part of the steps has learnt nothing from the texts. Where classes
have weights, both are weighted too, since such a training minimizes the weighted loss. A network must then be collapsed
without them as well: a teacher that has learnt without weights passes on what it knows at the classes' own frequencies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.batching import Batch, evaluation_batches
from archwright.objectives.error import in_row_order, predict_logits
from archwright.random_streams import WATCHED_ROWS
from archwright.training.task_data import TaskData

CHECKS = (0.3, 0.5, 0.75)
"""Shares of the steps after which a training is looked at."""
FEWEST_STEPS, FEWEST_ROWS, MOST_ROWS = 100, 40, 256
"""Shorter trainings and fewer rows say nothing."""
NOTHING_LEARNT = 0.99
"""Of the loss without texts."""
ALMOST_NOTHING = 0.9
"""The same, for a network that also gives all rows one answer: unequal classes may need that for a while."""
ALIKE = 0.02
"""Spread of numbers, as a share of the spread of the right ones, that counts as one answer."""
SLOWER = 0.3
"""Factor of the learning rate when a training begins again."""


@dataclass(frozen=True, eq=False)
class CollapseWatch:
    """Rows to look at, and the network that is trained on them."""

    network: Any
    rows: Sequence[Batch]
    weights: tuple[float, ...] | None = None
    """Of the classes, in id order; None: all alike."""

    def find(self) -> str | None:
        """What shows that the training has collapsed, in words; None: nothing does."""
        logits = predict_logits(self.network, self.rows)
        targets = in_row_order([batch.targets for batch in self.rows], list(self.rows))
        if logits.shape[1] == 1:
            return judge_numbers(logits[:, 0], targets)
        reasons = [judge_classes(logits, targets, weights) for weights in (None, self.weights)]
        return reasons[-1] if all(reasons) else None


def watch_task(task_data: TaskData, network: Any) -> CollapseWatch | None:
    """Some training rows of the task; None for tasks without one answer of many per row, and for few rows."""
    encoded = task_data.encoded["train"]
    if task_data.task.kind not in ("classification", "regression") or len(encoded) < FEWEST_ROWS:
        return None
    order = np.random.default_rng((task_data.seed, WATCHED_ROWS)).permutation(len(encoded))
    sample = encoded.take(np.sort(order[:MOST_ROWS]))
    if len(np.unique(sample.targets)) < 2:
        return None
    rows = evaluation_batches(sample, tokens=task_data.evaluation_tokens)
    return CollapseWatch(network, [batch.to(task_data.device) for batch in rows], task_data.class_weights)


def judge_classes(
    logits: NDArray[np.float64], targets: NDArray[np.int64], weights: tuple[float, ...] | None = None
) -> str | None:
    """By the answers and by the mean cross-entropy, weighted as in the training."""
    counted = np.ones(len(targets)) if weights is None else np.array(weights)[targets]
    shares = np.bincount(targets, counted) / counted.sum()
    entropy = float(-np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
    shifted = logits - logits.max(axis=1, keepdims=True)
    surprise = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(targets)), targets]
    loss, answers = float(np.average(surprise, weights=counted)), np.unique(logits.argmax(axis=1))
    if len(answers) == 1 and loss >= ALMOST_NOTHING * entropy:
        return f"one class for all {len(targets)} watched rows, loss {loss:.3f}, the classes' shares give {entropy:.3f}"
    if loss >= NOTHING_LEARNT * entropy:
        return f"loss {loss:.3f} on {len(targets)} watched rows, the shares of the classes alone give {entropy:.3f}"
    return None


def judge_numbers(answers: NDArray[np.float64], targets: NDArray[Any]) -> str | None:
    """By the spread of the answers and by the mean squared error."""
    variance, loss = float(np.var(targets)), float(np.mean((answers - targets) ** 2))
    if np.std(answers) <= ALIKE * np.sqrt(variance) and loss >= ALMOST_NOTHING * variance:
        return f"one number for all {len(targets)} watched rows"
    if loss >= NOTHING_LEARNT * variance:
        return f"squared error {loss:.3g} on {len(targets)} watched rows, their mean alone gives {variance:.3g}"
    return None


def check_steps(steps: int) -> frozenset[int]:
    """Numbers of steps after which a training of so many is looked at."""
    return frozenset(round(share * steps) for share in CHECKS) if steps >= FEWEST_STEPS else frozenset()
