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
from archwright.designing.evaluator import ProxyEvaluator, setup_for
from archwright.designing.limits import Clock, ceilings_of
from archwright.designing.prefix_cache import WALKS, Work
from archwright.designing.prefix_workers import prefix_pool
from archwright.designing.search import DesignTask, search_designs
from archwright.errors import Failed
from archwright.progress import progress
from archwright.scoring.request import ScoreRequest, score_network
from archwright.search import Candidate
from archwright.search.batch_loop import Measured
from archwright.spaces import ARCHITECTURES
from archwright.store import Scores
from experiments.speed.ratios import BenchConfig, Ratio, seconds

SPACE, PROXY = "nlu-small", "w_pca"
SEARCH = do.DesignSearchOptions(population=20, generations=20)
SAMPLED = 2
"""Designs of a generation that are scored from nothing."""
TARGET = ">= 2"


@dataclass(frozen=True)
class Round:
    """Seconds of one generation."""

    walked: float
    """All of its designs, from layer to layer."""
    plain: float
    """One design from nothing, mean of a few."""
    asked: int
    """Designs of the generation, those seen before included."""
    scored: int
    """Designs that were new."""


def bench_design(settings: BenchConfig, search: do.DesignSearchOptions = SEARCH, space: str = SPACE) -> list[Ratio]:
    """The whole saving, and how much of it comes from designs seen before and from common beginnings."""
    with TemporaryDirectory() as folder, prefix_pool(1) as seek:
        looking = do.DesignScoringOptions(out=Path(folder), seed=settings.seed)
        setup = setup_for(ARCHITECTURES[space].space(), (PROXY,), looking)
        known = Scores(looking.out)
        court = ProxyEvaluator(setup, known, seek, 0, {}, [])
        rounds = timed_search(court, search, settings.seed)
    work = next(iter(WALKS.values())).work
    WALKS.clear()
    return ratios(rounds, work, settings.repeats)


def timed_search(court: ProxyEvaluator, search: do.DesignSearchOptions, seed: int) -> list[Round]:
    """The search with every generation timed both ways; both must agree on what they score."""
    rounds: list[Round] = []
    rng, setup = np.random.default_rng((seed, 2)), court.setup
    ceilings = ceilings_of(setup.space, do.LimitOptions())

    def judge(candidates: Sequence[Candidate]) -> list[Measured]:
        found: list[Measured] = []
        walked = seconds(lambda: found.extend(court(candidates)))
        some = rng.permutation(len(candidates))[:SAMPLED]
        plain = [seconds(partial(same, setup.look(candidates[at].config), found[at])) for at in some]
        rounds.append(Round(walked, float(np.mean(plain)) if plain else np.nan, search.population, len(candidates)))
        return found

    task = DesignTask(setup.space, setup.proxies, ceilings, Clock(setup.space, setup.length, court.known), search)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with progress("bench: search", task.budget, "designs") as bar:
        search_designs(task, judge, sampler=search.sampler, repeat=0, seed=seed, bar=bar)
    return rounds


def same(at: ScoreRequest, walked: Measured) -> None:
    """Scores the design from nothing; Failed where that is not what the walk gave."""
    plain = score_network(at).scores[PROXY]
    if isinstance(walked, str) or not np.isclose(plain, walked[0], rtol=1e-6, atol=0):
        raise Failed(f"from layer to layer {PROXY} is {walked}, from nothing {plain}; one of the two is wrong.")


def ratios(rounds: Sequence[Round], work: Work, parts: int) -> list[Ratio]:
    """Of the whole search; the range is over equal parts of it, for later generations share more."""
    cuts = np.array_split(np.arange(len(rounds)), min(parts, len(rounds)))
    every = [whole([rounds[place] for place in cut]) for cut in cuts]
    seen = sum(one.asked for one in rounds) / max(1, sum(one.scored for one in rounds))
    layers = work.asked / work.runs
    return [
        Ratio("search: every design from nothing / nothing twice", whole(rounds), min(every), max(every), TARGET),
        Ratio("designs tried / different ones", seen, seen, seen, ""),
        Ratio("layers of different designs / layers run", layers, layers, layers, ""),
    ]


def whole(rounds: Sequence[Round]) -> float:
    plain = float(np.nanmean([one.plain for one in rounds]))
    return plain * sum(one.asked for one in rounds) / sum(one.walked for one in rounds)
