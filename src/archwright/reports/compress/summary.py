"""The front in plain sentences, in the terminal and in commands: what page, comparison and terminal share."""

import math
import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from archwright.reports.figures.fronts import ERRORS, plot_points
from archwright.reports.numbers import (
    DASH,
    SPACE,
    bounds,
    count,
    error_format,
    milliseconds,
    number,
    percent,
    plural,
    signed,
)
from archwright.reports.tables import ReportTable, table
from archwright.reports.text_plot import Canvas, Point

GENERATION = ("generation_ms", "median")
"""Where a network has the milliseconds of one written token, if it was measured."""

HALF = 0.52
"""Largest share that counts as half: three of six layers are 51 % of a MiniLM, because its head stays."""
Member = Mapping[str, Any]
LOSSES = {"validation_error": "loss", "test_error": "test_loss"}
"""Where a member of the front has the interval of what it loses, by the rows it was measured on."""
HEIGHT = 14
"""Rows of the plot in the terminal."""


def best_of(result: Mapping[str, Any], members: Sequence[Member]) -> Member:
    """The one to take of these members of the front, where any size is allowed. Test errors are never used to choose.

    Of re-scored members the largest that no smaller one of them beats by more than two standard errors of their
    difference (`beaten_by`): the lowest of several noisy errors is low by luck. Of others the lowest validation error.
    """
    if (result.get("selection") or {}).get("rule") != "halves":
        return min(members, key=lambda member: (member["validation_error"], member.get("trial", 0)))
    order = sorted(members, key=lambda member: (member["nonembedding_share"], member["trial"]))
    trials = [member["trial"] for member in order]
    unbeaten = [member for n, member in enumerate(order) if not set(trials[:n]) & set(member["beaten_by"])]
    return unbeaten[-1]


