"""What a finished run's task gives without the top half of the layers (Sajjad et al. 2022), fine-tuned by itself.

python experiments/half_size/dropped.py RUN      (writes RUN/dropped.json)
"""

import json
import sys
from pathlib import Path

import torch

from archwright.jobs import options as o
from archwright.jobs.training import fresh
from archwright.jobs.worker import ground_of, group_from
from archwright.networks.load import freeze_embeddings
from archwright.store import RunFolder, write_whole
from archwright.subnet.extract import extract
from archwright.subnet.keep import LayerKeep, nonembedding_parameters
from archwright.subnet.supernet import plain_update
from archwright.train import Schedule, task_loss, train


def main() -> None:
    torch.set_num_threads(1)
    run = RunFolder(Path(sys.argv[1]))
    ground, settings, plan = ground_of(run), group_from(run, o.Supernet), run.note("plan")
    of = ground.space.anatomy
    keep = tuple(part if i < of.layers // 2 else LayerKeep(0, 0) for i, part in enumerate(of.full))
    network = extract(fresh(ground.scene, group_from(run, o.Model), settings), keep)
    freeze_embeddings(network, not settings.train_embeddings)
    train(
        network,
        ground.scene.training(settings.batch_size, stream=4),
        plain_update(network, loss=task_loss),
        Schedule(steps=plan["original"] + plan["supernet"], learning_rate=settings.learning_rate),
        seed=ground.seed,
        title="without the top layers",
    )
    facts = {
        "nonembedding_share": nonembedding_parameters(of, keep) / nonembedding_parameters(of, of.full),
        "validation_error": ground.scene.error(network, ground.scene.validation),
        "test_error": ground.scene.error(network, ground.scene.test),
    }
    write_whole(run.path / "dropped.json", json.dumps(facts))


if __name__ == "__main__":
    main()
