"""A finished run: its front, and a sub-network picked from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs.budget import parse_budget, parse_points
from archwright.errors import BadInput
from archwright.reports.compress.summary import (
    best_of,
    draw_front,
    embedding_lines,
    front_table,
    loss_interval,
    selection_words,
)
from archwright.reports.numbers import error_format
from archwright.store import RunFolder, existing_run

if TYPE_CHECKING:
    from rich.console import Console

    from archwright.networks.pruned import PrunedNetwork


@dataclass(frozen=True)
class FinishedRun:
    """What `compress` found."""

    folder: RunFolder

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
    def front(self) -> list[dict[str, Any]]:
        """Members of the Pareto front, smallest first, as in out.json."""
        return list(self.result["front"])

    def select(
        self,
        *,
        params: str | float | None = None,
        latency_ms: float | None = None,
        max_loss: str | float | None = None,
        surely: bool = False,
        total_params: str | float | bool = False,
    ) -> "Selection":
        """The largest sub-network within the budget, or with only `max_loss` the smallest that is good enough.

        A larger one gives way to a smaller one that is better by more than two standard errors of their difference on
        the rows that re-scored them. In runs without such rows the lowest validation error within the budget counts.
        Percentages are of the untouched checkpoint; `total_params` without an amount makes `params` count embeddings.
        `surely`: the upper end of the loss's interval counts for `max_loss`.
        """
        original = self.result["original"]
        whole = self.result.get("checkpoint") or original  # older runs have no smaller embeddings
        counted = "nonembedding_parameters" if total_params is False else "parameters"
        fitting, amount = self.front, None if isinstance(total_params, bool) else total_params
        if params is not None:
            name = "parameters" if total_params is True else "nonembedding_parameters"
            most = parse_budget(params, whole[name], option="--params")
            fitting = [entry for entry in fitting if entry[name] <= most]
        if amount is not None:
            most = parse_budget(amount, whole["parameters"], option="--total-params")
            fitting = [entry for entry in fitting if entry["parameters"] <= most]
        if latency_ms is not None:
            if latency_ms <= 0:
                raise BadInput(f"--latency-ms must be above zero, got {latency_ms}.")
            fitting = [entry for entry in fitting if entry["latency_ms"]["median"] <= latency_ms]
        if max_loss is not None:
            most_lost = parse_points(max_loss, option="--max-loss")
            fitting = [entry for entry in fitting if self.loss(entry, upper_end=surely) <= most_lost]
        elif surely:
            raise BadInput("--surely is about --max-loss; give both, or leave it out.")
        by_size = params is None and amount is None and latency_ms is None
        if by_size and max_loss is None:
            raise BadInput("a budget is needed: --params 60%, --total-params 25%, --latency-ms 8 or --max-loss 1%.")
        if not fitting:
            sure = " --surely looks at the upper ends of the losses' intervals." if surely else ""
            raise BadInput(explain_nothing_fits(self.result, counted) + sure)
        if by_size:
            return Selection(self, min(fitting, key=lambda entry: (entry["nonembedding_parameters"], entry["trial"])))
        return Selection(self, best_of(self.result, fitting))

    def loss(self, entry: Mapping[str, Any], *, upper_end: bool = False) -> float:
        """What a member loses against the original on the rows that judge it, or the upper end of its interval."""
        if upper_end:
            interval = loss_interval(entry, "validation_error")
            if interval is None:
                raise BadInput("--surely needs intervals of losses, which runs of earlier versions do not have.")
            return interval[1]
        return error_format(self.result).lost(entry["validation_error"], self.result["original"]["validation_error"])

    def member(self, trial: int) -> "Selection":
        """The member of the front with this trial number."""
        for entry in self.front:
            if entry["trial"] == trial:
                return Selection(self, entry)
        known = ", ".join(str(entry["trial"]) for entry in self.front)
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
            f"next:   archwright select {self.folder.path} --params 50% --to compact", soft_wrap=True, highlight=False
        )


@dataclass(frozen=True)
class Selection:
    """One member of a front."""

    run: FinishedRun
    entry: Mapping[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.entry["config"])

    @property
    def neighbours(self) -> list[dict[str, Any]]:
        """The next smaller and the next larger member of the front."""
        front = self.run.front
        index = [entry["trial"] for entry in front].index(self.entry["trial"])
        return front[max(0, index - 1) : index] + front[index + 1 : index + 2]

    @cached_property
    def network(self) -> "PrunedNetwork":
        """The sub-network as a network of its own."""
        from archwright.compression.methods import load_evaluator

        return load_evaluator(self.run.folder).extract(self.config)

    def save_pretrained(self, folder: str | Path, to: str = "compact") -> dict[str, Any]:
        """Writes a checkpoint and returns its parity report."""
        from archwright.compression.export import export_subnet
        from archwright.compression.methods import load_evaluator

        evaluator = load_evaluator(self.run.folder)
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
