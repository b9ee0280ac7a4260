"""How well a network's sentence vectors do what the original's do: similarities of pairs, and nearest neighbours."""

import numpy as np
from numpy.typing import NDArray

from archwright.errors import BadInput

Vectors = NDArray[np.floating]
"""Texts x width."""
NEIGHBOURS = 10
AT_ONCE = 1024
"""Texts that are compared with all others at once: similarities of all pairs would be too many."""
VECTOR_METRICS = ("cosine_spearman", "neighbour_recall")
"""Metrics of sentence vectors: rank correlation of cosine similarities with the scores of pairs, and, where there are
no scores, the share of the original's nearest neighbours that are found again."""


def unit_length(vectors: Vectors) -> NDArray[np.float64]:
    """The vectors with length 1; one of length 0 stays."""
    doubled = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(doubled, axis=-1, keepdims=True)
    return np.asarray(doubled / np.where(lengths > 0, lengths, 1.0))


def nearest(vectors: Vectors, count: int) -> NDArray[np.int64]:
    """Texts x count: for each text the others with the largest cosine similarity, in any order."""
    units, chosen = unit_length(vectors), []
    for start in range(0, len(units), AT_ONCE):
        similar = units[start : start + AT_ONCE] @ units.T
        rows = np.arange(len(similar))
        similar[rows, start + rows] = -np.inf  # a text is no neighbour of itself
        chosen.append(np.argpartition(-similar, count - 1, axis=1)[:, :count])
    return np.concatenate(chosen)


def neighbour_recall(vectors: Vectors, original: Vectors, count: int = NEIGHBOURS) -> NDArray[np.float64]:
    """For each text the share of its nearest neighbours by the original's vectors that it has by these, too."""
    if len(vectors) <= count:
        raise BadInput(f"{count} nearest neighbours need more than {count} texts, got {len(vectors)}; give more rows.")
    ours, theirs = nearest(vectors, count), nearest(original, count)
    both = [len(np.intersect1d(one, other)) for one, other in zip(ours, theirs, strict=True)]
    return np.asarray(both, dtype=np.float64) / count
