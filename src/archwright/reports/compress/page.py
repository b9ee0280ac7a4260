"""The page of a compression: front, layers, numbers and how they were made; and sections for its studies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archwright.reports.compress.summary import (
    GENERATION,
    embedding_lines,
    error_words,
    half_size_member,
    headline,
    latency_setup,
    loss,
    loss_interval,
    member_commands,
    run_words,
    selection_words,
    shared_error,
    total_words,
)
from archwright.reports.figures.fronts import fidelity_panel, quantization_panels
from archwright.reports.figures.panels import figure
from archwright.reports.numbers import (
    DASH,
    bounds,
    count,
    decimal,
    duration,
    error_format,
    fact,
    milliseconds,
    number,
    percent,
)
from archwright.reports.page import Card, Section, Site, plot, render_page, section
from archwright.reports.tables import table

LIMITS = {
    "share": {"nonembedding_parameters", "parameters"},
    "latency": {"latency_ms"},
    "int8": {"int8_file_bytes"},
}
"""Sliders, and the costs that they are about."""
COEFFICIENTS = {"kendall": "Kendall's tau-b", "spearman": "Spearman's rho"}
OPTIONS = ("model", "family", "task", "metric", "space", "strategy", "sampler", "order", "seed")
LATENCY = {"batch": "batch", "tokens": "length", "runtime": "runtime", "threads": "threads", "rounds": "rounds"}
STEADY = 0.05
"""A sentinel network, timed between the others, may change its speed by this share."""
SYMBOLS = {
    "sub-network on the front": '<circle cx="9" cy="7" r="5" fill="var(--accent)"/>',
    "chosen": '<circle cx="9" cy="7" r="6" fill="none" stroke="var(--ink)" stroke-width="2"/>',
    "tried": '<circle cx="9" cy="7" r="2.5" fill="var(--tried)" opacity="0.6"/>',
    "original": '<path d="M9 0 L16 7 L9 14 L2 7 Z" fill="var(--original)"/>',
    "full super-network": (
        '<rect x="3.5" y="1.5" width="11" height="11" fill="none" stroke="var(--original)" stroke-width="2"/>'
    ),
    "hypervolume of all trials": (
        '<rect x="1" y="1" width="16" height="12" fill="var(--shade)" stroke="var(--shade-line)"/>'
    ),
}
PROGRESS = (
    "The hypervolume is the area that the trials cover up to the reference (1, 1), {against} against share, on the "
    "rows of the search; higher is better. It ended at {volume} after {trials} trials with {sampler}.{tested}"
)
LIVE = "The search is not finished; what it has found so far is shown below."
LIVE_PROGRESS = (
    "The hypervolume is the area that the trials cover up to the reference (1, 1), {against} against share, on the "
    "rows of the search; higher is better."
)
FIDELITY = (
    "{k} sub-networks drawn at random, each once with the weights it inherits from the super-network and once trained "
    "by itself from the pre-trained weights. The more alike both rank them, the more the search can be trusted: 1 is "
    "the same order, 0 no relation. Size alone takes the larger network for the better one: shared weights must "
    "beat it. Intervals are 95 % bootstrap intervals."
)
QUANTIZATION = (
    "The unpruned model and the front, as they are and with quantized weights. Memory is that of the stored weights; "
    "latency is measured."
)


def render_compress_page(result: Mapping[str, Any], *, site: Site | None = None) -> str:
    """A page that opens from disk without any network: front, layers, numbers and how they were made.

    `result` is the content of a `compress --json` file, schema "archwright/compress/1"; any number may be None.
    """
    errors, latency, trials = error_format(result), result.get("latency") or {}, result.get("trials") or ()
    absent = {*(() if result.get("supernet") else ("full super-network",))}
    absent |= {"original"} if number(result["original"], "validation_error") is None else set()
    absent |= {"hypervolume of all trials"} if errors.scale == "log" else set()
    phases: Mapping[str, float | None] = result.get("seconds_by_phase") or {}
    longest = max([value or 0.0 for value in phases.values()], default=0.0) or 1e-9
    tested = number(result, "test_hypervolume")
    progress = PROGRESS.format(
        against=errors.against,
        volume=decimal(number(result, "hypervolume"), 4),
        trials=len(trials),
        sampler=fact(result.get("sampler")),
        tested=f" The members of the front cover {tested:.4f} on test rows." if tested is not None else "",
    )
    drift = number(latency, "sentinel_drift")
    is_live = site is not None and "live" in site.data
    context = {
        "task_note": result.get("task_note"),
        "selection_note": f"C{selection_words(result)[1:].rstrip('.')}." if result.get("selection") else "",
        "error": errors,
        "error_note": errors.explanation.format(metric=result.get("metric") or "metric"),
        "embedding_notes": embedding_lines(result),
        "symbols": [(name, shape) for name, shape in SYMBOLS.items() if name not in absent],
        "latency_setup": latency_setup(result),
        "nonembedding": count(number(result["original"], "nonembedding_parameters")),
        "progress_note": LIVE_PROGRESS.format(against=errors.against) if is_live else progress,
        "has_progress": is_live or any(value is not None for value in result.get("hypervolume_over_time") or ()),
        "options": {name: fact(result.get(name)) for name in OPTIONS}
        | {"objectives": fact(result.get("objectives") or ()) or DASH, "trials": str(len(trials))},
        "seconds": duration(number(result, "seconds")),
        "phases": [(name, duration(value), 100 * (value or 0.0) / longest) for name, value in phases.items()],
        "latency": latency
        and {name: fact(latency.get(key)) for name, key in LATENCY.items()} | {"sentinel drift": percent(drift, 1)},
        "drift_note": drift_note(drift),
        "has_predictions": bool(latency.get("predicted_vs_measured")),
        "environment": {
            "archwright": fact(result.get("archwright")),
            **{name: fact(value) for name, value in (result.get("environment") or {}).items()},
        },
    }
    shown = ("key", "word", "unit", "ticks", "scale")
    return render_page(
        f"{model_name(result)}, shrunk for {result['task']}",
        study_sections(result),
        command=f"archwright compress · run {fact(result.get('run'))}",
        lead=LIVE if is_live else headline(result),
        schema=f"{fact(result.get('schema'))}, archwright {fact(result.get('archwright'))}",
        cards=[] if is_live else cards(result),
        data={
            "result": result,
            "latency_setup": latency_setup(result),
            "commands": [] if is_live else [member_commands(result, member) for member in result["front"]],
            "select": "" if is_live else f"archwright select {run_words(result)}",
            "costs": front_costs(result),
            "error": {name: getattr(errors, name) for name in shown},
        },
        template="compress.html",
        context=context,
        scripts=("picture.js", "network.js", "front.js", "parallel.js", "compress.js"),
        site=site,
    )


def model_name(result: Mapping[str, Any]) -> str:
    """What a heading calls the model: of a folder on this machine its own name, the options have the whole path."""
    model = str(result["model"])
    return Path(model).name if Path(model).is_absolute() else model


def front_costs(result: Mapping[str, Any]) -> list[str]:
    """Sliders that the run's own front answers to; for limits of other costs `select` looks among all trials."""
    objectives = {*(result.get("objectives") or ("nonembedding_parameters",))}
    bands = (result.get("selection") or {}).get("bands_of")
    costs = {bands} if bands else objectives
    return [name for name, keys in LIMITS.items() if costs & keys]


