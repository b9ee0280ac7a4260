"""The figures of Klein et al. 2024 from our runs: functions from a protocol document to plotly's data and layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from archwright.reports.figures.bars import size_bins, volume_boxes
from archwright.reports.figures.checks import quantized
from archwright.reports.figures.curves import rank_curves, regret_curves
from archwright.reports.figures.fronts import rectangles, single_runs
from archwright.reports.figures.parts import Figure
from archwright.reports.figures.spaces import histograms, masks


@dataclass(frozen=True)
class Drawing:
    """One figure: call it with a document of schema "archwright/protocol/1"; None when its runs are missing."""

    title: str
    caption: str
    needs: str
    """What the documents must have; what to run when they do not."""
    draw: Callable[[Mapping[str, Any]], Figure | None]
    repeats: str = ""
    """Number of a figure that looks the same when there are few tasks; a page then shows only that one."""

    def __call__(self, protocol: Mapping[str, Any]) -> Figure | None:
        return self.draw(protocol)


PREVIEW = "a preview: `archwright compress --preview MODEL --json FILE`"

METHODS = "two or more methods on one task"

FIGURES: dict[str, Drawing] = {
    "2": Drawing(
        "Head masks drawn at random from each space",
        "A row is a layer, a filled cell a kept head.",
        PREVIEW,
        masks,
    ),
    "3": Drawing(
        "Sizes of networks drawn at random from each space",
        "How many of the samples have which share of the non-embedding parameters.",
        PREVIEW,
        histograms,
    ),
    "4": Drawing(
        "Hypervolume as rectangles",
        "The hypervolume of a front is the area of the rectangles between its members and the reference point.",
        "one finished run whose error is a share of 1",
        rectangles,
    ),
    "5": Drawing(
        "Hypervolume of the search spaces",
        "One point per seed; higher is better.",
        "weight-sharing runs in two or more spaces, otherwise alike",
        partial(volume_boxes, comparison="spaces"),
    ),
    "6": Drawing(
        "Average ranks of the samplers",
        "Over bootstrap samples of tasks and seeds; lower is better.",
        "runs of two or more samplers on the same tasks",
        rank_curves,
    ),
    "7": Drawing(
        "Hypervolume of the training strategies",
        "One point per seed; higher is better.",
        "weight-sharing runs of two or more strategies, otherwise alike",
        partial(volume_boxes, comparison="strategies"),
    ),
    "8": Drawing(
        "Best test score within each size",
        "Relative to the unpruned model, with lines at 100, 95 and 90 %; bars are one deviation over seeds.",
        "runs with test errors",
        size_bins,
    ),
    "9": Drawing(
        "Fronts of single runs on three tasks",
        "The first seed of each method; lower and further left is better.",
        METHODS,
        partial(single_runs, most=3),
    ),
    "10": Drawing(
        "Fronts of single runs on every task",
        "The first seed of each method; lower and further left is better.",
        METHODS,
        single_runs,
        repeats="9",
    ),
    "11": Drawing(
        "Regret of the samplers in standard NAS",
        "Mean over seeds and one deviation; lower is better.",
        "runs of standard NAS",
        partial(regret_curves, comparison="standard_samplers"),
    ),
    "12": Drawing(
        "Regret of the samplers in weight-sharing NAS",
        "Mean over seeds and one deviation; lower is better.",
        "runs of weight-sharing NAS",
        partial(regret_curves, comparison="samplers"),
    ),
    "13": Drawing(
        "Pruning and quantization",
        "Error against the memory of the weights and against measured latency; lower and further left is better.",
        "a comparison with `--compare quantized`",
        quantized,
    ),
}
"""By the number they have in the paper."""

__all__ = ["FIGURES", "Drawing", "Figure"]
