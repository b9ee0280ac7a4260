"""Recurrent cells of NAS-Bench-NLP, and language models of them."""

from archwright.networks.cells.canonical import canonical_recipe, renamed, renumbered
from archwright.networks.cells.model import CellAnswer, CellConfig, CellForCausalLM, untrained
from archwright.networks.cells.recipe import OPS, Recipe, check_recipe, longest_path, order, reached, states_of, used

__all__ = [
    "OPS",
    "CellAnswer",
    "CellConfig",
    "CellForCausalLM",
    "Recipe",
    "canonical_recipe",
    "check_recipe",
    "longest_path",
    "order",
    "reached",
    "renamed",
    "renumbered",
    "states_of",
    "untrained",
    "used",
]
