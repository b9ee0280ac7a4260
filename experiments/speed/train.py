"""`experiments.speed train`: our training loop against one written by hand, length buckets and packing against padding.

Everything is a training step of the same network, optimizer included; seconds are processor time of one core.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch, batch_of, encode, group_rows
from archwright.data.encoding import Encoded
from archwright.data.epochs import Epoch, masking
from archwright.data.public_data import WIKITEXT, WIKITEXT_ORIGIN, public_data, resolve_model
from archwright.data.tasks.task import load_task
from archwright.data.text.corpus import Corpus, encode_corpus, read_lines
from archwright.data.text.tokenizer import load_tokenizer
from archwright.networks.load import load_supernet
from archwright.progress import quiet
from archwright.random_streams import generator
from archwright.spaces.flexibert import LAYER, FlexiBertSpace
from archwright.subnet.supernet import plain_update
from archwright.training.loop import Update, train_network
from archwright.training.losses import task_loss
from archwright.training.objectives.mlm import mlm_update
from archwright.training.schedule import Schedule
from experiments.speed.ratios import BenchConfig, Ratio, ratio, repeated, seconds

BATCH, LENGTH = 16, 128
STEPS = 6
"""Of each loop in a round."""
DESIGN = {"layers": 2, "hidden": 128} | {f"{name}.{at}": values[0] for at in range(2) for name, values in LAYER.items()}
"""A FlexiBERT network whose whole vocabulary is most of its work, as in any small encoder."""
NO_TARGET = ""


def bench_train(settings: BenchConfig) -> list[Ratio]:
    """Loop against loop for a task and for masked words; then what padding costs."""
    tokenizer = load_tokenizer(resolve_model("minilm"))
    text = some_lines(settings)
    network = FlexiBertSpace().network(DESIGN, generator=generator(settings.seed), loss="mlm")
    hide = masking(tokenizer)
    packed = encode_corpus(text, tokenizer, layout="packed", max_length=LENGTH)
    lines = encode_corpus(text, tokenizer, layout="lines", max_length=LENGTH)
    return [
        task_loops(settings, tokenizer),
        masked_loops(settings, network, packed, hide),
        *padding(settings, network, packed, lines, hide),
    ]


def some_lines(settings: BenchConfig) -> Corpus:
    """Ten lines of the text for every row asked for, from its beginning."""
    file = (
        settings.data / "train.txt" if settings.data else public_data(WIKITEXT, origin=WIKITEXT_ORIGIN, option="--data")
    )
    text = read_lines(file)
    return Corpus(text.source, text.lines[: 10 * settings.rows])


def task_loops(settings: BenchConfig, tokenizer: Any) -> Ratio:
    """Fine-tuning MiniLM on sentences."""
    task = load_task()
    rows = encode(task.splits["validation"], tokenizer, max_length=LENGTH)
    network = load_supernet(resolve_model("minilm"), labels=task.labels, seed=settings.seed)
    by_hand = partial(by_hand_task, network)
    return loops("fine-tuning MiniLM", settings, network, rows, plain_update(network, loss=task_loss), by_hand)


def by_hand_task(network: Any, batch: Batch) -> torch.Tensor:
    found: torch.Tensor = nn.functional.cross_entropy(network(**batch.inputs).logits, batch.targets)
    return found


def masked_loops(settings: BenchConfig, network: Any, rows: Encoded, hide: Any) -> Ratio:
    """Masked language modelling; both loops make logits for the hidden tokens alone."""
    by_hand = partial(by_hand_masked, network)
    return loops("masked words, FlexiBERT", settings, network, rows, mlm_update(network), by_hand, hide)


def by_hand_masked(network: Any, batch: Batch) -> torch.Tensor:
    found: torch.Tensor = network(**batch.inputs, labels=batch.targets, loss_alone=True).loss
    return found


def loops(
    name: str, settings: BenchConfig, network: Any, rows: Encoded, update: Update, by_hand: Any, change: Any = None
) -> Ratio:
    """Tokens per second of our loop, with its log, divided by those of a loop written by hand, on the same batches."""

    def one_round(rng: np.random.Generator) -> dict[str, float]:
        parts = group_rows(rows, batch_size=BATCH, rng=rng)[:STEPS]
        chosen = Epoch(rows, parts, change, (settings.seed,))
        return {
            "ours": seconds(partial(our_loop, network, chosen, update)),
            "plain": seconds(partial(plain_loop, network, chosen, by_hand)),
        }

    found = repeated(name, one_round, settings)
    return ratio(f"{name}: tokens per second, ours / plain PyTorch loop", found, "plain", "ours", ">= 0.9")


def our_loop(network: Any, chosen: Epoch, update: Update) -> None:
    with quiet():
        train_network(
            network, lambda epoch: chosen, update, Schedule(steps=len(chosen)), seed=0, log=lambda record: None
        )


def plain_loop(network: Any, chosen: Sequence[Batch], loss_of: Callable[[Batch], torch.Tensor]) -> None:
    """As one would write it: no checkpoints, no records, no checks."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / len(chosen))
    network.train()
    for place in range(len(chosen)):
        optimizer.zero_grad()
        loss = loss_of(chosen[place])
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        loss.item()


def padding(settings: BenchConfig, network: Any, packed: Encoded, lines: Encoded, hide: Any) -> list[Ratio]:
    """Seconds per useful token of masked language modelling, for four ways to make batches of the same text."""
    update = mlm_update(network)

    def one_round(rng: np.random.Generator) -> dict[str, float]:
        order = rng.permutation(len(lines))
        random = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        ways = {
            "longest": Epoch(lines, random, hide, (0,)),
            "full": Full(lines, random, hide, (0,)),
            "buckets": Epoch(lines, group_rows(lines, batch_size=BATCH, rng=rng), hide, (0,)),
            "packed": Epoch(packed, group_rows(packed, batch_size=BATCH, rng=rng), hide, (0,)),
        }
        return {name: per_token(network, update, chosen) for name, chosen in ways.items()}

    found = repeated("padding", one_round, settings)
    against = {
        "length buckets / padding to the longest of a batch": ("longest", "buckets"),
        f"length buckets / padding to {LENGTH}": ("full", "buckets"),
        "packing / padding to the longest of a batch": ("longest", "packed"),
        "packing / length buckets": ("buckets", "packed"),
    }
    return [ratio(f"useful tokens per second: {name}", found, *ways, NO_TARGET) for name, ways in against.items()]


class Full(Epoch):
    """Every row padded to the longest length there may be."""

    def __getitem__(self, place: Any) -> Any:
        batch = batch_of(self.encoded, self.parts[place])
        short = LENGTH - batch.inputs["input_ids"].shape[1]
        inputs = {name: nn.functional.pad(tensor, (0, short)) for name, tensor in batch.inputs.items()}
        return (
            self.change(Batch(inputs, batch.targets, batch.rows), np.random.default_rng(place))
            if self.change
            else batch
        )


def per_token(network: Any, update: Update, chosen: Epoch) -> float:
    """Seconds of a few steps, by the tokens that are not padding in them."""
    picked = list(islice(iter(chosen), STEPS))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.0, fused=True)
    network.train()
    tokens = sum(int(batch.inputs["attention_mask"].sum()) for batch in picked)
    return seconds(partial(steps, update, optimizer, picked)) / tokens


def steps(update: Update, optimizer: torch.optim.Optimizer, picked: Sequence[Batch]) -> None:
    for batch in picked:
        update(batch, np.random.default_rng(0), 0.5)
        optimizer.step()
        optimizer.zero_grad()