def half_size_member(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What `select` answers for about half of the non-embedding parameters; None when all members are larger."""
    points = plot_points(result["front"], "validation_error")
    small = [result["front"][place] for place, (share, _) in points.items() if share <= HALF]
    return best_of(result, small) if small else None


def shared_error(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """The error both networks have: test when there is a test set, validation otherwise."""
    both = None not in (number(member, "test_error"), number(result["original"], "test_error"))
    return "test_error" if both else "validation_error"


def loss(result: Mapping[str, Any], member: Mapping[str, Any], key: str | None = None) -> float | None:
    """What is lost against the original, as the metric measures it (0.01: a point, or 1 %); positive is worse.

    `key` names the error; if not said, that of the test rows where there are any.
    """
    key = key or shared_error(result, member)
    error, original = number(member, key), number(result["original"], key)
    return None if error is None or original is None else error_format(result).lost(error, original)


def loss_interval(member: Mapping[str, Any], key: str) -> tuple[float, float, int] | None:
    """Bounds of the 95 % interval of the loss in `loss` or `test_loss`, and on how many rows; None of older runs."""
    low, high, rows = (number(member, LOSSES[key], part) for part in ("low", "high", "rows"))
    return None if low is None or high is None or rows is None else (low, high, int(rows))


def loss_words(result: Mapping[str, Any], member: Mapping[str, Any], key: str) -> str:
    """loses 0.8 points (-0.4 to 2.0, 1,000 rows); a gain is a negative loss, ordinary minus signs for a terminal."""
    lost, interval = loss(result, member, key), loss_interval(member, key)
    if lost is None:
        return "loss unknown"
    around = ""
    if interval is not None:
        low, high, rows = interval
        around = f" ({100 * low:.1f} to {100 * high:.1f}, {rows:,} rows)"
    return f"loses {100 * lost:.1f} {error_format(result).unit}{around}"


def keep_words(member: Member) -> str:
    """What a member keeps, from the first layer to the last: keeps 4 of 6 layers (heads/units 11/1324, 2 x 4/117, -).

    A configuration of the search is for machines: it may be a row of thousands of packed switches.
    """
    layers = [f"{heads}/{units}" if heads or units else "-" for heads, units in member["keep"]]
    runs = [(layer, len(list(equal))) for layer, equal in groupby(layers)]
    shown = ", ".join(layer if times == 1 else f"{times} x {layer}" for layer, times in runs)
    source = member.get("source")
    made = f", made as the candidate {source}" if source and source != "supernet" else ""
    return f"keeps {sum(layer != '-' for layer in layers)} of {len(layers)} layers (heads/units {shown}){made}"


def selection_words(result: Mapping[str, Any]) -> str:
    """Which rows chose the members, in one line."""
    selection = result.get("selection") or {}
    if selection.get("rule") == "halves":
        return (
            f"chosen: {selection['search_rows']:,} validation rows searched, {selection['holdout_rows']:,} others "
            f"re-scored {selection['rescored']} networks, the best three of every size; losses have 95 % intervals"
        )
    return f"chosen: {selection.get('note') or 'by all validation rows, which the search minimised'}"


def latency_setup(result: Mapping[str, Any]) -> str:
    """What every latency of a result is about: 24 tokens, torch, 1 thread; empty where none was measured."""
    latency = result.get("latency") or {}
    length, threads = number(latency, "length"), int(number(latency, "threads") or 1)
    if length is None:
        return ""
    runtime = latency.get("runtime", "torch")  # earlier versions knew no other
    device = latency.get("device", "cpu")  # the same
    where = plural(threads, "thread", "threads") if device == "cpu" else device
    return f"{length:.0f} tokens, {runtime}, {where}"


def error_words(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """The member's error beside the original's."""
    key, errors = shared_error(result, member), error_format(result)
    here, original = (errors.show(number(network, key), 1) for network in (member, result["original"]))
    return f"{ERRORS[key]} {errors.word} {here} instead of {original}"


def headline(result: Mapping[str, Any]) -> str:
    """The pick of at most half the size, spoken plainly; rows that did not choose it may like another one better."""
    if not result["front"]:
        return "The search found no sub-network on the front yet."
    member = half_size_member(result)
    if warning := constant_warning(result):
        return warning
    if member is None:
        return "No sub-network on the front has about half of the non-embedding parameters (52 %) or fewer."
    size = f"{percent(member['nonembedding_share'])} of the non-embedding parameters{total_words(result, member)}"
    lost, errors = loss(result, member), error_format(result)
    if lost is None:
        return f"The best sub-network of half the size or less keeps {size}; the original has no error to compare with."
    interval = loss_interval(member, shared_error(result, member))
    around = f" ({bounds(100 * interval[0], 100 * interval[1], 1)}, {interval[2]:,} rows)" if interval else ""
    amount, both = f"{abs(lost) * 100:.1f} {errors.unit}{around}", error_words(result, member)
    if lost > errors.near:
        kept = f"it keeps {size} and loses {amount}, {both}"
        return f"The pick of half the size or less loses more than {errors.near_words}: {kept}."
    if lost <= 0:
        sure = f"; its loss is {signed(lost * 100)} {errors.unit}{around}" if around else ""
        return f"A sub-network with {size} is no worse than the original: {both}{sure}."
    return f"A sub-network with {size} stays within {errors.near_words} of the original: it loses {amount}, {both}."


def total_words(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """All parameters, embeddings included, of a member and of the untouched checkpoint, in brackets."""
    whole = number(result.get("checkpoint") or result["original"], "parameters")
    here = number(member, "parameters")
    if here is None or not whole:
        return ""
    return f" ({percent(here / whole)} of all, {count(here)} of {count(whole)})"


def constant_warning(result: Mapping[str, Any]) -> str | None:
    """One sentence where the original is no better than always answering the same class; None otherwise."""
    constant, key = result.get("constant"), "test_error"
    error = number(result["original"], key)
    if constant is None or error is None or error < constant[key]:
        return None
    errors = error_format(result)
    both = f"test {errors.word} {errors.show(error, 1)}, {errors.show(constant[key], 1)} for the constant answer"
    ways = "train it longer (--original-epochs), check --labels and the rows; nothing below can be relied on"
    return f"The original does not beat always answering {constant['answer']!r} ({both}): {ways}."


def embedding_lines(result: Mapping[str, Any]) -> list[str]:
    """What was made smaller beside the layers, in plain sentences; nothing where embeddings are as they were."""
    checkpoint, vocabulary, cut = result.get("checkpoint"), result.get("vocabulary"), result.get("cut")
    lines: list[str] = []
    width = result.get("width")
    if checkpoint is None or (vocabulary is None and width is None and result.get("embedding_rank") is None):
        return []
    if vocabulary is not None:
        touched, rows = vocabulary["texts_touched"]["test"], result["rows"]["test"]
        lines.append(
            f"vocabulary: {vocabulary['tokens']:,} of {vocabulary['of']:,} tokens ({vocabulary['rule']}); "
            f"{100 * touched:.1f} % of {rows:,} test texts contain removed tokens"
        )
        lines += [vocabulary["note"]] if vocabulary["note"] else []
        if result["metric"] == "perplexity":
            bits = result["original"].get("test_bits_per_byte")
            lines.append(
                "perplexities are per token of this vocabulary and cannot be compared with those of another one; "
                f"the original has {bits:.3f} bits per byte"
            )
    rank = f", embedding rank {result['embedding_rank']}" if result["embedding_rank"] else ""
    if width is not None:
        lines.append(
            f"hidden width: {width} of {checkpoint['width']} channels, chosen by their importance for the task"
        )
    before, after = checkpoint["parameters"], (cut or result["original"])["parameters"]
    name = "after fine-tuning" if cut else "of the original"
    what = "embeddings" if width is None else "embeddings and width"
    line = f"{what}: {before / 1e6:.1f}M parameters of the checkpoint -> {after / 1e6:.1f}M {name}{rank}"
    if cut:
        errors, lost = error_format(result), loss(result, cut)
        line += "" if lost is None else f"; without training that loses {signed(lost * 100)} {errors.unit}"
    return [*lines, line]


def export_options(result: Mapping[str, Any]) -> str:
    """How the networks of a run are exported for what it was made for; earlier versions knew one way."""
    return str(result.get("export_options") or "--to compact")


def run_words(result: Mapping[str, Any]) -> str:
    """The folder of a run for a command line, quoted for a shell."""
    return shlex.quote(str(result.get("folder") or result.get("run", "RUN")))


def member_commands(result: Mapping[str, Any], member: Mapping[str, Any]) -> dict[str, str]:
    """The command lines that pick and export this member, quoted for a shell."""
    run = run_words(result)
    export = f"archwright export {run} --trial {shlex.quote(str(member.get('trial')))} {export_options(result)}"
    share = number(member, "nonembedding_share")
    if share is None:
        return {"export": export}
    budget = math.ceil(share * 10_000) / 100  # rounded up, so that this member still fits
    return {"select": f"archwright select {run} --params {budget:g}%", "export": export}


def front_table(result: Mapping[str, Any]) -> ReportTable:
    """The front against the original, smallest first; a tick marks members near the original (`ErrorFormat.near`)."""
    errors = error_format(result)
    written = ("per token",) if number(result["original"], *GENERATION) is not None else ()
    head = ("trial", "share", "parameters", "FLOPs", "latency", *written, "int8", "validation", "test")
    rows: list[list[str]] = []
    for network in ({"trial": "original", "nonembedding_share": 1.0, **result["original"]}, *result["front"]):
        rows.append(
            [
                str(network.get("trial")),
                percent(number(network, "nonembedding_share")),
                count(number(network, "parameters")),
                count(number(network, "flops")),
                milliseconds(number(network, "latency_ms", "median")),
                *(milliseconds(number(network, *GENERATION)) for _ in written),
                count(number(network, "int8_bytes"), "B"),
                *(errors.show(number(network, error), 1) for error in ERRORS),
                loss_cell(result, network) if rows else "",
            ]
        )
    setup = latency_setup(result)
    captions = [f"latency: milliseconds for one text ({setup}), the original's too"] if setup else []
    return table(
        (*head, errors.loss_heading), rows, title=headline(result), left=(), styles={0: "bold"}, captions=captions
    )


def loss_cell(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """+0.8 (-0.4 to 2.0), and a tick near the original."""
    lost, interval = loss(result, member), loss_interval(member, shared_error(result, member))
    if lost is None:
        return DASH
    around = "" if interval is None else f" ({bounds(100 * interval[0], 100 * interval[1], 1)})"
    return f"{signed(lost * 100)}{around} {'✓' if lost <= error_format(result).near else ' '}"


def draw_front(result: Mapping[str, Any], width: int = 72) -> str:
    """Validation error over the share of non-embedding parameters, drawn with characters, at most `width` wide."""
    front, tried = share_points(result["front"]), share_points(result.get("trials", ()))
    original = share_points([{"nonembedding_share": 1.0, **result["original"]}])
    supernet = share_points([{"nonembedding_share": 1.0, **(result.get("supernet") or {})}])
    if not front + original + supernet:
        return "Nothing to plot: no network has a validation error.\n"
    everything = front + tried + original + supernet
    canvas = Canvas.around(everything, columns=max(width - 9, 20), rows=HEIGHT, errors=error_format(result))
    canvas.draw_steps(sorted(front))
    for points, mark in ((tried, "·"), (front, "●"), (supernet, "□"), (original, "◆")):
        canvas.draw_marks(points, mark)
    key = ["● front", "· tried", "◆ original", *(["□ super-network"] if supernet else [])]
    return canvas.text(below="share of the non-embedding parameters", key=key)


def share_points(networks: Sequence[Mapping[str, Any]]) -> list[Point]:
    return list(plot_points(networks, "validation_error").values())


def describe_member(word: str, entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """One line about a member of the front against the original."""
    original, measure, setup = result["original"], error_format(result), latency_setup(result)
    milliseconds = entry["latency_ms"]["median"]
    return (
        f"{word}: trial {entry['trial']}, {entry['nonembedding_share']:.1%} of the non-embedding parameters "
        f"({entry['parameters']:,} in all), validation {measure.word} {format_error(entry, 'validation_error', result)}"
        f" ({loss_words(result, entry, 'validation_error')}), test {measure.word} "
        f"{format_error(entry, 'test_error', result)} ({loss_words(result, entry, 'test_error')}), "
        f"{milliseconds:.2f} ms ({setup}{'; ' if setup else ''}"
        f"{milliseconds / original['latency_ms']['median']:.0%} of the original), "
        f"{writing_words(entry, original)}{size_words(entry)}{keep_words(entry)}"
    )


def writing_words(entry: Mapping[str, Any], original: Mapping[str, Any]) -> str:
    """Of language models: the time of one more token; nothing where it was not measured."""
    here, before = (network.get("generation_ms") for network in (entry, original))
    if not here or not before:
        return ""
    return f"{here['median']:.2f} ms per written token ({here['median'] / before['median']:.0%} of the original), "


def size_words(entry: Mapping[str, Any]) -> str:
    """Bytes that were measured because a budget was about them; nothing where none were."""
    words, memory = "", entry.get("memory")
    if memory:
        disk, peak = (memory[key] / 1e6 for key in ("disk", "peak"))
        words += f"{disk:.1f} MB on disk and {peak:.1f} MB of peak memory ({memory['length']} tokens), "
    if entry.get("int8_file_bytes"):
        error = entry.get("int8_test_error")  # of runs for that export
        tested = "" if error is None else f" with a test error of {100 * error:.2f}%"
        words += f"{entry['int8_file_bytes'] / 1e6:.1f} MB as int8 ONNX{tested}, "
    return words


def format_error(entry: Mapping[str, Any], key: str, result: Mapping[str, Any]) -> str:
    """An error as it is written in text that one may search: with ordinary spaces, and none before a percent sign."""
    return error_format(result).show(entry[key], 2).replace(SPACE, "")


def member_table(result: Mapping[str, Any], member: Member) -> ReportTable:
    """One network beside the original, a fact per row."""
    errors, original = error_format(result), result["original"]

    def column(network: Member, share: float) -> dict[str, str]:
        return {
            "non-embedding parameters": f"{count(number(network, 'nonembedding_parameters'))} ({percent(share, 1)})",
            "parameters in all": count(number(network, "parameters")),
            "FLOPs": count(number(network, "flops")),
            "latency": milliseconds(number(network, "latency_ms", "median")),
            **(
                {"per written token": milliseconds(number(network, *GENERATION))}
                if number(network, *GENERATION)
                else {}
            ),
            **{f"{name} {errors.word}": errors.show(number(network, key), 2) for key, name in ERRORS.items()},
        }

    ours, theirs = column(member, member["nonembedding_share"]), column(original, 1.0)
    rows = [[name, ours[name], theirs.get(name, DASH)] for name in ours]
    rows += [[f"{ERRORS[key]} loss", loss_words(result, member, key), ""] for key in LOSSES]
    rows.append(["keeps", keep_words(member).removeprefix("keeps "), ""])
    title = f"trial {member['trial']} of {result['model']}, shrunk for {result['task']}"
    return table(("", "selected", "original"), rows, title=title, left=(0, 1, 2))
