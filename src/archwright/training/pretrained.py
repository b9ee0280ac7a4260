"""Networks as they were given, with a head for the task, and as they are saved."""

from pathlib import Path

from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.networks.load import freeze_embeddings, load_supernet, room_of
from archwright.networks.pruned import PrunedNetwork
from archwright.store import whole_folder
from archwright.training.task_data import TaskData


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
    with whole_folder(folder) as beside:
        network.save_pretrained(beside)
        task_data.tokenizer.save_pretrained(beside)


def check_room(network: PrunedNetwork, lengths: dict[str, int]) -> None:
    room = room_of(network)
    for option, length in lengths.items():
        if length > room:
            raise BadInput(f"{option} must be at most {room}, the positions of this model, got {length} tokens.")
