"""Baselines that drop the layers at the top: the first n of MiniLM's six layers, fine-tuned for at most 4 epochs.

Methods: `first-layers` starts from the pre-trained checkpoint and `drop-top` from the fine-tuned original; each shares
the minutes over n = 1, 2, ..., as far as the largest compared size admits so many layers (60 %: three). The smallest
comes first, and what it leaves of its share goes to the others. `first-3-layers` spends all minutes on three layers.
"""

from experiments.peers.job import SLACK, Job, TimeBudget, job_from_arguments
from experiments.peers.network import describe, finetune, load_original, load_pretrained, load_rows, predict


def depths_within(job: Job, shares: list[float]) -> list[int]:
    """Numbers of layers whose share of the parameters the largest size admits."""
    if job.method == "first-3-layers":
        return [3]
    return [depth for depth, share in enumerate(shares, 1) if 100 * share <= max(job.sizes) + SLACK]


def train_first_layers(job: Job) -> None:
    """One network per number of layers, each trained by itself."""
    from_original, depths = job.method == "drop-top", depths_within(job, layer_shares(job))
    budget = TimeBudget.of(job, original=from_original)
    train, test = load_rows(job, "train"), load_rows(job, "test")
    networks, logits = [], {}
    for done, depth in enumerate(depths):
        network = (load_original if from_original else load_pretrained)(job).keep_layers(depth)
        facts = finetune(network, train, budget, seconds=budget.share(len(depths) - done), seed=job.seed)
        name = f"{depth}-layers"
        networks.append(describe(network, job, name, **facts))
        logits[name] = predict(network, test)
    job.save(networks, logits, spent=budget.total)


def layer_shares(job: Job) -> list[float]:
    """Share of the non-embedding parameters of the first 1, 2, ... 5 layers."""
    network, whole = load_original(job), job.facts()["prunable_parameters"]
    depths = range(len(network.layers) - 1, 0, -1)
    return [network.keep_layers(depth).prunable_parameters() / whole for depth in depths][::-1]


if __name__ == "__main__":
    train_first_layers(job_from_arguments())
