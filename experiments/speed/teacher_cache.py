"""Tokens of a student per CPU second with a teacher that answers anew and with one whose answers are kept.

    python -m experiments.speed.teacher_cache [--batches 12] [--rounds 3] [--students mixed mobile]
        [--precisions float32 bfloat16] [--out FILE.csv]

Full steps (teacher, student, way back, AdamW) of layer-wise distillation from MiniLM on movie reviews with gamma 1, one
thread, the same batches in turns; answers are kept in the first round, which is not timed. The CPU clock of the process
counts, so that other work on the machine matters little. The ceiling is what the ratio would be if kept answers cost
nothing at all: the teacher's pass is timed by itself on the same batches.
"""

import argparse
import csv
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from archwright.cli.parser import load_config, parse
from archwright.commands import COMMANDS
from archwright.environment import environment
from archwright.training.loop import tokens_of
from archwright.training.optimizer import build_optimizer
from archwright.training.pipeline import prepare_context
from archwright.training.precision import mixed_precision
from archwright.training.schedule import Schedule

LIMIT = 2 * 10**9
DESIGNS = {
    "mixed": {f"block.{at}": "base-264" if at < 2 else "mobile-528" for at in range(6)},
    "mobile": {f"block.{at}": "mobile-264" for at in range(6)},
}
"""Of nlu-tiny: two BERT and four MobileBERT blocks, and MobileBERT blocks alone."""


def build_plan(name: str, folder: Path) -> Any:
    """Student, teacher and rows as `train` makes them; the teacher need not know the task to take its time."""
    design = folder / "design.json"
    design.write_text(json.dumps(DESIGNS[name]))
    words = ["--space", "nlu-tiny", "--config", str(design), "--teacher", "minilm", "--task", "movie-reviews"]
    words += ["--threads", "1", "--out", str(folder / "run")]
    config = load_config("train", COMMANDS["train"], parse("train", COMMANDS["train"], words))
    context = prepare_context(config, folder / "run")
    return context.objective.plan(context)


def measure(name: str, precision: str, batches: int, rounds: int) -> dict[str, Any]:
    """Tokens per CPU second, and how far the losses of both ways are apart."""
    with TemporaryDirectory() as place:
        plan = build_plan(name, Path(place))
        optimizer = build_optimizer(plan.model, Schedule(steps=1), "adamw", seed=0)
        for group in optimizer.param_groups:
            group["lr"] = 0.0  # the same weights all the time, so that losses can be compared
        plan.teacher.plan_cache(plan.taught(), LIMIT, precision)
        plan.teacher.open(Path(place) / "answers")
        cache, chosen = plan.teacher.cache, plan.batches(0)[:batches]
        seconds: dict[str, list[float]] = {"anew": [], "kept": [], "teacher": []}
        losses: dict[str, list[float]] = {"anew": [], "kept": []}
        plan.model.train()
        for turn in range(rounds + 1):
            for way in losses:
                plan.teacher.cache = cache if way == "kept" else None
                losses[way], started = [], time.process_time()
                for number, batch in enumerate(chosen):
                    torch.manual_seed(number)  # the same dropout
                    with mixed_precision(torch.device("cpu"), precision):
                        losses[way].append(float(plan.update(batch, np.random.default_rng(0), 0.5)))
                    optimizer.step()
                    optimizer.zero_grad()
                    torch.clear_autocast_cache()
                if turn:
                    seconds[way].append(time.process_time() - started)
            if turn:
                seconds["teacher"].append(time_teacher(plan, chosen, precision))
        tokens = sum(map(tokens_of, chosen))
        apart = max(abs(a - b) / abs(a) for a, b in zip(losses["anew"], losses["kept"], strict=True))
    spent = {way: median(times) for way, times in seconds.items()}
    speeds = {way: tokens / spent[way] for way in losses}
    return {
        "student": name,
        "precision": precision,
        "parameters": sum(p.numel() for p in plan.network.parameters()),
        "tokens": tokens,
        **{f"{way}_tokens_per_second": round(speed, 1) for way, speed in speeds.items()},
        "ratio": round(speeds["kept"] / speeds["anew"], 3),
        "ceiling": round(spent["anew"] / (spent["anew"] - spent["teacher"]), 3),
        "largest_relative_difference_of_losses": f"{apart:.2e}",
        "commit": environment()["commit"],
        "cpu": environment()["cpu"],
    }


def time_teacher(plan: Any, batches: Sequence[Any], precision: str) -> float:
    """Seconds of the teacher's passes alone."""
    started = time.process_time()
    with mixed_precision(torch.device("cpu"), precision):
        for batch in batches:
            plan.teacher.compute(batch)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--students", nargs="+", choices=tuple(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--precisions", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        measure(name, precision, options.batches, options.rounds)
        for name in options.students
        for precision in options.precisions
    ]
    print(json.dumps(rows, indent=1))
    if options.out is not None:
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
