"""Peer Torch-Pruning (MIT licence): heads and FFN units of the fine-tuned original go by Taylor importance.

The package's own pruner chooses among all layers. It prunes from one size to the next, and after every step the network
is fine-tuned for its part of the time, so a small network has been trained at all larger sizes before.
"""

from importlib.metadata import version

import numpy as np
import torch
import torch_pruning as tp

from experiments.peers.job import Job, TimeBudget, job_from_arguments
from experiments.peers.network import (
    BATCH_SIZE,
    Classifier,
    TokenizedRows,
    describe,
    finetune,
    load_original,
    load_rows,
    predict,
    task_loss,
)

CALIBRATION_ROWS = 256
MOST_PRUNED = 0.97
"""Of any one layer: the package cannot remove a sub-layer as a whole."""


def prune_in_steps(job: Job) -> None:
    budget = TimeBudget.of(job, original=True)
    train, test = load_rows(job, "train"), load_rows(job, "test")
    network, whole = load_original(job), job.facts()["prunable_parameters"]
    networks, logits = [], {}
    for done, size in enumerate(job.sizes):
        with budget.spending():
            prune_to(network, size / 100 * whole, train, seed=job.seed)
        left = len(job.sizes) - done
        facts = finetune(network, train, budget, seconds=budget.share(left), seed=job.seed + 100 * done)
        name = f"{size}%"
        networks.append(describe(network, job, name, **facts))
        logits[name] = predict(network, test)
    job.save(networks, logits, spent=budget.total, version=version("torch-pruning"))


def prune_to(network: Classifier, target: float, rows: TokenizedRows, *, seed: int) -> None:
    """Removes the same share of all heads and of all units that are left, those with the least importance."""
    removable = sum(
        p.numel()
        for name, p in network.named_parameters()
        if "encoder.layer" in name and "LayerNorm" not in name and not name.endswith("output.dense.bias")
    )
    ratio = (network.prunable_parameters() - target) / removable
    if ratio <= 0:
        return
    accumulate_gradients(network, rows, seed)
    build_pruner(network, rows, ratio).step()
    network.zero_grad()
    for layer in network.layers:  # what transformers' own code reads beside the sizes of the weights
        attention = layer.attention.self
        attention.num_attention_heads = attention.query.out_features // attention.attention_head_size
        attention.all_head_size = attention.query.out_features


def accumulate_gradients(network: Classifier, rows: TokenizedRows, seed: int) -> None:
    """Of the task loss on some training rows: what Taylor importance is made of."""
    chosen = np.random.default_rng((seed, 5)).permutation(len(rows.encoded))[:CALIBRATION_ROWS]
    network.eval()
    network.zero_grad()
    for start in range(0, len(chosen), BATCH_SIZE):
        inputs, targets = rows.batch(chosen[start : start + BATCH_SIZE])
        task_loss(network(**inputs), targets).backward()


def build_pruner(network: Classifier, rows: TokenizedRows, ratio: float) -> tp.pruner.BasePruner:
    """The package's pruner over heads and units; what the layers add to stays as wide as it is."""
    inputs, _ = rows.batch(np.arange(4))
    heads: dict[torch.nn.Module, int] = {}
    kept: list[torch.nn.Module] = [network.dense, network.out, network.body.embeddings]
    for layer in network.layers:
        attention = layer.attention.self
        number = attention.query.out_features // attention.attention_head_size
        heads |= dict.fromkeys((attention.query, attention.key, attention.value), number)
        kept += [layer.attention.output.dense, layer.output.dense]
    return tp.pruner.BasePruner(
        network,
        inputs,
        importance=tp.importance.GroupTaylorImportance(),
        global_pruning=True,
        pruning_ratio=ratio,
        head_pruning_ratio=ratio,
        max_pruning_ratio=MOST_PRUNED,
        num_heads=heads,
        prune_num_heads=True,
        prune_head_dims=False,
        ignored_layers=kept,
        forward_fn=lambda model, batch: model(**batch),
    )


if __name__ == "__main__":
    prune_in_steps(job_from_arguments())
