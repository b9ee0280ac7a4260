"""The page of a ranking: sentence, table and pictures; a picture is there when its data is."""

from collections.abc import Callable
from typing import Any

from archwright.reports.figures.panels import Figure
from archwright.reports.numbers import DASH, decimal, number
from archwright.reports.page import (
    Card,
    Interactive,
    Section,
    Site,
    facts,
    plot,
    plots,
    render_page,
    section,
    text,
)
from archwright.reports.rank.axes import Axis, large_cells, rank_axes, rank_points
from archwright.reports.rank.bars import bar_figures, xray_figures
from archwright.reports.rank.rows import (
    BASELINE,
    DEPTH_WIDTH,
    PARAMETERS,
    Document,
    baseline_row,
    cell_definition,
    proxies,
    rank_headline,
    row_bounds,
    setting_sentence,
    sort_rows,
)
from archwright.reports.rank.studies import box_figures, eta_figure, powers_figure, scree_figure
from archwright.reports.rank.tables import numbers_table, parity_table, published_table, verdict_tables

NORMALISED_NAME = "_normalised"
FEW = 2
"""Architectures a picture needs at least."""
TABLE = (
    "Higher is better for every proxy; signs were fixed before anything was measured. Below a number stands its 95 % "
    "bootstrap interval over architectures. A heading sorts; rest on it to read what it means. Baselines are grey."
)
BARS = (
    "One bar per proxy, with its 95 % interval. Lines: what counting parameters, and what depth and width alone give "
    "(LPZero, Figure 1, had the first). The shaded end cannot be reached, because training itself is noisy. A name "
    "below the plot hides or shows its bars."
)
SCATTER = (
    "One point per architecture (W-PCA, Figure 2; Serianni and Kalita, Figures 1 to 5). Colours and marks are depths: "
    "two clouds that look like a correlation are often just two depths. A small picture below chooses its proxy."
)
CELLS = (
    "The same points, one panel for each depth and width: what a proxy knows beyond these two. The correlation above "
    "each panel is of the points in it, as drawn."
)
NORMALISED = (
    "A sum over layers grows with depth, and depth predicts quality. Divided by the number of summed modules, much of "
    "a proxy's correlation may be gone (Serianni and Kalita, Figures 2, 4 and 11)."
)
PAIR = (
    "Any two scores, left their values, right their ranks (LPZero, Figures 5 and 8); 1 is the smallest. The "
    "correlation is of the points as drawn."
)
ABLATION = (
    "Ten architectures, one per tenth of the trained score, each scored with several initialisations or batches "
    "(Serianni and Kalita, Figures 7 to 10; W-PCA, Figure 4). Boxes that overlap cannot be told apart by one score."
)
XRAY = (
    "For each value of each choice: the mean trained score of the networks that have it, and which share of the best "
    "tenth has it, beside its share of all. Larger points stand for more networks. All panels share one scale."
)
SCREE = (
    "Variance of the first feed-forward linear's output along its principal axes, one line per layer. V-PCA counts the "
    "axes below the dotted line and adds up the layers."
)
ETA = (
    "V-PCA and W-PCA with other shares of the variance than 0.99, from one recording. The axis spreads what is near 1."
)
POWERS = "Rank correlation of parameters^a x V-PCA^b with the trained score. W-PCA is the point where both are 1."
PUBLISHED = (
    "What the papers print, beside what we measured. Numbers of different papers for one proxy stand in one row; where "
    "they differ they are marked."
)
PARITY = (
    "Rank correlation between our scores and the published column of the same metric, architecture by architecture; 1 "
    "is the same order. Then both against the trained score, on the same rows."
)


def render_rank_page(document: Document, *, site: Site | None = None) -> str:
    """A page that opens from disk without any network, from a document of schema "archwright/rank/1".

    Any number may be None; sections whose data is missing are left out.
    """
    axes = rank_axes(document)
    return render_page(
        f"{document.get('benchmark') or DASH}: what untrained networks tell",
        rank_sections(document, axes),
        command="archwright rank",
        lead=rank_headline(document),
        cards=cards(document),
        schema=str(document.get("schema", DASH)),
        data={"axes": axes, "points": rank_points(document)},
        explore=True,
        site=site,
    )


