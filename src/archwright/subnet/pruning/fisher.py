"""Masks by the Fisher information of the loss: retraining-free pruning's first two phases (Kwon et al. 2022)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.errors import BadInput
from archwright.subnet.pruning.gradients import MaskGradients
from archwright.subnet.pruning.scores import Arrays, as_array, fisher_diagonal, spec_from_masks
from archwright.subnet.spec import Anatomy, LayerSpec, Part, SubnetSpec, as_part, flops, positions

ROUNDS = 50
"""Most rounds of swaps in a layer; usually fewer than ten change something."""
TRUST = 0.2
"""Weight of what is off the diagonal of a block; 1 is as published. In full it lets large effects go because others
seem to undo them, which holds for small changes and the sampled texts only. MiniLM on SST-2, one seed, loss on 500
held-out training rows against the first phase: 1 raised it wherever tried, at 30 to 80 % kept; 0.2 lowered it at 40 to
70 %, and raised it a little at 30 and 80 %."""
SMALL = 1e-12
"""A swap must gain more than this share of the layer's Fisher information, so that rounding cannot go on forever."""


def search_masks(
    anatomy: Anatomy,
    gradients: MaskGradients,
    alpha: float,
    *,
    length: int,
    cost: Callable[[Anatomy, SubnetSpec], float] | None = None,
) -> SubnetSpec:
    """Phase 1: the heads and units whose removal costs the least Fisher information under a limit on the cost.

    Heads and units are each ranked by the diagonal over all layers; every number of heads leaves room for a number of
    units, and the best pair wins (Algorithm 1). `alpha` is the share of the cost that is kept. Without a cost it is
    that of the paper, what heads and units compute for a text of `length` tokens: embeddings and task head, which
    cannot be pruned, do not count.
    """
    if not 0 < alpha <= 1:
        raise BadInput(f"alpha must be above 0 and at most 1, got {alpha}; it is the share of the cost that is kept.")
    measure = cost or partial(prunable_flops, length=length)
    heads, units = ([as_array(part) for part in parts] for parts in fisher_diagonal(gradients))
    best_heads, best_units = (np.argsort(-np.concatenate(scores), kind="stable") for scores in (heads, units))
    lost_heads, lost_units = lost_scores(heads, best_heads), lost_scores(units, best_units)
    budget = alpha * measure(anatomy, anatomy.full)
    pairs = []
    for n in range(len(best_heads) + 1):

        def exceeds(m: int, n: int = n) -> bool:
            pairs = zip(split_mask(heads, best_heads[:n]), split_mask(units, best_units[:m]), strict=True)
            spec = tuple(LayerSpec(int(h.sum()), int(u.sum())) for h, u in pairs)
            return measure(anatomy, spec) > budget

        m = bisect_left(range(len(best_units) + 1), True, key=exceeds) - 1
        if m < 0:
            break
        pairs.append((lost_heads[n] + lost_units[m], n, m))
    _, n, m = min(pairs, default=(0.0, 0, 0))  # nothing is left where what cannot be pruned costs more
    return spec_from_masks(split_mask(heads, best_heads[:n]), split_mask(units, best_units[:m]))


def lost_scores(scores: Arrays, best: NDArray[np.int64]) -> NDArray[np.float64]:
    """At n: the summed scores of all but the n best; exact at the end, where nothing is lost."""
    return np.append(np.cumsum(np.concatenate(scores)[best][::-1])[::-1], 0.0)


def split_mask(like: Arrays, on: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """Per layer, what of all heads (or units), numbered layer by layer, is among these."""
    mask = np.zeros(sum(map(len, like)), bool)
    mask[on] = True
    return np.split(mask, np.cumsum([len(part) for part in like])[:-1])


def prunable_flops(anatomy: Anatomy, spec: SubnetSpec, length: int) -> int:
    """What heads and units alone compute for one text."""
    return flops(anatomy, spec, length=length) - flops(anatomy, (LayerSpec(0, 0),) * anatomy.layers, length=length)


def rearrange_masks(specs: Sequence[SubnetSpec], gradients: MaskGradients, trust: float = TRUST) -> list[SubnetSpec]:
    """Phase 2: in every layer as many heads and units as before, but chosen by the layer's whole block of the Fisher.

    What is minimised is (1 - m)' F (1 - m) with F the mean over texts of gradient x gradient', the entries off the
    diagonal times `trust`: two units that do the same have a large one, so that one of them stays. A block takes long
    to compute and much memory, so that all sub-networks take their turn in a layer before the next one.
    """
    layers = []
    for place, pair in enumerate(zip(gradients.heads, gradients.units, strict=True)):
        heads, units = (fisher_block(part, trust) for part in pair)
        parts = [spec[place] for spec in specs]
        layers.append([LayerSpec(better_part(part.heads, heads), better_part(part.units, units)) for part in parts])
    return list(zip(*layers, strict=True))


def better_part(part: Part, fisher: NDArray[np.float64]) -> Part:
    on = np.zeros(len(fisher), bool)
    on[list(positions(part))] = True
    return as_part(np.flatnonzero(swap_greedily(fisher, on)).tolist())


def fisher_block(gradients: torch.Tensor, trust: float = TRUST) -> NDArray[np.float64]:
    """Of texts x heads (or units) of one layer: the mean of gradient x gradient', off the diagonal times `trust`."""
    rows = gradients.double().cpu().numpy()
    block = rows.T @ rows  # of 10,000 units 800 MB: changed in place
    block *= trust / len(rows)
    np.einsum("ii->i", block)[:] = np.square(rows).sum(0) / len(rows)
    return np.asarray(block)


def largest_off_diagonal(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest entry of every row but that on the diagonal; the block is as it was afterwards."""
    diagonal = np.einsum("ii->i", block)
    kept = diagonal.copy()
    diagonal[:] = -np.inf
    largest = block.max(1, initial=-np.inf)
    diagonal[:] = kept
    return np.asarray(largest)


def swap_greedily(fisher: NDArray[np.float64], on: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask after swaps that each lower the quadratic form the most for the one that comes back, until none does.

    Of thousands of units few can gain by a swap: the others are known by a bound, the least that any unit's leaving
    costs less the largest that two units share.
    """
    on = on.copy()
    own, least_gain = np.diagonal(fisher), SMALL * np.trace(fisher)
    shared = largest_off_diagonal(fisher)
    pull = fisher @ ~on  # half of the slope of the quadratic form
    cheapest = (own + 2 * pull)[on].min(initial=np.inf)
    for _ in range(ROUNDS):
        before = on.copy()
        for back in np.flatnonzero(~on):
            coming = own[back] - 2 * pull[back]
            if coming + cheapest - 2 * shared[back] >= -least_gain / 2:  # half: rounding must not hide a swap
                continue
            change = coming + own + 2 * pull - 2 * fisher[back]
            out = int(np.argmin(np.where(on, change, np.inf)))
            if on[out] and change[out] < -least_gain:
                on[back], on[out] = True, False
                pull += fisher[out] - fisher[back]
                cheapest = (own + 2 * pull)[on].min()
        if np.array_equal(on, before):
            break
    return on
