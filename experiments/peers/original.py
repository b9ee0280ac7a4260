"""The fine-tuned original of a task and seed, trained once by archwright and handed to all methods.

The folder holds archwright's run (`run`, lent to our methods, which count its seconds as their own), the same network
as a plain checkpoint for the peers (`body`, `head.pt`), its answers on the test rows, and original.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.peers.clock import use_clock
from experiments.peers.job import Job, read_job

PARITY = 1e-4


def compress_words(job: Job, run: Path) -> list[str]:
    """The options of `archwright compress` for the rows of a job."""
    facts = job.facts()
    words = [word for name in ("train", "validation", "test") for word in (f"--{name}", str(job.rows / f"{name}.csv"))]
    words += ["--text-pair-column", "pair"] if facts["pairs"] else []
    words += [] if facts["labels"] else ["--regression"]
    return [*words, "--seed", str(job.seed), "--threads", str(job.threads), "--out", str(run)]


def load_compress_config(words: list[str]) -> Any:
    from archwright.cli.parser import load_config, parse
    from archwright.commands import COMMANDS

    return load_config("compress", COMMANDS["compress"], parse("compress", COMMANDS["compress"], words))


def train_original(job: Job) -> None:
    """As `archwright compress` does it by default: 2 epochs."""
    from archwright.compression.context import RunContext, to_settings
    from archwright.compression.finetuning import finetune_original
    from archwright.compression.pipeline import choose_batch_size, choose_run_precision, load_data, resolve_space
    from archwright.data.public_data import resolve_model
    from archwright.environment import environment
    from archwright.store import begin_run
    from archwright.threads import choose_threads
    from experiments.peers.ours import test_logits

    config = resolve_space(load_compress_config(compress_words(job, job.original / "run")))
    choose_threads(job.threads)
    task_data = load_data(config)
    config = choose_batch_size(config, job.original / "run", task_data)
    config = choose_run_precision(config, job.original / "run", task_data)
    run = begin_run(job.original / "run", to_settings(config))
    with run.lock():
        network = finetune_original(RunContext(run, config, task_data))
    network.eval()
    network.backbone.save_pretrained(job.original / "body")
    task_data.tokenizer.save_pretrained(job.original / "body")
    labels, ours = job.facts()["labels"], task_data.task.labels
    order = [ours.index(label) for label in labels] if labels else [0]
    head = {
        "dense.weight": network.head.dense.weight,
        "dense.bias": network.head.dense.bias,
        "out.weight": network.head.out.weight[order],
        "out.bias": network.head.out.bias[order],
    }
    torch.save({name: tensor.detach().clone() for name, tensor in head.items()}, job.original / "head.pt")
    facts = {
        "pretrained": resolve_model("minilm"),
        "seconds": run.seconds["original"],
        "steps": run.note("plan")["original"],
        "prunable_parameters": 0,
        "environment": environment(),
    }
    path = job.original / "original.json"
    path.write_text(json.dumps(facts))
    check_checkpoint(job, test_logits(network, task_data, job), path, facts)


def check_checkpoint(job: Job, logits: np.ndarray, path: Path, facts: dict[str, Any]) -> None:
    """The plain network answers as archwright's does; its answers and size are the reference of all methods."""
    from experiments.peers.network import describe, load_original, load_rows, predict

    network = load_original(job)
    answers = predict(network, load_rows(job, "test"))
    difference = float(np.abs(answers - logits).max())
    if difference > PARITY * max(1.0, float(np.abs(logits).max())):
        path.unlink()
        raise SystemExit(f"the original as a plain checkpoint answers otherwise, by {difference:.1e}.")
    path.write_text(json.dumps({**facts, "prunable_parameters": network.prunable_parameters()}, indent=1))
    job.save([describe(network, job, "original", steps=facts["steps"], seconds=facts["seconds"])], {"original": logits})


if __name__ == "__main__":
    job = read_job(Path(sys.argv[1]))
    use_clock(job.clock)
    train_original(job)
