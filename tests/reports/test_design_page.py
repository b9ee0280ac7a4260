"""The page, the table and the picture of `archwright design`: sections that have their data, text that stays text."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from rich.console import Console

from archwright.reports.architecture import architecture_svg, draw_architecture
from archwright.reports.design import design_table, preference, render_design_page

HOSTILE = "</script><img src=x onerror=alert(1)>"
LAYERS = [
    {"kind": "base", "width": 132, "label": "base 132"},
    {"kind": "mobile", "width": 792, "label": "mobile 792"},
    {"kind": "base", "width": 528, "label": HOSTILE},
]


def run(score: float) -> dict[str, Any]:
    history = [{"evaluations": n * 10, "best": score * n / 3, "mean": None, "distinct": 9} for n in (1, 2, 3)]
    return {
        "repeat": 0, "score": score, "parameters": 9.9e6, "evaluations": 30, "distinct": 28, "seconds": 3.0,
        "layers": LAYERS, "history": history,
    }  # fmt: skip


@pytest.fixture
def document() -> dict[str, Any]:
    leanings = {"base": {"all": 0.4, "lower": 0.6, "upper": 0.2}, "mobile": {"all": 0.6, "lower": 0.4, "upper": 0.8}}
    shares = [{"base": 0.5, "mobile": 0.5}, {"base": 0.0, "mobile": 1.0}, {"base": 1.0, "mobile": 0.0}]
    counts = {"parameters": 9_900_000, "flops": 1}
    return {
        "schema": "archwright/design/1", "space": "nlu-tiny", "proxies": ["w_pca", "v_pca"], "sampler": "genetic",
        "seeds": 2, "limits": {"parameters": 1e7}, "layers": LAYERS, "scores": {"w_pca": 7e9, "v_pca": 700},
        "parameters": 9_900_000, "latency_ms": {"median": 12.3}, "evaluations": 30, "distinct": 28, "seconds": 3.0,
        "spread": {"mean": 6.9e9, "std": 1e8}, "front": [{"scores": {"w_pca": 7e9, "v_pca": 7}, "parameters": 9e6}] * 2,
        "against": {"genetic": [run(7.0), run(8.0)], "random": [run(6.0)]}, "judged": {"core_seconds": 40.0},
        "blocks": {"found": shares, "population": shares, "population_leanings": leanings},
        "proxies_compared": [{"proxy": "snip", "counts": counts, "latency_ms": {"median": 1.0}, "core_seconds": 5.0,
                              "distinct": 3, "score": 1.0, "layers": LAYERS}],
        "scaled_up": {"counts": {"parameters": 4.9e7}},
    }  # fmt: skip


def test_the_page_has_every_section_and_no_markup_of_others(document: dict[str, Any]) -> None:
    page = render_design_page(document)
    for words in ("The architecture", "Score over designs", "Blocks by layer", "What a search takes", "Other proxies"):
        assert words in page
    assert "Pareto front" in page and "kWh, estimate" in page and "NAS-BERT" in page
    assert HOSTILE not in page


def test_sections_without_data_are_left_out() -> None:
    page = render_design_page({"schema": "archwright/design/1", "space": "nlu-tiny"})
    assert "How it was made" in page and "Score over designs" not in page and "Other proxies" not in page


def test_the_time_of_a_one_shot_search_contains_the_training(document: dict[str, Any]) -> None:
    """Two seeds have two super-networks, which the three searches share."""
    untrained = render_design_page(document)
    assert "28 different designs scored without training any" in untrained and "wall clock" not in untrained
    document["judged"] = {"core_seconds": 3 * 864.0, "training_seconds": 2 * 7776.0}
    page = render_design_page(document)
    assert "28 different designs judged as paths of one super-network, which was trained for 2.2 h." in page
    assert "without training any" not in page and "2.2 h of wall clock" in page
    assert '>this search</td><td class="">0.1</td>' in page


def test_the_table_tells_scores_limits_and_spread(document: dict[str, Any]) -> None:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(design_table(document))
    printed = console.export_text().replace("\u00a0", " ")
    for words in ("7e+09", "9.90M, of 10.00M allowed", "12.3 ms", "30, 28 different", "49.00M", "random: best 6"):
        assert words in printed


def test_the_picture_is_an_svg_with_a_box_per_layer() -> None:
    image = ET.fromstring(architecture_svg(LAYERS, name=HOSTILE))
    boxes = [node for node in image.iter() if node.tag.endswith("rect")]
    texts = [node.text for node in image.iter() if node.tag.endswith("text")]
    assert len(boxes) == 3 and {"base 132", HOSTILE, "1", "3"} <= set(texts)
    assert float(boxes[1].attrib["width"]) > float(boxes[2].attrib["width"]) > float(boxes[0].attrib["width"])
    assert boxes[0].attrib["fill"] == boxes[2].attrib["fill"] != boxes[1].attrib["fill"]
    heights = [float(box.attrib["y"]) for box in boxes]
    assert heights == sorted(heights, reverse=True)  # the first layer at the bottom


def test_the_drawing_has_the_last_layer_on_top(document: dict[str, Any]) -> None:
    lines = draw_architecture(document["layers"]).splitlines()
    assert [line.split()[0] for line in lines] == ["3", "2", "1"] and lines[1].endswith("mobile 792")
    assert draw_architecture([]) == ""


def test_a_preference_is_said_with_its_place(document: dict[str, Any]) -> None:
    words = preference(document["blocks"]["population_leanings"])
    assert "60 % of the layers" in words and "mobile stands rather in the upper layers" in words
    assert preference({"base": {"all": 1.0, "lower": 1.0, "upper": 1.0}}) == ""


def test_the_score_by_layer_is_drawn_and_its_absence_explained(document: dict[str, Any]) -> None:
    parts = {"score": 10.0, "layers": [1.0, 4.0, 5.0], "rest": 0.0, "note": ""}
    whole = {"score": 3.0, "layers": None, "rest": None, "note": "snip is no sum over layers."}
    page = render_design_page({**document, "layer_scores": {"w_pca": parts, "snip": whole}})
    assert "Score by layer" in page and "40.0 %" in page and "snip is no sum over layers." in page
    assert "Score by layer" not in render_design_page(document)
    with_rest = {**parts, "layers": [1.0, 4.0], "rest": 5.0}  # as many labels as layers are not known
    page = render_design_page({**document, "layer_scores": {"w_pca": with_rest}})
    assert "outside of the layers" in page and "50.0 %" in page
