"""The search in one process, many candidates at a time: asked together, measured together by whoever can, then told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from archwright.search.choices import Choices
from archwright.search.encoding import PACKED, config_of, distributions
from archwright.search.loop import MISSING, Known, Outcome, copied, exceeds
from archwright.search.space import Candidate, Constraint, Space

ObjectiveValues = Sequence[float] | str
"""One number per objective, or why there is none."""
EvaluateBatch = Callable[[Sequence[Candidate]], Sequence[ObjectiveValues]]
Heard = Callable[[list[FrozenTrial]], None]


def search_batches(
    study: Study,
    space: Space,
    judge: EvaluateBatch,
    *,
    constraints: Sequence[Constraint] = (),
    trials: int,
    together: int,
    on_batch: Heard | None = None,
) -> None:
    """Tries configs until the study has `trials`, `together` at a time; `heard` is given each round when it is told.

    Limits are checked first, in order; a design that was told before, or comes twice in a round, is judged once.
    The study lives in this process: nobody else works on it.
    """
    known = Known(space)
    while (done := len(study.get_trials(deepcopy=False))) < trials:
        asked = [drawn(study, space.choices) for _ in range(min(together, trials - done))]
        round_of(study, space, judge, asked, constraints=constraints, known=known)
        if on_batch:
            on_batch(study.get_trials(deepcopy=False)[done:])


def drawn(study: Study, choices: Choices) -> Trial:
    """A new trial with the whole config that the study's sampler proposes, written at once."""
    sampler, number = study.sampler, len(study.get_trials(deepcopy=False))
    blank = create_trial(state=TrialState.RUNNING)
    blank.number = number
    found: dict[str, BaseDistribution] = distributions(choices)
    proposed = sampler.sample_relative(study, blank, sampler.infer_relative_search_space(study, blank))
    single = {name: one for name, one in found.items() if name not in proposed}
    params = {name: proposed[name] for name in found if name in proposed}
    params |= {name: sampler.sample_independent(study, blank, name, one) for name, one in single.items()}
    packed = {name: value for name, value in proposed.items() if name.startswith(PACKED)}
    template = create_trial(state=TrialState.RUNNING, params=params, distributions=found, user_attrs=packed)
    return Trial(study, study._storage.create_new_trial(study._study_id, template))


def round_of(
    study: Study,
    space: Space,
    judge: EvaluateBatch,
    asked: Sequence[Trial],
    *,
    constraints: Sequence[Constraint],
    known: Known,
) -> None:
    """Judges what is new and within the limits; tells all, in the order in which they were asked."""
    candidates = [Candidate(space, config_of(space.choices, trial)) for trial in asked]
    fresh: dict[str, int] = {}
    for place, (trial, candidate) in enumerate(zip(asked, candidates, strict=True)):
        seen = known.find(study, candidate.config) or known.key(candidate.config) in fresh
        if not seen and not any(exceeds(limit, candidate, trial) for limit in constraints):
            fresh[known.key(candidate.config)] = place
    measured = dict(zip(fresh.values(), judge([candidates[place] for place in fresh.values()]), strict=True))
    for place, (trial, candidate) in enumerate(zip(asked, candidates, strict=True)):
        same = known.find(study, candidate.config)
        state, values = copied(same, trial) if same else outcome(trial, measured.get(place))
        study.tell(trial, values, state=state)


def outcome(trial: Trial, measured: ObjectiveValues | None) -> Outcome:
    """Over a limit where nothing was measured; missing, with the reason, where nothing could be."""
    if measured is None or isinstance(measured, str):
        if measured:
            trial.set_user_attr(MISSING, measured)
        return TrialState.PRUNED, None
    return TrialState.COMPLETE, list(measured)
