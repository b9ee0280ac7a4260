"""`archwright compress --compare`: several methods on one task, with one original, one evaluation and equal time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archwright.compression.methods import METHODS
from archwright.compression.pipeline import (
    as_options,
    check,
    config_for_method,
    default_folder,
    resolve_space,
    run_compression,
    scene_of,
)
from archwright.compression.protocol import protocol_of
from archwright.compression.run import FinishedRun
from archwright.compression.validation import check_network
from archwright.configs.compress import CompressConfig
from archwright.environment import environment
from archwright.reports import compare_html, compare_plot, compare_table
from archwright.store import RunFolder, begin, check_store, is_run, write_whole
from archwright.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/compare/1"
FIRST = "weight-sharing"
"""Begins, because it is also what a study of quantization starts from."""
PER_METHOD = (
    *("front", "trials", "hypervolume", "hypervolume_over_time"),
    *("seconds", "seconds_by_phase", "folder", "space", "sampler", "strategy", "order"),
)
ALIKE = ("model", "family", "pooling", "task", "task_note", "rows", "metric", "seed", "objectives", "original")


@dataclass(frozen=True)
class MethodComparison:
    """Several finished runs on one task."""

    folder: RunFolder
    result: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return dict(self.result)

    def run(self, method: str) -> FinishedRun:
        """The run of one method, to select and export from."""
        return FinishedRun(RunFolder(self.folder.path / method))

    def show(self, console: "Console") -> None:
        console.print(compare_table(self.result))
        console.print(compare_plot(self.result, min(100, console.width)), highlight=False)
        console.print(f"report: {self.folder.report}", soft_wrap=True, highlight=False)


def compare_methods(config: CompressConfig, names: tuple[str, ...]) -> MethodComparison:
    """All of them, one after another; the same command resumes."""
    asked_for = dict.fromkeys(name for name in names if name in METHODS)
    methods = sorted(asked_for, key=lambda name: name != FIRST) or [FIRST]
    task_data = scene_of(config)
    for method in methods:
        check(resolve_space(config_for_method(config, method)), task_data)
    folder = config.output.out or default_folder(config, task_data, "compare")
    options = as_options(config) | {"compare": list(names)}
    if not is_run(folder):
        check_network(
            task_data,
            config.model,
            resolve_space(config_for_method(config, methods[0])).supernet,
            config.budget,
            config.measure,
        )
        check_store(config.search.store)
    run = begin(folder, options)
    with run.locked():
        run.renew(options)
        runs = {}
        for method in methods:
            runs[method] = run_compression(
                config_for_method(config, method, run.path / method), task_data, lender=run.path / methods[0]
            )
        studies = {name: STUDIES[name](runs[methods[0]]) for name in names if name in STUDIES}
        result = {**combined(run, config, {name: found.result for name, found in runs.items()}), **studies}
        run.note("result", result)
        write_whole(run.report, compare_html(result, protocol_of([result])))
    return MethodComparison(run, result)


def combined(run: RunFolder, config: CompressConfig, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One document of all results."""
    first = next(iter(results.values()))
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        "run": run.path.resolve().name,
        "folder": str(run.path),
        **{key: first[key] for key in ALIKE},
        "minutes": config.search.minutes,
        "methods": {
            name: {**{key: result[key] for key in PER_METHOD}, "note": METHODS[name].description}
            for name, result in results.items()
        },
        "environment": environment(),
    }


def quantized(run: FinishedRun) -> dict[str, Any]:
    from archwright.compression.quantization import compare_quantized

    return compare_quantized(run)


STUDIES = {"quantized": quantized}
"""What can be compared beside the methods: from the first method's run to one more part of the document."""
