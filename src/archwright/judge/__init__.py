"""Judging results: hypervolume and Pareto sets, and the scores of predictions. Knows no torch."""

from archwright.judge.hypervolume import hypervolume, hypervolume_over_time, pareto_mask
from archwright.judge.metrics import METRICS

__all__ = ["METRICS", "hypervolume", "hypervolume_over_time", "pareto_mask"]
