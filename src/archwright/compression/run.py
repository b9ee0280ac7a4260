"""A finished run: its front, and a sub-network picked from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from archwright.compression.budgets.limits import Limits, costs_of_front, parse_limits, read_picked
from archwright.configs.budget import parse_points
from archwright.errors import BadInput, NothingFits
from archwright.reports.compress.front_picture import front_svg
from archwright.reports.compress.notebook import FrontTable, front_figure, html_table
from archwright.reports.compress.summary import (
    best_of,
    describe_member,
    draw_front,
    embedding_lines,
    export_options,
    front_table,
    headline,
    loss_interval,
    member_table,
    selection_words,
)
from archwright.reports.numbers import error_format
from archwright.store import RunFolder, existing_run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
    from rich.console import Console

    from archwright.networks.pruned import PrunedNetwork


@dataclass(frozen=True, repr=False)
class FinishedRun:
    """What `compress` found."""

    folder: RunFolder

    def __repr__(self) -> str:
        result = self.folder.note("result")
        found = f": {headline(result)}" if result and "front" in result else ""
        return f"FinishedRun({str(self.folder.path)!r}){found}"

    def _repr_html_(self) -> str:
        """In a notebook: the front as a picture and as a table, and where the whole report is."""
        tested = any(entry.get("test_error") is not None for entry in self.front)
        picture = front_svg(self.result, "test_error" if tested else "validation_error")
        return f"{picture}{html_table(front_table(self.result))}<p>report: {escape(str(self.folder.report))}</p>"

    @cached_property
    def result(self) -> dict[str, Any]:
        result = self.folder.note("result")
        if result is None:
            raise BadInput(f"{self.folder.path} has no result yet; run the same `archwright compress` command again.")
        if "front" not in result:
            runs = ", ".join(str(self.folder.path / name) for name in result.get("methods", ()))
            raise BadInput(f"one run is needed, got the comparison {self.folder.path}; take one of {runs}.")
        return dict(result)

    @property
    def front(self) -> FrontTable:
        """Members of the front, smallest first: dictionaries as in out.json, shown as a table, with `to_pandas()`."""
        return FrontTable(self.result)

    def plot(self, *, error: str = "test_error", size: str = "share") -> "Figure":
        """A plotly figure of the front: test or validation error against share, parameters, flops or latency."""
        from plotly.graph_objects import Figure

        return Figure(front_figure(self.result, error=error, size=size))

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The front, and what `select` chose beside it for other budgets."""
        trials = {entry["trial"] for entry in self.front}
        return [*self.front, *(entry for entry in read_picked(self.folder) if entry["trial"] not in trials)]

    def select(
        self,
        *,
        params: str | float | None = None,
        latency_ms: float | None = None,
        max_loss: str | float | None = None,
        surely: bool = False,
        total_params: str | float | bool = False,
        flops: str | float | None = None,
        memory: str | float | None = None,
        int8_size: str | float | None = None,
    ) -> "Selection":
        """The largest sub-network within the budget, or with only `max_loss` the smallest that is good enough.

        A larger one gives way to a smaller one that is better by more than two standard errors of their difference on
        the rows that re-scored them. In runs without such rows the lowest validation error within the budget counts.
        Percentages are of the untouched checkpoint; `total_params` without an amount makes `params` count embeddings.
        `surely`: the upper end of the loss's interval counts for `max_loss`. Costs that the run was not about (latency,
        FLOPs, memory, 8-bit size of a run about parameters) are looked for among all its trials, not on its front.
        """
        most = parse_limits(
            self.result,
            params=params,
            total_params=total_params,
            flops=flops,
            latency_ms=latency_ms,
            memory=memory,
            int8_size=int8_size,
            original_memory=self.original_memory,
        )
        if not most and max_loss is None:
            raise BadInput(
                "a budget is needed: --params 60%, --total-params 25%, --flops 50%, --latency-ms 8, --memory 60MB, "
                "--int8-size 12MB or --max-loss 1%."
            )
        if surely and max_loss is None:
            raise BadInput("--surely is about --max-loss; give both, or leave it out.")
        limits = Limits(most, None if max_loss is None else parse_points(max_loss, option="--max-loss"), surely)
        if not set(most) <= costs_of_front(self.result):
            from archwright.compression.budgets.within_limits import select_within  # loads torch

            pick = select_within(self.folder, self.result, limits)
            return Selection(self, pick.entry, pick.note)
        fitting = [entry for entry in self.front if limits.allow(entry)]
        if limits.max_loss is not None:
            fitting = [entry for entry in fitting if self.loss(entry, upper_end=surely) <= limits.max_loss]
        if not fitting:
            counted = "nonembedding_parameters" if total_params is False else "parameters"
            sure = " --surely looks at the upper ends of the losses' intervals." if surely else ""
            raise NothingFits(explain_nothing_fits(self.result, counted) + sure)
        if not most:
            return Selection(self, min(fitting, key=lambda entry: (entry["nonembedding_parameters"], entry["trial"])))
        return Selection(self, best_of(self.result, fitting))

    def original_memory(self) -> float:
        """Bytes of the original as `memory` counts them, measured once."""
        from archwright.compression.budgets.within_limits import measure_original_memory  # loads torch

        return measure_original_memory(self.folder)

    def loss(self, entry: Mapping[str, Any], *, upper_end: bool = False) -> float:
        """What a member loses against the original on the rows that judge it, or the upper end of its interval."""
        if upper_end:
            interval = loss_interval(entry, "validation_error")
            if interval is None:
                raise BadInput("--surely needs intervals of losses, which runs of earlier versions do not have.")
            return interval[1]
        return error_format(self.result).lost(entry["validation_error"], self.result["original"]["validation_error"])

    def member(self, trial: int) -> "Selection":
        """The member of the front, or an earlier pick beside it, with this trial number."""
        for entry in self.measured:
            if entry["trial"] == trial:
                return Selection(self, entry)
        known = ", ".join(str(entry["trial"]) for entry in self.measured)
        raise BadInput(f"--trial must be on the front ({known}), got {trial}.")

    def as_json(self) -> dict[str, Any]:
        return self.result

    def show(self, console: "Console") -> None:
        console.print(front_table(self.result))
        console.print(draw_front(self.result, min(100, console.width)), highlight=False)
        for line in embedding_lines(self.result):
            console.print(line, soft_wrap=True, highlight=False)
        console.print(selection_words(self.result), soft_wrap=True, highlight=False)
        console.print(f"report: {self.folder.report}", soft_wrap=True, highlight=False)
        console.print(
            f"next:   archwright select {quote(str(self.folder.path))} --params 50% {export_options(self.result)}",
            soft_wrap=True,
            highlight=False,
        )


