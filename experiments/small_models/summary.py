"""Text and figure of results.csv: python experiments/small_models/summary.py"""

import csv
import json
from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

HERE = Path(__file__).parent
MAIN = {"glue/MRPC": "accuracy", "glue/CoLA": "matthews", "squad": "f1"}
"""Metric of a task, where it is not accuracy."""
Table = dict[tuple[str, str], dict[str, float]]


def main() -> None:
    with open(HERE / "results.csv") as file:
        rows = list(csv.DictReader(file))
    found: Table = defaultdict(dict)
    for row in rows:
        found[row["design"], row["start"]][row["task"]] = value(row)
    (HERE / "summary.md").write_text("\n".join([*starts(found), "", *designs(found, rows)]) + "\n")
    picture(found)


def value(row: dict[str, str]) -> float:
    return 100 * float(json.loads(row["metrics"])[MAIN.get(row["task"], "accuracy")])


def starts(found: Table) -> list[str]:
    """The first design from every start."""
    first = next(iter(found))[0]
    tasks = list(found[first, "scratch"])
    lines = [f"| {first} design, start | " + " | ".join(tasks) + " |", "|---" * (len(tasks) + 1) + "|"]
    kinds = [start for design, start in found if design == first]
    return lines + [row_of(start, [found[first, start].get(task) for task in tasks]) for start in kinds]


def designs(found: Table, rows: list[dict[str, str]]) -> list[str]:
    """Distilled designs side by side, the random ones also as mean and deviation."""
    distilled = {design: tasks for (design, start), tasks in found.items() if start == "distilled"}
    tasks = [task for task in next(iter(distilled.values())) if all(task in of for of in distilled.values())]
    size = {row["design"]: int(row["parameters"]) for row in rows if row["task"] in tasks}
    lines = [
        "| design, distilled | parameters | " + " | ".join((*tasks, "mean")) + " |",
        "|---" * (len(tasks) + 3) + "|",
    ]
    for design, of in distilled.items():
        values = [of[task] for task in tasks]
        lines.append(row_of(f"{design} | {size[design] / 1e6:.2f}M", [*values, float(np.mean(values))]))
    chance = np.array([[of[task] for task in tasks] for design, of in distilled.items() if "random" in design])
    if len(chance):
        whole = np.c_[chance, chance.mean(1)]
        cells = (f"{mean:.1f} ± {spread:.1f}" for mean, spread in zip(whole.mean(0), whole.std(0, ddof=1), strict=True))
        lines.append(f"| random, mean ± deviation of {len(chance)} | | " + " | ".join(cells) + " |")
    return lines


def row_of(name: str, values: list[float | None]) -> str:
    return f"| {name} | " + " | ".join("" if value is None else f"{value:.1f}" for value in values) + " |"


def picture(found: Table) -> None:
    distilled = {design: tasks for (design, start), tasks in found.items() if start == "distilled"}
    tasks = [task for task in next(iter(distilled.values())) if all(task in of for of in distilled.values())]
    figure, axes = pyplot.subplots(1, len(tasks), figsize=(4 * len(tasks), 3.2), layout="constrained")
    for axis, task in zip(np.atleast_1d(axes), tasks, strict=True):
        colours = ["tab:gray" if "random" in design else "tab:blue" for design in distilled]
        axis.bar(range(len(distilled)), [of[task] for of in distilled.values()], color=colours)
        axis.set_xticks(range(len(distilled)), list(distilled), rotation=60, ha="right", fontsize=8)
        low = min(of[task] for of in distilled.values())
        axis.set_ylim(bottom=max(0, low - 10))
        axis.set_title(f"{task}, {MAIN.get(task, 'accuracy')} in %", fontsize=9)
    figure.savefig(HERE / "figure.png", dpi=90)


if __name__ == "__main__":
    main()
