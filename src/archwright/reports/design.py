"""What `archwright design` shows: a table, and a page about how the architecture was found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.reports.architecture import architecture_svg
from archwright.reports.figures.panels import (
    COLOURS,
    GREY,
    Panel,
    Trace,
    assign_styles,
    axis_title,
    band,
    figure,
    group,
    line,
    scatter,
)
from archwright.reports.numbers import DASH, duration, millions, milliseconds, number, significant
from archwright.reports.page import Block, Picture, Section, Site, facts, notice, plot, render_page, section, text
from archwright.reports.rivals import rivals_section
from archwright.reports.tables import Column, ReportTable, table

Document = Mapping[str, Any]
DAY = 86_400.0
PUBLISHED = {"AutoBERT-Zero": 1000.0, "NAS-BERT": 96.0, "EfficientBERT": 58.0, "W-PCA, paper": 0.5}
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
TRAINING = (
    " Ours has {training} of wall clock for the super-network's training in it, beside the time of its judgements."
)
LAYERS = (
    "What each layer of the design contributes to its score: the parts add up to it. They are of the untrained network "
    "that was scored, with the weights and the texts of the search."
)
PROXIES = (
    "The same search under one proxy after another. Scores of different proxies cannot be compared with each other; "
    "search time is processor time of one core, latency is one text of one core."
)


def design_table(document: Document) -> ReportTable:
    """What was found, for `Console.print`; `document` has the schema "archwright/design/1"."""
    summary = design_facts(document)
    columns = [Column("", list(summary), left=True), Column("found", list(summary.values()))]
    front = document.get("front") or ()
    captions = [f"The front has {len(front)} designs; design.json has them all."] if len(front) > 1 else []
    for name, runs in (document.get("against") or {}).items():
        if name != document.get("sampler") and runs:
            mean = float(np.mean([run["score"] for run in runs]))
            captions.append(f"{name}: best {significant(mean)} on average")
    captions += [
        f"{row['proxy']}: {millions(row['counts']['parameters'])} parameters, "
        f"{milliseconds(row['latency_ms']['median'])}, {row['core_seconds']:.0f} core-seconds, "
        f"score {significant(row['score'])}"
        for row in document.get("proxies_compared") or ()
    ]
    return ReportTable(columns, design_title(document), captions)


def design_facts(document: Document) -> dict[str, str]:
    limit = (document.get("limits") or {}).get("parameters")
    larger = (document.get("scaled_up") or {}).get("counts")
    spread, seeds = document.get("spread"), document.get("seeds") or 1
    result = {f"score, {name}": significant(value) for name, value in (document.get("scores") or {}).items()}
    result |= {
        "parameters": millions(document.get("parameters")) + (f", of {millions(limit)} allowed" if limit else ""),
        "latency, one text": milliseconds(number(document, "latency_ms", "median")),
        "designs tried": f"{document.get('evaluations', 0):,}, {document.get('distinct', 0):,} different",
        "search": f"{document.get('seconds', 0.0):.0f} s",
    }
    if larger:
        result["parameters, scaled up"] = millions(larger["parameters"])
    if spread and seeds > 1:
        result[f"over {seeds} seeds"] = f"{significant(spread['mean'])} ± {significant(spread['std'])}"
    return result


def design_title(document: Document) -> str:
    names = ", ".join(document.get("proxies") or ())
    return f"{document.get('space') or DASH}: {names} by {document.get('sampler')} search"


def render_design_page(document: Document, *, site: Site | None = None) -> str:
    """A page that opens from disk without any network; sections whose data is missing are left out."""
    leanings = (document.get("blocks") or {}).get("population_leanings") or {}
    return render_page(
        design_title(document),
        design_sections(document),
        command="archwright design",
        lead=f"{what_was_done(document)} {preference(leanings)}",
        cards=[(name, *value.partition(", ")[::2]) for name, value in design_facts(document).items()],
        schema=str(document.get("schema", DASH)),
        explore=True,
        site=site,
    )


def what_was_done(document: Document) -> str:
    """How many designs were judged, and whether anything was trained for that."""
    designs, training = f"{document.get('distinct', 0):,} different designs", training_seconds(document)
    if training is None:
        return f"{designs} scored without training any."
    return f"{designs} judged as paths of one super-network, which was trained for {duration(training)}."


def training_seconds(document: Document) -> float | None:
    """Wall clock of the training of one seed's super-network; None where designs were scored untrained."""
    seconds = number(document, "judged", "training_seconds")
    return None if seconds is None else seconds / (document.get("seeds") or 1)


def design_sections(document: Document) -> list[Section | None]:
    return [
        picture_section(document),
        rivals_section(document),
        layer_scores_section(document),
        curves_section(document),
        front_section(document),
        shares_section(document),
        times_section(document),
        proxies_section(document),
        made_section(document),
    ]


