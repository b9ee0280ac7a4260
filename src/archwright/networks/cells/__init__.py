"""Recurrent cells of NAS-Bench-NLP, and language models of them."""

from archwright.networks.cells.canonical import canonical_recipe, rename_nodes, renumber_states
from archwright.networks.cells.model import CellAnswer, CellConfig, CellForCausalLM, build_cells
from archwright.networks.cells.recipe import (
    OPS,
    Recipe,
    check_recipe,
    effective_nodes,
    longest_path,
    order,
    reachable,
    states_of,
)

__all__ = [
    "OPS",
    "CellAnswer",
    "CellConfig",
    "CellForCausalLM",
    "Recipe",
    "build_cells",
    "canonical_recipe",
    "check_recipe",
    "effective_nodes",
    "longest_path",
    "order",
    "reachable",
    "rename_nodes",
    "renumber_states",
    "states_of",
]
