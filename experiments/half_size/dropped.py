"""What a finished run's task gives without the top half of the layers (Sajjad et al. 2022), fine-tuned by itself.

python experiments/half_size/dropped.py RUN      (writes RUN/dropped.json)
"""

import json
import sys
from pathlib import Path

import torch

from archwright.commands.worker import group_from
from archwright.compression.search import load_evaluator
from archwright.configs import compress as o
from archwright.networks.load import freeze_embeddings
from archwright.store import RunFolder, write_whole
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, nonembedding_parameters
from archwright.subnet.supernet import plain_update
from archwright.training.loop import train_network
from archwright.training.losses import task_loss
from archwright.training.pretrained import load_checkpoint
from archwright.training.schedule import Schedule


def main() -> None:
    torch.set_num_threads(1)
    run = RunFolder(Path(sys.argv[1]))
    evaluator, settings, plan = load_evaluator(run), group_from(run, o.SupernetOptions), run.note("plan")
    of = evaluator.space.anatomy
    keep = tuple(part if i < of.layers // 2 else LayerSpec(0, 0) for i, part in enumerate(of.full))
    network = extract(load_checkpoint(evaluator.task_data, group_from(run, o.ModelOptions), settings), keep)
    freeze_embeddings(network, not settings.train_embeddings)
    train_network(
        network,
        evaluator.task_data.training(settings.batch_size, stream=4),
        plain_update(network, loss=task_loss),
        Schedule(steps=plan["original"] + plan["supernet"], learning_rate=settings.learning_rate),
        seed=evaluator.seed,
        title="without the top layers",
    )
    facts = {
        "nonembedding_share": nonembedding_parameters(of, keep) / nonembedding_parameters(of, of.full),
        "validation_error": evaluator.task_data.error(network, evaluator.task_data.validation),
        "test_error": evaluator.task_data.error(network, evaluator.task_data.test),
    }
    write_whole(run.path / "dropped.json", json.dumps(facts))


if __name__ == "__main__":
    main()