def preference(leanings: Mapping[str, Mapping[str, float]]) -> str:
    """Which kind of layer the best designs have most of, and where; nothing for one kind alone."""
    if len(leanings) < 2:
        return ""
    kind, shares = max(leanings.items(), key=lambda entry: entry[1]["all"])
    where = "upper" if shares["upper"] > shares["lower"] else "lower"
    return (
        f"{100 * shares['all']:.0f} % of the layers of the best designs are {kind}, {100 * shares['lower']:.0f} % of "
        f"the lower and {100 * shares['upper']:.0f} % of the upper half: {kind} stands rather in the {where} layers."
    )


def picture_section(document: Document) -> Section | None:
    layers = document.get("layers")
    if not layers:
        return None
    words = ", ".join(str(layer["label"]) for layer in layers)
    note = "Boxes are as wide as what the layer is chosen by; the first layer is at the bottom."
    return section("picture", "The architecture", note, Picture(architecture_svg(layers, name=words), words))


def layer_scores_section(document: Document) -> Section | None:
    """A bar per layer for every proxy that adds up over layers; of the others the reason why it does not."""
    by_proxy: Mapping[str, Mapping[str, Any]] = document.get("layer_scores") or {}
    if not by_proxy:
        return None
    labels = [str(layer["label"]) for layer in document.get("layers") or ()]
    panels, rows, notes = [], [], []
    for place, (proxy, parts) in enumerate(by_proxy.items()):
        if not parts.get("layers"):
            notes.append(str(parts.get("note") or f"{proxy} has no parts by layer."))
            continue
        values, rest, score = parts["layers"], parts.get("rest") or 0.0, parts["score"]
        known = labels if len(labels) == len(values) else [""] * len(values)
        names = [f"{number} {label}".strip() for number, label in enumerate(known, 1)]
        marks = [*map(str, range(1, len(names) + 1)), *(["rest"] if rest else [])]
        if rest:
            names, values = [*names, "outside of the layers' linears"], [*values, rest]
        bars: Trace = {
            "type": "bar", "orientation": "h", "x": values, "y": marks, "text": names, "textposition": "none",
            "showlegend": False, "marker": {"color": COLOURS[place % len(COLOURS)]},
            "hovertemplate": "%{text}: %{x:.4s}<extra></extra>",
        }  # fmt: skip
        panels.append(Panel(proxy, [bars], f"part of {proxy}", axis_title("layer", type="category")))
        rows += [
            [proxy, name, significant(value), f"{100 * value / score:.1f} %" if score else DASH]
            for name, value in zip(names, values, strict=True)
        ]
    blocks: list[Block] = []
    if panels:
        tall = 110 + 26 * max(len(panel.traces[0]["y"]) for panel in panels)
        blocks = [plot(figure(panels, columns=min(2, len(panels)), height=tall))]
        blocks.append(table(("proxy", "layer", "part", "share"), rows, title="The same in numbers", left=(0, 1)))
    blocks += [notice(*notes)] if notes else []
    return section("layer-scores", "Score by layer", LAYERS if panels else "", *blocks, short="By layer")


def curves_section(document: Document) -> Section | None:
    searches = {name: runs for name, runs in (document.get("against") or {}).items() if runs and runs[0]["history"]}
    if not searches:
        return None
    styles, traces, rows = assign_styles(searches), [], []
    for name, runs in searches.items():
        x = [point["evaluations"] for point in runs[0]["history"]]
        best = np.array([[point["best"] for point in run["history"]] for run in runs], dtype=np.float64)
        mean, spread = best.mean(axis=0).tolist(), best.std(axis=0).tolist() if len(runs) > 1 else [None] * len(x)
        traces += [*band(x, mean, spread, name, styles[name]), line(x, mean, name, styles[name])]
        rows += [
            [
                *(name, str(run["repeat"]), significant(run["score"]), millions(run["parameters"])),
                *(f"{run['evaluations']:,}", f"{run['distinct']:,}", f"{run['seconds']:.0f}"),
            ]
            for run in runs
        ]
    proxy = (document.get("proxies") or [DASH])[0]
    panel = Panel("", traces, "designs tried", f"best {proxy}")
    head = ("sampler", "seed", "best", "parameters", "designs", "different", "seconds")
    curves = plot(figure([panel], columns=1, height=360))
    all_searches = table(head, rows, title="All searches")
    return section("curves", "Score over designs", CURVES, curves, all_searches, short="Search")


