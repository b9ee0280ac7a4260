"""Where the weights of a sub-network are: inside a network that all share, or in a network of its own."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from archwright.compression.context import RunContext, load_context, read_deadline
from archwright.compression.finetuning import extract_trainable, finetune
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import EPOCHS, Config
from archwright.spaces.subnetwork import SUPERNET, ChainSpace, SubnetSpace, TrainedSpace
from archwright.store import RunFolder
from archwright.store.checkpoints import FileCheckpoints
from archwright.subnet.spec import SubnetSpec, sizes
from archwright.training.task_data import save_network

MOST_CHECKPOINTS = 20
"""Trainings that may still be continued; older ones would begin again, with the same result."""


class WeightSource(Protocol):
    """Finds the weights of a config. It can be pickled, like the networks it holds."""

    def locate(self, config: Config) -> tuple[PrunedNetwork, SubnetSpec | None]:
        """A network, and what of it is the sub-network; None: all of it."""

    def is_kept(self, config: Config) -> bool:
        """Whether these weights are still there: networks with weights of their own are deleted when they lose."""

    def own_folder(self, config: Config) -> Path | None:
        """Where a network with weights of its own lies; None: it is a part of the one that all share."""


@dataclass(frozen=True)
class SharedWeights:
    """Every sub-network is a part of one network."""

    network: PrunedNetwork
    space: SubnetSpace

    def locate(self, config: Config) -> tuple[PrunedNetwork, SubnetSpec]:
        return self.network, self.space.build(config)

    def is_kept(self, config: Config) -> bool:
        return True

    def own_folder(self, config: Config) -> None:
        return None


@dataclass(frozen=True)
class ChainWeights:
    """Sub-networks are parts of one network; candidates lie beside it, each with weights of its own."""

    context: RunContext
    network: PrunedNetwork
    space: ChainSpace

    def locate(self, config: Config) -> tuple[PrunedNetwork, SubnetSpec | None]:
        if config["source"] == SUPERNET:
            return self.network, self.space.build(config)
        network = load_saved_network(self.context.run.networks / config["source"])
        return network.to(self.context.task_data.device), None

    def is_kept(self, config: Config) -> bool:
        folder = self.own_folder(config)
        return folder is None or folder.exists()

    def own_folder(self, config: Config) -> Path | None:
        return None if config["source"] == SUPERNET else self.context.run.networks / config["source"]

    def delete_except(self, best: Iterable[Config], tried: Iterable[Config]) -> None:
        """Deletes tried candidates that are not among the best; the space still knows what they were."""
        for source in {config["source"] for config in tried} - {config["source"] for config in best} - {SUPERNET}:
            shutil.rmtree(self.context.run.networks / source, ignore_errors=True)


@dataclass(frozen=True)
class StandaloneWeights:
    """Fine-tunes the network of a config from the weights of `start` when it is first needed, into the run folder.

    The whole network is the run's fine-tuned original, cut if that was asked for: it is not trained a second time.
    """

    context: RunContext
    start: PrunedNetwork
    space: TrainedSpace
    load_start: Callable[[RunContext], PrunedNetwork]
    """Where `start` comes from; a finished run has another one, from which nothing is trained."""

    def locate(self, config: Config) -> tuple[PrunedNetwork, None]:
        folder, data = self.folder(config), self.context.task_data
        if not folder.exists() and not data.trains:  # a finished run has lost it: with its rows it is trained again
            context = load_context(self.context.run, device=data.device.type)
            return replace(self, context=context, start=self.load_start(context)).locate(config)
        if not folder.exists():
            self.train(config, folder)
        elif data.trains and config[EPOCHS] == self.space.epochs[-1]:
            self.checkpoints(config).remove()  # a kill may have come between the two
        return load_saved_network(folder).to(data.device), None

    def is_kept(self, config: Config) -> bool:
        return self.folder(config).exists()

    def own_folder(self, config: Config) -> Path:
        return self.folder(config)

    def folder(self, config: Config) -> Path:
        """Where the trained network is saved; runs of earlier versions have a second training of the whole one."""
        own = self.context.run.networks / config_name(config)
        return self.context.start if not own.exists() and is_whole(self.space, config) else own

    def checkpoints(self, config: Config) -> FileCheckpoints:
        """The state of the training; the same for all rungs of a design."""
        return self.context.run.checkpoints(f"alone-{design_name(config)}")

    def train(self, config: Config, folder: Path) -> None:
        """Trains for the config's epochs, going on from an earlier rung; TimeUp at the run's deadline."""
        context, checkpoints = self.context, self.checkpoints(config)
        network = extract_trainable(self.start, self.space.build(config))
        finetune(
            *(context.task_data, network, context.config.supernet),
            epochs=config[EPOCHS],
            checkpoints=checkpoints,
            deadline=read_deadline(context.run),
        )
        save_network(network, context.task_data, folder)
        if config[EPOCHS] == self.space.epochs[-1]:
            checkpoints.remove()
        delete_old_checkpoints(context.run)

    def delete_except(self, best: Iterable[Config], tried: Iterable[Config]) -> None:
        """Deletes the networks of tried configs that are not among the best."""
        for name in {config_name(config) for config in tried} - {config_name(config) for config in best}:
            shutil.rmtree(self.context.run.networks / name, ignore_errors=True)


def is_whole(space: SubnetSpace | TrainedSpace, config: Config) -> bool:
    """Whether this sub-network is the whole network."""
    return sizes(space.build(config)) == sizes(space.anatomy.full)


def config_name(config: Config) -> str:
    """A short name for files, the same for equal configs."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:16]


def design_name(config: Config) -> str:
    """The same for all training lengths of one design."""
    return config_name({name: value for name, value in config.items() if name != EPOCHS})


def delete_old_checkpoints(run: RunFolder) -> None:
    """Of networks that are trained by themselves, when there are many."""
    written = {}
    for file in run.path.glob("checkpoint-alone-*.safetensors"):
        written[file] = file.stat().st_mtime if file.exists() else 0.0  # another worker may have deleted it by now
    for file in sorted(written, key=written.__getitem__)[:-MOST_CHECKPOINTS]:
        file.unlink(missing_ok=True)
