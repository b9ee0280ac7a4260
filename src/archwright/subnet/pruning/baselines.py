"""The baselines, one function each: a trained network in, what to keep of it out."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import Loss
from archwright.subnet.pruning.fisher import TRUST, rearrange_masks, search_masks
from archwright.subnet.pruning.gradients import mask_gradients
from archwright.subnet.pruning.scores import (
    as_array,
    head_scores,
    magnitude_scores,
    select_by_scores,
    select_heads,
    select_randomly,
)
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec

Shares = Sequence[float]
"""Wanted shares of the non-embedding parameters, 0 to 1."""


def head_pruning(network: PrunedNetwork, batches: Iterable[Any], loss: Loss, shares: Shares) -> dict[float, SubnetSpec]:
    """Sub-networks without the least important heads (Michel et al. 2019), for every share that heads alone reach."""
    anatomy = read_anatomy(network.config)
    scores = [as_array(part) for part in head_scores(network, batches, loss)]
    return only_reachable({share: select_heads(anatomy, scores, share) for share in shares})


def magnitude_pruning(network: PrunedNetwork, shares: Shares) -> dict[float, SubnetSpec]:
    """Sub-networks without the heads and units of smallest weights, for every share that can be reached."""
    anatomy = read_anatomy(network.config)
    heads, units = ([as_array(part) for part in parts] for parts in magnitude_scores(network))
    return only_reachable({share: select_by_scores(anatomy, heads, units, share) for share in shares})


def random_pruning(network: PrunedNetwork, shares: Shares, rng: np.random.Generator) -> dict[float, SubnetSpec]:
    """Sub-networks without random heads and units, for every share that can be reached."""
    anatomy = read_anatomy(network.config)
    return only_reachable({share: select_randomly(anatomy, share, rng) for share in shares})


def only_reachable(specs: dict[float, SubnetSpec | None]) -> dict[float, SubnetSpec]:
    return {share: spec for share, spec in specs.items() if spec is not None}


def drop_layers(network: PrunedNetwork) -> list[SubnetSpec]:
    """Sub-networks without the top n layers, n = 1 to all but one (Sajjad et al. 2022)."""
    anatomy = read_anatomy(network.config)
    return [anatomy.full[n:] + (LayerSpec(0, 0),) * n for n in range(1, anatomy.layers)]


def prune_by_fisher(
    network: PrunedNetwork,
    batches: Iterable[Any],
    loss: Loss,
    alphas: Iterable[float],
    *,
    length: int,
    trust: float = TRUST,
    span: int | None = None,
    cost: Callable[[Anatomy, SubnetSpec], float] | None = None,
) -> dict[float, SubnetSpec]:
    """For every alpha, the share of the cost kept, a sub-network by Fisher information: the first two phases of
    retraining-free pruning (Kwon et al. 2022), of which a repair is the third.

    The cost is that of the paper if none is given: FLOPs of a text of `length` tokens. `trust` is the weight of what is
    off the diagonal of a Fisher block.
    """
    anatomy, gradients = read_anatomy(network.config), mask_gradients(network, batches, loss, span=span)
    specs = {alpha: search_masks(anatomy, gradients, alpha, length=length, cost=cost) for alpha in alphas}
    return dict(zip(specs, rearrange_masks(list(specs.values()), gradients, trust), strict=True))
