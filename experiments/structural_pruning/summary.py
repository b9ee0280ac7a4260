"""Table, CSV and figure of what `run.py` left in a folder.

    python experiments/structural_pruning/summary.py runs/structural_pruning

Writes results.csv and summary.md beside this file, and the figure into docs/figures.
`archwright report runs/structural_pruning/*/` draws the
figures of the paper from the same folders.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from archwright.compression.studies.protocol import compare_runs
from archwright.reports.compress.summary import half_size_member

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "figures"
MARKS = {
    "weight-sharing": ("o", "#0b6e8f"),
    "standard": ("s", "#c2571a"),
    "retraining-free": ("D", "#6a4fa3"),
    "magnitude": ("*", "#a37b00"),
    "layer-dropping": ("P", "#2c7a4b"),
    "random": ("v", "#8a8a8a"),
    "head-pruning": ("^", "#b0305c"),
}


def main() -> None:
    documents = [json.loads(path.read_text()) for path in sorted(Path(sys.argv[1]).glob("*/result.json"))]
    rows = [row for document in documents for row in rows_of(document)]
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (HERE / "summary.md").write_text(table(rows, documents))
    draw(documents, FIGURES / "structural_pruning.png")
    print((HERE / "summary.md").read_text())


def rows_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per method."""
    about = {key: document[key] for key in ("task", "seed", "minutes")} | {"rows": document["rows"]["train"]}
    machine = {key: document["environment"][key] for key in ("commit", "cpu", "cores", "threads")}
    return [{**about, "method": name, **numbers(document, part), **machine} for name, part in sorted_methods(document)]


def sorted_methods(document: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, document["methods"][name]) for name in MARKS if name in document["methods"]]


def numbers(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    half = half_size_member(part)
    lost = None if half is None else 100 * (half["test_error"] - document["original"]["test_error"])
    working = {k: v for k, v in part["seconds_by_phase"].items() if k != "measure"}
    return {
        "hypervolume": part["hypervolume"],
        "test_hypervolume": part["test_hypervolume"],
        "tried": len(part["trials"]),
        "seconds": round(sum(working.values()), 1),
        "original_test_error": document["original"]["test_error"],
        "half_share": None if half is None else round(half["nonembedding_share"], 3),
        "half_lost_test": None if lost is None else round(lost, 2),
    }


def table(rows: list[dict[str, Any]], documents: list[dict[str, Any]]) -> str:
    """Means with 95 % intervals over seeds."""
    volumes = {group["task"]: group for group in compare_runs(documents)["groups"]}
    lines = [
        "| task | method | seeds | hypervolume of the front on test rows | 95 % interval "
        "| of all trials on validation rows | pooled quantiles (of 4) | tried | seconds "
        "| about half the size (up to 52 %): lost, test |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for task, method in dict.fromkeys((row["task"], row["method"]) for row in rows):
        some = [row for row in rows if (row["task"], row["method"]) == (task, method)]
        tested = [row["test_hypervolume"] for row in some]
        lost = [row["half_lost_test"] for row in some if row["half_lost_test"] is not None]
        cells = [
            f"{np.mean(tested):.3f}",
            interval(tested),
            f"{np.mean([row['hypervolume'] for row in some]):.3f}",
            pooled(volumes.get(task), method),
            f"{np.mean([row['tried'] for row in some]):.0f}",
            f"{np.mean([row['seconds'] for row in some]):.0f}",
            f"{np.mean(lost):+.1f}" if lost else "none that small",
        ]
        lines.append(f"| {task} | {method} | {len(some)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def pooled(group: Any, method: str) -> str:
    """The hypervolume of the paper's protocol."""
    found = group["comparisons"]["methods"]["names"].get(method) if group else None
    return f"{found['mean']:.2f}" if found else ""


def interval(values: list[float]) -> str:
    """Student's, over seeds; with few of them it is wide, as it should be."""
    if len(values) < 2:
        return ""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values) - half:.3f} to {np.mean(values) + half:.3f}"


def draw(documents: list[dict[str, Any]], path: Path) -> None:
    """Fronts on the test rows, all seeds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = list(dict.fromkeys(document["task"] for document in documents))
    figure, axes = plt.subplots(1, len(tasks), figsize=(6.2 * len(tasks), 4.8), squeeze=False, layout="constrained")
    for axis, task in zip(axes[0], tasks, strict=True):
        some = [document for document in documents if document["task"] == task]
        for name, (mark, colour) in MARKS.items():
            points = [
                (100 * entry["nonembedding_share"], 100 * entry["test_error"])
                for document in some
                for entry in document["methods"].get(name, {"front": []})["front"]
            ]
            axis.scatter(*zip(*points, strict=True), marker=mark, color=colour, s=28, alpha=0.8, label=name)
        axis.axhline(100 * np.mean([d["original"]["test_error"] for d in some]), color="#444", lw=0.8, ls="--")
        title = f"{task}, {len(some)} seed{'s' * (len(some) > 1)}"
        axis.set(title=title, xlabel="% of the non-embedding parameters", ylabel="test error, %")
        axis.grid(alpha=0.25)
    axes[0][-1].legend(fontsize=8)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
