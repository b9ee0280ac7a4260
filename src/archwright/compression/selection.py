"""Which trials become members of the front: the best of every size, judged by rows that the search has not seen.

The lowest of many noisy errors is low by luck: one lucky small network would dominate all larger ones and end the
front. So the best few of every size band are scored again on other rows, and a smaller network replaces a larger one
only where it is better by more than two standard errors of the difference on those rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.space import ERROR, LATENCY
from archwright.search import Config, config_of, front, smallest
from archwright.search.encoding import config_key
from archwright.search.front import is_feasible
from archwright.spaces.subnetwork import is_distilled
from archwright.statistics.paired import PairedErrors
from archwright.subnet.spec import SubnetSpec

BANDS = 10
"""Parts of equal width between the smallest and the whole network; each has at most one member of the front."""
SURELY = 2.0
"""Standard errors by which a smaller network must be better to replace a larger one: the larger is usually the better,
and of nine comparisons on a few hundred rows one or two are off by a single standard error."""
RESCORED = 3
"""Networks of every band that are scored again."""
SHARE = "nonembedding_parameters"


@dataclass(frozen=True)
class Finalist:
    """A trial that may become a member of the front."""

    trial: FrozenTrial
    config: Config
    spec: SubnetSpec
    size: float
    """0 is the smallest network, 1 the whole one; of non-embedding parameters their share."""

    @property
    def name(self) -> str:
        return str(self.trial.number)

    @property
    def distilled(self) -> bool:
        """Whether it was trained by itself, so that it is likely the best of its size."""
        return is_distilled(self.config)

    @property
    def band(self) -> int:
        """0 to 9; a size on a border belongs to the smaller band, so that a budget of 50 % admits 50 %."""
        return min(max(math.ceil(self.size * BANDS - 1e-9) - 1, 0), BANDS - 1)


def find_finalists(evaluator: SubnetEvaluator, trials: Sequence[FrozenTrial]) -> list[Finalist]:
    """The three with the lowest error of the search in every band and what was distilled; without halves, the Pareto
    front. Smallest first."""
    usable = [trial for trial in trials if trial.state is TrialState.COMPLETE and is_feasible(trial)]
    if evaluator.context.halves is None:
        usable = front(usable, space=evaluator.space)
    finalists = distinct_networks(evaluator, usable, lambda trial, spec: relative_size(evaluator, trial, spec))
    return finalists if evaluator.context.halves is None else best_of_bands(finalists)


def distinct_networks(
    evaluator: SubnetEvaluator, trials: Sequence[FrozenTrial], size: Callable[[FrozenTrial, SubnetSpec], float]
) -> list[Finalist]:
    """Networks of these trials, each once and with the lowest error that the search saw of it; smallest first."""
    space, scale = evaluator.space, evaluator.context.task_data.scale_error
    # A network without layers can be worse than guessing: it is left out unless there is no other.
    usable = [trial for trial in trials if scale(evaluator.trial_error(trial)) <= 1] or list(trials)
    usable.sort(key=lambda trial: (*trial.values, trial.number))
    distinct: dict[str, Finalist] = {}
    for trial in usable:
        config = config_of(space.choices, trial)
        spec = space.build(config)
        distinct.setdefault(config_key(space.canonical(config)), Finalist(trial, config, spec, size(trial, spec)))
    return sorted(distinct.values(), key=lambda finalist: (finalist.size, finalist.trial.number))


def best_of_bands(finalists: Sequence[Finalist]) -> list[Finalist]:
    """The three of every band with the lowest error of the search, and all distilled ones, smallest first."""
    chosen: list[Finalist] = []
    for band in range(BANDS):
        ranked = sorted(of_band(finalists, band), key=lambda one: (*one.trial.values, one.trial.number))
        chosen += [*ranked[:RESCORED], *(finalist for finalist in ranked[RESCORED:] if finalist.distilled)]
    return sorted(chosen, key=lambda finalist: (finalist.size, finalist.trial.number))


def of_band(finalists: Sequence[Finalist], band: int) -> list[Finalist]:
    return [finalist for finalist in finalists if finalist.band == band]


def cost_of_bands(evaluator: SubnetEvaluator) -> str:
    """The first cost among the objectives."""
    return next(name for name in evaluator.context.config.search.objectives if name != ERROR)


def relative_size(evaluator: SubnetEvaluator, trial: FrozenTrial, spec: SubnetSpec) -> float:
    """The share of the non-embedding parameters, or where another cost lies between the smallest and the whole."""
    name = cost_of_bands(evaluator)
    if name == SHARE:
        return evaluator.share(spec)
    space, table = evaluator.space, evaluator.latency_table() if name == LATENCY else None
    least, most = (
        table.predict(end) if table else evaluator.cost(name, end)
        for end in (space.build(smallest(space.choices)), space.anatomy.full)
    )
    return (trial.values[1] - least) / (most - least) if most > least else 0.0


def choose_members(finalists: Sequence[Finalist], errors: PairedErrors) -> list[Finalist]:
    """One finalist per band, without those that a smaller one beats; smallest first."""
    members: list[Finalist] = []
    for band in range(BANDS):
        if of_band(finalists, band):
            member = choose_of_band(of_band(finalists, band), errors)
            if not any(errors.is_better(smaller.name, member.name, by=SURELY) for smaller in members):
                members.append(member)
    return members


def choose_of_band(finalists: Sequence[Finalist], errors: PairedErrors) -> Finalist:
    """The smallest of those that the best does not beat by more than one standard error of the difference.

    A distilled one comes before all others that are not better by more than SURELY standard errors: distillation is
    worth about a point, as much as one standard error on a few hundred rows, and the best of many others is best by
    luck.
    """
    best = min(finalists, key=lambda finalist: (errors.error(finalist.name), finalist.size))
    alone = [f for f in finalists if f.distilled and not errors.is_better(best.name, f.name, by=SURELY)]
    near = alone or [finalist for finalist in finalists if not errors.is_better(best.name, finalist.name)]
    return min(near, key=lambda finalist: (finalist.size, errors.error(finalist.name)))
