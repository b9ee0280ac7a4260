"""`archwright select`: pick a sub-network of a finished run by budget, train it a little more, export it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archwright.compression.export import ExportResult, export_subnet
from archwright.compression.recovery import recover_subnet
from archwright.compression.run import Selection, open_finished
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.exporting.checkpoint import format_named
from archwright.exporting.formats import FORMATS
from archwright.reports.measures import SPACE, measure_of
from archwright.threads import choose_threads

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class SelectResult:
    """The pick, and what was done with it."""

    pick: Selection
    recovery: Mapping[str, Any] | None
    export: ExportResult | None

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": "archwright/select/1",
            "original": self.pick.run.result["original"],
            "selected": dict(self.pick.entry),
            "neighbours": self.pick.neighbours,
            "recovery": self.recovery,
            "export": None if self.export is None else self.export.as_json(),
        }

    def show(self, console: "Console") -> None:
        result = self.pick.run.result
        lines = [
            described("selected", self.pick.entry, result),
            *(described("beside", neighbour, result) for neighbour in self.pick.neighbours),
        ]
        if self.recovery:
            before, after = (self.recovery[key] for key in ("before", "after"))
            lines.append(f"recovered in {self.recovery['epochs']:g} epochs: {changes(before, after, result)}")
        lines += self.export.lines() if self.export else [f"next: {self.command()}"]
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)

    def command(self) -> str:
        recovered = " --recovered" if self.recovery else ""
        return (
            f"archwright export {self.pick.run.folder.path} --trial {self.pick.entry['trial']}{recovered} --to compact"
        )


def select(config: o.SelectConfig) -> SelectResult:
    """The best member of the front within the budget."""
    run, budget, loss, recovery = config.run, config.budget, config.loss, config.recovery
    export, target = config.export, config.target
    check_export(export, target)
    if recovery.recover_epochs or recovery.threads:
        choose_threads(recovery.threads)
    found = open_finished(run.run)
    pick = found.select(
        params=budget.params, latency_ms=budget.latency_ms, max_loss=loss.max_loss, total_params=budget.total_params
    )
    trial = pick.entry["trial"]
    trained = recover_subnet(found.folder, trial, pick.config, recovery) if recovery.recover_epochs else None
    written = None
    if export.to is not None:
        written = export_subnet(
            found.folder, trial, export.to, folder=target.out, int8=export.int8, recovered=trained is not None
        )
    return SelectResult(pick, trained, written)


def check_export(export: o.ExportOptions, target: o.TargetOptions) -> None:
    """Before anything is trained."""
    if export.to is not None:
        format_named(export.to, int8=export.int8)
    elif export.int8 or target.out is not None:
        raise BadInput(f"--out and --int8 are about the export; say --to {', '.join(FORMATS)} as well.")


def described(word: str, entry: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """One line about a member of the front against the original."""
    original, measure = result["original"], measure_of(result)
    milliseconds = entry["latency_ms"]["median"]
    lost = 100 * measure.lost(entry["validation_error"], original["validation_error"])
    return (
        f"{word}: trial {entry['trial']}, {entry['nonembedding_share']:.1%} of the non-embedding parameters "
        f"({entry['parameters']:,} in all), validation {measure.word} {shown(entry, 'validation_error', result)} "
        f"({lost:+.1f} {measure.unit}), test {measure.word} {shown(entry, 'test_error', result)}, "
        f"{milliseconds:.2f} ms ({milliseconds / original['latency_ms']['median']:.0%} of the original), "
        f"config {config_text(entry)}"
    )


def shown(entry: Mapping[str, Any], key: str, result: Mapping[str, Any]) -> str:
    """An error as it is written in text that one may search: with ordinary spaces, and none before a percent sign."""
    return measure_of(result).show(entry[key], 2).replace(SPACE, "")


def config_text(entry: Mapping[str, Any]) -> str:
    """The config, or how much of each layer is left when the config is a row of thousands of switches."""
    words = str(entry["config"])
    return words if len(words) < 400 else f"heads and units per layer {entry['keep']}"


def changes(before: Mapping[str, float], after: Mapping[str, float], result: Mapping[str, Any]) -> str:
    """Both errors before and after."""
    word = measure_of(result).word
    parts = {f"validation {word}": "validation_error", f"test {word}": "test_error"}
    return ", ".join(
        f"{name} {shown(before, key, result)} -> {shown(after, key, result)}" for name, key in parts.items()
    )
