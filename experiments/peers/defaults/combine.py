"""Joins the networks of `archwright-defaults` that were run at different times, and writes the table of all seeds.

    python experiments/peers/defaults/combine.py NEW_RESULTS.csv ...

Rows of the given files join results.csv in this folder, in place of rows of the same task and seed; summary.md has the
mean loss of the picks over the seeds, with its smallest and largest value: three seeds tell no more.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
SIZES = (60, 50, 40, 30, 20)


def read_rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def join_results(paths: list[Path]) -> list[dict[str, str]]:
    """All rows; of a task and seed those of the last file that has it."""
    runs: dict[tuple[str, str], list[dict[str, str]]] = {}
    for path in paths:
        new: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
        for row in read_rows(path):
            if row["method"] in ("archwright-defaults", "original"):
                new[row["task"], row["seed"]].append(row)
        runs |= new
    return [row for key in sorted(runs) for row in runs[key]]


def describe_losses(rows: list[dict[str, str]], task: str) -> list[str]:
    """The row of a task: per size the mean over seeds, and the smallest and the largest."""
    cells = []
    for size in SIZES:
        losses = [
            float(row["lost_points"])
            for row in rows
            if row["task"] == task and str(size) in row["picked_for"].split() and row["method"] != "original"
        ]
        cells.append(f"{mean(losses):+.2f} ({min(losses):+.1f} to {max(losses):+.1f})" if losses else "-")
    seeds = sorted({row["seed"] for row in rows if row["task"] == task})
    commits = sorted({row["commit"] for row in rows if row["task"] == task and row["commit"]})
    return [task, ", ".join(seeds), ", ".join(commits), *cells]


def main() -> None:
    rows = join_results([RESULTS, *map(Path, sys.argv[1:])])
    with open(RESULTS, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    head = ["task", "seeds", "commits", *(f"{size} %" for size in SIZES)]
    lines = [head, ["---"] * len(head), *(describe_losses(rows, task) for task in sorted({r["task"] for r in rows}))]
    text = "Points lost against the original on 2,072 test rows: mean over seeds (smallest to largest).\n"
    (HERE / "summary.md").write_text(text + "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")


if __name__ == "__main__":
    main()
