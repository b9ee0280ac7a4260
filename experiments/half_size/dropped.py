"""What a finished run's task gives without the top half of the layers (Sajjad et al. 2022), fine-tuned by itself.

python experiments/half_size/dropped.py RUN      (writes RUN/dropped.json)
"""

import json
import sys
from pathlib import Path

import torch

from archwright.compression.methods import load_evaluator
from archwright.networks.load import freeze_embeddings
from archwright.store import RunFolder, write_atomic
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, nonembedding_parameters
from archwright.subnet.supernet import plain_update
from archwright.training.loop import train_network
from archwright.training.losses import task_loss
from archwright.training.schedule import Schedule
from archwright.training.task_data import load_checkpoint


def main() -> None:
    torch.set_num_threads(1)
    run = RunFolder(Path(sys.argv[1]))
    evaluator, plan = load_evaluator(run), run.note("plan")
    context, options = evaluator.context, evaluator.context.config.supernet
    of = evaluator.space.anatomy
    keep = tuple(part if i < of.layers // 2 else LayerSpec(0, 0) for i, part in enumerate(of.full))
    network = extract(load_checkpoint(context.task_data, context.config.model, options), keep)
    freeze_embeddings(network, not options.train_embeddings)
    train_network(
        network,
        context.task_data.training(options.batch_size, stream=4),
        plain_update(network, loss=task_loss),
        Schedule(steps=plan["original"] + plan["supernet"], learning_rate=options.learning_rate),
        seed=context.seed,
        title="without the top layers",
    )
    facts = {
        "nonembedding_share": nonembedding_parameters(of, keep) / nonembedding_parameters(of, of.full),
        "validation_error": context.task_data.error(network, context.task_data.validation),
        "test_error": context.task_data.error(network, context.task_data.test),
    }
    write_atomic(run.path / "dropped.json", json.dumps(facts))


if __name__ == "__main__":
    main()
