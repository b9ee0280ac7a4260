"""How evolution went: its curves beside random search, the paper's ablations, and the family of the best formula."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.reports.figures.curves import band, line
from archwright.reports.figures.parts import Figure, Panel, Style, Trace, figure, styles_of, title
from archwright.reports.formula_tree import family_svg, formula_svg
from archwright.reports.measures import DASH
from archwright.reports.panels import Block, Section, picture, plot, section, table, text
from archwright.reports.rank.rows import decimal

Document = Mapping[str, Any]
Run = Mapping[str, Any]
POINTS = 200
"""Of a curve."""
CURVES = (
    "Best fitness so far on the sample of architectures, mean over seeds with one deviation around it (LPZero, "
    "Figure 6). Left after as many generations; right after as many different formulas scored, which is what costs: "
    "Algorithm 1 scores copies again and again."
)
COMPARED = (
    "Means over seeds with 95 % intervals. Seeds of all searches share their architectures, so that differences are "
    "taken seed by seed; equal evaluations: after as many different formulas as the more sparing of both has scored."
)
VARIED = {
    "population": ("Size of the population", "Figure 7"),
    "unary": ("Unary operations per branch", "Figure 13 and Table 5"),
    "distinct, parents": ("No formula twice", "not in the paper"),
}
ABLATIONS = (
    "The paper's ablations on the same architectures, mean over seeds with one deviation. Initial: best of the first "
    "population; winning rate: share of offspring that improve on the best so far."
)
FAMILY = (
    "How the best formula of a search came about (LPZero, Figure 4): blue parts come from one parent, orange ones from "
    "the other, grey ones could be of both; red is what mutation changed."
)
TREE = "The best formula: inputs at the bottom, each through its operations, joined in every layer."


def curves_section(document: Document) -> Section | None:
    found = document.get("evolution")
    if not found:
        return None
    looks = styles_of(found)
    panels = [
        Panel("", drawn(found, looks, by_generation), title("generation"), title("best fitness so far")),
        Panel("", drawn(found, looks, by_evaluation), title("different formulas scored"), title("best fitness so far")),
    ]
    blocks = [plot(figure(panels, columns=2, height=340)), costs_table(document), *compared_table(document)]
    return section("curves", "Evolution", CURVES, *blocks, short="Evolution")


def drawn(found: Mapping[str, Sequence[Run]], looks: Mapping[str, Style], how: Any) -> list[Trace]:
    """A band and a line for every kind of search."""
    traces: list[Trace] = []
    for name, runs in found.items():
        x, curves = how(runs)
        mean, deviation = curves.mean(axis=0), curves.std(axis=0)
        there = np.flatnonzero(np.isfinite(mean))
        if not len(there):
            continue
        places, middle = [x[one] for one in there], mean[there].tolist()
        spread = deviation[there].tolist() if len(runs) > 1 else [None] * len(there)
        traces += [*band(places, middle, spread, name, looks[name]), line(places, middle, name, looks[name])]
    return traces


def by_generation(runs: Sequence[Run]) -> tuple[list[int], Any]:
    """Generations, and runs x generations; NaN before anything was found."""
    curves = np.array([run["curve"] for run in runs], dtype=np.float64)
    x = list(range(0, curves.shape[1], max(1, curves.shape[1] // POINTS)))
    return x, curves[:, x]


def by_evaluation(runs: Sequence[Run]) -> tuple[list[int], Any]:
    """As long as all runs go on."""
    first, last = max(run["evaluations"][0] for run in runs), min(run["evaluations"][-1] for run in runs)
    x = np.unique(np.linspace(first, max(first, last), POINTS).astype(int)).tolist()
    return x, np.array([after(run, x) for run in runs], dtype=np.float64)


def after(run: Run, evaluations: Sequence[int]) -> list[float]:
    places = np.searchsorted(run["evaluations"], evaluations, side="right") - 1
    curve = np.array(run["curve"], dtype=np.float64)
    found: list[float] = curve[np.maximum(places, 0)].tolist()
    return found


def costs_table(document: Document) -> Block:
    """What each search took, means over its seeds."""
    head = ("search", "best fitness", "winning rate", "scored", "copies", "rejected", "stopped early", "looks", "s")
    keys = ("scored", "copies", "rejected", "stopped", "looks")
    rows = []
    for name, runs in (document.get("evolution") or {}).items():
        means = [f"{np.mean([run[key] for run in runs]):,.0f}" for key in keys]
        last = [run["curve"][-1] for run in runs if run["curve"][-1] is not None]
        rate = f"{100 * float(np.mean([run['winning_rate'] for run in runs])):.1f} %"
        seconds = decimal(float(np.mean([run["seconds"] for run in runs])), 1)
        rows.append([name, decimal(float(np.mean(last)), 3) if last else DASH, rate, *means, seconds])
    return table(head, rows, caption="What the searches took; a look is one formula on one architecture")


def compared_table(document: Document) -> list[Block]:
    found, exact = document.get("comparison"), document.get("exhaustive_best")
    if not found:
        return []
    reached = document.get("on_all_rows") or {}
    head = ("search", "best", "minus random search", "at equal evaluations", "different at the end", "on all rows")
    keys = ("best", "minus_random", "minus_random_at_equal_evaluations")
    rows = [
        [
            name,
            *(interval(one[key]) for key in keys),
            decimal(one["different"]["value"], 1),
            decimal(float(np.mean(reached[name])), 3) if reached.get(name) else DASH,
        ]
        for name, one in found.items()
    ]
    known = f" The best of all formulas reaches {decimal(exact['fitness'], 3)} on all rows." if exact else ""
    return [table(head, rows, caption="Compared with random search"), text(COMPARED + known)]


def interval(of: Mapping[str, float | None], digits: int = 3) -> str:
    if of["value"] is None:
        return DASH
    ends = "" if of["low"] is None else f" ({decimal(of['low'], digits)} to {decimal(of['high'], digits)})"
    return f"{decimal(of['value'], digits)}{ends}"


def ablation_section(document: Document) -> Section | None:
    found = document.get("ablation")
    if not found:
        return None
    blocks: list[Block] = [plot(ablation_figure(found))]
    for name, (words, where) in VARIED.items():
        if name in found:
            blocks.append(ablation_table(found[name], f"{words} ({where})"))
    return section("ablations", "Ablations", ABLATIONS, *blocks)


def ablation_figure(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    panels = []
    for name, (words, _) in VARIED.items():
        if name in found:
            named = {f"{name} {value}": one["runs"] for value, one in found[name].items()}
            traces = drawn(named, styles_of(named), by_generation)
            panels.append(Panel(words, traces, title("generation"), title("best fitness so far")))
    return figure(panels, columns=3, height=320)


def ablation_table(found: Mapping[str, Any], caption: str) -> Block:
    head = ("value", "initial", "best", "winning rate", "different formulas scored", "looks", "s")
    rows = [
        [
            value,
            interval(one["initial"]),
            interval(one["best"]),
            f"{100 * one['winning_rate']['value']:.1f} %",
            *(f"{one[key]['value']:,.0f}" for key in ("evaluations", "looks", "seconds")),
        ]
        for value, one in found.items()
    ]
    return table(head, rows, caption=caption)


def family_section(document: Document) -> Section | None:
    """Of the search that found the best, where it found it by parents."""
    runs = [run for runs in (document.get("evolution") or {}).values() for run in runs]
    known = [run["family"] for run in runs if run.get("family") and run["family"]["parents"]]
    if not known:
        return None
    crossed = [one for one in known if one["crossed"] and len({str(of["json"]) for of in one["parents"]}) > 1]
    best = max(crossed or known, key=lambda one: one["child"]["fitness"])
    words = [f"{of['formula']}: {decimal(of['fitness'], 3)}" for of in (*best["parents"], best["child"])]
    joined = best["crossed"]["json"] if best["crossed"] else None
    drawing = family_svg([one["json"] for one in best["parents"]], joined, best["child"]["json"], "; ".join(words))
    told = f"Generation {best['generation']}. Parents {words[0]} and {words[1]}; child {words[2]}."
    return section("family", "Where the best comes from", FAMILY, picture(drawing, told), text(told), short="Family")


def tree_section(document: Document) -> Section | None:
    best: Sequence[Mapping[str, Any]] = document.get("best") or ()
    if not best or not best[0].get("json"):
        return None
    formula = str(best[0]["formula"])
    drawing = picture(formula_svg(best[0]["json"], formula), formula)
    return section("tree", "The best as a tree", TREE, drawing, short="Tree")


EVOLUTION_SECTIONS = (tree_section, curves_section, ablation_section, family_section)
