"""What every phase of `compress` needs: the task as batches, the tokenizer, and the checkpoint's own labels."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from archwright.configs import compress as o
from archwright.data.batching import Batch, Encoded, batches, evaluation_batches
from archwright.data.public_data import resolve_model
from archwright.data.tasks.task import Task, load_task
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput
from archwright.networks.load import freeze_embeddings, load_supernet, max_length_of, stock_config
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import has_head
from archwright.objectives.error import measure_error
from archwright.store import atomic_folder
from archwright.subnet.spec import SubnetSpec
from archwright.tasks import TASK_KINDS


@dataclass(frozen=True)
class TaskData:
    """A task, tokenized for a checkpoint."""

    source: str
    """Folder or hub id of the checkpoint."""
    task: Task
    tokenizer: Any
    fitted: bool
    """Whether the checkpoint brings a head with as many outputs as the task needs."""
    tuned: bool
    """Whether that head was trained for this task, as its label names say."""
    encoded: dict[str, Encoded]
    seed: int
    device: torch.device

    def steps_per_epoch(self, batch_size: int) -> int:
        return sum(1 for _ in batches(self.encoded["train"], batch_size=batch_size, rng=np.random.default_rng(0)))

    def training(self, batch_size: int, stream: int) -> Any:
        """Epoch number to batches; another stream for another training of the same run."""
        return lambda epoch: batches(
            self.encoded["train"], batch_size=batch_size, rng=np.random.default_rng((self.seed, stream, epoch))
        )

    @cached_property
    def validation(self) -> list[Batch]:
        return evaluation_batches(self.encoded["validation"], tokens=self.evaluation_tokens)

    @cached_property
    def test(self) -> list[Batch]:
        return evaluation_batches(self.encoded["test"], tokens=self.evaluation_tokens)

    @property
    def evaluation_tokens(self) -> int:
        return TASK_KINDS[self.task.kind].evaluation_tokens

    def error(self, network: PrunedNetwork, rows: list[Batch], spec: SubnetSpec | None = None) -> float:
        """1 - the task's metric (or the perplexity) of the network, or of the sub-network `spec` inside it."""
        return measure_error(network, rows, spec, metric=self.task.metric, positive=self.task.positive)

    def scale_error(self, error: float) -> float:
        """The error between 0, perfect, and 1, guessing: what a hypervolume is computed from."""
        return self.task.scale_error(error)

    def length(self, tokens: int) -> int:
        """Tokens of the text that costs are about; 0: as many as a typical one has."""
        return tokens or self.encoded["validation"].median_length


def load_task_data(
    model: o.ModelOptions, data: o.DataOptions, *, seed: int, device: str = "auto", held_out: float | None = None
) -> TaskData:
    """Everything that can be wrong about model and data is found here, before anything is written or trained."""
    where = resolve_device(device)
    source = resolve_model(model.model)
    return prepare_task_data(stock_config(source), source, data, seed=seed, device=where, held_out=held_out)


def prepare_task_data(
    config: Any, source: str, data: o.DataOptions, *, seed: int, device: torch.device, held_out: float | None = None
) -> TaskData:
    """The task for the checkpoint of this config, its labels in the order of the checkpoint's head if it has one."""
    options = vars(data) | {"name": data.task, "seed": seed, "held_out": held_out}
    options = {key: value for key, value in options.items() if key not in ("task", "max_length")}
    task = load_task(**options)
    own = own_labels(config, task)
    if own and own != task.labels:
        task = load_task(**options, labels=own)
    task = replace(task, vocabulary=getattr(config, "vocab_size", 0))
    tokenizer = load_tokenizer(source)
    encoded = {split: rows.encode(tokenizer, data.max_length) for split, rows in task.splits.items()}
    return TaskData(source, task, tokenizer, own is not None, names_match(config, task), encoded, seed, device)


def resolve_device(name: str) -> torch.device:
    """The device of this name; auto is the best there is."""
    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise BadInput("--device cuda needs a CUDA device that torch can use, and there is none; choose cpu.")
    return device


def own_labels(config: Any, task: Task) -> tuple[str, ...] | None:
    """The task's labels in the order of the checkpoint's head, None when its head is for something else.

    A head without label names may be for anything: it is kept as a start, in the task's order, and trained further.
    """
    if not has_head(config, task.labels, task.kind):
        return None
    names = head_names(config)
    if not task.labels or names == [f"label_{i}" for i in range(len(names))]:
        return task.labels
    by_name = {label.casefold(): label for label in task.labels}
    return tuple(by_name[name] for name in names) if names_match(config, task) else None


def names_match(config: Any, task: Task) -> bool:
    """Whether the checkpoint's head has the task's labels, by name and in any order."""
    labels = sorted(label.casefold() for label in task.labels)
    return bool(labels) and has_head(config, task.labels, task.kind) and sorted(head_names(config)) == labels


def head_names(config: Any) -> list[str]:
    return [str(config.id2label[i]).casefold() for i in range(config.num_labels)]


def load_checkpoint(task_data: TaskData, model: o.ModelOptions, settings: o.SupernetOptions) -> PrunedNetwork:
    """The checkpoint as it was given, with a head for the task."""
    network = load_supernet(
        task_data.source,
        kind=task_data.task.kind,
        labels=task_data.task.labels,
        pooling=model.pooling,
        grouping=model.grouping,
        seed=task_data.seed,
        keep_head=task_data.fitted,
    )
    freeze_embeddings(network, not settings.train_embeddings)
    return network.to(task_data.device)


def save_network(network: PrunedNetwork, task_data: TaskData, folder: Path) -> None:
    """The network and its tokenizer on disk, whole or not at all."""
    with atomic_folder(folder) as beside:
        network.save_pretrained(beside)
        task_data.tokenizer.save_pretrained(beside)


def check_positions(network: PrunedNetwork, lengths: dict[str, int]) -> None:
    room = max_length_of(network)
    for option, length in lengths.items():
        if length > room:
            raise BadInput(f"{option} must be at most {room}, the positions of this model, got {length} tokens.")
