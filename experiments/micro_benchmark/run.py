"""Train the networks of the micro-benchmark, one after the other; what is in the results already is not trained again.

    python -m experiments.micro_benchmark.run gate              the ten networks of the gate, beside models that count
    python -m experiments.micro_benchmark.run train             all trainings that are missing (hours)
    python -m experiments.micro_benchmark.run train --minutes 60

Results go into the file of the package, those of the networks that are kept apart into held_out/ beside this file: one
row per network, seed, learning rate and budget, written when a training has ended. Recipe: README.md.
"""

import argparse
import csv
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import numpy as np
import torch

from archwright.benchmarks.micro_lm import BUDGETS, FILE, SHORT, STEPS, TABLES
from archwright.data.public_data import WIKITEXT, WIKITEXT_ORIGIN, public_data
from archwright.environment import environment
from archwright.networks.flexibert.network import FlexiBertNetwork
from archwright.networks.pretraining import IGNORED
from archwright.random_streams import generator
from archwright.spaces.micro_lm import MICRO_LM
from experiments.micro_benchmark import text
from experiments.micro_benchmark.designs import Job, design_name, is_held_out, jobs
from experiments.micro_benchmark.muon import Muon

HERE = Path(__file__).parent
SHIPPED, KEPT_APART, BARS = TABLES / FILE, HERE / "held_out" / FILE, HERE / "bars.json"
ROWS, JUDGED_ROWS = 64, 1024
STOPS = sorted({*SHORT, *BUDGETS.values()})
"""Steps after which a network is judged: two short trainings, and 1/8, 1/4, 1/2 and all."""
TAIL = 0.25
"""Share of the steps up to a budget over which weights are averaged for judging."""
RATE, TABLE_RATE, WARM = 0.01, 0.003, 25
"""Learning rates of matrices (Muon) and of other weights (AdamW), and steps to reach them; then constant."""
WINDOWS, WEIGHTS, JUDGED = 0, 1, 2
"""Streams of random numbers: training windows, first weights, windows for judging."""
COLUMNS = (
    "design", "layers", "hidden", "seed", "rate", "steps", "tokens", "loss", "parameters", "nonembedding", "seconds",
    "commit", "cpu", "torch",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("gate", "train"))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no training after so many")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    cached_environment()
    words = Words()
    wanted = list(jobs())[:20] if given.work == "gate" else list(jobs())
    begun = monotonic()
    budgets = Counter(key_of(row) for row in read_results())
    done = {name for name, count in budgets.items() if count == len(STOPS)}
    for number, job in enumerate(wanted):
        if key(job) not in done and monotonic() - begun < 60 * given.minutes:
            rows = train(job, words)
            append(job, rows)
            shown = [] if is_held_out(job.config) else rows
            losses = " ".join(f"{row['loss']:.3f}" for row in shown) or "kept apart"
            name = f"{design_name(job.config)} seed {job.seed} x{job.rate:g}"
            print(f"{number + 1}/{len(wanted)} {name}: {losses} in {rows[-1]['seconds']} s", flush=True)
    print("Models that count, on the same words:", json.loads(BARS.read_text()))


class Words:
    """The text, encoded once; first vectors of words; and the windows that every network is judged on."""

    def __init__(self) -> None:
        file = public_data(WIKITEXT, origin=WIKITEXT_ORIGIN, option="ARCHWRIGHT_DATA")
        tokenizer = text.load_vocabulary(file)
        self.train = text.encode(file, tokenizer)
        judged = text.encode(file.with_name("valid.txt"), tokenizer)
        windows, hidden = text.draw_windows(judged, JUDGED_ROWS, np.random.default_rng((0, JUDGED)))
        self.judged = hide(windows, hidden)
        self.vectors = {width: text.first_vectors(self.train, width) for width in (48, 96)}
        if not BARS.exists():
            BARS.write_text(json.dumps(text.bigram_losses(self.train, windows, hidden), indent=1) + "\n")


