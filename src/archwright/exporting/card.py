"""The model card of an export: how to load it, what is left of the network, how exact it is."""

from collections.abc import Mapping

from archwright.exporting.formats import Format
from archwright.exporting.kinds import KINDS
from archwright.exporting.parity import Difference, Parity

HEADER = """\
---
library_name: {library}
pipeline_tag: {tag}
tags: [archwright, {family}]
---
# {name}

A {family} network with {parameters:,} parameters, as `{format}`: {summary}.
"""


def model_card(parity: Parity, form: Format, *, name: str, joint: str = "") -> str:
    """Markdown; `joint` is what stands between two texts where the tokenizer puts nothing there."""
    kind = KINDS[parity.kind]
    header = HEADER.format(name=name, library=form.library, summary=form.description, tag=kind.tag, **vars(parity))
    usage = f"```python\n{form.usage(kind).format(folder=name, trust=form.trust, joint=joint)}```\n"
    notes = [found[key] for found, key in ((form.notes, parity.pooling), (kind.notes, parity.format)) if key in found]
    return "\n".join([header, usage, *notes, layer_table(parity), parity_lines(parity, form.weights)])


def layer_table(parity: Parity) -> str:
    rows = [f"| {place} | {heads} | {units} |" for place, (heads, units) in enumerate(parity.layers, 1)]
    return "\n".join(["## What is left", "", "| layer | heads | units |", "|---|---|---|", *rows, ""])


def parity_lines(parity: Parity, weights: str) -> str:
    lines = ["## Parity", "", f"Against the network that was exported: {described(parity.difference)}."]
    lines.append(f"Limit: {parity.limit:.0e} of the largest logit or of 1. Weights on disk: {parity.bytes:,} bytes.")
    if (beside := f"{weights}.data") in parity.files:
        lines.append(f"`{weights}` needs `{beside}` beside it.")
    if parity.latency:
        lines.append("Latency: " + ", ".join(f"{name} {value:.3g}" for name, value in parity.latency.items()) + ".")
    if parity.int8:
        lines.append(f"`{parity.int8.file}` (8-bit, {parity.int8.bytes:,} bytes): {described(parity.int8.difference)}.")
    return "\n".join([*lines, "All numbers are in `parity.json`.", ""])


def described(difference: Difference) -> str:
    shapes = ", ".join(" x ".join(f"{size:.0f}" for size in sizes_of(shape)) for shape in difference.shapes)
    same = difference.same_predictions
    labels = "" if same is None else f", {same:.1%} of the predictions equal"
    return f"largest logit difference {difference.largest:.1e} on batches of {shapes}{labels}"


def sizes_of(shape: Mapping[str, float]) -> list[float]:
    """The sizes of a batch in their order: rows, choices if there are any, length."""
    return [shape[name] for name in ("rows", "choices", "length") if name in shape]
