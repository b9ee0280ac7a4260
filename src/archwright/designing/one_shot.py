"""Single path one-shot (Guo et al. 2020; W-PCA, Appendix E.2): one super-network is trained, its paths are evaluated.

Every training step runs one random path. As in the paper the super-network learns from a teacher in two stages: the
states of its layers on text, then its states and answers on a task; afterwards a design is worth the validation
accuracy of its path, with the weights it shares with all others. Without a task there is the first stage alone, and
what counts is how near a path comes to the teacher; without a teacher there is one stage, on labels or hidden words.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from archwright.configs import design as do
from archwright.configs.options import changed_flags, refuse_options
from archwright.data.batching import Batch
from archwright.designing import Evaluation, EvaluationCost, EvaluationRequest
from archwright.designing.one_shot_objectives import SupernetLearner, SupernetObjective, load_objective
from archwright.designing.one_shot_teaching import load_task_stage, load_text_stage
from archwright.errors import BadInput
from archwright.networks.linear_kernel import fast_linears
from archwright.networks.nlu.supernet import NluSupernet, path
from archwright.random_streams import INITIAL_WEIGHTS, generator
from archwright.scoring.layer_scores import NO_PARTS
from archwright.scoring.setup import batch_size
from archwright.search import Candidate, Config
from archwright.search.loop import ObjectiveValues
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import ScoreStore, digest
from archwright.store.checkpoints import FileCheckpoints
from archwright.store.logs import TrainingLog, read_log
from archwright.training.loop import model_tensors, train_network
from archwright.training.precision import has_bfloat16
from archwright.training.recipes import Recipe, merge_recipe
from archwright.training.schedule import Schedule

FILE, LOG = "supernet-{digest}.safetensors", ".csv"
PRESET, NO_TEACHER = "spos", "none"
REVISION = 3
"""Raise it when the same options train another super-network: one that lies in the folder is then not used."""
OF_PROXIES = {"--proxy", "--batch-rows", "--loss", "--initial", "--workers", "--ray"}
OF_TEXT = {"--text", "--length"}
"""Options that a super-network and its accuracy do not need, the second where it learns a task without a teacher."""


@contextmanager
def evaluate_by_accuracy(request: EvaluationRequest) -> Iterator[Evaluation]:
    """Validation accuracy of paths in a trained super-network."""
    options = request.one_shot
    if not request.goal.compare_proxies:
        named = changed_flags(request.goal) | changed_flags(request.scoring)
        refuse_options(named & OF_PROXIES, "on accuracies, by which --method spos judges")
        alone = options.task and options.teacher == NO_TEACHER
        refuse_options(named & OF_TEXT if alone else (), "beside --task and --teacher none")
    check_options(request.space, options)
    batch_size(request.space, request.scoring)
    stages, cost = load_stages(request.space, options, request.scoring), EvaluationCost()
    supernets = Supernets(request.space, request.scoring, stages, find_precision(options.precision))
    last = stages[-1]
    details: dict[str, Any] = {
        "lesson": last.objective.name,
        "steps": last.steps,
        "batch_size": last.recipe.batch_size,
        "learning_rate": last.recipe.learning_rate,
        "precision": supernets.precision,
        "validation_rows": options.validation_rows,
    }
    if options.teacher != NO_TEACHER:
        details |= {"teacher": options.teacher, "stages": [stage.describe() for stage in stages]}
    name = f"validation {last.objective.metric}"
    whole = {"score": None, "layers": None, "rest": None, "note": NO_PARTS.format(name=name)}
    yield Evaluation(
        (name,),
        lambda repeat: supernets.evaluator(request.known, repeat, cost),
        cost,
        details,
        lambda config, repeat: {name: whole},
    )
    details["training_seconds"] = supernets.training_seconds()


@dataclass(frozen=True)
class Stage:
    """One training of the super-network."""

    objective: SupernetObjective
    recipe: Recipe
    """Of the preset `spos`, with what the user gave."""

    @property
    def steps(self) -> int:
        """Those asked for, or of the recipe's epochs."""
        if self.recipe.steps is not None:
            return self.recipe.steps
        return max(1, round((self.recipe.epochs or 1.0) * self.objective.rows / self.recipe.batch_size))

    def describe(self) -> dict[str, Any]:
        recipe = self.recipe
        sizes = {"steps": self.steps, "batch_size": recipe.batch_size, "learning_rate": recipe.learning_rate}
        return {"lesson": self.objective.name, "rows": self.objective.rows, **sizes}


