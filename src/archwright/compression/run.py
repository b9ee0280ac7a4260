"""A finished run: its front, and a sub-network picked from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs.budget import parse_budget, parse_points
from archwright.errors import BadInput
from archwright.reports.compress.summary import draw_front, front_table
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
        total_params: bool = False,
    ) -> "Selection":
        """The best sub-network within the budget; with only `max_loss`, the smallest that is good enough."""
        original, counted = self.result["original"], "parameters" if total_params else "nonembedding_parameters"
        fitting = self.front
        if params is not None:
            most = parse_budget(params, original[counted], option="--params")
            fitting = [entry for entry in fitting if entry[counted] <= most]
        if latency_ms is not None:
            if latency_ms <= 0:
                raise BadInput(f"--latency-ms must be above zero, got {latency_ms}.")
            fitting = [entry for entry in fitting if entry["latency_ms"]["median"] <= latency_ms]
        if max_loss is not None:
            most_lost, lost = parse_points(max_loss, option="--max-loss"), error_format(self.result).lost
            base = original["validation_error"]
            fitting = [entry for entry in fitting if lost(entry["validation_error"], base) <= most_lost]
        if params is None and latency_ms is None and max_loss is None:
            raise BadInput("a budget is needed: --params 60%, --latency-ms 8 or --max-loss 1%.")
        if not fitting:
            raise BadInput(explain_nothing_fits(self.result, counted))
        by_size = params is None and latency_ms is None
        key = "nonembedding_parameters" if by_size else "validation_error"
        return Selection(self, min(fitting, key=lambda entry: (entry[key], entry["trial"])))

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
    least = min(entry[counted] for entry in front)
    fastest = min(entry["latency_ms"]["median"] for entry in front)
    measure = error_format(result)
    gap = measure.lost(min(entry["validation_error"] for entry in front), original["validation_error"])
    return (
        f"no sub-network on the front is within the budget; the smallest has {least / original[counted]:.1%} of the "
        f"{counted}, the fastest takes {fastest:.2f} ms, the most accurate loses {100 * gap:.1f} {measure.unit}. "
        "Loosen the budget, or search longer."
    )
