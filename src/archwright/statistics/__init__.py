"""Judging results: hypervolume and Pareto sets, the scores of predictions, and proxies. Knows no torch."""

from archwright.statistics.answers import ANSWER_METRICS
from archwright.statistics.baselines import linear_baseline, random_baseline
from archwright.statistics.ceiling import noise_ceiling
from archwright.statistics.choice_effects import xray
from archwright.statistics.hypervolume import hypervolume, hypervolume_over_time, pareto_mask
from archwright.statistics.metrics import METRICS, perplexity
from archwright.statistics.proxies import judge_on
from archwright.statistics.published import published_numbers
from archwright.statistics.reliability import deciles
from archwright.statistics.resampling import Resampling, resampling_of
from archwright.statistics.strata import lexicographic

__all__ = [
    "ANSWER_METRICS",
    "METRICS",
    "Resampling",
    "deciles",
    "hypervolume",
    "hypervolume_over_time",
    "judge_on",
    "lexicographic",
    "linear_baseline",
    "noise_ceiling",
    "pareto_mask",
    "perplexity",
    "published_numbers",
    "random_baseline",
    "resampling_of",
    "xray",
]
