"""Standard NAS, and layer dropping: every network is fine-tuned by itself from the pre-trained weights."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from archwright.jobs.brief import Brief
from archwright.jobs.methods.designs import note_configs, noted_designs
from archwright.jobs.searching import Ground, corners, deadline_of
from archwright.jobs.training import (
    fine_tuned,
    fresh,
    importance_order,
    keep,
    known_order,
    original_network,
    space_of,
)
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

MOST_CHECKPOINTS = 20
"""Trainings that may still be continued; older ones would begin again, with the same result."""


def trained_original(brief: Brief) -> None:
    """The original, to compare with, and the order that its parts are removed in."""
    original = original_network(brief)
    importance_order(brief, original)


def standard_ground(brief: Brief) -> Ground:
    """Every design of the space, trained for --epochs, or at rungs below when the sampler asks for them."""
    start = ordered(brief)
    steps = SAMPLERS[brief.search.sampler].epochs(rungs(brief.supernet.min_epochs, brief.supernet.epochs))
    space = TrainedSpace(space_of(brief, start, known_order(brief)), tuple(steps))
    home, first = Alone(brief, start, space), corners(brief.search, space)
    return Ground(brief, start, space, home, first, trials=brief.search.trials, tidy=home.tidy)


def ordered(brief: Brief) -> PrunedNetwork:
    """The pre-trained network with its heads and units in the order of their importance."""
    network = fresh(brief.scene, brief.model, brief.supernet)
    if order := known_order(brief):
        reorder(network, order)
    return network


def listed_layers(brief: Brief) -> None:
    """All but the top n layers, for every n; the middle ones first, in case the time is short."""
    original = original_network(brief)
    keeps = sorted(layer_dropping(original), key=lambda part: abs(sum(map(any, part)) - len(part) / 2))
    of, epochs = anatomy(original.config), {EPOCHS: brief.supernet.epochs}
    note_configs(brief.run, [layer_config(of, part) | epochs for part in (of.full, *keeps)])


def dropping_ground(brief: Brief) -> Ground:
    start = fresh(brief.scene, brief.model, brief.supernet)
    space = TrainedSpace(space_of(brief, start, None), (brief.supernet.epochs,))
    home, designs = Alone(brief, start, space), noted_designs(brief.run)
    return Ground(brief, start, space, home, designs, trials=len(designs), tidy=home.tidy)


@dataclass(frozen=True)
class Alone:
    """Trains a design when it is first asked for; its network then lies in the run folder.

    The whole network is not trained again: it is the original, which the run has fine-tuned already.
    """

    brief: Brief
    start: PrunedNetwork
    space: TrainedSpace

    def __call__(self, config: Config) -> tuple[PrunedNetwork, None]:
        folder = self.folder(config)
        if not folder.exists():
            self.train(config, folder)
        return saved_network(folder).to(self.brief.scene.device), None

    def folder(self, config: Config) -> Path:
        """Where the trained network lies."""
        return self.brief.run.networks / name_of(config)

    def checkpoints(self, config: Config) -> FileCheckpoints:
        """The state of the design's training; the same for all rungs."""
        return self.brief.run.checkpoints(f"alone-{design_name(config)}")

    def train(self, config: Config, folder: Path) -> None:
        brief = self.brief
        checkpoints = self.checkpoints(config)
        network = extract(self.start, self.space.build(config))
        fine_tuned(
            brief.scene,
            frozen_as(network, self.start),
            brief.supernet,
            epochs=config[EPOCHS],
            checkpoints=checkpoints,
            deadline=deadline_of(brief.run),
        )
        keep(network, brief.scene, folder)
        if config[EPOCHS] == self.space.epochs[-1]:
            checkpoints.remove()
        forget(brief.run)

    def tidy(self, told: list[Config], best: list[Config]) -> None:
        """Deletes the networks of told designs that are not on the front."""
        for name in {name_of(config) for config in told} - {name_of(config) for config in best}:
            shutil.rmtree(self.brief.run.networks / name, ignore_errors=True)


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
