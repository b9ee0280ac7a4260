"""Every figure as plotly accepts it, with the right points, and nothing where runs are missing."""

from typing import Any

import plotly.graph_objects as go
import pytest

from archwright.compression.studies.protocol import compare_runs
from archwright.reports.figures.fronts import fidelity_panel, pareto_front, quantization_panels
from archwright.reports.figures.panels import assign_styles
from archwright.reports.figures.panels import figure as panel_figure
from archwright.reports.figures.paper import FIGURES, volume_curves
from archwright.reports.numbers import PERPLEXITY, SHARE


def named(figure: dict[str, Any], name: str, **wanted: Any) -> list[dict[str, Any]]:
    return [
        trace
        for trace in figure["data"]
        if trace.get("legendgroup") == name and all(trace.get(key) == value for key, value in wanted.items())
    ]


@pytest.mark.parametrize("number", FIGURES)
def test_every_figure_is_drawn_and_valid(number: str, protocol: dict[str, Any]) -> None:
    figure = FIGURES[number].draw(protocol)
    assert figure is not None
    checked = go.Figure(figure)  # raises on a name or value that plotly does not know
    assert len(checked.data) == len(figure["data"]) > 0
    panels = figure["layout"]["meta"]["panels"]
    assert {trace.get("xaxis", "x") for trace in figure["data"]} == {"x"} | {f"x{n}" for n in range(2, panels + 1)}


@pytest.mark.parametrize("number", FIGURES)
def test_without_runs_there_is_no_figure(number: str) -> None:
    assert FIGURES[number].draw(compare_runs([])) is None
    assert FIGURES[number].needs and FIGURES[number].title and FIGURES[number].caption


@pytest.mark.parametrize("number", FIGURES)
def test_each_name_stands_once_in_the_legend_and_looks_the_same(number: str, protocol: dict[str, Any]) -> None:
    figure = FIGURES[number].draw(protocol)
    assert figure is not None
    listed = [trace["legendgroup"] for trace in figure["data"] if trace["showlegend"]]
    assert len(listed) == len(set(listed))
    for name in listed:
        colours = {trace["line"].get("color") for trace in named(figure, name) if "color" in trace.get("line", {})} | {
            trace["marker"]["color"] for trace in named(figure, name) if "color" in trace.get("marker", {})
        }
        assert len(colours) == 1


def test_fronts_have_one_point_per_member(protocol: dict[str, Any], compared: dict[str, Any]) -> None:
    figure = FIGURES["9"].draw(protocol)
    assert figure is not None
    for name, method in compared["methods"].items():
        (points,) = named(figure, name, mode="markers", xaxis="x")
        assert points["x"] == [member["nonembedding_share"] for member in method["front"]]
        assert points["y"] == [member["test_error"] for member in method["front"]]


def test_three_tasks_in_figure_nine_and_all_in_figure_ten(compared: dict[str, Any]) -> None:
    protocol = compare_runs([compared | {"task": task} for task in "abcde"])
    nine, ten = FIGURES["9"].draw(protocol), FIGURES["10"].draw(protocol)
    assert nine and ten
    assert (nine["layout"]["meta"]["panels"], ten["layout"]["meta"]["panels"]) == (3, 5)


def test_rectangles_sum_to_the_hypervolume_of_the_front(protocol: dict[str, Any]) -> None:
    figure = FIGURES["4"].draw(protocol)
    assert figure is not None
    (run, *_) = protocol["groups"][0]["runs"]
    shapes = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    area = sum((shape["x1"] - shape["x0"]) * (shape["y1"] - shape["y0"]) for shape in shapes)
    assert area == pytest.approx(run["hypervolume"])


def test_regret_curves_show_mean_and_band(protocol: dict[str, Any]) -> None:
    figure = FIGURES["12"].draw(protocol)
    assert figure is not None
    names = protocol["groups"][0]["comparisons"]["samplers"]["names"]
    for name, entry in names.items():
        band, line = named(figure, name, xaxis="x")
        curve = entry["over"]["seconds"]
        assert line["y"] == curve["mean"] and line["x"] == curve["x"]
        assert band["y"][0] == pytest.approx(curve["mean"][0] + curve["deviation"][0])
        assert band["y"][-1] == pytest.approx(curve["mean"][0] - curve["deviation"][0])


