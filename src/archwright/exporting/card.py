"""The model card of an export: what it is, where it comes from, how good and how fast it is, and how to load it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from archwright.exporting.formats import FORMATS, ExportFormat
from archwright.exporting.kinds import task_export
from archwright.exporting.parity import Parity, difference_words, latency_words

HUB_IDS = {"minilm": "sentence-transformers/all-MiniLM-L6-v2", "smollm2": "HuggingFaceTB/SmolLM2-135M"}
"""What the embedded models are called on the hub."""
LICENCES = {"minilm": "apache-2.0", "smollm2": "apache-2.0"}


@dataclass(frozen=True)
class CardFacts:
    """What only the run knows about a network."""

    model: str
    """The checkpoint that it was cut out of: an embedded model, a hub id or a folder."""
    task: str
    metric: str
    score: float
    """Of the metric on the test rows."""
    rows: int
    """Test rows."""
    loss: str
    """What it loses against the original, with its interval."""
    command: str
    """The command line that exports it again."""

    @property
    def base_model(self) -> str | None:
        """The hub id of the checkpoint; None of a folder, whose path says nothing to others."""
        return None if Path(self.model).is_dir() else HUB_IDS.get(self.model, self.model)

    @property
    def licence(self) -> str | None:
        """That of the checkpoint, as far as it says one."""
        card = Path(self.model) / "README.md"
        if not card.is_file():
            return LICENCES.get(self.model)
        try:
            licence: str | None = ModelCard.load(card).data.license
        except (OSError, ValueError):
            return None
        return licence


def model_card(
    parity: Parity, form: ExportFormat, *, name: str, joint: str = "", facts: CardFacts | None = None
) -> str:
    """Markdown: how to load it, how good it is, what is left of the network, how exact it is.

    `joint` is what stands between two texts where the tokenizer puts nothing there, in a snippet of code.
    """
    kind, summary = task_export(parity.kind), FORMATS.descriptions()[parity.format]
    usage = form.usage(kind).format(folder=name, trust=form.trust, joint=joint)
    about_pooling = form.notes.get(parity.pooling) if kind.pools else None
    about_kind = kind.notes.get(parity.format)
    about_kind = about_kind and about_kind.replace("{folder}", name).replace("{trust}", form.trust)
    notes = [text for text in (about_pooling, about_kind) if text]
    rows = [f"| {place} | {heads} | {units} |" for place, (heads, units) in enumerate(parity.layers, 1)]
    parts = [
        f"---\n{card_data(parity, form, name, facts).to_yaml()}\n---",
        f"# {name}",
        f"A {parity.family} network with {parity.parameters:,} parameters, as `{parity.format}`: {summary}.",
        f"```python\n{usage}```",
        *notes,
        *(error_section(facts) if facts else []),
        "\n".join(["## What is left\n", "| layer | heads | units |", "|---|---|---|", *rows]),
        *(["\n".join(f"- {note}" for note in parity.notes)] if parity.notes else []),
        "\n".join(["## Parity\n", *parity_lines(parity, form), "All numbers are in `parity.json`."]),
    ]
    return "\n\n".join(parts) + "\n"


def card_data(parity: Parity, form: ExportFormat, name: str, facts: CardFacts | None) -> ModelCardData:
    """What the hub reads: library, task, base model, licence, and the score as a model index."""
    kind = task_export(parity.kind)
    known: dict[str, Any] = {
        "library_name": form.library,
        "pipeline_tag": kind.tag,
        "tags": ["archwright", parity.family],
    }
    if facts is None:
        return ModelCardData(**known)
    result = EvalResult(
        task_type=kind.tag,
        dataset_type=facts.task,
        dataset_name=facts.task,
        dataset_split="test",
        metric_type=facts.metric,
        metric_value=round(facts.score, 4),
        metric_name=f"{facts.metric} on {facts.rows:,} test rows",
    )
    return ModelCardData(
        **known, base_model=facts.base_model, license=facts.licence, model_name=name, eval_results=[result]
    )


def error_section(facts: CardFacts) -> list[str]:
    about = f"{facts.metric} {facts.score:.4g} on {facts.rows:,} test rows of {facts.task}; it {facts.loss}."
    return [f"## How good it is\n\n{about}\n\nCut out of `{Path(facts.model).name}` with:\n\n```\n{facts.command}\n```"]


def test_rows(parity: Parity) -> str:
    return "" if parity.test_rows is None else f" on {parity.test_rows:,} rows"


def parity_lines(parity: Parity, form: ExportFormat) -> list[str]:
    lines = [f"Against the network that was exported: {difference_words(parity.difference)}."]
    lines.append(f"Limit: {parity.limit:.0e} of the largest logit or of 1. Weights on disk: {parity.bytes:,} bytes.")
    if (beside := f"{form.weights}.data") in parity.files:
        lines.append(f"`{form.weights}` needs `{beside}` beside it.")
    if parity.latency:
        lines.append(f"Latency: {latency_words(parity.latency)}.")
    if int8 := parity.int8:
        lines.append(f"`{int8.file}` (8-bit, {int8.bytes:,} bytes): {difference_words(int8.difference)}.")
        lines += [f"Its latency: {latency_words(int8.latency)}."] if int8.latency else []
        if int8.test_error is not None and parity.test_error is not None:
            lines.append(
                f"Test error{test_rows(parity)}: {parity.test_error:.4f}, with 8-bit weights {int8.test_error:.4f}."
            )
    return lines
