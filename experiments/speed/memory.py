"""`experiments.speed memory`: peaks of what compress does against plain fine-tuning, each in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

from archwright.commands import COMMANDS, call
from archwright.compression.supernet import supernet_step
from archwright.configs import compress as o
from archwright.data.batching import Batch
from archwright.data.public_data import resolve_model
from archwright.errors import Failed
from archwright.networks.load import load_supernet
from archwright.objectives.error import measure_error
from archwright.objectives.latency import measure_latency
from archwright.progress import progress
from archwright.spaces.subnetwork import subnet_space
from archwright.store import RunFolder
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import mask_scores
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.training.loop import train_network
from archwright.training.losses import task_loss
from archwright.training.schedule import Schedule
from experiments.speed.ratios import BenchConfig, Ratio

SIZES = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
"""BERT-base: 110 million parameters."""
BATCH, LENGTH = 8, 128
STEPS = 3
ROWS = 10
FRONT = 10
"""Members of the front that is measured."""
TOKENIZER = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
PLAIN = "plain fine-tuning"
LABELS = ("no", "yes")
TARGET = "<= 3"


def bench_memory(settings: BenchConfig) -> list[Ratio]:
    """Peak memory of every phase over that of plain fine-tuning; without what the imports take, which is stricter."""
    with TemporaryDirectory() as place, progress("bench: memory", len(PHASES), "processes") as bar:
        folder = Path(place)
        random_model(folder / "model", seed=settings.seed)
        peaks = {}
        for name in PHASES:
            peaks[name] = peak_of(name, folder)
            bar.advance()
    own = {name: peak["peak"] - peak["imports"] for name, peak in peaks.items()}
    ratios = [exactly(f"peak memory: {name} / {PLAIN}", own[name] / own[PLAIN]) for name in PHASES if name != PLAIN]
    whole = peaks[COMMAND]["peak"] / peaks[PLAIN]["peak"]
    return [*ratios, exactly(f"peak memory with imports: {COMMAND} / {PLAIN}", whole)]


def exactly(name: str, value: float) -> Ratio:
    """A ratio of two peaks; a peak hardly varies, so each is measured once."""
    return Ratio(name, value, value, value, TARGET)


def random_model(folder: Path, *, seed: int, **sizes: int) -> None:
    """A BERT with random weights, and the tokenizer of the embedded MiniLM, which has the same vocabulary."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertForSequenceClassification(BertConfig(**{**SIZES, **sizes})).save_pretrained(folder)
    for name in TOKENIZER:
        if (file := Path(resolve_model("minilm")) / name).exists():
            shutil.copy(file, folder)


