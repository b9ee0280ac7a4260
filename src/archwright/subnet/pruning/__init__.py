"""Pruning without a search, to compare with: which heads, units and layers a trained network can spare."""
