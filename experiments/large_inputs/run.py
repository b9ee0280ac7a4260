"""Peak memory and time of `compress` on a small file, a large one, and one with a very long row.

python -m experiments.large_inputs.run [--megabytes 71] [--row-megabytes 50]

Each in a process of its own on the built-in model, with 200 training rows, one short training and three trials: what
differs is the data. The table names the ratio to the small file; the goal is at most 1.5.
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
OPTIONS = (
    "--train-rows 200 --validation-rows 100 --test-rows 100 --epochs 0.1 --original-epochs 0.1 --trials 3 --rounds 3"
)


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


def measure(path: Path, out: Path) -> tuple[float, float]:
    """Peak memory in megabytes and seconds of a run on this file."""
    words = [sys.executable, "-m", "archwright", "compress", "--train", str(path), "--out", str(out), "--quiet"]
    start = perf_counter()
    child = subprocess.Popen([*words, *OPTIONS.split(), "--threads", "1"])
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"compress on {path.name} ended with {os.waitstatus_to_exitcode(status)}")
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
            peak, seconds = measure(path, folder / f"run-{path.stem}")
            small = small or peak
            print(f"{name:>18}: {peak:7,.0f} MB ({peak / small:.2f} of the small file), {seconds:5.0f} s", flush=True)


if __name__ == "__main__":
    main()
