"""Formulas as proxies: inputs, operations, reductions, their text, their simplification and their statistics."""
