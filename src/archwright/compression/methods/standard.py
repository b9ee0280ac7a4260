"""Standard NAS, and layer dropping: every network is fine-tuned by itself from the pre-trained weights."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from archwright.compression.context import RunContext
from archwright.compression.finetuning import finetune, finetune_original, known_order, measure_order, space_of
from archwright.compression.methods.config_list import note_configs, noted_designs
from archwright.compression.search import SubnetEvaluator, corners, deadline_of
from archwright.networks.load import saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import EPOCHS, SAMPLERS, Config, rungs
from archwright.spaces.subnetwork import layer_config
from archwright.spaces.trained import TrainedSpace
from archwright.store import RunFolder
from archwright.store.checkpoints import FileCheckpoints
from archwright.subnet.anatomy import anatomy
from archwright.subnet.extract import extract
from archwright.subnet.importance import reorder
from archwright.subnet.pruning.baselines import layer_dropping
from archwright.training.pretrained import load_checkpoint, save_network

MOST_CHECKPOINTS = 20
"""Trainings that may still be continued; older ones would begin again, with the same result."""


def trained_original(context: RunContext) -> None:
    """The original, to compare with, and the order that its parts are removed in."""
    original = finetune_original(context)
    measure_order(context, original)


def standard_ground(context: RunContext) -> SubnetEvaluator:
    """Every design of the space, trained for --epochs, or at rungs below when the sampler asks for them."""
    start = ordered(context)
    steps = SAMPLERS[context.search.sampler].epochs(rungs(context.supernet.min_epochs, context.supernet.epochs))
    space = TrainedSpace(space_of(context, start, known_order(context)), tuple(steps))
    home, first = Alone(context, start, space), corners(context.search, space)
    return SubnetEvaluator(context, start, space, home, first, trials=context.search.trials, tidy=home.tidy)


def ordered(context: RunContext) -> PrunedNetwork:
    """The pre-trained network with its heads and units in the order of their importance."""
    network = load_checkpoint(context.task_data, context.model, context.supernet)
    if order := known_order(context):
        reorder(network, order)
    return network


def listed_layers(context: RunContext) -> None:
    """All but the top n layers, for every n; the middle ones first, in case the time is short."""
    original = finetune_original(context)
    keeps = sorted(layer_dropping(original), key=lambda part: abs(sum(map(any, part)) - len(part) / 2))
    of, epochs = anatomy(original.config), {EPOCHS: context.supernet.epochs}
    note_configs(context.run, [layer_config(of, part) | epochs for part in (of.full, *keeps)])


def dropping_ground(context: RunContext) -> SubnetEvaluator:
    start = load_checkpoint(context.task_data, context.model, context.supernet)
    space = TrainedSpace(space_of(context, start, None), (context.supernet.epochs,))
    home, designs = Alone(context, start, space), noted_designs(context.run)
    return SubnetEvaluator(context, start, space, home, designs, trials=len(designs), tidy=home.tidy)


@dataclass(frozen=True)
class Alone:
    """Trains a design when it is first asked for; its network then lies in the run folder.

    The whole network is not trained again: it is the original, which the run has fine-tuned already.
    """

    context: RunContext
    start: PrunedNetwork
    space: TrainedSpace

    def __call__(self, config: Config) -> tuple[PrunedNetwork, None]:
        folder = self.folder(config)
        if not folder.exists():
            self.train(config, folder)
        return saved_network(folder).to(self.context.task_data.device), None

    def folder(self, config: Config) -> Path:
        """Where the trained network lies."""
        return self.context.run.networks / name_of(config)

    def checkpoints(self, config: Config) -> FileCheckpoints:
        """The state of the design's training; the same for all rungs."""
        return self.context.run.checkpoints(f"alone-{design_name(config)}")

    def train(self, config: Config, folder: Path) -> None:
        context = self.context
        checkpoints = self.checkpoints(config)
        network = extract(self.start, self.space.build(config))
        finetune(
            context.task_data,
            frozen_as(network, self.start),
            context.supernet,
            epochs=config[EPOCHS],
            checkpoints=checkpoints,
            deadline=deadline_of(context.run),
        )
        save_network(network, context.task_data, folder)
        if config[EPOCHS] == self.space.epochs[-1]:
            checkpoints.remove()
        forget(context.run)

    def tidy(self, told: list[Config], best: list[Config]) -> None:
        """Deletes the networks of told designs that are not on the front."""
        for name in {name_of(config) for config in told} - {name_of(config) for config in best}:
            shutil.rmtree(self.context.run.networks / name, ignore_errors=True)


def frozen_as(network: PrunedNetwork, other: PrunedNetwork) -> PrunedNetwork:
    """The extracted network, with what was not to be trained in the other not to be trained here."""
    still = {name for name, parameter in other.named_parameters() if not parameter.requires_grad}
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name not in still)
    return network


def name_of(config: Config) -> str:
    """A short name for a folder, the same for equal designs."""
    text = json.dumps(config, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def design_name(config: Config) -> str:
    """The same, however long the design is trained."""
    return name_of({name: value for name, value in config.items() if name != EPOCHS})


def forget(run: RunFolder) -> None:
    """Deletes the oldest checkpoints of networks trained by themselves when there are many."""
    files = sorted(run.path.glob("checkpoint-alone-*.safetensors"), key=modified)
    for file in files[:-MOST_CHECKPOINTS]:
        file.unlink(missing_ok=True)


def modified(file: Path) -> float:
    """When the file was written; another worker may have deleted it by now."""
    return file.stat().st_mtime if file.exists() else 0.0
