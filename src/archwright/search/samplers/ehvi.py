"""Expected hypervolume improvement, by Optuna's Gaussian processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import optuna
from optuna._gp.thread_limiting import limit_threads_in_optimization
from optuna.samplers import GPSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from archwright.logs import quiet_libraries
from archwright.search.choices import Choices, Config, Listed, mutate, sample
from archwright.search.encoding import config_of, distributions, encode
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler, seed_from

STARTUP = 10


class Ehvi(ProposalRule):
    """Maximises log EHVI (Daulton et al. 2020; Ament et al. 2023) with a fresh model per trial, after 10 random ones.

    The model sees a copy of the history, so it depends on nothing but that and the seed. A candidate over a limit
    counts as bad as the worst seen in every objective: left out, the model would propose it again and again.
    """

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        self._modelled = {name: choice for name, choice in choices.items() if not isinstance(choice, Listed)}
        self._listed = {name: choice[0] for name, choice in choices.items() if isinstance(choice, Listed)}
        self._space = distributions(self._modelled)

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        tried = [trial for trial in tried if self._listed.items() <= trial.config.items()]
        scored = [trial.losses for trial in tried if trial.losses is not None]
        if sum(trial.finished for trial in tried) < STARTUP or len(scored) < 2:
            return sample(self.choices, rng)
        worst = np.array(scored).max(axis=0)
        seed = seed_from(rng)
        sampler = GPSampler(
            seed=seed, independent_sampler=RandomSampler(seed), n_startup_trials=2, warn_independent_sampling=False
        )
        with quiet_libraries():  # Optuna reports every study it creates; the model's is nobody's business
            study = optuna.create_study(sampler=sampler, directions=["minimize"] * len(worst))
        study.add_trials([self._copy(trial, worst.tolist()) for trial in tried])
        with limit_threads_in_optimization():  # Optuna limits only parts of it; on tiny tensors threads do not help
            return self._listed | config_of(self._modelled, study.ask(self._space))

    def redraw(self, config: Config, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        return mutate(self.choices, config, rng)  # the model's best was tried: step aside instead of fitting it again

    def _copy(self, trial: PastTrial, worst: list[float]) -> FrozenTrial:
        params, _ = encode(self._modelled, trial.config)
        state = TrialState.COMPLETE if trial.finished else TrialState.RUNNING
        values = list(trial.losses or worst) if trial.finished else None
        return create_trial(state=state, values=values, params=params, distributions=self._space)


SAMPLER = Sampler("expected hypervolume improvement: Gaussian processes, best for few trials", Ehvi, packed=False)
