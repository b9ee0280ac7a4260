"""Judging results: hypervolume and Pareto sets, the scores of predictions, and proxies. Knows no torch."""

from archwright.statistics.baselines import linear_baseline, random_baseline
from archwright.statistics.metrics import METRICS, RATIOS, perplexity
from archwright.statistics.pareto import hypervolume, hypervolume_over_time, pareto_mask
from archwright.statistics.proxies import judge_proxy
from archwright.statistics.published import published_numbers
from archwright.statistics.reliability import deciles, noise_ceiling
from archwright.statistics.resampling import Resampling, draw_resamples
from archwright.statistics.squad import ANSWER_METRICS
from archwright.statistics.strata import lexicographic
from archwright.statistics.top_k import choice_effects
from archwright.statistics.vectors import VECTOR_METRICS

__all__ = [
    "ANSWER_METRICS",
    "METRICS",
    "RATIOS",
    "VECTOR_METRICS",
    "Resampling",
    "choice_effects",
    "deciles",
    "draw_resamples",
    "hypervolume",
    "hypervolume_over_time",
    "judge_proxy",
    "lexicographic",
    "linear_baseline",
    "noise_ceiling",
    "pareto_mask",
    "perplexity",
    "published_numbers",
    "random_baseline",
]
