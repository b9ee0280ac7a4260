"""From scores to what a sub-network of a wanted size keeps."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from archwright.subnet.keep import Anatomy, Keep, LayerKeep, nonembedding_parameters, simplest

Scores = NDArray[np.float64]


def kept(heads: NDArray[np.bool_], units: NDArray[np.bool_]) -> Keep:
    """What is switched on (layers x heads, layers x units) as positions."""
    pairs = zip(heads, units, strict=True)
    return tuple(
        LayerKeep(simplest(np.flatnonzero(h).tolist()), simplest(np.flatnonzero(u).tolist())) for h, u in pairs
    )


def keep_heads(of: Anatomy, scores: Scores, share: float) -> Keep | None:
    """Without the lowest heads, as few as reach this share of the non-embedding parameters; None: out of reach."""
    layer, head = np.divmod(np.argsort(scores, axis=None, kind="stable"), of.heads)
    return shortest_removal(of, layer * (of.heads + of.units) + head, share)


def keep_by_scores(of: Anatomy, head_scores: Scores, unit_scores: Scores, share: float) -> Keep | None:
    """Without the heads and units of lowest score per parameter, as few as reach this share; None: out of reach."""
    worth = np.hstack([head_scores / own_parameters(of, heads=1), unit_scores / own_parameters(of, units=1)])
    return shortest_removal(of, np.argsort(worth, axis=None, kind="stable"), share)


def random_keep(of: Anatomy, share: float, rng: np.random.Generator) -> Keep | None:
    """Without random heads and units, all equally likely, as few as reach this share; None: out of reach."""
    return shortest_removal(of, rng.permutation(of.layers * (of.heads + of.units)), share)


def own_parameters(of: Anatomy, *, heads: int = 0, units: int = 0) -> int:
    """Parameters that go when one layer of the whole network loses this many heads and units."""
    smaller = (LayerKeep(of.heads - heads, of.units - units), *of.full[1:])
    return nonembedding_parameters(of, of.full) - nonembedding_parameters(of, smaller)


def shortest_removal(of: Anatomy, order: NDArray[np.int64], share: float) -> Keep | None:
    """The whole network without the first n of `order`, with the smallest n that reaches the share.

    Heads and units are numbered layer by layer, a layer's heads before its units.
    """
    most = share * nonembedding_parameters(of, of.full)

    def fits(removed: int) -> bool:
        return nonembedding_parameters(of, without(of, order[:removed])) <= most

    removed = bisect_left(range(len(order) + 1), True, key=fits)
    return without(of, order[:removed]) if removed <= len(order) else None


def without(of: Anatomy, gone: NDArray[np.int64]) -> Keep:
    on = np.ones((of.layers, of.heads + of.units), bool)
    on.flat[gone] = False
    return kept(on[:, : of.heads], on[:, of.heads :])
