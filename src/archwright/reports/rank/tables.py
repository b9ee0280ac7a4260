"""Tables of a ranking: all numbers, verdicts, what is missing, and the papers' numbers beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.numbers import DASH, decimal, number, shorten
from archwright.reports.rank.rows import (
    BASELINE,
    STATISTICS,
    Document,
    Row,
    missing_values,
    origin,
    rank_headline,
    setting_sentence,
    sort_rows,
    verdict_counts,
)
from archwright.reports.tables import Cell, Column, ReportTable, table

MARK = "·"
VERDICTS = {
    "perhaps chance": "perhaps",
    "wrong way": "reversed",
    "adds within cells": "adds inside",
    "adds": "adds",
    "restates": "restates",
    "noise": "noise",
    "cannot be judged": DASH,
}
"""Words of a verdict -> what stands for all of it; the first that fits counts."""
OURS = {"kendall": "kendall_b", "pearson-called-spearman": "pearson"}
"""A paper's statistic -> the key of ours, where the names differ."""
CONFLICT = 0.005
"""Two published numbers further apart than this are in conflict."""
PARITY = {
    "spearman": "agreement",
    "our_spearman": "our rho",
    "published_spearman": "published rho",
    "our_kendall_b": "our tau-b",
    "published_kendall_b": "published tau-b",
}
"""Numbers of a published metric beside ours; those that nobody has are left out."""


def rank_table(document: Document) -> ReportTable:
    """All proxies, the largest Spearman first, for `Console.print`; fits 80 columns with fewer numbers, 120 with all.

    `document` has the schema "archwright/rank/1"; any number may be None.
    """
    rows = sort_rows(document)
    names = [("" if origin(row) != BASELINE else MARK + " ") + str(row.get("proxy")) for row in rows]
    columns = [Column("proxy", [shorten(name) for name in names], left=True)]
    for statistic in STATISTICS:
        if statistic.short:
            texts = [statistic.terminal_text(row) for row in rows]
            columns.append(Column(statistic.short, texts, drop=statistic.drop))
    missing = [missing_values(row)[0] for row in rows]
    columns += [Column("miss.", [str(amount or "") for amount in missing], drop=3)] if any(missing) else []
    verdicts = [str(row.get("verdict") or DASH) for row in rows]
    short = [next((VERDICTS[part] for part in VERDICTS if part in words), shorten(words, 11)) for words in verdicts]
    columns.append(Column("verdict", short, left=True))
    dim = {place: "dim" for place, row in enumerate(rows) if origin(row) == BASELINE}
    return ReportTable(columns, rank_headline(document), captions(document, rows), dim)


def captions(document: Document, rows: Sequence[Row]) -> list[str]:
    """What the numbers rest on, what marks and short words mean, and why values are missing, each reason once."""
    verdicts = [f"{amount} x {words}" for words, amount in verdict_counts(rows).most_common()]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        amount, reason = missing_values(row)
        if amount:
            reasons.setdefault(reason or "no reason given", []).append(f"{row.get('proxy')} {amount}")
    return [
        f"{setting_sentence(document)} In brackets: 95 % intervals.",
        f"{MARK} baseline; minus d+w: against (depth, width); par.: correlation with the parameter count.",
        *([f"Verdicts: {', '.join(verdicts)}."] if verdicts else []),
        *(f"Missing: {', '.join(names)} ({reason})." for reason, names in reasons.items()),
    ]


def xray_table(document: Document) -> ReportTable:
    """Mean trained result and share of the top tenth, value by value of every choice."""
    rows = [
        [
            *(str(entry[key]) for key in ("choice", "value", "n")),
            *(f"{entry['mean']:.2f}", f"{entry['share']:.0%}", f"{entry['top_share']:.0%}"),
        ]
        for entry in document.get("xray") or ()
    ]
    head = ("choice", "value", "architectures", "mean", "share", "of top 10 %")
    return table(head, rows, title="what the best have in common")


def papers_table(document: Document) -> ReportTable:
    """What papers printed beside ours: their table, and their published columns on the same rows."""
    rows = [
        [
            *(str(entry["paper"]), str(entry["table"]), str(entry["proxy"] or entry["printed"])),
            *(str(entry["statistic"]), f"{entry['value']:.3f}"),
            our_number(document, str(entry["proxy"]), str(entry["statistic"])),
        ]
        for entry in document.get("published") or ()
    ]
    head = ("paper", "table", "proxy", "statistic", "printed", "ours")
    return table(head, rows, title="printed in papers, and ours", left=range(4), fold=range(4))


