"""`archwright select`: pick a sub-network of a finished run by budget, train it a little more, export it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from archwright.errors import BadInput
from archwright.export import FORMATS
from archwright.export.checkpoint import format_named
from archwright.jobs import options as o
from archwright.jobs.amounts import thread_count
from archwright.jobs.export import Exported, exported
from archwright.jobs.networks import recover
from archwright.jobs.run import Selected, finished

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Answer:
    """The pick, and what was done with it."""

    pick: Selected
    recovery: Mapping[str, Any] | None
    export: Exported | None

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
        original, entry = self.pick.run.result["original"], self.pick.entry
        lines = [
            described("selected", entry, original),
            *(described("beside", n, original) for n in self.pick.neighbours),
        ]
        if self.recovery:
            before, after = (self.recovery[key] for key in ("before", "after"))
            lines.append(f"recovered in {self.recovery['epochs']:g} epochs: validation error {percents(before, after)}")
        lines += self.export.lines() if self.export else [f"next: {self.command()}"]
        for line in lines:
            console.print(line, soft_wrap=True, highlight=False)

    def command(self) -> str:
        recovered = " --recovered" if self.recovery else ""
        return (
            f"archwright export {self.pick.run.folder.path} --trial {self.pick.entry['trial']}{recovered} --to compact"
        )


def select(
    run: o.Run, budget: o.Budget, loss: o.Loss, recovery: o.Recovery, export: o.Export, target: o.Target
) -> Answer:
    """The best member of the front within the budget."""
    check_export(export, target)
    torch.set_num_threads(thread_count(recovery.threads))
    found = finished(run.run)
    pick = found.select(
        params=budget.params, latency_ms=budget.latency_ms, max_loss=loss.max_loss, total_params=budget.total_params
    )
    trial = pick.entry["trial"]
    trained = recover(found.folder, trial, pick.config, recovery) if recovery.recover_epochs else None
    written = None
    if export.to is not None:
        written = exported(
            found.folder, trial, export.to, folder=target.out, int8=export.int8, recovered=trained is not None
        )
    return Answer(pick, trained, written)


def check_export(export: o.Export, target: o.Target) -> None:
    """Before anything is trained."""
    if export.to is not None:
        format_named(export.to, int8=export.int8)
    elif export.int8 or target.out is not None:
        raise BadInput(f"--out and --int8 are about the export; say --to {', '.join(FORMATS)} as well.")


def described(word: str, entry: Mapping[str, Any], original: Mapping[str, Any]) -> str:
    """One line about a member of the front against the original."""
    milliseconds = entry["latency_ms"]["median"]
    lost = 100 * (entry["validation_error"] - original["validation_error"])
    return (
        f"{word}: trial {entry['trial']}, {entry['nonembedding_share']:.1%} of the non-embedding parameters "
        f"({entry['parameters']:,} in all), validation error {entry['validation_error']:.2%} ({lost:+.1f} points), "
        f"test error {entry['test_error']:.2%}, {milliseconds:.2f} ms "
        f"({milliseconds / original['latency_ms']['median']:.0%} of the original), config {config_text(entry)}"
    )


def config_text(entry: Mapping[str, Any]) -> str:
    """The config, or how much of each layer is left when the config is a row of thousands of switches."""
    words = str(entry["config"])
    return words if len(words) < 400 else f"heads and units per layer {entry['keep']}"


def percents(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    validation, test = ((before[n], after[n]) for n in ("validation_error", "test_error"))
    return f"{validation[0]:.2%} -> {validation[1]:.2%}, test error {test[0]:.2%} -> {test[1]:.2%}"
