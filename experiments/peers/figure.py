"""The picture of the comparison: points lost against size, one panel per task."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.peers.job import SIZES

if TYPE_CHECKING:
    from experiments.peers.summary import TaskRecords

COLOURS = {
    "archwright": "#0b6e8f",
    "torch-pruning": "#c2571a",
    "first-layers": "#6b8e23",
    "first-3-layers": "#3d5212",
    "drop-top": "#9a7fb8",
    "paraphrase": "#b8860b",
    "layer-dropping": "#7f7f7f",
    "retraining-free": "#d08fa8",
}


def draw(tasks: list["TaskRecords"], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tasks), figsize=(5.4 * len(tasks), 4.2), squeeze=False, layout="constrained")
    for axis, task in zip(axes[0], tasks, strict=True):
        draw_task(axis, task)
    axes[0][0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def draw_task(axis: Any, task: "TaskRecords") -> None:
    """Mean loss of every method with its interval, at the mean share of what was picked for a size."""
    for place, method in enumerate(task.methods):
        points = {}
        for size in SIZES:
            picks = task.picks(method, size)
            if picks:
                shares = [task.records[method, seed].network(name)["share"] for seed, name in picks.items()]
                points[100 * sum(shares) / len(shares)] = task.loss(method, picks)
        x = [share + 0.25 * (place - len(task.methods) / 2) for share in points]  # side by side, not upon each other
        y = [loss.mean for loss in points.values()]
        bars = [[loss.mean - loss.low for loss in points.values()], [loss.high - loss.mean for loss in points.values()]]
        axis.errorbar(x, y, yerr=bars, fmt=".-", label=method, color=COLOURS.get(method), lw=1.2, capsize=2)
    axis.axhline(0, color="black", lw=0.8)
    axis.set(title=task.task, xlabel="non-embedding parameters, %", ylabel="points lost against the original")
