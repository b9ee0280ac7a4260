"""Single path one-shot (Guo et al. 2020; W-PCA, Appendix E.2): one super-network is trained, its paths are judged.

Every training step runs one random path. Afterwards a design is worth the validation accuracy of its path, with the
weights it shares with all others: on labelled rows, or on words hidden in a text.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.configs import design as do
from archwright.data.batching import Batch
from archwright.designing.supernet_objectives import SupernetObjective, lesson_of
from archwright.errors import BadInput
from archwright.networks.nlu import NluConfig
from archwright.networks.nlu.supernet import NluSupernetConfig, path, untrained_supernet
from archwright.random_streams import generator
from archwright.scoring.request import WEIGHTS
from archwright.scoring.scorer import code, size_of
from archwright.search import Candidate, Config, smallest
from archwright.search.batch_loop import Judge, Measured
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.nlu import NluSpace
from archwright.store import Scores, digest
from archwright.store.checkpoints import FileCheckpoints
from archwright.training.loop import train_network
from archwright.training.schedule import Schedule
from archwright.training.state import tensors_of

FILE = "supernet-{digest}.safetensors"
LEAST = {"steps": 1, "batch_size": 1, "validation_rows": 1}


@dataclass(frozen=True)
class OneShotEvaluator:
    """Judges of one-shot search; a super-network is trained when its repeat is first asked for."""

    space: NluSpace
    options: do.OneShotOptions
    looking: do.DesignScoringOptions
    known: Scores
    lesson: SupernetObjective
    trained: dict[int, nn.Module] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"validation {self.lesson.metric}"

    @property
    def told(self) -> dict[str, Any]:
        return {
            "lesson": self.lesson.name,
            "steps": self.options.steps,
            "batch_size": self.options.batch_size,
            "learning_rate": self.options.learning_rate,
            "validation_rows": self.options.validation_rows,
        }

    def judge(self, repeat: int, spent: dict[str, float], done: list[str]) -> Judge:
        """Accuracy of every path; what is known is not done again."""

        def accuracies(candidates: Sequence[Candidate]) -> list[Measured]:
            return [[self._accuracy(repeat, one.config, spent, done)] for one in candidates]

        return accuracies

    def _accuracy(self, repeat: int, config: Config, spent: dict[str, float], done: list[str]) -> float:
        key = digest(self.identity(repeat), json.dumps(config, sort_keys=True))
        if not self.known.of(key):
            network, begun = self.network(repeat), process_time()
            with path(network, config), torch.no_grad():
                found = self.lesson.accuracy(network)
            self.known.add(key, {"accuracy": {"value": found}, "cost": {"seconds": process_time() - begun}})
            done.append(key)
        spent[key] = float(self.known.of(key)["cost"]["seconds"])
        return float(self.known.of(key)["accuracy"]["value"])

    def identity(self, repeat: int) -> str:
        """Name of the super-network: everything it depends on."""
        return digest(
            code(), repr(self.space), repr(self.options), repr((self.looking.seed, repeat)), self.lesson.identity
        )

    def network(self, repeat: int) -> nn.Module:
        """The trained super-network; a training that was killed goes on where it was."""
        if repeat not in self.trained:
            supernet = untrained_supernet(
                supernet_config(self.space, self.lesson.vocabulary),
                generator=generator(self.looking.seed, WEIGHTS, repeat),
            )
            network = self.lesson.headed(supernet)
            self._train(network, repeat)
            self.trained[repeat] = network.eval()
        return self.trained[repeat]

    def _train(self, network: nn.Module, repeat: int) -> None:
        schedule = Schedule(steps=self.options.steps, learning_rate=self.options.learning_rate)
        checkpoints = FileCheckpoints(self.looking.out / FILE.format(digest=self.identity(repeat)[:12]))
        train_network(
            network,
            lambda epoch: self.lesson.batches(epoch, self.options.batch_size),
            on_random_paths(network, self.space, self.lesson.update(network)),
            schedule,
            seed=self.looking.seed + repeat,
            checkpoints=checkpoints,
            title="super-network",
        )
        checkpoints.save({"step": schedule.steps, "model": tensors_of(network), "optimizer": {}, "carry": {}})


def on_random_paths(network: nn.Module, space: NluSpace, update: Callable[..., Any]) -> Callable[..., Any]:
    """The same step, inside a path that is drawn for it."""

    def step(batch: Batch, rng: np.random.Generator, share: float) -> Any:
        with path(network, space.sample(rng)):
            return update(batch, rng, share)

    return step


def supernet_config(space: NluSpace, vocabulary: int) -> NluSupernetConfig:
    plan: NluConfig = space.plan(smallest(space.choices), vocab_size=vocabulary)
    return NluSupernetConfig(paths=list(space.choices.values()), **plan.shared)


def one_shot(
    space: ArchitectureSpace, options: do.OneShotOptions, looking: do.DesignScoringOptions, known: Scores
) -> OneShotEvaluator:
    """BadInput where the space has no super-network, or a number makes no sense."""
    if not isinstance(space, NluSpace):
        raise BadInput(f"--method spos needs a space of blocks (nlu-tiny, nlu-small, nlu-large), got {space.name}.")
    for name, least in LEAST.items():
        if getattr(options, name) < least:
            raise BadInput(f"--{name.replace('_', '-')} must be at least {least}, got {getattr(options, name)}.")
    size_of(space, looking)
    if options.data is not None and options.task is None:
        raise BadInput(f"--data needs --task, the task whose files it holds, got {options.data}.")
    if not options.learning_rate > 0:
        raise BadInput(f"--learning-rate must be above 0, got {options.learning_rate}.")
    return OneShotEvaluator(space, options, looking, known, lesson_of(space, options, looking))