def rank_sections(document: Document, axes: list[Axis]) -> list[Section | None]:
    """In the order of the page."""
    bars, rows = bar_figures(document), sort_rows(document)
    tables = [numbers_table(rows), *verdict_tables(rows)]
    boxes, xray = box_figures(document), document.get("xray")
    published, parity = document.get("published"), document.get("parity")
    notes = [str(note) for note in document.get("notes") or ()]
    sentence = f"{setting_sentence(document)} {TABLE}"
    return [
        section("bars", "Who ranks well", BARS, plots(bars, "Shown"), short="Bars") if bars else None,
        section("table", "All numbers", sentence, *tables, short="Numbers"),
        *cloud_sections(document, axes),
        section(
            "ablation",
            "Seeds and batches",
            ABLATION,
            plots(boxes, "Proxy", "Varied", drawing="menus"),
            short="Ablations",
        )
        if boxes
        else None,
        section("xray", "The space under an x-ray", XRAY, plots(xray_figures(xray), "Shown"), short="X-ray")
        if xray
        else None,
        study_section(document, "spectra", "scree", "Eigenvalues of one network", SCREE, scree_figure, "Scree"),
        study_section(document, "eta", "eta", "How much variance to count", ETA, eta_figure, "η"),
        study_section(document, "powers", "powers", "Parameters and V-PCA, mixed", POWERS, powers_figure, "Powers"),
        section("published", "The papers' numbers beside ours", PUBLISHED, published_table(document), short="Published")
        if published
        else None,
        section("parity", "Parity with the published scores", PARITY, parity_table(parity), short="Parity")
        if parity
        else None,
        section("notes", "Notes", "", text(*notes)) if notes else None,
        made_section(document),
    ]


def cards(document: Document) -> list[Card]:
    rows = proxies(sort_rows(document))
    ceiling = document.get("noise_ceiling") or {}
    result: list[Card] = [("Architectures", f"{number(document, 'n') or 0:,.0f}", str(document.get("variant") or ""))]
    if rows:
        result.append(("Best proxy, Spearman", decimal(number(rows[0], "spearman")), str(rows[0].get("proxy"))))
    for words, names in {"Parameters alone": PARAMETERS, "Depth and width": DEPTH_WIDTH}.items():
        if row := baseline_row(document, names):
            result.append((words, decimal(number(row, "spearman")), row_bounds(row, "spearman")))
    if ceiling:
        result.append(("Noise ceiling", decimal(number(ceiling, "value")), f"from {ceiling.get('kind') or DASH}"))
    return result


def cloud_sections(document: Document, axes: list[Axis]) -> list[Section | None]:
    """Architectures as points: each proxy against the trained score, within cells, normalised, and any two scores."""
    scores = [place for place, axis in enumerate(axes) if axis["group"] not in ("trained", "size")]
    better = [place for place in scores if axes[place]["group"] != BASELINE]
    first = (better or scores or [len(axes) - 1])[0]  # the best proxy that is no baseline, else the last axis there is
    trained = bool(axes) and axes[0]["group"] == "trained" and axes[0]["known"] >= FEW
    choices = {"choices": scores, "against": 0, "chosen": first}
    scatter, cells = Interactive("scatter", choices), Interactive("cells", choices)
    places = {axis["name"]: place for place, axis in enumerate(axes)}
    pairs = [
        [places[raw], place]
        for name, place in places.items()
        if (raw := name.removesuffix(NORMALISED_NAME)) in places and raw != name
    ]
    sides, pair = Interactive("sides", {"pairs": pairs, "against": 0}), Interactive("pair", {"x": first, "y": 0})
    has_cells = len(large_cells(document.get("architectures") or ())) >= FEW
    alike = f"Among networks of equal {cell_definition(document)}"
    return [
        section("scatter", "Each proxy against the trained score", SCATTER, scatter, short="Scatter")
        if trained and scores
        else None,
        section("cells", alike, CELLS, cells, short="Within cells") if trained and scores and has_cells else None,
        section("normalised", "Raw and normalised", NORMALISED, sides) if trained and pairs else None,
        section("pair", "Score against score, rank against rank", PAIR, pair, short="Two scores")
        if len(axes) >= FEW
        else None,
    ]


def study_section(
    document: Document, key: str, name: str, title: str, note: str, draw: Callable[[Any], Figure], short: str
) -> Section | None:
    """A section of one plot for what stands under a key."""
    return section(name, title, note, plot(draw(document[key])), short=short) if document.get(key) else None


def made_section(document: Document) -> Section:
    ranking = {key: document.get(key) for key in ("benchmark", "variant", "target", "n", "seed")}
    return section(
        "made", "How it was made", "", facts({"Ranking": ranking, "Environment": document.get("environment") or {}})
    )