def peak_of(name: str, folder: Path) -> dict[str, int]:
    """Bytes of memory after the imports and at the peak, of a new process that does this."""
    command = [sys.executable, "-m", "experiments.speed.memory", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    if done.returncode:
        raise Failed(f"measuring the memory of {name} failed: {done.stderr.strip().splitlines()[-1:]}")
    return {str(key): int(value) for key, value in json.loads(done.stdout.splitlines()[-1]).items()}


def batches(epoch: int = 0) -> Iterator[Batch]:
    """Random texts without padding."""
    rng = np.random.default_rng(epoch)
    for _ in range(STEPS):
        ids = torch.from_numpy(rng.integers(1000, 20000, size=(BATCH, LENGTH)))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        yield Batch(inputs, torch.from_numpy(rng.integers(len(LABELS), size=BATCH)), np.arange(BATCH))


def plain(folder: Path) -> None:
    """Fine-tuning as everyone does it: transformers' own network, torch's AdamW, no checkpoints."""
    model = AutoModelForSequenceClassification.from_pretrained(folder / "model").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    for batch in batches():
        task_loss(model(**batch.inputs).logits, batch.targets).backward()
        optimizer.step()
        optimizer.zero_grad()


def supernet_training(folder: Path, steps: int = STEPS) -> None:
    """The `full` strategy with all weights trained and a checkpoint after each step."""
    network = load_supernet(str(folder / "model"), kind="classification", labels=LABELS)
    space = subnet_space("small", read_anatomy(network.config))
    options = o.SupernetOptions(train_embeddings=True, strategy="full")
    update = supernet_step(network, space, options, None, loss=task_loss)
    checkpoints = RunFolder(folder).checkpoints("memory")
    train_network(network, batches, update, Schedule(steps), seed=0, checkpoints=checkpoints, every_seconds=0.0)


def resumed_training(folder: Path) -> None:
    """One more step from the last checkpoint, as after a crash."""
    supernet_training(folder, STEPS + 1)


def ordering(folder: Path) -> None:
    """Importance of heads and units; that of layers needs no gradients, and so less."""
    network = load_supernet(str(folder / "model"), kind="classification", labels=LABELS)
    mask_scores(network, [next(batches())], task_loss, torch.abs)


def evaluating(folder: Path) -> None:
    """Sub-networks of all sizes inside the super-network, with the original beside it."""
    original, network = (load_supernet(str(folder / "model"), kind="classification", labels=LABELS) for _ in range(2))
    rows = list(batches())
    measure_error(original, rows, metric="accuracy")
    for keep in spread(read_anatomy(network.config)):
        measure_error(network, rows[:1], keep, metric="accuracy")


def measuring(folder: Path) -> None:
    """The latency of a front, all of its members extracted, with original and super-network beside them."""
    kept = [load_supernet(str(folder / "model"), kind="classification", labels=LABELS) for _ in range(2)]
    of = read_anatomy(kept[0].config)
    keeps = {"original": of.full, **{str(place): keep for place, keep in enumerate(spread(of))}}
    measure_latency(kept[0], keeps, batch=1, length=32, rounds=3)


def spread(of: Any) -> list[SubnetSpec]:
    """A front from a tenth to the whole."""
    shares = np.arange(1, FRONT + 1) / FRONT
    return [(LayerSpec(max(1, int(of.heads * s)), int(of.units * s)),) * of.layers for s in shares]


def command(folder: Path) -> None:
    """`archwright compress` from the checkpoint to the report, on a few rows, two steps of each training."""
    splits = ("train", "validation", "test")
    for seed, split in enumerate(splits):
        write_rows(folder / f"{split}.csv", seed)
    options = {
        **{split: folder / f"{split}.csv" for split in splits},
        "model": str(folder / "model"),
        "labels": LABELS,
        "out": folder / "run",
        "train_rows": BATCH,
        "batch_size": BATCH,
        "epochs": 2.0,
        "original_epochs": 2.0,
        "checkpoint_seconds": 0.0,
        "train_embeddings": True,
        "trials": FRONT,
        "rounds": 3,
    }
    call(COMMANDS["compress"], options)


def write_rows(path: Path, seed: int) -> None:
    """As few texts as a task may have, of more than 128 tokens, with two labels."""
    rng, words = np.random.default_rng(seed), ("the", "film", "is", "very", "good", "bad", "story", "old", "new")
    lines = [f"{' '.join(rng.choice(words, size=LENGTH))},{LABELS[row % 2]}\n" for row in range(ROWS)]
    path.write_text("".join(["text,label\n", *lines]))


COMMAND = "archwright compress"
PHASES: dict[str, Callable[[Path], None]] = {
    PLAIN: plain,
    "super-network training": supernet_training,
    "resumed super-network training": resumed_training,
    "importance order": ordering,
    "evaluation": evaluating,
    "measuring a front of 10": measuring,
    COMMAND: command,
}
"""In this order: a resumed training finds the checkpoint of the one before."""


def memory(name: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at the peak.

    Not getrusage: its peak begins with that of the process that started this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise Failed(f"/proc/self/status of this system does not tell {name}; the memory bench needs Linux.")


def main(name: str, folder: str) -> None:
    imports = memory("VmRSS")
    PHASES[name](Path(folder))
    print("\n" + json.dumps({"imports": imports, "peak": memory("VmHWM")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
