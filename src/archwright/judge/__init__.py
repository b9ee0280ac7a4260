"""Judging results: hypervolume and Pareto sets, and the scores of predictions. Knows no torch."""

from archwright.judge.answers import ANSWER_METRICS
from archwright.judge.hypervolume import hypervolume, hypervolume_over_time, pareto_mask
from archwright.judge.metrics import METRICS, perplexity

__all__ = ["ANSWER_METRICS", "METRICS", "hypervolume", "hypervolume_over_time", "pareto_mask", "perplexity"]
