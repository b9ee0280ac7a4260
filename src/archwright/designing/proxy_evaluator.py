"""Designs evaluated by proxies on untrained networks: with equal first layers run once where the space allows it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from archwright.configs import design as do
from archwright.configs import scoring as so
from archwright.configs.options import changed_flags, refuse_options
from archwright.designing import Evaluation, EvaluationCost, EvaluationRequest
from archwright.designing.prefix_cache import prefix_pool
from archwright.errors import BadInput
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.proxies import PROXIES
from archwright.scoring.layer_scores import score_layers
from archwright.scoring.scorer import Scorer, cache_key
from archwright.scoring.setup import ScoringSetup, scoring_setup
from archwright.search import Candidate
from archwright.search.loop import ObjectiveValues
from archwright.spaces.architectures import ArchitectureSpace

MOST_NAMES = 12
"""Names that an error lists."""


@contextmanager
def evaluate_by_proxy(request: EvaluationRequest) -> Iterator[Evaluation]:
    """Scores of the proxies that the request names."""
    refuse_options(changed_flags(request.one_shot), "without --method spos")
    setup = proxy_setup(request.space, request.goal.proxy, request.scoring)
    cost = EvaluationCost()
    details = {"batch": [setup.rows, setup.length], "loss": setup.loss, "initial": setup.initial}
    with open_pool(setup, request.scoring) as pool:
        scorer = Scorer(request.known, pool)
        yield Evaluation(
            tuple(setup.proxies),
            lambda repeat: ProxyEvaluator(setup, scorer, repeat, cost),
            cost,
            details,
            lambda config, repeat: score_layers(setup.request(config, seed=repeat, batch=repeat)),
        )


def proxy_setup(space: ArchitectureSpace, names: Sequence[str], scoring: do.DesignScoringOptions) -> ScoringSetup:
    """How to score: listed proxies and the user's own as FILE:NAME, in this order; BadInput for an unknown name."""
    if not names:
        raise BadInput("--proxy must name at least one proxy, such as w_pca.")
    own = tuple(name for name in names if name not in PROXIES and ":" in name)
    listed = tuple(name for name in names if name not in own)
    for name in listed:
        if name not in PROXIES:
            some = ", ".join(list(PROXIES)[:MOST_NAMES])
            raise BadInput(
                f"--proxy must be one that `archwright score --help` lists ({some}, ...) or FILE:NAME, got {name!r}."
            )
    setup = scoring_setup(space, so.ProxyOptions(proxies=listed, proxy=own), scoring, always=listed)
    chosen = {*listed, *(name.rpartition(":")[2] for name in own)}
    return replace(setup, proxies={name: proxy for name, proxy in setup.proxies.items() if name in chosen})


@contextmanager
def open_pool(setup: ScoringSetup, scoring: do.DesignScoringOptions) -> Iterator[WorkerPool]:
    """Processes with a prefix cache each, or those that score whole networks, or a cluster."""
    forward_only = all(proxy.gradient_free for proxy in setup.proxies.values())
    by_prefix = setup.space.prefix_layers is not None and forward_only and scoring.ray is None
    with (
        prefix_pool(scoring.workers, setup.proxies) if by_prefix else worker_pool(scoring.workers, scoring.ray) as pool
    ):
        yield pool


@dataclass(frozen=True)
class ProxyEvaluator:
    """Scores of designs, with weights and batch of one repeat; what is known is not computed again."""

    setup: ScoringSetup
    scorer: Scorer
    repeat: int
    cost: EvaluationCost

    def __call__(self, candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
        """Higher is better, in the order of the proxies; or the reasons why some are missing."""
        requests = [self.setup.request(each.config, seed=self.repeat, batch=self.repeat) for each in candidates]
        results = self.scorer.score(requests, on_new=self.cost.evaluated.append)
        for request, result in zip(requests, results, strict=True):
            self.cost.seconds[cache_key(request)] = result.seconds
        return [
            "; ".join(f"{name}: {why}" for name, why in result.missing.items())
            if result.missing
            else [result.scores[name] for name in self.setup.proxies]
            for result in results
        ]
