"""The page of a ranking as text: sections that have their data, sizes, escaping, tables beside the papers."""

import copy
import json
import math
import re
from typing import Any

import pytest

from archwright.reports.numbers import DASH
from archwright.reports.page import render_page
from archwright.reports.rank.axes import depth_groups, large_cells, rank_axes, round_digits
from archwright.reports.rank.bars import bar_figures, xray_figures
from archwright.reports.rank.page import render_rank_page
from archwright.reports.rank.score import render_score_page
from archwright.reports.rank.studies import (
    box_figures,
    eta_figure,
    powers_figure,
    scree_figure,
)
from archwright.reports.rank.tables import numbers_table, parity_table, published_table
from tests.reports.pages import headline, page_data, page_text, section_ids
from tests.reports.rank_documents import rank_document, score_document
from tests.reports.test_report_browser import nulled

_RANKED = rank_document()
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def ranking() -> dict[str, Any]:
    return copy.deepcopy(_RANKED)


ALL = [
    "bars",
    "table",
    "scatter",
    "cells",
    "normalised",
    "pair",
    "ablation",
    "xray",
    "scree",
    "eta",
    "powers",
    "published",
    "parity",
    "notes",
    "made",
]


def test_the_whole_page(ranking: dict[str, Any]) -> None:
    page = render_rank_page(ranking)
    assert section_ids(page) == ALL
    assert "cdn" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL).lower()
    assert headline(page).startswith("w_pca ranks best of 38 proxies") and "Architectures 300" in page_text(page)


