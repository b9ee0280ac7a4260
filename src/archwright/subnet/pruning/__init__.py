"""Pruning without a search, to compare with: which heads, units and layers a trained network can spare."""

SPACE_OF = {
    "head-pruning": "large",
    "retraining-free": "large",
    "layer-dropping": "layer",
    "magnitude": "large",
    "random": "large",
}
"""The space in which each baseline's answers lie."""