def cards(result: Mapping[str, Any]) -> list[Card]:
    original, member = result["original"], half_size_member(result)
    best: list[Card] = []
    if member is not None:
        here, before = (count(number(network, "nonembedding_parameters")) for network in (member, original))
        lost = error_format(result).loss_words(loss(result, member))
        interval = loss_interval(member, shared_error(result, member))
        around = f", {bounds(100 * interval[0], 100 * interval[1], 1)} on {interval[2]:,} rows" if interval else ""
        share = percent(number(member, "nonembedding_share"))
        best = [
            (
                "Best of about half the size",
                share,
                f"{here} of {before} non-embedding parameters{total_words(result, member)}",
            ),
            ("Its loss", lost, error_words(result, member) + around),
            speed_card("Its latency", "latency_ms", member, original, latency_setup(result)),
        ]
        if number(member, *GENERATION) is not None:
            best.append(speed_card("It writes a token in", "generation_ms", member, original))
    tested = number(result, "test_hypervolume")
    volume, word = (number(result, "hypervolume"), "") if tested is None else (tested, "test ")
    covered = f", {word}hypervolume {volume:.3f}" if volume is not None else ""
    front = f"of {len(result.get('trials') or ())} trials{covered}"
    return [*best, ("On the front", str(len(result["front"])), f"{front}, in {duration(number(result, 'seconds'))}")]


