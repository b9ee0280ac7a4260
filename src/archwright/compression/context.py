"""What a run was asked for and where it is done, for the command that began it and for the workers that join."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from archwright.configs import compress as o
from archwright.store import RunFolder
from archwright.training.task_data import TaskData, load_task_data


@dataclass(frozen=True)
class RunContext:
    """The run folder, the task, and every option that the phases of a run look at."""

    run: RunFolder
    task_data: TaskData
    model: o.ModelOptions
    supernet: o.SupernetOptions
    search: o.SearchOptions
    budget: o.BudgetOptions
    measure: o.MeasureOptions

    @property
    def seed(self) -> int:
        return self.task_data.seed


def load_context(folder: RunFolder, *, device: str = "cpu") -> RunContext:
    """The same from the folder of a run."""
    model, data, supernet, search, budget, measure, output = (
        read_options(folder, group)
        for group in (
            o.ModelOptions,
            o.DataOptions,
            o.SupernetOptions,
            o.SearchOptions,
            o.BudgetOptions,
            o.MeasureOptions,
            o.OutputOptions,
        )
    )
    task_data = load_task_data(model, data, seed=output.seed, device=device)
    return RunContext(folder, task_data, model, supernet, search, budget, measure)


def read_options(folder: RunFolder, group: type) -> Any:
    """The run's options of this group."""
    noted, hints = folder.settings, get_type_hints(group)
    return group(**{f.name: declared(noted[f.name], hints[f.name]) for f in fields(group) if f.name in noted})


def declared(value: Any, hint: Any) -> Any:
    """A JSON value as the option declares it: lists are tuples, paths are paths."""
    if isinstance(value, list):
        return tuple(value)
    return Path(value) if isinstance(value, str) and Path in (hint, *get_args(hint)) else value
