"""Rankings and scores in the terminal: what is shown, what fits, and what is missing."""

import copy
from typing import Any

import pytest

from archwright.reports.numbers import DASH, MINUS, compact_decimal, shorten
from archwright.reports.rank.rows import rank_headline, seconds_each, sort_rows, time_per_thousand
from archwright.reports.rank.score import score_table
from archwright.reports.rank.tables import rank_table
from tests.reports.rank_documents import rank_document, score_document
from tests.reports.test_report_browser import nulled
from tests.reports.test_report_terminal import printed

_RANKED = rank_document()


@pytest.fixture
def ranking() -> dict[str, Any]:
    return copy.deepcopy(_RANKED)


def line_of(shown: str, name: str) -> str:
    return next(line for line in reversed(shown.splitlines()) if line.removeprefix("· ").startswith(f"{name} "))


def test_every_row_is_there_and_the_largest_spearman_comes_first(ranking: dict[str, Any]) -> None:
    shown = printed(rank_table(ranking), 120).splitlines()
    begin = next(place for place, line in enumerate(shown) if line.startswith("proxy"))
    order = [str(row["proxy"]) for row in sorted(ranking["rows"], key=lambda row: -row["spearman"])]
    names = [line.removeprefix("· ").split()[0] for line in shown[begin + 1 : begin + 1 + len(order)]]
    assert len(names) == 45 and names == [shorten(name) for name in order]


def test_a_row_says_what_was_measured(ranking: dict[str, Any]) -> None:
    ranking["rows"] = [
        row | {"spearman": 0.881, "spearman_low": 0.84, "spearman_high": 0.9, "kendall_b": 0.692}
        if row["proxy"] == "w_pca"
        else row
        for row in ranking["rows"]
    ]
    line = line_of(printed(rank_table(ranking), 120), "w_pca")
    assert ".88 [.84 .90]" in line and " .69 " in line and line.rstrip().endswith("adds") and " .99 " in line


def test_baselines_are_marked_and_the_caption_says_on_what_it_rests(ranking: dict[str, Any]) -> None:
    shown = printed(rank_table(ranking), 120)
    assert "\n· parameters " in shown and "\n· depth_width " in shown and "\n· w_pca" not in shown
    assert "nas-bert: 300 architectures, variant trained, target glue, seed 0." in shown
    assert "Noise ceiling 0.93, within cells 0.75 (from twins, 123 pairs)" in shown.replace("\n", " ")
    assert "adds information beyond depth and width" in shown


HEADS = {
    160: ("rho", "tau-b", "within cells", "minus d+w", "par.", "ICC", "s/arch", "miss.", "verdict"),
    120: ("rho", "tau-b", "within cells", "minus d+w", "par.", "ICC", "s/arch", "miss.", "verdict"),
    80: ("rho", "within cells", "par.", "miss.", "verdict"),
}


@pytest.mark.parametrize("width", HEADS)
def test_it_fits_its_width_with_whole_numbers(ranking: dict[str, Any], width: int) -> None:
    shown = printed(rank_table(ranking), width)
    assert max(map(len, shown.splitlines())) <= width
    head = next(line for line in shown.splitlines() if line.startswith("proxy"))
    assert [name for name in HEADS[160] if f" {name}" in head] == list(HEADS[width])
    table = shown[shown.index("\nproxy ") :]
    assert table.count("…") == sum(len(row["proxy"]) > 26 for row in ranking["rows"])


def test_what_is_left_out_is_named(ranking: dict[str, Any]) -> None:
    assert "Not shown" not in printed(rank_table(ranking), 120)
    assert "Not shown for lack of room: tau-b, minus d+w, ICC, s/arch." in printed(rank_table(ranking), 80).replace(
        "\n", " "
    )


def test_missing_values_are_counted_with_their_reason(ranking: dict[str, Any]) -> None:
    shown = printed(rank_table(ranking), 120)
    assert " 27 " in line_of(shown, "attention_confidence")
    assert "Missing: attention_confidence 27 (no self-attention)." in shown
    for row in ranking["rows"]:
        row["missing"] = {"count": 0, "reason": ""}
    assert "miss." not in printed(rank_table(ranking), 120)


