"""How evolution went: its curves beside random search, the paper's ablations, and the family of the best formula."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.reports.discover.formula_tree import family_svg, formula_svg
from archwright.reports.figures.panels import Panel, Trace, assign_styles, band, figure, line
from archwright.reports.numbers import DASH, decimal, estimate
from archwright.reports.page import Block, Picture, Section, plot, section, text
from archwright.reports.tables import ReportTable, table

Document = Mapping[str, Any]
Run = Mapping[str, Any]
Curves = tuple[list[int], NDArray[np.float64]]
"""Places on the x-axis, and runs x places; NaN before anything was found."""
POINTS = 200
"""Of a curve."""
CURVES = (
    "Best fitness so far on the sample of architectures, mean over seeds with one deviation around it (LPZero, "
    "Figure 6). Left after as many generations; right after as many different formulas scored, which is what costs: "
    "Algorithm 1 scores copies again and again."
)
COMPARISON = (
    "Means over seeds with 95 % intervals. Seeds of all searches share their architectures, so that differences are "
    "taken seed by seed; equal evaluations: after as many different formulas as the more sparing of both has scored."
)
SETTINGS = {
    "population": ("Size of the population", "Figure 7"),
    "unary": ("Unary operations per branch", "Figure 13 and Table 5"),
    "distinct, parents": ("No formula twice", "not in the paper"),
}
"""What the ablations vary: in words, and where the paper has it."""
ABLATIONS = (
    "The paper's ablations on the same architectures, mean over seeds with one deviation. Initial: best of the first "
    "population; winning rate: share of offspring that improve on the best so far."
)
FAMILY = (
    "How the best formula of a search came about (LPZero, Figure 4): blue parts come from one parent, orange ones from "
    "the other, grey ones could be of both; red is what mutation changed."
)
TREE = "The best formula: inputs at the bottom, each through its operations, joined in every layer."


def evolution_sections(document: Document) -> list[Section | None]:
    return [tree_section(document), curves_section(document), ablation_section(document), family_section(document)]


def tree_section(document: Document) -> Section | None:
    best: Sequence[Mapping[str, Any]] = document.get("best") or ()
    if not best or not best[0].get("json"):
        return None
    formula = str(best[0]["formula"])
    picture = Picture(formula_svg(best[0]["json"], formula), formula)
    return section("tree", "The best as a tree", TREE, picture, short="Tree")


def curves_section(document: Document) -> Section | None:
    searches = document.get("evolution")
    if not searches:
        return None
    y = "best fitness so far"
    panels = [
        Panel("", curve_traces(searches, curves_by_generation), "generation", y),
        Panel("", curve_traces(searches, curves_by_evaluation), "different formulas scored", y),
    ]
    blocks: list[Block] = [plot(figure(panels, columns=2, height=340)), costs_table(searches)]
    if document.get("comparison"):
        exact = document.get("exhaustive_best")
        limit = f" The best of all formulas reaches {decimal(exact['fitness'], 3)} on all rows." if exact else ""
        blocks += [comparison_table(document), text(COMPARISON + limit)]
    return section("curves", "Evolution", CURVES, *blocks, short="Evolution")


def curve_traces(searches: Mapping[str, Sequence[Run]], curves_of: Callable[[Sequence[Run]], Curves]) -> list[Trace]:
    """A band and a line for every kind of search."""
    styles, traces = assign_styles(searches), []
    for name, runs in searches.items():
        x, curves = curves_of(runs)
        mean, deviation = curves.mean(axis=0), curves.std(axis=0)
        known = np.flatnonzero(np.isfinite(mean))
        if not len(known):
            continue
        places, middle = [x[place] for place in known], mean[known].tolist()
        spread = deviation[known].tolist() if len(runs) > 1 else [None] * len(known)
        traces += [*band(places, middle, spread, name, styles[name]), line(places, middle, name, styles[name])]
    return traces


def curves_by_generation(runs: Sequence[Run]) -> Curves:
    curves = np.array([run["curve"] for run in runs], dtype=np.float64)
    x = list(range(0, curves.shape[1], max(1, curves.shape[1] // POINTS)))
    return x, curves[:, x]


def curves_by_evaluation(runs: Sequence[Run]) -> Curves:
    """As long as all runs go on."""
    first, last = max(run["evaluations"][0] for run in runs), min(run["evaluations"][-1] for run in runs)
    x = np.unique(np.linspace(first, max(first, last), POINTS).astype(int)).tolist()
    rows = []
    for run in runs:
        places = np.searchsorted(run["evaluations"], x, side="right") - 1
        rows.append(np.array(run["curve"], dtype=np.float64)[np.maximum(places, 0)])
    return x, np.array(rows)


def costs_table(searches: Mapping[str, Sequence[Run]]) -> ReportTable:
    """What each search took, means over its seeds."""
    head = ("search", "best fitness", "winning rate", "scored", "copies", "rejected", "stopped early", "looks", "s")
    rows = []
    for name, runs in searches.items():
        means = {key: float(np.mean([run[key] for run in runs])) for key in (*COSTS, "winning_rate", "seconds")}
        best = [run["curve"][-1] for run in runs if run["curve"][-1] is not None]
        fitness, rate = decimal(float(np.mean(best)), 3) if best else DASH, f"{100 * means['winning_rate']:.1f} %"
        rows.append([name, fitness, rate, *(f"{means[key]:,.0f}" for key in COSTS), decimal(means["seconds"], 1)])
    return table(head, rows, title="What the searches took; a look is one formula on one architecture")


COSTS = ("scored", "copies", "rejected", "stopped", "looks")


def comparison_table(document: Document) -> ReportTable:
    on_all_rows = document.get("on_all_rows") or {}
    head = ("search", "best", "minus random search", "at equal evaluations", "different at the end", "on all rows")
    keys = ("best", "minus_random", "minus_random_at_equal_evaluations")
    rows = [
        [
            name,
            *(estimate(entry[key], ends=3) for key in keys),
            decimal(entry["different"]["value"], 1),
            decimal(float(np.mean(on_all_rows[name])), 3) if on_all_rows.get(name) else DASH,
        ]
        for name, entry in document["comparison"].items()
    ]
    return table(head, rows, title="Compared with random search")


def ablation_section(document: Document) -> Section | None:
    ablations = {name: document["ablation"][name] for name in SETTINGS if name in (document.get("ablation") or {})}
    if not document.get("ablation"):
        return None
    head = ("value", "initial", "best", "winning rate", "different formulas scored", "looks", "s")
    panels, tables = [], []
    for name, values in ablations.items():
        words, where = SETTINGS[name]
        runs = {f"{name} {value}": entry["runs"] for value, entry in values.items()}
        panels.append(Panel(words, curve_traces(runs, curves_by_generation), "generation", "best fitness so far"))
        rows = [
            [
                value,
                *(estimate(entry[key], ends=3) for key in ("initial", "best")),
                f"{100 * entry['winning_rate']['value']:.1f} %",
                *(f"{entry[key]['value']:,.0f}" for key in ("evaluations", "looks", "seconds")),
            ]
            for value, entry in values.items()
        ]
        tables.append(table(head, rows, title=f"{words} ({where})"))
    return section("ablations", "Ablations", ABLATIONS, plot(figure(panels, columns=3, height=320)), *tables)


def family_section(document: Document) -> Section | None:
    """Of the search that found the best, where it found it by parents."""
    runs = [run for runs in (document.get("evolution") or {}).values() for run in runs]
    families = [run["family"] for run in runs if run.get("family") and run["family"]["parents"]]
    if not families:
        return None
    crossings = [
        family
        for family in families
        if family["crossed"] and len({str(parent["json"]) for parent in family["parents"]}) > 1
    ]
    best = max(crossings or families, key=lambda family: float(family["child"]["fitness"]))
    parents, child, crossing = best["parents"], best["child"], best["crossed"]
    words = [f"{member['formula']}: {decimal(member['fitness'], 3)}" for member in (*parents, child)]
    drawing = family_svg(
        [parent["json"] for parent in parents], crossing["json"] if crossing else None, child["json"], "; ".join(words)
    )
    sentence = f"Generation {best['generation']}. Parents {words[0]} and {words[1]}; child {words[2]}."
    blocks = Picture(drawing, sentence), text(sentence)
    return section("family", "Where the best comes from", FAMILY, *blocks, short="Family")