NEEDS = {
    "ablation": ("ablation", "published_ablation"),
    "xray": ("xray",),
    "scree": ("spectra",),
    "eta": ("eta",),
    "powers": ("powers",),
    "published": ("published",),
    "parity": ("parity",),
    "notes": ("notes",),
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_section_is_there_when_its_data_is(ranking: dict[str, Any], name: str) -> None:
    assert section_ids(render_rank_page(ranking | dict.fromkeys(NEEDS[name]))) == [
        other for other in ALL if other != name
    ]


def test_without_architectures_there_are_tables_and_bars_only(ranking: dict[str, Any]) -> None:
    bare = {key: ranking[key] for key in ("schema", "benchmark", "n", "rows", "noise_ceiling")}
    assert section_ids(render_rank_page(bare)) == ["bars", "table", "made"]
    assert section_ids(render_rank_page({"benchmark": "nas-bert"})) == ["table", "made"]


def test_every_number_may_be_missing(ranking: dict[str, Any]) -> None:
    page = render_rank_page(nulled(ranking))
    assert "bars" not in section_ids(page) and "scatter" not in section_ids(page)
    assert "No proxy has a rank correlation" in headline(page)
    assert "NaN" not in json.dumps(page_data(page))


def test_the_table_has_every_number_of_a_row(ranking: dict[str, Any]) -> None:
    table = numbers_table(ranking["rows"])
    row = next(row for row in table.rows if row[0].text == "w_pca")
    cells = dict(zip([column.head for column in table.columns], row, strict=True))
    source = next(row for row in ranking["rows"] if row["proxy"] == "w_pca")
    assert cells["Spearman's rho"].text == f"{source['spearman']:.3f}"
    assert cells["Spearman's rho"].interval == f"{source['spearman_low']:.2f} to {source['spearman_high']:.2f}"
    assert cells["verdict"].text == "adds information beyond depth and width"
    assert (cells["no gradient"].text, cells["n"].text, cells["Peak MB"].text) == ("yes", "300", "312")
    assert len(table.styles) == 7 and len(table.rows) == 45
    shown = page_text(render_rank_page(ranking))
    rho = cells["Spearman's rho"]
    assert f"{rho.text} {rho.interval}" in shown


def test_hostile_names_never_become_markup(ranking: dict[str, Any]) -> None:
    ranking |= {"benchmark": HOSTILE, "notes": [HOSTILE], "environment": {HOSTILE: HOSTILE}}
    ranking["architectures"][0] |= {"id": HOSTILE, "cell": HOSTILE}
    for row in ranking["rows"][:9]:
        row |= {"proxy": HOSTILE, "verdict": HOSTILE, "missing": {"count": 1, "reason": HOSTILE}}
    plain = render_page("x", [], command="", lead="", explore=True)
    for page in (
        render_rank_page(ranking),
        render_score_page({"space": HOSTILE, "rows": [{"id": HOSTILE, "scores": {HOSTILE: 1}}]}),
    ):
        assert page.count("<script") == plain.count("<script") and "<img" not in page.split("plotly.js")[0]
        assert HOSTILE in page_text(page) and HOSTILE in json.dumps(page_data(page), ensure_ascii=False)


def test_a_thousand_architectures_stay_small() -> None:
    page = render_rank_page(rank_document(1000))
    empty = render_page("x", [], command="", lead="", explore=True)
    assert len(page) - len(empty) < 900_000


def test_numbers_keep_six_digits() -> None:
    assert [round_digits(value) for value in (0.123456789, 12345678, math.nan, None, True, math.inf)] == [
        0.123457,
        12345678,
        None,
        None,
        None,
        None,
    ]


def test_axes_begin_with_the_trained_score_and_skip_what_nobody_has(ranking: dict[str, Any]) -> None:
    ranking["rows"].append({"proxy": "absent", "origin": "own"})
    axes = rank_axes(ranking)
    assert axes[0]["name"] == "trained score (glue)" and axes[0]["known"] == 300
    names = [axis["name"] for axis in axes]
    assert "absent" not in names and names.count("parameters") == 1 and "width" in names
    assert next(axis for axis in axes if axis["name"] == "attention_confidence")["known"] == 273


def test_depths_share_a_colour_or_a_scale(ranking: dict[str, Any]) -> None:
    groups = depth_groups(ranking["architectures"])
    assert [group["name"] for group in groups] == ["depth 2", "depth 4"]
    assert sum(len(group["members"]) for group in groups) == 300
    (scale,) = depth_groups([{"depth": depth} for depth in range(2, 17)])
    assert scale["shade"] == list(range(2, 17))
    assert depth_groups([{"depth": None}])[0]["name"] == "depth unknown"


def test_cells_are_ordered_by_depth_and_width_and_small_ones_left_out(ranking: dict[str, Any]) -> None:
    ranking["architectures"][0]["cell"] = "alone"
    assert [cell["name"] for cell in large_cells(ranking["architectures"])] == ["2x128", "2x256", "4x128", "4x256"]


def test_bars_have_both_lines_and_the_ceiling(ranking: dict[str, Any]) -> None:
    figures = bar_figures(ranking)
    names = {trace["name"]: trace for trace in figures["Spearman",]["data"]}
    rows = {row["proxy"]: row for row in ranking["rows"]}
    line = next(trace for name, trace in names.items() if name.startswith("parameters "))
    assert line["x"] == [rows["parameters"]["spearman"]] * 2
    assert min(names["above the noise ceiling 0.93"]["x"]) == 0.93
    assert any(name.startswith("depth and width ") for name in names) and {"baseline", "published", "own"} <= set(names)
    assert sum(len(trace["x"]) for trace in figures["Spearman",]["data"] if trace["type"] == "bar") == 45
    assert min(figures["within cells",]["data"][0]["x"]) == 0.75
    without = bar_figures(ranking | {"noise_ceiling": None})["Spearman",]["data"]
    assert not any("ceiling" in trace["name"] for trace in without)


def test_boxes_put_ours_beside_the_published(ranking: dict[str, Any]) -> None:
    figures = box_figures(ranking)
    both = figures["synaptic_saliency", "batches"]
    assert [len(trace["y"]) for trace in both["data"]] == [100, 100] and [
        note["text"] for note in both["layout"]["annotations"]
    ] == [
        "<b>ours</b>",
        "<b>published</b>",
    ]
    assert len(figures["w_pca", "initialisation seeds"]["data"]) == 1
    assert next(iter(figures))[0] != "w_pca"  # what both have comes first


def test_the_scree_plot_counts_as_v_pca_does() -> None:
    for eta, size in ((0.79, 2), (0.8, 3)):
        figure = scree_figure({"layers": [[5.0, 3.0, 1.0, 1.0]], "eta": eta})
        assert figure["layout"]["annotations"][1]["text"] == f"<b>η = {eta:g} needs {size}</b>"
    figure = scree_figure({"id": "a", "layers": [[5.0, 3.0, 1.0, 1.0], [1.0, None, 0.0]], "eta": 0.85})
    assert figure["layout"]["annotations"][1]["text"] == "<b>η = 0.85 needs 3 + 1 = 4</b>"
    assert figure["data"][2]["y"] == [0.5, 0.8, 0.9, 1.0]


def test_powers_mark_the_best_and_w_pca() -> None:
    figure = powers_figure({"a": [0, 1], "b": [0, 1], "spearman": [[None, 0.5], [0.76, 0.7]]})
    assert [trace.get("name") for trace in figure["data"]] == [None, "best, 0.760", "W-PCA"]
    assert (figure["data"][1]["x"], figure["data"][1]["y"]) == ([0], [1])  # b across, a upwards


def test_the_sweep_leaves_out_what_is_no_share() -> None:
    figure = eta_figure([{"eta": 1.0, "spearman": 0.1}, {"eta": 0.9, "spearman": 0.7}, {"eta": None}])
    assert figure["data"][0]["x"] == [1.0] and figure["data"][0]["y"] == [0.7]


def test_the_xray_has_a_panel_per_choice(ranking: dict[str, Any]) -> None:
    figures = xray_figures(ranking["xray"])
    assert [note["text"] for note in figures["mean trained score",]["layout"]["annotations"]] == [
        f"<b>{name}</b>" for name in ("layers", "hidden", "operator 1", "heads 1")
    ]
    assert [trace["name"] for trace in figures["share of the top 10 %",]["data"][:2]] == ["of the top 10 %", "of all"]
    assert figures["share of the top 10 %",]["data"][0]["y"] == [0.0, 0.2]


def test_papers_that_disagree_stand_side_by_side(ranking: dict[str, Any]) -> None:
    block = published_table(ranking)
    saliency = next(row["spearman"] for row in ranking["rows"] if row["proxy"] == "synaptic_saliency")
    assert [column.head for column in block.columns][2:5] == ["W-PCA", "LPZero", "ours"]
    assert [cell.text for cell in block.rows[0]][2:5] == ["0.266", "0.157", f"{saliency:.3f}"]
    assert [cell.bold for cell in block.rows[0]][2:5] == [True, True, False]
    assert [cell.text for cell in block.rows[1]][2] == DASH
    assert block.rows[0][-1].text == "W-PCA, Table 1; LPZero, Table 3: absolute value"


def test_a_paper_may_contradict_itself_or_name_a_proxy_we_lack() -> None:
    paper = {"paper": "A", "table": "1", "statistic": "pearson-called-spearman", "proxy": "x"}
    entries = [paper | {"value": 0.27}, paper | {"value": 0.3}, paper | {"proxy": "", "printed": "Other", "value": 0.1}]
    rows = published_table({"published": entries, "rows": [{"proxy": "x", "pearson": 0.25, "spearman": 0.9}]}).rows
    assert [[cell.text for cell in row][:4] for row in rows] == [
        ["x", "pearson-called-spearman", "0.270 / 0.300", "0.250"],
        ["Other", "pearson-called-spearman", "0.100", DASH],
    ]


def test_parity_shows_both_against_the_trained_score() -> None:
    entry = {
        "metric": "M",
        "proxy": "m",
        "n": 300,
        "spearman": 0.3,
        "our_kendall_b": 0.193,
        "published_kendall_b": None,
    }
    block = parity_table([entry])
    assert [column.head for column in block.columns] == [
        "published metric",
        "our proxy",
        "n",
        "agreement",
        "our tau-b",
        "why",
    ]
    assert [cell.text for cell in block.rows[0]] == ["M", "m", "300", "0.300", "0.193", ""]


def test_the_xray_shows_the_choices_that_matter() -> None:
    entries = [
        {"choice": f"c{at}", "value": value, "n": 10, "mean": 50.0 + at * value} for at in range(40) for value in (0, 1)
    ]
    shown = [note["text"] for note in xray_figures(entries)["mean trained score",]["layout"]["annotations"]]
    assert shown == [f"<b>c{at}</b>" for at in range(24, 40)]
    many = [{"choice": "c", "value": value, "n": 1, "mean": 1.0} for value in range(50)]
    assert xray_figures(many)["mean trained score",]["layout"]["xaxis"]["type"] == "linear"
    assert xray_figures([]) == xray_figures(many[:1]) == {}  # one value is no choice


def test_cells_of_size_are_called_so(ranking: dict[str, Any]) -> None:
    page = render_rank_page(ranking | {"known": "size"})
    assert "networks of equal size" in headline(page)
    assert 'id="cells-title">Among networks of equal size<' in page


def test_the_page_of_scores() -> None:
    page = render_score_page(score_document())
    assert section_ids(page) == ["table", "pair", "made"]
    assert "1 score is missing" in headline(page) and "no layer has attention" in page_text(page)
    assert section_ids(render_score_page(score_document(2))) == ["table", "made"]
    assert "No architecture was scored" in headline(render_score_page({"rows": []}))
