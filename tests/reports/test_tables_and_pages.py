"""The one table on a page and in the terminal, the one page, and numbers as people read them."""

import math

import pytest

from archwright.reports import numbers
from archwright.reports.numbers import DASH, MINUS
from archwright.reports.page import Interactive, Picture, facts, notice, plot, render_page, section, text
from archwright.reports.tables import Cell, Column, ReportTable, table
from tests.reports.pages import page_data, page_text, section_ids
from tests.reports.test_report_terminal import printed

HOSTILE = "</script><script>alert(1)</script><b onclick=x>&amp;"


def test_page_and_terminal_show_the_same_cells() -> None:
    rows = [["one", "0.25"], ["another [bold]", "12"]]
    block = table(("name", "number"), rows, title="A table")
    page = page_text(render_page("x", [section("s", "S", "", block)], command="", lead=""))
    shown = printed(block, 80)
    for words in ("A table", "name", "number", "one", "0.25", "another [bold]", "12"):
        assert words in page and words in shown


def test_a_narrow_terminal_leaves_out_the_columns_that_matter_least() -> None:
    columns = [Column(name, ["x" * 10], drop=drop) for drop, name in enumerate(("always", "often", "seldom"))]
    block = ReportTable(columns)
    assert [column.head for column in block.fitting_columns(21)] == ["always", "often"]
    assert "Not shown for lack of room: seldom." in printed(block, 30).replace("\n", " ")
    assert len(block.fitting_columns(80)) == 3


def test_a_sortable_table_carries_the_values_it_sorts_by() -> None:
    cells = [Cell("0.12", 0.1234, interval="0.1 to 0.2"), Cell(DASH), Cell("a_name", words=True)]
    block = ReportTable([Column("n", cells, note="what it means")], "All", sortable=True, styles={1: "dim"})
    page = render_page("x", [section("s", "S", "", block)], command="", lead="")
    assert 'data-number="0.1234"' in page and page.count("data-number=") == 1 and "a_<wbr>name" in page
    assert '<span class="range">0.1 to 0.2</span>' in page and 'title="what it means"' in page
    assert page.count('<tr class="base">') == 1 and 'type="search"' not in page


def test_text_never_becomes_markup_in_any_block() -> None:
    blocks = [
        text(HOSTILE),
        notice(HOSTILE),
        facts({HOSTILE: {HOSTILE: HOSTILE}}),
        table((HOSTILE,), [[HOSTILE]], title=HOSTILE),
        ReportTable([Column(HOSTILE, [Cell(HOSTILE, words=True)], note=HOSTILE)], HOSTILE, sortable=True),
        Picture(f"<svg>{HOSTILE}</svg>", HOSTILE),
        Interactive("plots", {"figures": [], "labels": [HOSTILE]}),
    ]
    calm = render_page("x", [], command="", lead="", schema="s")
    parts = [section("s", HOSTILE, HOSTILE, *blocks, short=HOSTILE)]
    page = render_page(HOSTILE, parts, command=HOSTILE, lead=HOSTILE, schema=HOSTILE, cards=[(HOSTILE,) * 3])
    assert page.count("<script") == calm.count("<script") and "<b onclick" not in page
    assert page_text(page).count(HOSTILE) >= 15 and page_data(page)["blocks"]["s-6"]["labels"] == [HOSTILE]


def test_sections_without_data_are_left_out_and_broken_text_is_replaced() -> None:
    page = render_page("\udc80", [None, section("s", "S", "", plot({"data": [math.inf]}))], command="", lead="")
    page.encode("utf-8")
    assert section_ids(page) == ["s"] and page_data(page)["blocks"]["s-0"]["figures"] == [[[], {"data": [None]}]]


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (numbers.percent(0.1234, 1), "12.3 %"),
        (numbers.decimal(-0.126), f"{MINUS}0.13"),
        (numbers.decimal(-0.001), "0.00"),
        (numbers.count(45_100_000, "B"), "45.1 MB"),
        (numbers.count(12, "B"), "12 B"),
        (numbers.milliseconds(2.5, 2.4, 2.61), "2.50 ms (2.40 to 2.61)"),
        (numbers.milliseconds(12.34), "12.3 ms"),
        (numbers.duration(4.2), "4.2 s"),
        (numbers.duration(89), "89 s"),
        (numbers.duration(600), "10.0 min"),
        (numbers.duration(7200), "2.0 h"),
        (numbers.interval(0.9, 0.8, 0.95, digits=3), "0.900 (0.80 to 0.95)"),
        (numbers.interval(0.9, None, 0.95), "0.90"),
        (numbers.fact([1, 2.5, None]), f"1, 2.5, {DASH}"),
        (numbers.fact(12345), "12,345"),
        (numbers.join_words(["a", "b", "c"]), "a, b and c"),
        (numbers.join_few("abc", most=2), "a, b and 1 more"),
        (numbers.plural(1, "proxy", "proxies"), "1 proxy"),
    ],
)
def test_numbers_as_people_read_them(shown: str, words: str) -> None:
    assert shown.replace(numbers.SPACE, " ") == words


def test_what_is_missing_is_a_dash() -> None:
    for show in (numbers.percent, numbers.decimal, numbers.count, numbers.milliseconds, numbers.duration, numbers.fact):
        assert show(None) == DASH
    assert numbers.number({"a": {"b": math.nan}}, "a", "b") is None and numbers.number({"a": True}, "a") is None
    assert numbers.number({"a": {"b": 2}}, "a", "b") == 2.0 and numbers.number({}, "a", "b") is None
