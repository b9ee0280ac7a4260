"""Tables and figure of the half-size experiment."""

from pathlib import Path
from typing import Any

import numpy as np

COLOURS = {"taylor": "#0b6e8f", "none": "#c2571a"}


def table(rows: list[dict[str, Any]], errors: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds, in points."""
    lines = [
        "| task | order | seeds | original, test | size | lost, validation | lost, test | lost, test, recovered |"
        " top half of layers dropped: lost, test | latency | hypervolume | error of random ones |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for task, order in sorted({(row["task"], row["order"]) for row in rows}, reverse=True):
        some = [row for row in rows if (row["task"], row["order"]) == (task, order)]
        chance = [e["validation_error"] for e in errors if (e["task"], e["order"]) == (task, order)]
        cells = [
            spread([100 * row["original_test_error"] for row in some]),
            f"{np.mean([row['half_share'] for row in some]):.0%}",
            spread([row["lost_validation"] for row in some]),
            spread([row["lost_test"] for row in some]),
            spread([row["lost_test_recovered"] for row in some]),
            spread([row["lost_test_dropped"] for row in some]),
            f"{np.mean([row['latency_ratio'] for row in some]):.0%}",
            spread([row["hypervolume"] for row in some], digits=3),
            f"{100 * np.mean(chance):.1f}",
        ]
        lines.append(f"| {task} | {order} | {len(some)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def spread(values: list[float], digits: int = 1) -> str:
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def draw(found: dict[tuple[str, str, int], dict[str, Any]], errors: list[dict[str, Any]], path: Path) -> None:
    """Fronts of all runs, and the same random sub-networks with and without order."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = sorted({task for task, _, _ in found}, reverse=True)
    figure, axes = plt.subplots(2, len(tasks), figsize=(5.2 * len(tasks), 7.6), squeeze=False, layout="constrained")
    for place, task in enumerate(tasks):
        fronts(axes[0][place], task, found)
        random_ones(axes[1][place], task, errors)
    figure.savefig(path, dpi=130)


def fronts(axis: Any, task: str, found: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    for (name, order, seed), result in found.items():
        if name == task:
            points = [(100 * e["nonembedding_share"], 100 * e["test_error"]) for e in result["front"]]
            axis.plot(
                *zip(*points, strict=True),
                ".-",
                color=COLOURS[order],
                alpha=0.7,
                lw=1,
                label=order if not seed else None,
            )
            axis.plot(
                100,
                100 * result["original"]["test_error"],
                "D",
                color="black",
                ms=5,
                label="original" if order == "taylor" and not seed else None,
            )
    axis.axvline(50, color="grey", lw=0.8, ls=":")
    axis.set(title=f"{task}: fronts of all seeds", xlabel="non-embedding parameters, %", ylabel="test error, %")
    axis.legend(frameon=False)


def random_ones(axis: Any, task: str, errors: list[dict[str, Any]]) -> None:
    by_order = {
        order: [100 * e["validation_error"] for e in errors if (e["task"], e["order"]) == (task, order)]
        for order in COLOURS
    }
    x, y = by_order["none"], by_order["taylor"]
    axis.plot(x, y, ".", color=COLOURS["taylor"], alpha=0.6)
    low, high = min(x + y), max(x + y)
    axis.plot([low, high], [low, high], color="grey", lw=0.8)
    axis.set(title="the same random sub-networks", xlabel="error without order, %", ylabel="error with order, %")