def speed_card(title: str, key: str, member: Mapping[str, Any], original: Mapping[str, Any], setup: str = "") -> Card:
    """A measured time, latency_ms or generation_ms, against the original's; `setup` says how it was measured."""
    now, before = (number(network, key, "median") for network in (member, original))
    high, low = number(member, key, "high"), number(original, key, "low")
    detail = f"{milliseconds(now)} instead of {milliseconds(before)}{f' ({setup})' if setup else ''}"
    if high is not None and low is not None and high >= low:
        return title, "no clear gain", f"{detail}, the intervals overlap"
    return title, percent(now / before) if now is not None and before else DASH, f"of the original: {detail}"


def drift_note(drift: float | None) -> str:
    """A fixed network timed between the others shows whether the machine itself changed speed."""
    if drift is None:
        return "No sentinel was timed, so a drift of the machine would go unnoticed."
    if abs(drift) <= STEADY:
        return "A fixed sentinel network, timed in between, kept its speed: the latencies are comparable."
    return "A fixed sentinel network, timed in between, changed its speed: compare the latencies with care."


def study_sections(result: Mapping[str, Any]) -> list[Section | None]:
    """What a result says of the super-network's fidelity and of quantization, where these were studied."""
    return [
        fidelity_section(result) if result.get("honesty") else None,
        quantization_section(result) if result.get("quantized") else None,
    ]


def fidelity_section(result: Mapping[str, Any]) -> Section:
    study = result["honesty"]
    size = study.get("size") or {}
    rows = [
        [name, *correlation_cells(study.get(key) or {}), *correlation_cells(size.get(key) or {})]
        for key, name in COEFFICIENTS.items()
    ]
    return section(
        "honesty",
        "Does the super-network tell the truth?",
        FIDELITY.format(k=study.get("k", len(study["pairs"]))),
        plot(figure([fidelity_panel(study, error_format(result))], columns=1, height=440, width=620)),
        table(("", "shared weights", "interval", "size alone", "interval of that"), rows),
    )


def correlation_cells(entry: Mapping[str, Any]) -> tuple[str, str]:
    """A correlation and its interval."""
    return decimal(number(entry, "value")), bounds(number(entry, "low"), number(entry, "high")) or DASH


def quantization_section(result: Mapping[str, Any]) -> Section:
    study, errors = result["quantized"], error_format(result)
    rows = [
        [
            *(fact(point.get(key)) for key in ("name", "bits", "runtime")),
            percent(number(point, "nonembedding_share")),
            count(number(point, "bytes"), "B"),
            milliseconds(*(number(point, "latency_ms", key) for key in ("median", "low", "high"))),
            *(errors.show(number(point, f"{split}_error"), 1) for split in ("validation", "test")),
        ]
        for point in study["points"]
    ]
    head = ("network", "bits", "runtime", "share", "weights", "latency")
    return section(
        "quantized",
        "Pruning and quantization",
        QUANTIZATION,
        plot(figure(quantization_panels(study, errors), columns=2, height=380)),
        table((*head, f"validation {errors.word}", f"test {errors.word}"), rows, left=(0, 2)),
    )