def test_bins_mark_ninety_and_ninety_five_percent(protocol: dict[str, Any]) -> None:
    figure = FIGURES["8"].draw(protocol)
    assert figure is not None
    heights = [shape["y0"] for shape in figure["layout"]["shapes"] if shape["yref"] == "y"]
    assert heights == [1.0, 0.95, 0.9]
    (line,) = named(figure, "weight-sharing", xaxis="x")
    assert line["x"] == sorted(line["x"], reverse=True) and max(line["x"]) == pytest.approx(0.8)


def test_one_seed_has_no_band(compared: dict[str, Any], result: dict[str, Any]) -> None:
    protocol = compare_runs([result])
    figure = FIGURES["12"].draw(protocol)
    assert figure is not None and len(figure["data"]) == 1
    bins = FIGURES["8"].draw(compare_runs([compared]))
    assert bins is not None and all("error_y" not in trace for trace in bins["data"])


def test_names_stay_text() -> None:
    figure = panel_figure([fidelity_panel({"pairs": [[0.1, 0.2, 0.3]]}, SHARE, "<b>x</b>")])
    assert "&lt;b&gt;x" in figure["layout"]["annotations"][0]["text"]


def test_perplexities_have_a_logarithmic_axis() -> None:
    figure = panel_figure([fidelity_panel({"pairs": [[40.0, 35.0, 0.3]]}, PERPLEXITY)])
    assert figure["layout"]["yaxis"]["type"] == figure["layout"]["xaxis"]["type"] == "log"
    assert "perplexity" in figure["layout"]["xaxis"]["title"]["text"]


def test_quantized_points_without_latency_or_test_error() -> None:
    points = [{"name": "a", "bits": 8, "validation_error": 0.2, "bytes": 100, "trial": None, "latency_ms": None}]
    figure = panel_figure(quantization_panels({"points": points}, SHARE))
    go.Figure(figure)
    assert figure["data"][0]["y"] == [0.2] and figure["data"][1]["x"] == [None]
    assert figure["data"][0]["legendgroup"] == "unpruned, 8 bit"


def test_the_joint_front_is_a_line_over_memory() -> None:
    points = [{"bits": b, "validation_error": e, "bytes": s, "trial": 1} for b, e, s in ((8, 0.2, 50), (4, 0.3, 30))]
    figure = panel_figure(quantization_panels({"points": points, "joint_front": [0, 1]}, SHARE))
    (line,) = named(figure, "joint front")
    assert (line["x"], line["y"], line["xaxis"]) == ([30, 50], [0.3, 0.2], "x")


def test_time_includes_the_training_before_the_search() -> None:
    rows = [{"seconds": 1.0}, {"seconds": 4.0}]
    phases = {"original": 20.0, "supernet": 30.0, "search": 5.0, "measure": 9.0}
    method = {"trials": rows, "hypervolume_over_time": [0.1, 0.2], "seconds": 64.0, "seconds_by_phase": phases}
    figures = volume_curves({"a": method, "b": method | {"seconds_by_phase": {}, "seconds": 5.0}})
    assert [trace["x"] for trace in figures["time"]["data"]] == [[51.0, 54.0, 64.0], [1.0, 4.0, 5.0]]
    assert figures["time"]["data"][0]["y"] == [0.1, 0.2, 0.2]
    assert volume_curves({"a": {"trials": [{}], "hypervolume_over_time": [0.1]}}).keys() == {"trials"}
    assert volume_curves({"a": {}}) == {}


def test_the_staircase_by_hand() -> None:
    assert pareto_front([(3, 1), (1, 3), (2, 4), (1, 5), (2, 2)]) == [(1, 3), (2, 2), (3, 1)]


def test_eight_names_look_different() -> None:
    looks = assign_styles("abcdefgh")
    assert len(set(looks.values())) == 8 and assign_styles("ab" * 3).keys() == {"a", "b"}
