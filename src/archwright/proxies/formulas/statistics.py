"""Numbers of all chains at once, from which any formula is a moment's arithmetic."""

from collections.abc import Sequence

import numpy as np

from archwright.probe import Probe
from archwright.proxies.formulas.chain_tree import Array, Tree
from archwright.proxies.formulas.inputs import INPUTS, SOURCES, Part
from archwright.proxies.formulas.simplification import PRUNED, Chain, canonical_chain

Known = dict[tuple[int, str], Array]
"""Numbers of the tensors seen so far: inputs may share tensors."""


def statistics(probe: Probe, chains: Sequence[Chain], inputs: Sequence[str] = INPUTS) -> Array:
    """The number of every input, chain and layer: inputs x chains x layers, as `Formula.measure` has them.

    NaN where the layer does not have the role, and for `prune`; infinity where there is no finite number, so that a
    formula with it is invalid and not merely shorter. An input of the whole network has the same number in all layers.
    """
    canonical = [canonical_chain(tuple(chain)) for chain in chains]
    tree = Tree(chain for chain in canonical if chain != PRUNED)
    order = {chain: place for place, chain in enumerate(tree.ends)}
    known: Known = {}
    found = [[layer_row(SOURCES[name].find(probe, layer), tree, known) for layer in probe.layers] for name in inputs]
    places = [order.get(chain, len(order)) for chain in canonical]
    return np.ascontiguousarray(np.array(found)[:, :, places].swapaxes(1, 2))


def layer_row(parts: Sequence[Part], tree: Tree, known: Known) -> Array:
    """Mean over the tensors of a role, one number per chain; NaN for `prune` behind them."""
    if not parts:
        return np.full(len(tree.ends) + 1, np.nan)
    for part in parts:
        if part.key not in known:
            known[part.key] = tree.numbers(part.read())
    mean = np.mean([known[part.key] for part in parts], axis=0)
    return np.append(np.where(np.isfinite(mean), mean, np.inf), np.nan)


def layer_values(probe: Probe, name: str, chain: Chain) -> list[float]:
    """The number of this input and chain in every layer."""
    found: list[float] = statistics(probe, [chain], [name])[0, 0].tolist()
    return found