@dataclass(frozen=True, repr=False)
class Selection:
    """One member of a front."""

    run: FinishedRun
    entry: Mapping[str, Any]
    note: str = ""
    """Who was considered, where the choice was not among the front."""

    def __repr__(self) -> str:
        return describe_member("selected", self.entry, self.run.result)

    def _repr_html_(self) -> str:
        return html_table(member_table(self.run.result, self.entry))

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.entry["config"])

    @property
    def neighbours(self) -> list[dict[str, Any]]:
        """The next smaller and the next larger member of the front."""
        size = self.entry["nonembedding_parameters"]
        others = [entry for entry in self.run.front if entry["trial"] != self.entry["trial"]]
        smaller = [entry for entry in others if entry["nonembedding_parameters"] <= size]
        return smaller[-1:] + others[len(smaller) : len(smaller) + 1]

    @cached_property
    def network(self) -> "PrunedNetwork":
        """The sub-network as a network of its own."""
        from archwright.compression.methods import load_evaluator

        return load_evaluator(self.run.folder, training=False).extract(self.config)

    def save_pretrained(self, folder: str | Path, to: str = "compact") -> dict[str, Any]:
        """Writes a checkpoint and returns its parity report."""
        from archwright.compression.export import export_subnet
        from archwright.compression.methods import load_evaluator

        evaluator = load_evaluator(self.run.folder, training=False)
        return export_subnet(evaluator, self.entry["trial"], self.config, to=to, folder=Path(folder)).as_json()


def load_run(path: Path) -> FinishedRun:
    """The run in this folder; one line when it is not one, or not finished."""
    run = FinishedRun(existing_run(path))
    run.result  # noqa: B018 - raises when there is none
    return run


def explain_nothing_fits(result: Mapping[str, Any], counted: str) -> str:
    """What the front has instead; `counted` names the parameters that the budget is about."""
    front, original = result["front"], result["original"]
    least, whole = min(entry[counted] for entry in front), result.get("checkpoint") or original
    fastest = min(entry["latency_ms"]["median"] for entry in front)
    measure = error_format(result)
    gap = measure.lost(min(entry["validation_error"] for entry in front), original["validation_error"])
    return (
        f"no sub-network on the front is within the budget; the smallest has {least / whole[counted]:.1%} of the "
        f"{counted}, the fastest takes {fastest:.2f} ms, the most accurate loses {100 * gap:.1f} {measure.unit}. "
        "Loosen the budget, or search longer."
    )
