"""`python -m experiments.speed design`: what a search saves by running nothing twice, in one run.

A whole genetic search by W-PCA, smaller than the paper's. Every generation is scored from layer to layer, as `design`
does, and right after it a few of its designs are scored from nothing, which stands for scoring all of them like that.
Seconds are processor time of one core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import optuna

from archwright.configs import design as do
from archwright.designing import EvaluationCost
from archwright.designing.limits import DesignLimits, LatencyMeter
from archwright.designing.prefix_cache import CACHES, LayerRuns, prefix_pool
from archwright.designing.proxy_evaluator import ProxyEvaluator, proxy_setup
from archwright.designing.search import DesignTask, search_designs
from archwright.errors import Failed
from archwright.scoring.request import ScoreRequest, score_network
from archwright.scoring.scorer import Scorer
from archwright.search import Candidate
from archwright.search.loop import ObjectiveValues
from archwright.spaces import ARCHITECTURES
from archwright.store import ScoreStore
from experiments.speed.ratios import BenchConfig, Ratio, seconds

SPACE, PROXY = "nlu-small", "w_pca"
SEARCH = do.DesignSearchOptions(population=20, generations=20)
SAMPLED = 2
"""Designs of a generation that are scored from nothing."""
TARGET = ">= 2"


@dataclass(frozen=True)
class Round:
    """Seconds of one generation."""

    by_prefix: float
    """All of its designs, from layer to layer."""
    plain: float
    """One design from nothing, mean of a few."""
    tried: int
    """Designs of the generation, those seen before included."""
    scored: int
    """Designs that were new."""


def bench_design(settings: BenchConfig, search: do.DesignSearchOptions = SEARCH, space: str = SPACE) -> list[Ratio]:
    """The whole saving, and how much of it comes from designs seen before and from common beginnings."""
    with TemporaryDirectory() as folder, prefix_pool(1) as pool:
        scoring = do.DesignScoringOptions(out=Path(folder), seed=settings.seed)
        setup = proxy_setup(ARCHITECTURES[space], (PROXY,), scoring)
        evaluator = ProxyEvaluator(setup, Scorer(ScoreStore(scoring.out), pool), 0, EvaluationCost())
        rounds = time_search(evaluator, search, settings.seed)
    runs = next(iter(CACHES.values())).runs
    CACHES.clear()
    return ratios(rounds, runs, settings.repeats)


def time_search(evaluator: ProxyEvaluator, search: do.DesignSearchOptions, seed: int) -> list[Round]:
    """The search with every generation timed both ways; both must agree on what they score."""
    rounds: list[Round] = []
    rng, setup = np.random.default_rng((seed, 2)), evaluator.setup

    def evaluate(candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
        scores: list[ObjectiveValues] = []
        by_prefix = seconds(lambda: scores.extend(evaluator(candidates)))
        some = rng.permutation(len(candidates))[:SAMPLED]
        plain = [seconds(partial(same, setup.request(candidates[at].config), scores[at])) for at in some]
        rounds.append(Round(by_prefix, float(np.mean(plain)) if plain else np.nan, search.population, len(candidates)))
        return scores

    limits = DesignLimits.from_options(setup.space, do.LimitOptions())
    latency = LatencyMeter(setup.space, setup.length, evaluator.scorer.kept)
    task = DesignTask(setup.space, tuple(setup.proxies), limits, latency, search)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    search_designs(task, evaluate, sampler=search.sampler, repeat=0, seed=seed, title="bench: search")
    return rounds


def same(at: ScoreRequest, by_prefix: ObjectiveValues) -> None:
    """Scores the design from nothing; Failed where that is not what the prefix cache gave."""
    plain = score_network(at).scores[PROXY]
    if isinstance(by_prefix, str) or not np.isclose(plain, by_prefix[0], rtol=1e-6, atol=0):
        raise Failed(f"from layer to layer {PROXY} is {by_prefix}, from nothing {plain}; one of the two is wrong.")


def ratios(rounds: Sequence[Round], runs: LayerRuns, parts: int) -> list[Ratio]:
    """Of the whole search; the range is over equal parts of it, for later generations share more."""
    cuts = np.array_split(np.arange(len(rounds)), min(parts, len(rounds)))
    every = [whole([rounds[place] for place in cut]) for cut in cuts]
    seen = sum(each.tried for each in rounds) / max(1, sum(each.scored for each in rounds))
    layers = runs.requested / runs.run
    return [
        Ratio("search: every design from nothing / nothing twice", whole(rounds), min(every), max(every), TARGET),
        Ratio("designs tried / different ones", seen, seen, seen, ""),
        Ratio("layers of different designs / layers run", layers, layers, layers, ""),
    ]


def whole(rounds: Sequence[Round]) -> float:
    plain = float(np.nanmean([each.plain for each in rounds]))
    return plain * sum(each.tried for each in rounds) / sum(each.by_prefix for each in rounds)
