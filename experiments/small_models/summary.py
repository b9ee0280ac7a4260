"""Text and figure of results.csv: python experiments/small_models/summary.py"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "figures"
MAIN = {"glue/MRPC": "accuracy", "glue/CoLA": "matthews", "squad": "f1"}
"""Metric of a task, where it is not accuracy."""
FIRST, DISTILLED, RANDOM = "w_pca", "distilled", "random"
TELLING = ("glue/MRPC", "glue/SST-2")
"""Tasks that every design was trained on."""
Row = dict[str, str]
Values = dict[str, dict[tuple[str, str], float]]
"""By task, then by design and seed."""


def main() -> None:
    with open(HERE / "results.csv") as file:
        rows = list(csv.DictReader(file))
    (HERE / "summary.md").write_text("\n".join([*starts(rows), "", *designs(rows), "", *paired(rows)]) + "\n")
    picture(by_kind(rows))


def value(row: Row) -> float:
    return 100 * float(json.loads(row["metrics"])[MAIN.get(row["task"], "accuracy")])


def kind_of(row: Row) -> str:
    return RANDOM if row["design"].startswith(RANDOM) else row["design"]


def starts(rows: Sequence[Row]) -> list[str]:
    """The first design from every start."""
    found: dict[str, Values] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["design"] == FIRST:
            found[row["start"]][row["task"]][FIRST, row["seed"]] = value(row)
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    head = [f"| {FIRST} design, start | " + " | ".join(tasks) + " |", "|---" * (len(tasks) + 1) + "|"]
    return head + [line(start, [list(of[task].values()) for task in tasks]) for start, of in found.items()]


def designs(rows: Sequence[Row]) -> list[str]:
    """Distilled designs side by side, all random ones as one line."""
    found = by_kind(rows)
    sizes = {
        kind: [int(row["parameters"]) / 1e6 for row in rows if kind_of(row) == kind and row["task"] in TELLING]
        for kind in found
    }
    head = ["| design, distilled | parameters | MRPC | SST-2 | mean of both |", "|---|---|---|---|---|"]
    return head + [
        line(
            f"{kind} | {min(sizes[kind]):.2f}M to {max(sizes[kind]):.2f}M",
            [*(list(of[task].values()) for task in TELLING), means(of)],
        )
        for kind, of in found.items()
    ]


def by_kind(rows: Sequence[Row]) -> dict[str, Values]:
    found: dict[str, Values] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["start"] == DISTILLED and row["task"] in TELLING:
            found[kind_of(row)][row["task"]][row["design"], row["seed"]] = value(row)
    return {kind: found[kind] for kind in sorted(found, key=lambda kind: (kind != FIRST, kind == RANDOM))}


def means(of: Values) -> list[float]:
    """Over the tasks, network by network."""
    both = set.intersection(*(set(of[task]) for task in TELLING))
    return [float(np.mean([of[task][one] for task in TELLING])) for one in both]


def paired(rows: Sequence[Row]) -> list[str]:
    """Differences seed by seed, where both were trained."""
    table = {(row["design"], row["start"], row["task"], row["seed"]): value(row) for row in rows}
    lines = ["| difference, seed by seed | MRPC | SST-2 |", "|---|---|---|"]
    for start, other in (("longer", "scratch"), ("distilled", "scratch"), ("longer-taught", "longer")):
        found = [
            [
                of - table[design, other, name, seed]
                for (design, begun, name, seed), of in table.items()
                if (begun, name) == (start, task) and (design, other, name, seed) in table
            ]
            for task in TELLING
        ]
        lines.append(line(f"{start} - {other}", found, sign="+"))
    return lines


def line(name: str, cells: Iterable[Sequence[float] | None], *, sign: str = "") -> str:
    return f"| {name} | " + " | ".join(spread(cell or (), sign) for cell in cells) + " |"


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean, deviation and how many."""
    if not len(values):
        return ""
    mean = f"{np.mean(values):{sign}.1f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.1f} ({len(values)})"


def picture(found: dict[str, Values]) -> None:
    figure, axes = pyplot.subplots(1, len(TELLING), figsize=(4.4 * len(TELLING), 3.4), layout="constrained")
    for axis, task in zip(axes, TELLING, strict=True):
        for place, (kind, of) in enumerate(found.items()):
            colour = "tab:gray" if kind == RANDOM else "tab:blue"
            values = list(of[task].values())
            axis.plot([place] * len(values), values, "o", color=colour, alpha=0.6)
            axis.plot([place - 0.25, place + 0.25], [np.mean(values)] * 2, color=colour, linewidth=2)
        axis.set_xticks(range(len(found)), list(found), rotation=50, ha="right", fontsize=8)
        axis.set_title(f"{task}, {MAIN.get(task, 'accuracy')} in %, line: mean", fontsize=9)
    figure.savefig(FIGURES / "small_models.png", dpi=90)


if __name__ == "__main__":
    main()
