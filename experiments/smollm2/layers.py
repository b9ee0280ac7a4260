"""Layer dropping of SmolLM2-135M without training: the layers go whose removal, one at a time, raises the loss least.

    python experiments/smollm2/layers.py --data WIKITEXT_FOLDER

Test perplexity with all but n layers, on the rows of run.py, into layers.json; and how far two orders of the layers
agree: by the loss without each of them, and by the Fisher information of their heads and units, which needs one pass.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from scipy.stats import spearmanr

from archwright.compression.pipeline import load_data, resolve_space
from archwright.configs.compress import CompressConfig
from archwright.configs.options import make_config
from archwright.environment import commit, cpu
from archwright.random_streams import CALIBRATION_BATCHES
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import REDUCTIONS, losses_without, mask_scores
from archwright.subnet.spec import LayerSpec, nonembedding_parameters
from archwright.tasks import TASK_KINDS
from archwright.threads import choose_threads
from archwright.training.losses import task_loss
from archwright.training.task_data import TaskData, load_checkpoint

DROPPED = (3, 6, 15)
BATCHES = 4
"""Of 4 blocks: what the orders are measured on."""
FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/wikitext-2"), help="train, valid, test .txt")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "layers.json")
    options = parser.parse_args()
    choose_threads(1)
    values: dict[str, Any] = {name: options.data / file for name, file in FILES.items()}
    values |= {"train_rows": 2000, "validation_rows": 24, "test_rows": 40, "max_length": 128}
    config = resolve_space(make_config(CompressConfig, {"model": "smollm2", "task": "lm", **values}))
    task_data = load_data(config)
    measured = measure(task_data, load_checkpoint(task_data, config.model, config.supernet))
    document = {"seed": task_data.seed, "commit": commit(), "cpu": cpu(), **measured}
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(options.out.read_text())


def measure(task_data: TaskData, network: Any) -> dict[str, Any]:
    anatomy, kind = read_anatomy(network.config), TASK_KINDS["lm"]
    batches = [batch for batch, _ in zip(task_data.training(4, CALIBRATION_BATCHES)(0), range(BATCHES), strict=False)]
    losses = losses_without(network, anatomy.full, batches, task_loss)
    scores = mask_scores(network, batches, task_loss, REDUCTIONS["fisher"], span=kind.importance_span)
    sums = [float(heads.sum() + units.sum()) for heads, units in zip(*scores, strict=True)]
    by_loss = sorted(losses, key=losses.__getitem__)  # the one to drop first, first
    rows = []
    for number in DROPPED:
        gone = set(by_loss[:number])
        spec = tuple(LayerSpec(0, 0) if place in gone else part for place, part in enumerate(anatomy.full))
        share = nonembedding_parameters(anatomy, spec) / nonembedding_parameters(anatomy, anatomy.full)
        with torch.no_grad():
            perplexity = task_data.error(network, task_data.test, spec)
        rows.append({"dropped": number, "nonembedding_share": share, "test_error": perplexity})
    agreement = spearmanr([losses[place] for place in sorted(losses)], sums).statistic
    orders = {"by_loss": by_loss, "by_fisher": sorted(range(len(sums)), key=sums.__getitem__)}
    return {"networks": rows, "rank_correlation": float(agreement), **orders}


if __name__ == "__main__":
    main()