def numbers_table(rows: Sequence[Row]) -> ReportTable:
    """Every number of every proxy, in the order given; the headings of a page sort it."""
    counts = [(number(row, "n"), float(missing_values(row)[0])) for row in rows]
    free = {True: "yes", False: "no", None: DASH}
    columns = [
        Column("proxy", [word_cell(row.get("proxy")) for row in rows], left=True),
        Column("verdict", [word_cell(row.get("verdict") or DASH) for row in rows], left=True, wide=True),
        Column("n", [Cell(decimal(amount, 0), amount) for amount, _ in counts]),
        Column("missing", [Cell(decimal(missing, 0), missing) for _, missing in counts]),
        *(Column(each.head, [each.cell(row) for row in rows], note=each.note) for each in STATISTICS),
        Column("origin", [word_cell(origin(row)) for row in rows]),
        Column(
            "no gradient",
            [word_cell(free[None if (own := row.get("gradient_free")) is None else bool(own)]) for row in rows],
            note="Needs no backward pass",
        ),
    ]
    baselines = {place: "dim" for place, row in enumerate(rows) if origin(row) == BASELINE}
    return ReportTable(columns, "All proxies with all numbers", styles=baselines, sortable=True)


def word_cell(words: object) -> Cell:
    return Cell(str(words), words=True)


def verdict_tables(rows: Sequence[Row]) -> list[ReportTable]:
    """How many proxies got which verdict, and which; then those that some architectures have no value of."""
    verdicts = [
        [words, str(amount), ", ".join(str(row.get("proxy")) for row in rows if row.get("verdict") == words)]
        for words, amount in verdict_counts(rows).most_common()
    ]
    gaps = [(str(row.get("proxy")), *missing_values(row)) for row in rows]
    missing = [[name, str(amount), reason or DASH] for name, amount, reason in gaps if amount]
    tables = {("verdict", "", "proxies", "Verdicts"): verdicts}
    tables["proxy", "architectures", "reason", "Missing values"] = missing
    return [table(head, lines, title=title, left=(0, 2)) for (*head, title), lines in tables.items() if lines]


def published_table(document: Document) -> ReportTable:
    """One row per proxy and statistic, one column per paper, then ours; conflicts stand out."""
    papers = list(dict.fromkeys(str(entry.get("paper")) for entry in document.get("published") or ()))
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in document.get("published") or ():
        name = str(entry.get("proxy") or entry.get("printed") or DASH)  # ours, else the one the paper prints
        groups.setdefault((name, str(entry.get("statistic"))), []).append(entry)
    rows, bold = [], set()
    for y, (key, entries) in enumerate(groups.items()):
        printed: dict[str, dict[str, None]] = {paper: {} for paper in papers}
        remarks: dict[str, None] = {}
        for entry in entries:  # a paper may contradict itself
            printed[str(entry.get("paper"))][decimal(number(entry, "value"), 3)] = None
            where = ", ".join(str(entry[key]) for key in ("paper", "table") if entry.get(key))
            remarks[f"{where}: {entry['note']}" if entry.get("note") else where] = None
        cells = [" / ".join(values) or DASH for values in printed.values()]
        rows.append([*key, *cells, our_number(document, *key), "; ".join(remarks)])
        known = [value for entry in entries if (value := number(entry, "value")) is not None]
        if known and max(known) - min(known) > CONFLICT:
            bold |= {(y, x) for x, cell in enumerate(cells, 2) if cell != DASH}
    head = ("proxy", "statistic", *papers, "ours", "notes")
    return table(head, rows, bold=bold, left=(0, 1, len(papers) + 3))


def our_number(document: Document, proxy: str, statistic: str) -> str:
    row: Row = next((row for row in document.get("rows") or () if row.get("proxy") == proxy), {})
    return decimal(number(row, OURS.get(statistic.lower(), statistic)), 3)


def parity_table(entries: Sequence[Mapping[str, Any]]) -> ReportTable:
    """Each published metric with our proxy of that name."""
    keys = [key for key in PARITY if any(number(entry, key) is not None for entry in entries)]
    rows = [
        [
            str(entry.get("metric") or DASH),
            str(entry.get("proxy") or DASH),
            decimal(number(entry, "n"), 0),
            *(decimal(number(entry, key), 3) for key in keys),
            str(entry.get("note") or ""),
        ]
        for entry in entries
    ]
    head = ("published metric", "our proxy", "n", *(PARITY[key] for key in keys), "why")
    return table(head, rows, left=(0, 1, len(keys) + 3))
