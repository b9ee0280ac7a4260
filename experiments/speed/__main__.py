"""Speed and memory of archwright itself: `python -m experiments.speed [PART] [--rows N] [--repeats N] ...`."""

import argparse
import json
from importlib import import_module
from pathlib import Path

import torch
from rich.console import Console

from archwright.environment import environment
from experiments.speed.ratios import BenchConfig, BenchResult

PARTS = {
    "compress": "evaluation, training steps and extracted networks",
    "design": "what a search saves by running no design and no common beginning twice; three minutes",
    "memory": "peaks of the phases of compress against plain fine-tuning, on a BERT-base-sized model; ten minutes",
    "probe": "what scoring an untrained network costs, and whether a small batch ranks like a large one; ten minutes",
    "search": "epochs of fine-tuning that MO-ASHA saves against random search; six minutes",
    "train": "tokens per second of the training loop against a plain one; length buckets and packing; four minutes",
}


def parse_arguments() -> tuple[BenchConfig, Path | None]:
    parts = "\n".join(f"  {name:9s} {text}" for name, text in PARTS.items())
    parser = argparse.ArgumentParser(
        "python -m experiments.speed",
        description=__doc__,
        epilog=f"parts:\n{parts}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", default="compress", choices=PARTS, help="part of archwright")
    parser.add_argument("--rows", type=int, default=120, help="texts to evaluate on (at least 50)")
    parser.add_argument("--repeats", type=int, default=5, help="rounds; medians of ratios inside a round are printed")
    parser.add_argument("--seed", type=int, default=0, help="of the sampled sub-networks")
    parser.add_argument("--data", type=Path, help="folder with train.tsv and dev.tsv of SST-2; movie reviews without")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    given = parser.parse_args()
    if given.rows < 50 or given.repeats < 1:
        parser.error(f"--rows must be at least 50 and --repeats at least 1, got {given.rows} and {given.repeats}")
    return BenchConfig(given.what, given.rows, given.repeats, given.seed, given.data), given.json


def main() -> None:
    """Measures one part on one torch thread and shows its ratios."""
    config, file = parse_arguments()
    torch.set_num_threads(1)
    measure = getattr(import_module(f"experiments.speed.{config.what}"), f"bench_{config.what}")
    result = BenchResult(config.what, tuple(measure(config)), environment())
    result.show(Console())
    if file:
        file.write_text(json.dumps(result.as_json(), indent=2) + "\n")


if __name__ == "__main__":
    main()