def shares_section(document: Document) -> Section | None:
    blocks = document.get("blocks") or {}
    if not blocks.get("population"):
        return None
    panels = [share_panel(blocks[name], words) for name, words in (("found", "found"), ("population", "best designs"))]
    leanings = blocks.get("population_leanings") or {}
    rows = [
        [kind, *(f"{100 * shares[part]:.0f} %" for part in ("all", "lower", "upper"))]
        for kind, shares in leanings.items()
    ]
    halves = table(("block", "all layers", "lower half", "upper half"), rows, title="Among the best designs")
    bars = figure(panels, columns=2, height=320)
    bars["layout"]["barmode"] = "stack"
    words = text(preference(leanings) or "Only one kind of block occurs.")
    return section("shares", "Blocks by layer", SHARES, plot(bars), halves, words)


def share_panel(layers: Sequence[Mapping[str, float]], name: str) -> Panel:
    """Bars of 100 %, one per layer."""
    bars: list[Trace] = [
        {
            "type": "bar", "x": list(range(1, len(layers) + 1)), "y": [layer.get(kind, 0.0) for layer in layers],
            "marker": {"color": COLOURS[place % len(COLOURS)]},
            "hovertemplate": "layer %{x}: %{y:.0%}<extra>%{fullData.name}</extra>", **group(kind),
        }
        for place, kind in enumerate(layers[0])
    ]  # fmt: skip
    return Panel(name, bars, axis_title("layer", dtick=1), axis_title("share", tickformat=".0%", range=[0, 1]))


def times_section(document: Document) -> Section | None:
    spent = (document.get("judged") or {}).get("core_seconds")
    runs = sum(len(runs) for runs in (document.get("against") or {}).values())
    if not spent or not runs:
        return None
    training = training_seconds(document)
    days = {**PUBLISHED, "this search": (spent / runs + (training or 0.0)) / DAY}
    watts = {**dict.fromkeys(PUBLISHED, GPU_WATT), "this search": CORE_WATT}
    bars: Trace = {
        "type": "bar", "orientation": "h", "x": list(days.values()), "y": list(days),
        "marker": {"color": [GREY if name in PUBLISHED else COLOURS[0] for name in days]},
        "hovertemplate": "%{y}: %{x:.3g} days<extra></extra>",
    }  # fmt: skip
    panel = Panel("", [bars], axis_title("days", type="log"), {"automargin": True, "type": "category"})
    rows = [[name, f"{value:.3g}", f"{value * 24 * watts[name] / 1000:.3g}"] for name, value in days.items()]
    return section(
        "times",
        "What a search takes",
        TIMES.format(gpu=GPU_WATT, core=CORE_WATT)
        + ("" if training is None else TRAINING.format(training=duration(training))),
        plot(figure([panel], columns=1, height=300)),
        table(("search", "days", "kWh, estimate"), rows, title="Energy, estimated"),
    )


def proxies_section(document: Document) -> Section | None:
    rows = [
        [
            *(str(row["proxy"]), millions(row["counts"]["parameters"]), f"{row['latency_ms']['median']:.1f}"),
            *(f"{row['core_seconds']:.0f}", f"{row['distinct']:,}", significant(row["score"])),
            "  ".join(str(layer["label"]) for layer in row["layers"]),
        ]
        for row in document.get("proxies_compared") or ()
    ]
    head = ("proxy", "parameters", "latency, ms", "search, core-seconds", "different designs", "score", "found")
    return section("proxies", "Other proxies", PROXIES, table(head, rows, left=(0, 6))) if rows else None


def front_section(document: Document) -> Section | None:
    front: Sequence[Any] = document.get("front") or ()
    names: Sequence[str] = document.get("proxies") or ()
    if len(names) < 2:
        return None
    rows = [[*(significant(each["scores"][name]) for name in names), millions(each["parameters"])] for each in front]
    xs, ys = ([each["scores"][name] for each in front] for name in names[:2])
    look = {"color": COLOURS[0], "size": 9}
    dots = scatter(xs, ys, marker=look, hovertemplate="%{x:.4g}, %{y:.4g}<extra></extra>")
    panel = Panel("", [dots], names[0], names[1])
    note = "Designs that no other beats in every proxy at once."
    points = plot(figure([panel], columns=1, height=360))
    return section("front", "Pareto front", note, points, table((*names, "parameters"), rows))


def made_section(document: Document) -> Section:
    names = ("space", "variant", "sampler", "population", "generations", "distinct_only", "seed", "seeds")
    panels = {
        "Search": {name: document.get(name) for name in names} | dict(document.get("judged") or {}),
        "Limits": document.get("limits") or {},
        "Design": document.get("config") or {},
        "Counts": document.get("counts") or {},
        "Environment": document.get("environment") or {},
    }
    return section("made", "How it was made", "", facts(panels))