def load_stages(
    space: ArchitectureSpace, options: do.OneShotOptions, scoring: do.DesignScoringOptions
) -> tuple[Stage, ...]:
    """The paper's two with a teacher and a task; else the one that there is something to learn from for."""
    given = {name: getattr(options, name) for name in ("steps", "batch_size", "learning_rate")}
    on_text, on_task = (merge_recipe(PRESET, stage, options.task, given) for stage in ("pretraining", "finetuning"))
    if options.teacher == NO_TEACHER:
        return (Stage(load_objective(space, options, scoring), on_task if options.task else on_text),)
    stages: list[Stage] = [Stage(load_text_stage(space, options, scoring), on_text)]
    if options.task:
        stages.append(Stage(load_task_stage(options, scoring), on_task))
    return tuple(stages)


def check_options(space: ArchitectureSpace, options: do.OneShotOptions) -> None:
    """Raises BadInput where the space has no super-network, or data is given without its task."""
    if not space.has_supernet:
        known = ", ".join(name for name, each in ARCHITECTURES.items() if each.has_supernet)
        raise BadInput(f"--method spos needs a space of blocks ({known}), got {space.name}.")
    if options.data is not None and options.task is None:
        raise BadInput(f"--data needs --task, the task whose files it holds, got {options.data}.")


def find_precision(given: str) -> str:
    """What `auto` is on this processor: all these spaces are wide enough for bfloat16."""
    if given != "auto":
        return given
    return "bfloat16" if has_bfloat16(torch.device("cpu")) else "float32"


@dataclass(frozen=True)
class Supernets:
    """A super-network per repeat, trained when it is first used."""

    space: ArchitectureSpace
    scoring: do.DesignScoringOptions
    stages: tuple[Stage, ...]
    precision: str
    """Of the matrix products in training steps."""
    _trained: dict[int, SupernetLearner] = field(default_factory=dict)
    _judged: set[int] = field(default_factory=set)
    """Repeats whose paths were judged, now or by an earlier command."""

    def evaluator(self, known: ScoreStore, repeat: int, cost: EvaluationCost) -> "PathEvaluator":
        self._judged.add(repeat)
        return PathEvaluator(self, known, repeat, cost)

    def identity(self, repeat: int, stages: int | None = None) -> str:
        """Name of the super-network after so many stages, or after all: everything it depends on."""
        about: list[Any] = [(stage.objective.identity, stage.steps, stage.recipe) for stage in self.stages[:stages]]
        about += [self.precision] if self.precision != "float32" else []
        seeds = repr((self.scoring.seed, repeat))
        return digest(str((REVISION, self.space.revision)), repr(self.space), repr(about), seeds)

    def train(self, repeat: int) -> SupernetLearner:
        """The trained super-network; a training that was killed goes on where it was."""
        if repeat in self._trained:
            return self._trained[repeat]
        draws = generator(self.scoring.seed, INITIAL_WEIGHTS, repeat)
        supernet = self.space.supernet(generator=draws, vocabulary=self.stages[0].objective.vocabulary)
        for number, stage in enumerate(self.stages, 1):
            learner = self.train_stage(stage, supernet, repeat, self.file(repeat, number))
        learner.network.eval()
        self._trained[repeat] = learner
        return learner

    def train_stage(self, stage: Stage, supernet: NluSupernet, repeat: int, file: Path) -> SupernetLearner:
        learner = stage.objective.learner(supernet)

        def update_random_path(batch: Batch, rng: np.random.Generator, share: float) -> Any:
            with path(learner.network, self.space.sample(rng)):
                return learner.update(batch, rng, share)

        schedule = Schedule(steps=stage.steps, learning_rate=stage.recipe.learning_rate)
        checkpoints = FileCheckpoints(file)
        with TrainingLog(file.with_suffix(LOG)) as log:
            done = train_network(
                learner.model,
                lambda epoch: stage.objective.batches(epoch, stage.recipe.batch_size),
                update_random_path,
                schedule,
                seed=self.scoring.seed + repeat,
                checkpoints=checkpoints,
                title=f"super-network: {stage.objective.name}",
                log=log,
                precision=self.precision,
            )
        if done:
            tensors = model_tensors(learner.model)
            checkpoints.save({"step": schedule.steps, "model": tensors, "optimizer": {}, "carry": {}})
        return learner

    def file(self, repeat: int, stages: int) -> Path:
        return self.scoring.out / FILE.format(digest=self.identity(repeat, stages)[:12])

    def training_seconds(self) -> float:
        """Wall clock of all training steps, also of those that an earlier command did."""
        files = [self.file(repeat, number) for repeat in self._judged for number in range(1, len(self.stages) + 1)]
        return sum(row["seconds"] for file in files for row in read_log(file.with_suffix(LOG)))


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
            learner, begun = self.supernets.train(self.repeat), process_time()
            with path(learner.network, config), torch.no_grad(), fast_linears():
                accuracy = learner.score()
            self.known.add(key, {"accuracy": {"value": accuracy}, "cost": {"seconds": process_time() - begun}})
            self.cost.evaluated.append(key)
        self.cost.seconds[key] = float(self.known.of(key)["cost"]["seconds"])
        return float(self.known.of(key)["accuracy"]["value"])
