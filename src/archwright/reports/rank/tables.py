"""Tables of a ranking's page: all numbers, verdicts, what is missing, and the papers' numbers beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.measures import DASH
from archwright.reports.panels import Block, table
from archwright.reports.rank.columns import COLUMNS
from archwright.reports.rank.rows import BASELINE, Document, Row, decimal, kind_of, known, missing_of, verdicts

YES = {True: "yes", False: "no"}
OURS = {"kendall": "kendall_b", "pearson-called-spearman": "pearson"}
"""A paper's statistic -> the key of ours, where the names differ."""
APART = 0.005
"""Two published numbers further apart than this are in conflict."""


def sortable(head: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], name: str) -> Block:
    """A table whose headings sort it: heads have `text`, `note`, `left`; rows `cells` (`text`, `range`, `value`)."""
    return {"kind": "sortable", "name": name, "head": list(head), "rows": list(rows)}


def rank_rows(rows: Sequence[Row]) -> Block:
    """Every number of every proxy, in the order given."""
    heads = [{"text": "proxy", "left": True}, {"text": "verdict", "left": True, "words": True}, *map(head, ENDS[:2])]
    heads += [{"text": column.head, "note": column.note} for column in COLUMNS] + [*map(head, ENDS[2:])]
    return sortable(heads, [rank_row(row) for row in rows], "All proxies with all numbers")


ENDS = (("n", ""), ("missing", ""), ("origin", ""), ("no gradient", "Needs no backward pass"))
"""Columns beside the numbers of columns.py, with what they mean."""


def head(named: tuple[str, str]) -> dict[str, Any]:
    return {"text": named[0], "note": named[1]}


def rank_row(row: Row) -> dict[str, Any]:
    """Cells in the order of the headings."""
    free = row.get("gradient_free")
    words = [str(row.get("proxy")), str(row.get("verdict") or DASH)]
    origin = [kind_of(row), DASH if free is None else YES[bool(free)]]
    counts = [{"text": decimal(value, 0), "value": value} for value in (known(row, "n"), float(missing_of(row)[0]))]
    numbers = [column.entry(row) for column in COLUMNS]
    return {"base": kind_of(row) == BASELINE, "cells": [*map(named, words), *counts, *numbers, *map(named, origin)]}


def named(words: str) -> dict[str, Any]:
    return {"text": words, "value": words}


def verdict_table(rows: Sequence[Row]) -> list[Block]:
    """How many proxies got which verdict, and which."""
    lines = [
        [words, str(number), ", ".join(str(row.get("proxy")) for row in rows if row.get("verdict") == words)]
        for words, number in verdicts(rows).most_common()
    ]
    return [table(("verdict", "", "proxies"), lines, caption="Verdicts", left=(0, 2))] if lines else []


def missing_table(rows: Sequence[Row]) -> list[Block]:
    """Proxies that some architectures have no value of."""
    found = [(row, *missing_of(row)) for row in rows]
    lines = [[str(row.get("proxy")), str(number), reason or DASH] for row, number, reason in found if number]
    return [table(("proxy", "architectures", "reason"), lines, caption="Missing values", left=(0, 2))] if lines else []


def published_table(document: Document) -> Block:
    """One row per proxy and statistic, one column per paper, then ours; conflicts stand out."""
    entries = list(document.get("published") or ())
    papers = list(dict.fromkeys(str(entry.get("paper")) for entry in entries))
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in entries:
        found.setdefault((about(entry), str(entry.get("statistic"))), []).append(entry)
    lines = [
        [*key, *(printed(of, paper) for paper in papers), ours(document, *key), remarks(of)]
        for key, of in found.items()
    ]
    marked = [y for y, of in enumerate(found.values()) if conflict(of)]
    bold = {(y, x) for y in marked for x in range(2, len(papers) + 2) if lines[y][x] != DASH}
    return table(("proxy", "statistic", *papers, "ours", "notes"), lines, bold=bold, left=(0, 1, len(papers) + 3))


def about(entry: Mapping[str, Any]) -> str:
    """Our name of the proxy, else the one the paper prints."""
    return str(entry.get("proxy") or entry.get("printed") or DASH)


def printed(entries: Sequence[Mapping[str, Any]], paper: str) -> str:
    """All numbers one paper gives for this; a paper may contradict itself."""
    values = dict.fromkeys(decimal(known(entry, "value"), 3) for entry in entries if str(entry.get("paper")) == paper)
    return " / ".join(values) or DASH


def ours(document: Document, proxy: str, statistic: str) -> str:
    row: Row = next((row for row in document.get("rows") or () if row.get("proxy") == proxy), {})
    return decimal(known(row, OURS.get(statistic.lower(), statistic)), 3)


def remarks(entries: Sequence[Mapping[str, Any]]) -> str:
    """Where each number stands, and what is to be said about it."""
    return "; ".join(dict.fromkeys(remark(entry) for entry in entries))


def remark(entry: Mapping[str, Any]) -> str:
    place = ", ".join(str(entry[key]) for key in ("paper", "table") if entry.get(key))
    return f"{place}: {entry['note']}" if entry.get("note") else place


def conflict(entries: Sequence[Mapping[str, Any]]) -> bool:
    values = [value for entry in entries if (value := known(entry, "value")) is not None]
    return bool(values) and max(values) - min(values) > APART


PARITY = {
    "spearman": "agreement",
    "our_spearman": "our rho",
    "published_spearman": "published rho",
    "our_kendall_b": "our tau-b",
    "published_kendall_b": "published tau-b",
}
"""Numbers of a published metric beside ours; those that nobody has are left out."""


def parity_table(entries: Sequence[Mapping[str, Any]]) -> Block:
    """Each published metric with our proxy of that name."""
    keys = [key for key in PARITY if any(known(entry, key) is not None for entry in entries)]
    lines = [
        [
            str(entry.get("metric") or DASH),
            str(entry.get("proxy") or DASH),
            decimal(known(entry, "n"), 0),
            *(decimal(known(entry, key), 3) for key in keys),
            str(entry.get("note") or ""),
        ]
        for entry in entries
    ]
    head = ("published metric", "our proxy", "n", *(PARITY[key] for key in keys), "why")
    return table(head, lines, left=(0, 1, len(keys) + 3))
