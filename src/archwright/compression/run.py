"""A finished run: its front, and a sub-network picked from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs.budget import parse_budget, parse_points
from archwright.errors import BadInput
from archwright.reports import front_plot, front_table
from archwright.reports.measures import measure_of
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
        found = self.folder.note("result")
        if found is None:
            raise BadInput(f"{self.folder.path} has no result yet; run the same `archwright compress` command again.")
        if "front" not in found:
            runs = ", ".join(str(self.folder.path / name) for name in found.get("methods", ()))
            raise BadInput(f"one run is needed, got the comparison {self.folder.path}; take one of {runs}.")
        return dict(found)

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
        tests = budget_tests(self.result, params, latency_ms, max_loss, total_params)
        fitting = [entry for entry in self.front if all(test(entry) for test in tests)]
        if not fitting:
            raise BadInput(nothing_fits(self.result, total_params))
        by_size = params is None and latency_ms is None and max_loss is not None
        best = min(
            fitting, key=lambda e: (e["nonembedding_parameters"] if by_size else e["validation_error"], e["trial"])
        )
        return Selection(self, best)

    def member(self, trial: int) -> "Selection":
        found = [entry for entry in self.front if entry["trial"] == trial]
        if not found:
            known = ", ".join(str(entry["trial"]) for entry in self.front)
            raise BadInput(f"--trial must be on the front ({known}), got {trial}.")
        return Selection(self, found[0])

    def as_json(self) -> dict[str, Any]:
        return self.result

    def show(self, console: "Console") -> None:
        console.print(front_table(self.result))
        console.print(front_plot(self.result, min(100, console.width)), highlight=False)
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
        place = next(i for i, entry in enumerate(front) if entry["trial"] == self.entry["trial"])
        return front[max(0, place - 1) : place] + front[place + 1 : place + 2]

    @cached_property
    def network(self) -> "PrunedNetwork":
        """The sub-network as a network of its own."""
        from archwright.compression.recovery import extract_subnet

        return extract_subnet(self.run.folder, self.config)

    def save_pretrained(self, folder: str | Path, to: str = "compact") -> dict[str, Any]:
        """Writes a checkpoint and returns its parity report."""
        from archwright.compression.export import export_subnet

        return export_subnet(self.run.folder, self.entry["trial"], to=to, folder=Path(folder)).as_json()


def open_finished(path: Path) -> FinishedRun:
    """The run in this folder; one line when it is not one, or not finished."""
    run = FinishedRun(existing_run(path))
    run.result  # noqa: B018 - raises when there is none
    return run


def budget_tests(
    result: Mapping[str, Any],
    params: str | float | None,
    latency_ms: float | None,
    max_loss: str | float | None,
    total_params: bool,
) -> list[Any]:
    """What an entry of the front must pass."""
    original, tests = result["original"], []
    if params is not None:
        name = "parameters" if total_params else "nonembedding_parameters"
        most = parse_budget(params, original[name], option="--params")
        tests.append(lambda entry: entry[name] <= most)
    if latency_ms is not None:
        if latency_ms <= 0:
            raise BadInput(f"--latency-ms must be above zero, got {latency_ms}.")
        tests.append(lambda entry: entry["latency_ms"]["median"] <= latency_ms)
    if max_loss is not None:
        most_lost, lost = parse_points(max_loss, option="--max-loss"), measure_of(result).lost
        base = original["validation_error"]
        tests.append(lambda entry: lost(entry["validation_error"], base) <= most_lost)
    if not tests:
        raise BadInput("a budget is needed: --params 60%, --latency-ms 8 or --max-loss 1%.")
    return tests


def nothing_fits(result: Mapping[str, Any], total_params: bool) -> str:
    name = "parameters" if total_params else "nonembedding_parameters"
    front, original = result["front"], result["original"]
    least = min(entry[name] for entry in front)
    fastest = min(entry["latency_ms"]["median"] for entry in front)
    measure = measure_of(result)
    gap = measure.lost(min(entry["validation_error"] for entry in front), original["validation_error"])
    return (
        f"no sub-network on the front is within the budget; the smallest has {least / original[name]:.1%} of the "
        f"{name}, the fastest takes {fastest:.2f} ms, the most accurate loses {100 * gap:.1f} {measure.unit}. "
        "Loosen the budget, or search longer."
    )
