"""Peak memory and time of loading a small file, a large one, and one with a very long row, as `compress` does.

python -m experiments.large_inputs.run [--megabytes 71] [--row-megabytes 50]

Each in a process of its own, for the built-in model and 200 training rows. Training is left out: it takes more memory
than the data, and the ratio would only look better. The goal is at most 1.5 times the memory of the small file.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

WORDS = ("the", "film", "story", "music", "actor", "old", "new", "bright", "dull", "river", "bridge", "night", "letter")
LOAD = """
import sys
from pathlib import Path
from archwright.commands.checks import check_compress
from archwright.configs.compress import CompressConfig
from archwright.configs.options import make_config
from archwright.compression.pipeline import load_data

config = make_config(CompressConfig, {"train": Path(sys.argv[1]), "train_rows": 200, "threads": 1})
check_compress(config)
load_data(config)
"""
"""What `compress` does with its data before it trains: the checks, then rows, splits and tokens."""


def write_rows(path: Path, megabytes: float, long_row: float = 0.0) -> Path:
    """Sentences of random words with a label each, so many megabytes of them, at least a thousand rows."""
    rng, written = np.random.default_rng(0), 0
    with open(path, "w", encoding="utf-8") as file:
        file.write("text,label\n")
        if long_row:
            file.write("long words " * int(long_row * 1e6 / 11) + ",bad\n")
        row = 0
        while written < megabytes * 1e6 or row < 1000:
            numbers = rng.integers(10_000, size=8)
            words = rng.choice(WORDS, size=16)
            line = " ".join([*words, *map(str, numbers)]) + f",{('bad', 'good')[row % 2]}\n"
            written += file.write(line)
            row += 1
    return path


def measure(path: Path) -> tuple[float, float]:
    """Peak memory in megabytes and seconds of loading this file for the built-in model."""
    start = perf_counter()
    child = subprocess.Popen([sys.executable, "-c", LOAD, str(path)])
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{path.name} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_maxrss / 1000, perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=71)
    parser.add_argument("--row-megabytes", type=float, default=50)
    options = parser.parse_args()
    with TemporaryDirectory() as place:
        folder = Path(place)
        files = {
            "small file": write_rows(folder / "small.csv", 0.1),
            f"{options.megabytes:g} MB": write_rows(folder / "large.csv", options.megabytes),
            f"a row of {options.row_megabytes:g} MB": write_rows(folder / "row.csv", 0.1, options.row_megabytes),
        }
        small = None
        for name, path in files.items():
            peak, seconds = measure(path)
            small = small or peak
            print(f"{name:>18}: {peak:7,.0f} MB ({peak / small:.2f} of the small file), {seconds:5.0f} s", flush=True)


if __name__ == "__main__":
    main()
