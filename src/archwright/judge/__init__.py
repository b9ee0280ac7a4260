"""Judging results: hypervolume and Pareto sets, the scores of predictions, and proxies. Knows no torch."""

from archwright.judge.answers import ANSWER_METRICS
from archwright.judge.baselines import linear_baseline, random_baseline
from archwright.judge.ceiling import noise_ceiling
from archwright.judge.choices import xray
from archwright.judge.grounds import Ground, ground
from archwright.judge.hypervolume import hypervolume, hypervolume_over_time, pareto_mask
from archwright.judge.metrics import METRICS, perplexity
from archwright.judge.proxies import judge_on
from archwright.judge.published import published_numbers
from archwright.judge.reliability import deciles
from archwright.judge.strata import lexicographic

__all__ = [
    "ANSWER_METRICS",
    "METRICS",
    "Ground",
    "deciles",
    "ground",
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
    "xray",
]
