"""What `archwright design` shows: the architecture drawn, a table, and a page about how it was found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.reports.architecture import architecture_svg, architecture_text
from archwright.reports.figures.curves import band, line
from archwright.reports.figures.parts import COLOURS, GREY, Figure, Panel, Trace, figure, group, styles_of, title
from archwright.reports.measures import DASH
from archwright.reports.page import panels_page
from archwright.reports.panels import Card, Section, facts, picture, plot, section, table, text
from archwright.reports.rank.page import SCRIPTS, STYLES, plain
from archwright.reports.rank.terminal import Cells, Fitting

Document = Mapping[str, Any]
DAY = 86_400.0
PUBLISHED = {
    "AutoBERT-Zero": 1000.0,
    "NAS-BERT": 96.0,
    "EfficientBERT": 58.0,
    "W-PCA, paper": 0.5,
}
"""GPU days of a search: W-PCA, Figure 1 and Table 3; the first is "about 1,000"."""
GPU_WATT, CORE_WATT = 300.0, 15.0
"""Power of a data-centre GPU (V100) and of one core of a server, for an estimate of energy."""
CURVES = (
    "Best score so far against designs tried, mean over seeds with one deviation around it; every sampler has the same "
    "budget, and designs it tried before count."
)
SHARES = (
    "How often each block stands in each layer: in the designs found, one per seed, and among the best designs of each "
    "search, as many as the population has."
)
TIMES = (
    "Days of search on a logarithmic scale. Published numbers are GPU days of their papers; ours are core days of this "
    "machine's CPU. Energy is an estimate: {gpu:.0f} W for a GPU, {core:.0f} W for a core, nothing measured."
)
PROXIES = (
    "The same search under one proxy after another. Scores of different proxies cannot be compared with each other; "
    "search time is processor time of one core, latency is one text of one core."
)


def design_drawing(document: Document) -> str:
    """The architecture as lines of text."""
    return architecture_text(document.get("layers") or ())


def design_table(document: Document) -> Fitting:
    """What was found, for `Console.print`; `document` has the schema "archwright/design/1"."""
    rows = facts_of(document)
    columns = [Cells("", list(rows), left=True), Cells("found", list(rows.values()))]
    front = document.get("front") or ()
    more = [f"The front has {len(front)} designs; design.json has them all."] if len(front) > 1 else []
    return Fitting(columns, headline(document), [*more, *comparisons(document)])


def comparisons(document: Document) -> list[str]:
    """A line for each other sampler, and for each proxy."""
    own = document.get("sampler")
    others = {name: runs for name, runs in (document.get("against") or {}).items() if name != own and runs}
    found = [f"{name}: best {amount(mean_best(runs))} on average" for name, runs in others.items()]
    return [*found, *(proxy_line(row) for row in document.get("proxies_compared") or ())]


def proxy_line(row: Mapping[str, Any]) -> str:
    return (
        f"{row['proxy']}: {millions(row['counts']['parameters'])} parameters, "
        f"{row['latency_ms']['median']:.1f} ms, {row['core_seconds']:.0f} core-seconds, score {amount(row['score'])}"
    )


def mean_best(runs: Sequence[Mapping[str, Any]]) -> float:
    return float(np.mean([run["score"] for run in runs]))


def facts_of(document: Document) -> dict[str, str]:
    latency, limits = document.get("latency_ms") or {}, document.get("limits") or {}
    scores = {f"score, {name}": amount(value) for name, value in (document.get("scores") or {}).items()}
    limit = limits.get("parameters")
    larger = (document.get("scaled_up") or {}).get("counts")
    return {
        **scores,
        "parameters": millions(document.get("parameters")) + (f" of {millions(limit)} allowed" if limit else ""),
        "latency, one text": DASH if latency.get("median") is None else f"{latency['median']:.1f} ms",
        "designs tried": f"{document.get('evaluations', 0):,}, {document.get('distinct', 0):,} different",
        "search": f"{document.get('seconds', 0.0):.0f} s",
        **({"parameters, scaled up": millions(larger["parameters"])} if larger else {}),
        **spread_of(document),
    }


def spread_of(document: Document) -> dict[str, str]:
    spread = document.get("spread") or {}
    if (document.get("seeds") or 1) < 2 or not spread:
        return {}
    return {f"over {document['seeds']} seeds": f"{amount(spread['mean'])} ± {amount(spread['std'])}"}


def headline(document: Document) -> str:
    names = ", ".join(document.get("proxies") or ())
    return f"{document.get('space') or DASH}: {names} by {document.get('sampler')} search"


def amount(value: float | None) -> str:
    return DASH if value is None else f"{value:.4g}"


def millions(value: float | None) -> str:
    return DASH if value is None else f"{value / 1e6:.2f}M"


def design_html(document: Document) -> str:
    """A page that opens from disk without any network; sections whose data is missing are left out."""
    sections = [made for make in SECTIONS for made in [make(document)] if made]
    head = {
        "eyebrow": "archwright design",
        "title": headline(document),
        "lead": lead(document),
        "cards": cards(document),
    }
    foot = f"{document.get('schema', DASH)}. This file needs no network."
    view = {**head, "sections": sections, "footer": foot}
    return panels_page(view, headline(document), styles=STYLES, scripts=SCRIPTS)


def lead(document: Document) -> str:
    leaning = (document.get("blocks") or {}).get("population_leanings") or {}
    return f"{document.get('distinct', 0):,} different designs scored without training any. {preference(leaning)}"


def preference(leanings: Mapping[str, Mapping[str, float]]) -> str:
    """Which kind of layer the best designs have most of, and where; nothing for one kind alone."""
    if len(leanings) < 2:
        return ""
    kind, of = max(leanings.items(), key=lambda entry: entry[1]["all"])
    where = "upper" if of["upper"] > of["lower"] else "lower"
    return (
        f"{100 * of['all']:.0f} % of the layers of the best designs are {kind}, {100 * of['lower']:.0f} % of the lower "
        f"and {100 * of['upper']:.0f} % of the upper half: {kind} stands rather in the {where} layers."
    )


def cards(document: Document) -> list[Card]:
    return [(name, value, "") for name, value in facts_of(document).items()]


def picture_section(document: Document) -> Section | None:
    layers = document.get("layers")
    if not layers:
        return None
    words = ", ".join(str(layer["label"]) for layer in layers)
    note = "Boxes are as wide as what the layer is chosen by; the first layer is at the bottom."
    return section("picture", "The architecture", note, picture(architecture_svg(layers, name=words), words))


def curves_section(document: Document) -> Section | None:
    against = {name: runs for name, runs in (document.get("against") or {}).items() if runs and runs[0]["history"]}
    if not against:
        return None
    looks, traces = styles_of(against), []
    for name, runs in against.items():
        x = [point["evaluations"] for point in runs[0]["history"]]
        best = np.array([[point["best"] for point in run["history"]] for run in runs], dtype=np.float64)
        mean, spread = best.mean(axis=0).tolist(), best.std(axis=0).tolist() if len(runs) > 1 else [None] * len(x)
        traces += [*band(x, mean, spread, name, looks[name]), line(x, mean, name, looks[name])]
    proxy = (document.get("proxies") or [DASH])[0]
    drawn = figure([Panel("", traces, title("designs tried"), title(f"best {proxy}"))], columns=1, height=360)
    return section("curves", "Score over designs", CURVES, plot(drawn), searches_table(against), short="Search")


def searches_table(against: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    rows = [
        [
            *(name, str(run["repeat"]), amount(run["score"]), millions(run["parameters"])),
            *(f"{run['evaluations']:,}", f"{run['distinct']:,}", f"{run['seconds']:.0f}"),
        ]
        for name, runs in against.items()
        for run in runs
    ]
    head = ("sampler", "seed", "best", "parameters", "designs", "different", "seconds")
    return table(head, rows, caption="All searches")


def shares_section(document: Document) -> Section | None:
    blocks = document.get("blocks") or {}
    if not blocks.get("population"):
        return None
    panels = [stacked(blocks[name], words) for name, words in (("found", "found"), ("population", "best designs"))]
    leaning = blocks.get("population_leanings") or {}
    rows = [[kind, *(f"{100 * of[part]:.0f} %" for part in ("all", "lower", "upper"))] for kind, of in leaning.items()]
    halves = table(("block", "all layers", "lower half", "upper half"), rows, caption="Among the best designs")
    words = text(preference(leaning)) if preference(leaning) else text("Only one kind of block occurs.")
    drawn = figure(panels, columns=2, height=320)
    drawn["layout"]["barmode"] = "stack"
    return section("shares", "Blocks by layer", SHARES, plot(drawn), halves, words)


def stacked(layers: Sequence[Mapping[str, float]], name: str) -> Panel:
    """Bars of 100 %, one per layer."""
    kinds = list(layers[0])
    bars: list[Trace] = [
        {
            "type": "bar", "x": list(range(1, len(layers) + 1)), "y": [layer.get(kind, 0.0) for layer in layers],
            "marker": {"color": COLOURS[place % len(COLOURS)]},
            "hovertemplate": "layer %{x}: %{y:.0%}<extra>%{fullData.name}</extra>", **group(kind),
        }
        for place, kind in enumerate(kinds)
    ]  # fmt: skip
    share = {**title("share"), "tickformat": ".0%", "range": [0, 1]}
    return Panel(name, bars, {**title("layer"), "dtick": 1}, share)


def times_section(document: Document) -> Section | None:
    spent = (document.get("judged") or {}).get("core_seconds")
    runs = sum(len(found) for found in (document.get("against") or {}).values())
    if not spent or not runs:
        return None
    days = {**PUBLISHED, "this search": spent / runs / DAY}
    watts = {**dict.fromkeys(PUBLISHED, GPU_WATT), "this search": CORE_WATT}
    drawn = figure([times_panel(days)], columns=1, height=300)
    rows = [[name, f"{value:.3g}", f"{value * 24 * watts[name] / 1000:.3g}"] for name, value in days.items()]
    energy = table(("search", "days", "kWh, estimate"), rows, caption="Energy, estimated")
    return section("times", "What a search takes", TIMES.format(gpu=GPU_WATT, core=CORE_WATT), plot(drawn), energy)


def times_panel(days: Mapping[str, float]) -> Panel:
    colours = [COLOURS[0] if name not in PUBLISHED else GREY for name in days]
    bars: Trace = {
        "type": "bar", "orientation": "h", "x": list(days.values()), "y": list(days), "marker": {"color": colours},
        "hovertemplate": "%{y}: %{x:.3g} days<extra></extra>",
    }  # fmt: skip
    return Panel("", [bars], {**title("days"), "type": "log"}, {"automargin": True, "type": "category"})


def proxies_section(document: Document) -> Section | None:
    compared = document.get("proxies_compared") or ()
    rows = [
        [
            *(str(row["proxy"]), millions(row["counts"]["parameters"]), f"{row['latency_ms']['median']:.1f}"),
            *(f"{row['core_seconds']:.0f}", f"{row['distinct']:,}", amount(row["score"])),
            "  ".join(str(layer["label"]) for layer in row["layers"]),
        ]
        for row in compared
    ]
    head = ("proxy", "parameters", "latency, ms", "search, core-seconds", "different designs", "score", "found")
    return section("proxies", "Other proxies", PROXIES, table(head, rows, left=(0, 6))) if rows else None


def front_section(document: Document) -> Section | None:
    front: Sequence[Any] = document.get("front") or ()
    names: Sequence[str] = document.get("proxies") or ()
    if len(names) < 2:
        return None
    rows = [[*(amount(one["scores"][name]) for name in names), millions(one["parameters"])] for one in front]
    xs, ys = ([one["scores"][name] for one in front] for name in names[:2])
    points: Trace = {
        "type": "scatter", "mode": "markers", "x": xs, "y": ys, "marker": {"color": COLOURS[0], "size": 9},
        "hovertemplate": "%{x:.4g}, %{y:.4g}<extra></extra>",
    }  # fmt: skip
    drawn: Figure = figure([Panel("", [points], title(names[0]), title(names[1]))], columns=1, height=360)
    note = "Designs that no other beats in every proxy at once."
    return section("front", "Pareto front", note, plot(drawn), table((*names, "parameters"), rows))


def made_section(document: Document) -> Section:
    names = ("space", "variant", "sampler", "population", "generations", "distinct_only", "seed", "seeds")
    found = {name: document.get(name) for name in names} | dict(document.get("judged") or {})
    panels = {
        "Search": plain(found),
        "Limits": plain(document.get("limits") or {}),
        "Design": plain(document.get("config") or {}),
        "Counts": plain(document.get("counts") or {}),
        "Environment": plain(document.get("environment") or {}),
    }
    return section("made", "How it was made", "", facts(panels))


SECTIONS = (
    picture_section,
    curves_section,
    front_section,
    shares_section,
    times_section,
    proxies_section,
    made_section,
)