def hide(windows: text.Ids, hidden: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and labels."""
    inputs, labels = np.where(hidden, text.MASK, windows), np.where(hidden, windows, IGNORED)
    return torch.from_numpy(inputs), torch.from_numpy(labels)


def train(job: Job, words: Words) -> list[dict[str, Any]]:
    """One training with a constant learning rate; at every budget the mean of the last weights is judged.

    A constant rate and a mean of weights make a budget what a run of that length alone would have given: nothing in
    the run knows how long it will be. Both seeds read other windows; all networks of a seed read the same.
    """
    begun = process_time()
    network, matrices, others = begin_network(job, words)
    rng = np.random.default_rng((job.seed, WINDOWS))
    mean = WeightMean(list(network.parameters()))
    rows: list[dict[str, Any]] = []
    for step in range(1, STEPS + 1):
        inputs, labels = hide(*text.draw_windows(words.train, ROWS, rng))
        network(inputs, labels=labels, loss_alone=True).loss.backward()
        factor = job.rate * min(1.0, step / WARM)
        others.param_groups[0]["lr"] = TABLE_RATE * factor
        others.step()
        matrices.step(RATE * factor)
        network.zero_grad()
        budget = next(budget for budget in STOPS if budget >= step)
        if step > (1 - TAIL) * budget:
            mean.add()
        if step == budget:
            rows.append(row_of(job, network, step, mean.judge(network, words), process_time() - begun))
    return rows


def begin_network(job: Job, words: Words) -> tuple[FlexiBertNetwork, Muon, torch.optim.Optimizer]:
    """The network with the vectors of words that all begin with, and its two optimizers."""
    network = MICRO_LM.network(job.config, generator=generator(job.seed, WEIGHTS), loss="mlm").train()
    vectors, shares = words.vectors[job.config["hidden"]]
    with torch.no_grad():
        network.encoder.embeddings.tokens.weight.copy_(torch.from_numpy(vectors))
        network.head.bias.copy_(torch.from_numpy(shares))
    named = list(network.named_parameters())
    matrices = [weight for name, weight in named if weight.ndim == 2 and "embeddings" not in name]
    others = [weight for name, weight in named if weight.ndim != 2 or "embeddings" in name]
    return network, Muon(matrices), torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.01, fused=True)


class WeightMean:
    """Sums weights until they are judged, then begins again."""

    def __init__(self, weights: list[torch.nn.Parameter]):
        self.weights = weights
        self.sums: list[torch.Tensor] = []
        self.count = 0

    @torch.no_grad()
    def add(self) -> None:
        if not self.count:
            self.sums = [torch.zeros_like(weight) for weight in self.weights]
        torch._foreach_add_(self.sums, [weight.detach() for weight in self.weights])
        self.count += 1

    @torch.no_grad()
    def judge(self, network: FlexiBertNetwork, words: Words) -> float:
        """Loss of the mean weights on the windows for judging; the network goes on with its own."""
        own = [weight.detach().clone() for weight in self.weights]
        for weight, total in zip(self.weights, self.sums, strict=True):
            weight.copy_(total / self.count)
        loss = float(network(words.judged[0], labels=words.judged[1], loss_alone=True).loss)
        for weight, kept in zip(self.weights, own, strict=True):
            weight.copy_(kept)
        self.count = 0
        return loss


def row_of(job: Job, network: FlexiBertNetwork, steps: int, loss: float, seconds: float) -> dict[str, Any]:
    counts, machine = MICRO_LM.counts(job.config), cached_environment()
    return {
        "design": design_name(job.config), "layers": job.config["layers"], "hidden": job.config["hidden"],
        "seed": job.seed, "rate": job.rate, "steps": steps, "tokens": steps * ROWS * text.TOKENS,
        "loss": round(loss, 5), "parameters": counts.parameters, "nonembedding": counts.nonembedding,
        "seconds": round(seconds, 2), **{name: machine[name] for name in ("commit", "cpu", "torch")},
    }  # fmt: skip


@cache
def cached_environment() -> dict[str, Any]:
    """As it was when the first training began: that is the code that runs."""
    return environment()


def key(job: Job) -> tuple[str, int, float]:
    return design_name(job.config), job.seed, job.rate


def key_of(row: dict[str, str]) -> tuple[str, int, float]:
    return row["design"], int(row["seed"]), float(row["rate"])


def read_results() -> list[dict[str, str]]:
    """Rows of trainings that were written as a whole, of both files."""
    rows: list[dict[str, str]] = []
    for path in (SHIPPED, KEPT_APART):
        if path.exists():
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
    return rows


def append(job: Job, rows: Sequence[dict[str, Any]]) -> None:
    """All rows of a training in one write, into the file that the hash of the design says."""
    path = KEPT_APART if is_held_out(job.config) else SHIPPED
    path.parent.mkdir(exist_ok=True)
    begins = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if begins:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
