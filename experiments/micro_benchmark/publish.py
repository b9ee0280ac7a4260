"""From results.csv to the file of the package, and the file of the networks that are kept apart."""

import csv
from collections.abc import Sequence
from pathlib import Path

from archwright.benchmarks.micro_lm import FILE, TABLES, read_design
from archwright.spaces.micro_lm import MICRO_LM as SPACE
from experiments.micro_benchmark.designs import is_held_out

KEPT_APART = Path(__file__).parent / "held_out" / FILE


def publish(rows: Sequence[dict[str, str]]) -> None:
    """Every line of a network goes into one of both files, by a hash of its design."""
    apart = [is_held_out(read_design(row["design"], SPACE)) for row in rows]
    for path, wanted in ((TABLES / FILE, False), (KEPT_APART, True)):
        lines = [row for row, held_out in zip(rows, apart, strict=True) if held_out == wanted]
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(lines)
        designs = {line["design"] for line in lines}
        print(f"{path.name} in {path.parent.name}: {len(designs)} networks, {len(lines)} lines")
