"""The space under an x-ray: which values of which choices the good architectures have."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import COLOURS, GREY, Figure, Panel, Trace, figure, group, plain_text, title
from archwright.reports.rank.rows import decimal, known
from archwright.reports.words import count

Entry = Mapping[str, Any]
MEAN, TOP = "mean trained score", "share of the top 10 %"
SHARES = {"top_share": ("of the top 10 %", "circle", COLOURS[0]), "share": ("of all", "circle-open", COLOURS[1])}
MOST = 16
"""So many choices are shown: those that explain most of the trained score."""
WORDS = 12
"""More values than this are drawn along an axis of numbers."""


def xray_figures(entries: Sequence[Entry]) -> dict[tuple[str, ...], Figure]:
    """Mean trained score, and share of the best, for every value of the choices that matter most."""
    shown = telling(entries)
    drawn = {MEAN: [mean_panel(name, of, entries) for name, of in shown.items()]}
    drawn[TOP] = [share_panel(name, of) for name, of in shown.items()]
    return {(words,): figure(panels, columns=4, height=250) for words, panels in drawn.items() if panels}


def telling(entries: Sequence[Entry], most: int = MOST) -> dict[str, list[Entry]]:
    """Entries by choice, in their order; of many choices only those whose values differ most, none without a choice."""
    choices: dict[str, list[Entry]] = {}
    for entry in entries:
        choices.setdefault(str(entry.get("choice")), []).append(entry)
    choices = {name: of for name, of in choices.items() if len(of) > 1}
    best = sorted(choices, key=lambda name: -explained(choices[name]))[:most]
    return {name: of for name, of in choices.items() if name in best}


def explained(values: Sequence[Entry], least: int = 5) -> float:
    """Variance between the means of values that some networks have, weighted by their number."""
    numbers = [(known(entry, "n") or 0.0, known(entry, "mean")) for entry in values]
    pairs = [(n, mean) for n, mean in numbers if mean is not None and n >= least]
    total = sum(n for n, _ in pairs) or 1.0
    centre = sum(n * mean for n, mean in pairs) / total
    return sum(n * (mean - centre) ** 2 for n, mean in pairs) / total


def mean_panel(choice: str, values: Sequence[Entry], everything: Sequence[Entry]) -> Panel:
    """One choice; all panels share the range of the numbers, so that they can be compared."""
    numbers = [number for entry in everything if (number := known(entry, "mean")) is not None]
    room = ((max(numbers) - min(numbers)) * 0.08 if numbers else 0.0) or 0.05
    ends = {"range": [min(numbers) - room, max(numbers) + room]} if numbers else {}
    trace = points(values, "mean", "circle", COLOURS[0])
    return Panel(choice, [trace], along(values), {**title(MEAN), **ends})


def share_panel(choice: str, values: Sequence[Entry]) -> Panel:
    traces = [
        {**points(values, key, symbol, colour), **group(words)}
        for key, (words, symbol, colour) in SHARES.items()
        if any(known(entry, key) is not None for entry in values)
    ]
    return Panel(choice, traces, along(values), {**title("share"), "tickformat": ".0%", "range": [-0.05, 1.05]})


def points(values: Sequence[Entry], key: str, symbol: str, colour: str) -> Trace:
    total = sum(known(entry, "n") or 0.0 for entry in values) or 1.0
    return {
        "type": "scatter",
        "mode": "lines+markers" if numeric(values) and len(values) <= WORDS else "markers",
        "x": [known(entry, "value") if many(values) else plain_text(entry.get("value")) for entry in values],
        "y": [known(entry, key) for entry in values],
        "text": [plain_text(hover(entry)) for entry in values],
        "marker": {
            "size": [round(7 + 9 * (known(entry, "n") or 0.0) / total, 1) for entry in values],
            "color": colour,
            "symbol": symbol,
        },
        "line": {"width": 1.2, "color": GREY},
        "hovertemplate": "%{text}<extra></extra>",
    }


def hover(entry: Entry) -> str:
    share = known(entry, "top_share")
    best = "" if share is None else f", {share:.0%} of the top 10 %"
    return f"{entry.get('value')}: mean {decimal(known(entry, 'mean'))}, {count(known(entry, 'n'))} networks{best}"


def numeric(values: Sequence[Entry]) -> bool:
    return all(known(entry, "value") is not None for entry in values)


def many(values: Sequence[Entry]) -> bool:
    """Whether there are too many values to name each below the axis."""
    return len(values) > WORDS and numeric(values)


def along(values: Sequence[Entry]) -> dict[str, Any]:
    return {"type": "linear" if many(values) else "category", "nticks": 8}
