"""`archwright select`: pick a sub-network of a finished run by budget, train it a little more, export it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from shlex import quote
from typing import TYPE_CHECKING, Any

from archwright.compression.export import ExportResult, export_subnet
from archwright.compression.methods import load_evaluator
from archwright.compression.recovery import recover
from archwright.compression.run import FinishedRun, Selection, load_run
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.exporting.formats import FORMATS, find_format
from archwright.parallel.launcher import launched_processes, processes_here
from archwright.progress import quiet
from archwright.reports.compress.notebook import html_table
from archwright.reports.compress.summary import describe_member, export_options, format_error, member_table
from archwright.reports.numbers import error_format
from archwright.threads import choose_threads
from archwright.training.distributed import ProcessGroup, join_launched
from archwright.training.lora import check_lora

if TYPE_CHECKING:
    from rich.console import Console


LATENCY_SETUP = ("batch", "length", "runtime", "threads")
"""What a latency is about, of the result's notes on how it was measured."""


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        table, rest = html_table(member_table(self.pick.run.result, self.pick.entry)), self.lines()[1:]
        return table + "".join(f"<p>{escape(line)}</p>" for line in rest)

    def show(self, console: "Console") -> None:
        for line in self.lines():
            console.print(line, soft_wrap=True, highlight=False)

    def lines(self) -> list[str]:
        """The pick, those beside it on the front, and what was done with it."""
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
            epochs = self.recovery["epochs"]
            rank = self.recovery.get("lora")
            adapters = f" through adapters of rank {rank}" if rank else ""
            lines.append(f"recovered in {epochs:g} epoch{'' if epochs == 1 else 's'}{adapters} from {start}: {changes}")
        if self.export:
            lines += self.export.lines()
        else:
            run, recovered = quote(str(self.pick.run.folder.path)), " --recovered" if self.recovery else ""
            to = export_options(result)
            lines.append(f"next: archwright export {run} --trial {self.pick.entry['trial']}{recovered} {to}")
        return lines


def select(config: o.SelectConfig) -> SelectResult:
    """The best member of the front within the budget, trained a little more and exported where that is wanted.

    Of several processes the first one picks and exports, and all train.
    """
    validate(config)
    run = load_run(config.run.run)
    group = join_launched(run.folder.settings["device"])
    if config.recovery.recover_epochs or config.recovery.threads:
        choose_threads(config.recovery.threads, processes_here())
    with group.fail_together():
        if group.first:
            return pick_and_recover(config, run, group)
        with quiet():
            pick = run.member(group.agree(0))
            return SelectResult(pick, recover_pick(pick, config.recovery, group), None)


def pick_and_recover(config: o.SelectConfig, run: FinishedRun, group: ProcessGroup) -> SelectResult:
    """What the first process does."""
    budget, recovery, export = config.budget, config.recovery, config.export
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
        with run.folder.lock():
            group.agree(trial)
            recovered = recover_pick(pick, recovery, group)
    if export.to is not None:
        exported = export_subnet(
            *(load_evaluator(run.folder, training=False), trial, pick.config),
            to=export.to,
            folder=config.target.out,
            int8=export.int8,
            recovered=recovered is not None,
        )
    return SelectResult(pick, recovered, exported)


def recover_pick(pick: Selection, recovery: o.RecoveryOptions, group: ProcessGroup) -> dict[str, Any]:
    """The training, of all processes together."""
    folder = replace(pick.run.folder, writes=group.first)
    evaluator = load_evaluator(folder, device=folder.settings["device"])
    evaluator = replace(evaluator, context=replace(evaluator.context, group=group))
    return recover(evaluator, pick.config, pick.entry["trial"], recovery)


def validate(config: o.SelectConfig) -> None:
    """Before anything is trained."""
    if launched_processes() > 1 and not config.recovery.recover_epochs:
        raise BadInput(
            f"select without --recover-epochs is the work of one process, got {launched_processes()} of them; leave "
            "out torchrun."
        )
    if config.recovery.repair is not None and not config.recovery.recover_epochs:
        raise BadInput("--repair is about what recovery starts from; say --recover-epochs as well.")
    if config.recovery.lora:
        if not config.recovery.recover_epochs:
            raise BadInput("--lora is about how recovery trains; say --recover-epochs as well.")
        check_lora()
    export = config.export
    if export.to is not None:
        find_format(export.to, int8=export.int8)
    elif export.int8 or config.target.out is not None:
        raise BadInput(f"--out and --int8 are about the export; say --to {', '.join(FORMATS)} as well.")
