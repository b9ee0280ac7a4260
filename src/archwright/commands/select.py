"""`archwright select`: pick a sub-network of a finished run by budget, train it a little more, export it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archwright.compression.export import ExportResult, export_subnet
from archwright.compression.methods import load_evaluator
from archwright.compression.recovery import recover
from archwright.compression.run import Selection, load_run
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.exporting.formats import FORMATS, find_format
from archwright.reports.compress.summary import export_options, latency_setup, loss_words
from archwright.reports.numbers import SPACE, error_format
from archwright.threads import choose_threads

if TYPE_CHECKING:
    from rich.console import Console


LATENCY_SETUP = ("batch", "length", "runtime", "threads")
"""What a latency is about, of the result's notes on how it was measured."""


@dataclass(frozen=True)
class SelectResult:
    """The pick, and what was done with it."""

    pick: Selection
    recovery: Mapping[str, Any] | None
    export: ExportResult | None

    def as_json(self) -> dict[str, Any]:
        latency = self.pick.run.result.get("latency") or {}
        return {
            "schema": "archwright/select/1",
            "original": self.pick.run.result["original"],
            "latency": {name: latency.get(name) for name in LATENCY_SETUP},
            "selected": dict(self.pick.entry),
            "neighbours": self.pick.neighbours,
            "recovery": self.recovery,
            "export": None if self.export is None else self.export.as_json(),
        }

    def show(self, console: "Console") -> None:
        result = self.pick.run.result
        lines = [
            describe_member("selected", self.pick.entry, result),
            *([self.pick.note] if self.pick.note else []),
            *(describe_member("beside", neighbour, result) for neighbour in self.pick.neighbours),
        ]
        if self.recovery:
            before, after, word = self.recovery["before"], self.recovery["after"], error_format(result).word
            changes = ", ".join(
                f"{rows} {word} {format_error(before, key, result)} -> {format_error(after, key, result)}"
                for rows, key in (("validation", "validation_error"), ("test", "test_error"))
            )
            repair = self.recovery["repair"]
            start = "the weights it was searched with" if repair == "none" else f"weights after {repair} repair"
            lines.append(f"recovered in {self.recovery['epochs']:g} epochs from {start}: {changes}")
        if self.export:
            lines += self.export.lines()
        else:
            run, recovered = self.pick.run.folder.path, " --recovered" if self.recovery else ""
            to = export_options(result)
            lines.append(f"next: archwright export {run} --trial {self.pick.entry['trial']}{recovered} {to}")
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)


def select(config: o.SelectConfig) -> SelectResult:
    """The best member of the front within the budget, trained a little more and exported where that is wanted."""
    budget, recovery, export = config.budget, config.recovery, config.export
    validate(config)
    if recovery.recover_epochs or recovery.threads:
        choose_threads(recovery.threads)
    run = load_run(config.run.run)
    pick = run.select(
        params=budget.params,
        latency_ms=budget.latency_ms,
        max_loss=config.loss.max_loss,
        surely=config.loss.surely,
        total_params=budget.total_params,
        flops=config.costs.flops,
        memory=config.costs.memory,
        int8_size=config.costs.int8_size,
    )
    trial, recovered, exported = pick.entry["trial"], None, None
    if recovery.recover_epochs:
        evaluator = load_evaluator(run.folder, device=run.folder.settings["device"])
        recovered = recover(evaluator, pick.config, trial, recovery)
    if export.to is not None:
        exported = export_subnet(
            *(load_evaluator(run.folder), trial, pick.config),
            to=export.to,
            folder=config.target.out,
            int8=export.int8,
            recovered=recovered is not None,
        )
    return SelectResult(pick, recovered, exported)


def validate(config: o.SelectConfig) -> None:
    """Before anything is trained."""
    if config.recovery.repair is not None and not config.recovery.recover_epochs:
        raise BadInput("--repair is about what recovery starts from; say --recover-epochs as well.")
    export = config.export
    if export.to is not None:
        find_format(export.to, int8=export.int8)
    elif export.int8 or config.target.out is not None:
        raise BadInput(f"--out and --int8 are about the export; say --to {', '.join(FORMATS)} as well.")


def describe_member(word: str, entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """One line about a member of the front against the original."""
    original, measure, setup = result["original"], error_format(result), latency_setup(result)
    milliseconds = entry["latency_ms"]["median"]
    config = str(entry["config"])
    if len(config) >= 400:  # a row of thousands of switches
        config = f"heads and units per layer {entry['keep']}"
    return (
        f"{word}: trial {entry['trial']}, {entry['nonembedding_share']:.1%} of the non-embedding parameters "
        f"({entry['parameters']:,} in all), validation {measure.word} {format_error(entry, 'validation_error', result)}"
        f" ({loss_words(result, entry, 'validation_error')}), test {measure.word} "
        f"{format_error(entry, 'test_error', result)} ({loss_words(result, entry, 'test_error')}), "
        f"{milliseconds:.2f} ms ({setup}{'; ' if setup else ''}"
        f"{milliseconds / original['latency_ms']['median']:.0%} of the original), "
        f"{writing_words(entry, original)}{size_words(entry)}config {config}"
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
