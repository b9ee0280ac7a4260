"""Sentence embeddings: the original's vectors as what all other networks learn, and what they are compared with."""

from dataclasses import replace
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.compression.context import RunContext
from archwright.data.batching import Batch, Encoded, evaluation_batches
from archwright.errors import Failed
from archwright.logs import logger
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.random_streams import TAUGHT_ROWS, VECTOR_NOISE
from archwright.store.arrays import read_arrays, write_arrays
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import TaskData

FILE = "vectors.npz"
SCORED = "cosine_spearman"
"""The metric that compares with scores of pairs."""
TIMED_TEXTS = 128
"""Texts that tell how long the vectors of all take."""
NOISE = 0.1
"""Length of the noise in targets that importance is measured with, as a share of the vector's own."""
Vectors = dict[str, NDArray[np.float32]]
"""Split -> rows x texts x width."""


def teach_vectors(context: RunContext, original: PrunedNetwork | None = None) -> RunContext:
    """The context with the original's vectors as targets of its rows: computed once per run, then read.

    Training rows always have them, the others where no scores judge. With --minutes the training rows are as
    many as can be read in the time that other tasks have for fine-tuning.
    """
    file = context.run.path / FILE
    if not file.exists():
        if not context.task_data.trains:
            raise Failed(f"{context.run.path} has lost its {FILE}; run its `archwright compress` command again.")
        original = original or load_saved_network(context.run.original).to(context.task_data.device)
        with context.run.phase("vectors"):
            rows = affordable_vectors(context, original)
            vectors = embed_splits(original, keep_rows(context.original_data, rows))
            write_arrays(file, vectors)
    vectors = read_arrays(file)
    return replace(context, task_data=with_targets(keep_rows(context.task_data, len(vectors["train"])), vectors))


def affordable_vectors(context: RunContext, original: PrunedNetwork) -> int:
    """Training rows that the original reads: all, or as many as --minutes affords."""
    encoded, minutes = context.original_data.encoded["train"], context.config.search.minutes
    if minutes is None:
        return len(encoded)
    kind = TASK_KINDS[context.task_data.task.kind]
    some = encoded.take(np.linspace(0, len(encoded) - 1, min(len(encoded), TIMED_TEXTS)).astype(np.int64))
    start = perf_counter()
    embed(original, some, context.original_data)
    affordable = int(60 * minutes * kind.shares.original / ((perf_counter() - start) / len(some)))
    if affordable >= len(encoded):
        return len(encoded)
    rows = max(context.config.supernet.batch_size, affordable)
    logger.warning(
        "--minutes %g leaves time to learn from %s of %s training rows", minutes, f"{rows:,}", f"{len(encoded):,}"
    )
    return min(rows, len(encoded))


def keep_rows(task_data: TaskData, rows: int) -> TaskData:
    """The task data with so many of its training rows, chosen at random; the original's own tokens alike."""
    encoded = task_data.encoded.get("train")
    if encoded is None or rows >= len(encoded):
        return task_data
    order = np.random.default_rng((task_data.seed, TAUGHT_ROWS)).permutation(len(encoded))[:rows]
    uncut = None if task_data.uncut is None else keep_rows(task_data.uncut, rows)
    return replace(task_data, encoded={**task_data.encoded, "train": encoded.take(np.sort(order))}, uncut=uncut)


def embed_splits(original: PrunedNetwork, task_data: TaskData) -> Vectors:
    """The vectors of the training rows, and of all others where neighbours judge."""
    splits = ("train",) if task_data.task.metric == SCORED else ("train", "validation", "test")
    return {name: embed(original, task_data.encoded[name], task_data, title=f"vectors ({name})") for name in splits}


@torch.no_grad()
def embed(
    network: PrunedNetwork, encoded: Encoded, task_data: TaskData, title: str | None = None
) -> NDArray[np.float32]:
    """Rows x texts x width, in the order of the rows."""
    network.eval()
    parts, rows = [], []
    with progress(title or "vectors", len(encoded), unit="rows") as bar:
        for batch in evaluation_batches(encoded, tokens=task_data.evaluation_tokens):
            parts.append(network(**batch.to(network.device).inputs).logits.float().cpu().numpy())
            rows.append(batch.rows)
            bar.advance(len(batch.rows))
    vectors: NDArray[np.float32] = np.concatenate(parts)[np.argsort(np.concatenate(rows))]
    return vectors


def with_targets(task_data: TaskData, vectors: Vectors) -> TaskData:
    """The task data with these vectors as targets, those that the original reads in its own tokens too."""
    known = {name: targets for name, targets in vectors.items() if name in task_data.encoded}
    given = {name: replace(task_data.encoded[name], targets=targets) for name, targets in known.items()}
    uncut = None if task_data.uncut is None else with_targets(task_data.uncut, vectors)
    return replace(task_data, encoded={**task_data.encoded, **given}, uncut=uncut)


def draw_targets(batch: Batch, seed: int) -> Batch:
    """The batch with targets drawn around the vectors, to measure importance with.

    At the original itself the distance to its own vectors is 0 and has no gradient. The Fisher information of vectors
    as means of Gaussians takes targets drawn from these: the squared gradient is then that of a random direction, on
    average the squared change of the whole vector. The length of the noise is a common factor of all scores.
    """
    rng = np.random.default_rng((seed, VECTOR_NOISE, int(batch.rows[0])))
    noise = torch.from_numpy(rng.standard_normal(batch.targets.shape, dtype=np.float32)).to(batch.targets.device)
    lengths = batch.targets.norm(dim=-1, keepdim=True) / batch.targets.shape[-1] ** 0.5
    return replace(batch, targets=batch.targets + NOISE * lengths * noise)