def test_every_number_may_be_missing(ranking: dict[str, Any]) -> None:
    shown = printed(rank_table(nulled(ranking)), 120)
    assert DASH in line_of(shown, "w_pca") and "nan" not in shown.lower() and "None" not in shown
    assert "No proxy has a rank correlation on nas-bert yet." in shown
    assert "nas-bert" in printed(rank_table({"benchmark": "nas-bert"}), 80)


def test_not_a_number_is_a_dash_and_sorted_last(ranking: dict[str, Any]) -> None:
    ranking["rows"][0] |= {"spearman": float("nan"), "spearman_low": float("inf")}
    assert sort_rows(ranking)[-1] is ranking["rows"][0]
    assert "nan" not in printed(rank_table(ranking), 120)


def test_hostile_names_stay_text(ranking: dict[str, Any]) -> None:
    ranking["rows"][0] |= {"proxy": "[red]x[/red]", "verdict": "[bold]odd"}
    shown = printed(rank_table(ranking), 120)
    assert "[red]x[/red]" in shown and "[bold]odd" in shown


def test_the_headline_tells_the_findings(ranking: dict[str, Any]) -> None:
    words = rank_headline(ranking)
    rows = {row["proxy"]: row for row in ranking["rows"]}
    assert words.startswith(f"w_pca ranks best of 38 proxies: Spearman {rows['w_pca']['spearman']:.2f} (")
    assert f"Parameters alone reach {rows['parameters']['spearman']:.2f}" in words
    assert f"depth and width reach {rows['depth_width']['spearman']:.2f}" in words
    assert "None of the 38 reliably ranks better than depth and width" in words
    rows["w_pca"]["minus_depth_width_low"] = rows["v_pca"]["minus_depth_width_low"] = 0.01
    assert "2 of the 38 reliably rank better" in rank_headline(ranking)


@pytest.mark.parametrize(
    ("value", "text"), [(0.874, ".87"), (-0.061, f"{MINUS}.06"), (1.0, "1.00"), (-0.001, ".00"), (None, DASH)]
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert compact_decimal(value) == text


@pytest.mark.parametrize(
    ("verdict", "short"),
    [
        ("worse than depth and width, adds within cells", "adds inside"),
        ("adds information beyond size", "adds"),
        ("only restates parameters", "restates"),
        ("ranks the wrong way round", "reversed"),
        ("cannot be judged", DASH),
        ("something new to say", "somet…o say"),
    ],
)
def test_verdicts_are_short(ranking: dict[str, Any], verdict: str, short: str) -> None:
    for row in ranking["rows"]:
        row["verdict"] = verdict
    shown = printed(rank_table(ranking), 120)
    assert line_of(shown, "w_pca").rstrip().endswith(f" {short}") and f"45 x {verdict}" in shown
    assert max(map(len, shown.splitlines())) <= 120 and " s/arch " in shown


def test_times_are_readable() -> None:
    assert [seconds_each(value) for value in (0.0123, 0.25, None)] == ["0.012", "0.25", DASH]
    assert [time_per_thousand(value) for value in (0.05, 0.25, 73.6, None)] == ["50 s", "4.2 min", "20.4 h", DASH]


def test_long_names_keep_both_ends() -> None:
    name = "large_noise_jacobian_covariance_normalised"
    assert shorten(name).startswith("large_noise") and shorten(name).endswith("normalised")
    assert len(shorten(name)) == 26 and shorten("w_pca") == "w_pca"


def test_scores_stand_below_their_architecture() -> None:
    document = score_document()
    shown = printed(score_table(document), 100)
    assert "flexibert, variant trained: 5 architectures, 20 proxies" in shown
    assert line_of(shown, "w_pca").split() == ["w_pca", "0", DASH, "2", "3", "4"]
    assert "4.00 M" in line_of(shown, "parameters") and "0.2" in line_of(shown, "seconds")
    assert "Missing: w_pca of 1: no layer has attention" in shown


def test_many_architectures_are_shown_as_far_as_there_is_room() -> None:
    shown = printed(score_table(score_document(1000)), 80)
    assert max(map(len, shown.splitlines())) <= 80 and "more" in shown[shown.index("Not shown") :]


def test_scores_of_nothing() -> None:
    shown = printed(score_table({"space": "[b]x", "rows": []}), 80)
    assert "[b]x: 0 architectures, 0 proxies" in shown
