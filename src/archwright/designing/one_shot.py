"""Single path one-shot (Guo et al. 2020; W-PCA, Appendix E.2): one super-network is trained, its paths are evaluated.

Every training step runs one random path. Afterwards a design is worth the validation accuracy of its path, with the
weights it shares with all others: on labelled rows, or on words hidden in a text.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.configs import design as do
from archwright.configs.options import changed_flags, refuse_options
from archwright.data.batching import Batch
from archwright.designing import Evaluation, EvaluationCost, EvaluationRequest
from archwright.designing.one_shot_objectives import SupernetObjective, load_objective
from archwright.errors import BadInput
from archwright.networks.nlu.supernet import path
from archwright.random_streams import INITIAL_WEIGHTS, generator
from archwright.scoring.layer_scores import NO_PARTS
from archwright.scoring.setup import batch_size
from archwright.search import Candidate, Config
from archwright.search.loop import ObjectiveValues
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import ScoreStore, digest
from archwright.store.checkpoints import FileCheckpoints
from archwright.training.loop import model_tensors, train_network
from archwright.training.schedule import Schedule

FILE = "supernet-{digest}.safetensors"
REVISION = 1
"""Raise it when the same options train another super-network: one that lies in the folder is then not used."""
OF_PROXIES = {"--proxy", "--batch-rows", "--loss", "--initial", "--workers", "--ray"}
OF_TEXT = {"--text", "--length"}
"""Options that a super-network and its accuracy do not need, the second where it learns a task."""


@contextmanager
def evaluate_by_accuracy(request: EvaluationRequest) -> Iterator[Evaluation]:
    """Validation accuracy of paths in a trained super-network."""
    options = request.one_shot
    if not request.goal.compare_proxies:
        named = changed_flags(request.goal) | changed_flags(request.scoring)
        refuse_options(named & OF_PROXIES, "on accuracies, by which --method spos judges")
        refuse_options(named & OF_TEXT if options.task else (), "beside --task")
    check_options(request.space, options)
    batch_size(request.space, request.scoring)
    objective, cost = load_objective(request.space, options, request.scoring), EvaluationCost()
    supernets = Supernets(request.space, options, request.scoring, objective)
    details = {
        "lesson": objective.name,
        "steps": options.steps,
        "batch_size": options.batch_size,
        "learning_rate": options.learning_rate,
        "validation_rows": options.validation_rows,
    }
    name = f"validation {objective.metric}"
    whole = {"score": None, "layers": None, "rest": None, "note": NO_PARTS.format(name=name)}
    yield Evaluation(
        (name,),
        lambda repeat: PathEvaluator(supernets, request.known, repeat, cost),
        cost,
        details,
        lambda config, repeat: {name: whole},
    )


def check_options(space: ArchitectureSpace, options: do.OneShotOptions) -> None:
    """Raises BadInput where the space has no super-network, or data is given without its task."""
    if not space.has_supernet:
        known = ", ".join(name for name, each in ARCHITECTURES.items() if each.has_supernet)
        raise BadInput(f"--method spos needs a space of blocks ({known}), got {space.name}.")
    if options.data is not None and options.task is None:
        raise BadInput(f"--data needs --task, the task whose files it holds, got {options.data}.")


@dataclass(frozen=True)
class Supernets:
    """A super-network per repeat, trained when it is first used."""

    space: ArchitectureSpace
    options: do.OneShotOptions
    scoring: do.DesignScoringOptions
    objective: SupernetObjective
    _trained: dict[int, nn.Module] = field(default_factory=dict)

    def identity(self, repeat: int) -> str:
        """Name of the super-network: everything it depends on."""
        seeds = repr((self.scoring.seed, repeat))
        return digest(
            str((REVISION, self.space.revision)), repr(self.space), repr(self.options), seeds, self.objective.identity
        )

    def train(self, repeat: int) -> nn.Module:
        """The trained super-network; a training that was killed goes on where it was."""
        if repeat in self._trained:
            return self._trained[repeat]
        draws = generator(self.scoring.seed, INITIAL_WEIGHTS, repeat)
        supernet = self.space.supernet(generator=draws, vocabulary=self.objective.vocabulary)
        network = self.objective.add_head(supernet)
        update = self.objective.update(network)

        def update_random_path(batch: Batch, rng: np.random.Generator, share: float) -> Any:
            with path(network, self.space.sample(rng)):
                return update(batch, rng, share)

        schedule = Schedule(steps=self.options.steps, learning_rate=self.options.learning_rate)
        checkpoints = FileCheckpoints(self.scoring.out / FILE.format(digest=self.identity(repeat)[:12]))
        train_network(
            network,
            lambda epoch: self.objective.batches(epoch, self.options.batch_size),
            update_random_path,
            schedule,
            seed=self.scoring.seed + repeat,
            checkpoints=checkpoints,
            title="super-network",
        )
        checkpoints.save({"step": schedule.steps, "model": model_tensors(network), "optimizer": {}, "carry": {}})
        self._trained[repeat] = network.eval()
        return network


@dataclass(frozen=True)
class PathEvaluator:
    """Accuracy of paths in the super-network of one repeat; what is known is not computed again."""

    supernets: Supernets
    known: ScoreStore
    repeat: int
    cost: EvaluationCost

    def __call__(self, candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
        return [[self._accuracy(each.config)] for each in candidates]

    def _accuracy(self, config: Config) -> float:
        key = digest(self.supernets.identity(self.repeat), json.dumps(config, sort_keys=True))
        if not self.known.of(key):
            network, begun = self.supernets.train(self.repeat), process_time()
            with path(network, config), torch.no_grad():
                accuracy = self.supernets.objective.accuracy(network)
            self.known.add(key, {"accuracy": {"value": accuracy}, "cost": {"seconds": process_time() - begun}})
            self.cost.evaluated.append(key)
        self.cost.seconds[key] = float(self.known.of(key)["cost"]["seconds"])
        return float(self.known.of(key)["accuracy"]["value"])
