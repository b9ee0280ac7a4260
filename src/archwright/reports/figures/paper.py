"""The figures of Klein et al. 2024 from our runs: functions from a protocol document to plotly's data and layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from archwright.reports.figures.bars import mask_gallery, size_bins, size_histograms, volume_boxes
from archwright.reports.figures.curves import rank_curves, regret_curves
from archwright.reports.figures.fronts import single_runs, volume_rectangles
from archwright.reports.figures.panels import Figure
from archwright.reports.figures.studies import quantization_figures


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper."""

    title: str
    caption: str
    needs: str
    """What the documents must have; what to run when they do not."""
    draw: Callable[[Mapping[str, Any]], Figure | None]
    """From a document of schema "archwright/protocol/1"; None when its runs are missing."""
    repeats: str = ""
    """Number of a figure that looks the same when there are few tasks; a page then shows only that one."""


PREVIEW = "a preview: `archwright compress --preview MODEL --json FILE`"

METHODS = "two or more methods on one task"

FIGURES: dict[str, PaperFigure] = {
    "2": PaperFigure(
        "Head masks drawn at random from each space",
        "A row is a layer, a filled cell a kept head.",
        PREVIEW,
        mask_gallery,
    ),
    "3": PaperFigure(
        "Sizes of networks drawn at random from each space",
        "How many of the samples have which share of the non-embedding parameters.",
        PREVIEW,
        size_histograms,
    ),
    "4": PaperFigure(
        "Hypervolume as rectangles",
        "The hypervolume of a front is the area of the rectangles between its members and the reference point.",
        "one finished run whose error is a share of 1",
        volume_rectangles,
    ),
    "5": PaperFigure(
        "Hypervolume of the search spaces",
        "One point per seed; higher is better.",
        "weight-sharing runs in two or more spaces, otherwise alike",
        partial(volume_boxes, comparison="spaces"),
    ),
    "6": PaperFigure(
        "Average ranks of the samplers",
        "Over bootstrap samples of tasks and seeds; lower is better.",
        "runs of two or more samplers on the same tasks",
        rank_curves,
    ),
    "7": PaperFigure(
        "Hypervolume of the training strategies",
        "One point per seed; higher is better.",
        "weight-sharing runs of two or more strategies, otherwise alike",
        partial(volume_boxes, comparison="strategies"),
    ),
    "8": PaperFigure(
        "Best test score within each size",
        "Relative to the unpruned model, with lines at 100, 95 and 90 %; bars are one deviation over seeds.",
        "runs with test errors",
        size_bins,
    ),
    "9": PaperFigure(
        "Fronts of single runs on three tasks",
        "The first seed of each method; lower and further left is better.",
        METHODS,
        partial(single_runs, most=3),
    ),
    "10": PaperFigure(
        "Fronts of single runs on every task",
        "The first seed of each method; lower and further left is better.",
        METHODS,
        single_runs,
        repeats="9",
    ),
    "11": PaperFigure(
        "Regret of the samplers in standard NAS",
        "Mean over seeds and one deviation; lower is better.",
        "runs of standard NAS",
        partial(regret_curves, comparison="standard_samplers"),
    ),
    "12": PaperFigure(
        "Regret of the samplers in weight-sharing NAS",
        "Mean over seeds and one deviation; lower is better.",
        "runs of weight-sharing NAS",
        partial(regret_curves, comparison="samplers"),
    ),
    "13": PaperFigure(
        "Pruning and quantization",
        "Error against the memory of the weights and against measured latency; lower and further left is better.",
        "a comparison with `--compare quantized`",
        quantization_figures,
    ),
}
"""By the number they have in the paper."""
