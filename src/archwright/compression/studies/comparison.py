"""`archwright compress --compare`: several methods on one task, with one original, one evaluation and equal time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archwright.compression.budgets.total_size import fit_embeddings
from archwright.compression.context import from_settings, to_settings
from archwright.compression.methods import METHODS, load_evaluator
from archwright.compression.pipeline import (
    default_folder,
    fit_space,
    go_on_with_rows,
    load_data,
    resolve_space,
    run_compression,
)
from archwright.compression.run import FinishedRun
from archwright.compression.studies.protocol import compare_runs
from archwright.compression.studies.quantization import study_quantization
from archwright.compression.validation import usual_values, validate, validate_new_run
from archwright.configs.compress import CompressConfig, FidelityOptions
from archwright.configs.yaml_file import write_config
from archwright.environment import environment
from archwright.reports.compress.compare import compare_table, draw_fronts, render_compare_page
from archwright.store import RunFolder, begin_run, is_run, write_atomic
from archwright.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/compare/1"
FIRST = "weight-sharing"
"""Begins, because it is also what a study of quantization starts from."""
QUANTIZED = "quantized"
"""What can be compared beside the methods: the first method's run in fewer bits."""
PER_METHOD = (
    *("front", "trials", "hypervolume", "hypervolume_over_time"),
    *("seconds", "seconds_by_phase", "folder", "space", "sampler", "strategy", "order"),
)
ADDED = ("selection", "test_hypervolume")
"""What runs of earlier versions do not have."""
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
        console.print(draw_fronts(self.result, min(100, console.width)), highlight=False)
        console.print(f"report: {self.folder.report}", soft_wrap=True, highlight=False)


def compare_methods(config: CompressConfig, names: tuple[str, ...]) -> MethodComparison:
    """Runs all of these methods, one after another, each in a folder of its own; the same command resumes."""
    known = dict.fromkeys(name for name in names if name in METHODS)
    methods = sorted(known, key=lambda name: name != FIRST) or [FIRST]
    task_data = load_data(config)
    folder = config.output.out or default_folder(config, task_data, "compare")
    config, task_data = fit_embeddings(config, task_data, folder, methods)
    config, task_data = go_on_with_rows(config, folder, task_data)
    configs = {method: config_for_method(config, method) for method in methods}
    for method_config in configs.values():
        validate(fit_space(resolve_space(method_config), task_data), task_data)
    settings = to_settings(config) | {"compare": list(names)}
    if not is_run(folder):
        validate_new_run(fit_space(resolve_space(configs[methods[0]]), task_data), task_data)
    run = begin_run(folder, settings)
    with run.lock():
        run.renew(settings)
        write_config(run.path / "config.yaml", from_settings({**settings, "out": run.path.resolve()}))
        runs = {}
        for method, method_config in configs.items():
            output = replace(config.output, out=run.path / method)
            runs[method] = run_compression(
                replace(method_config, output=output), task_data, lender=run.path / methods[0]
            )
        result = join_results(run, config, {method: finished.result for method, finished in runs.items()})
        if QUANTIZED in names:
            first = runs[methods[0]]
            result[QUANTIZED] = study_quantization(load_evaluator(first.folder, training=False), first.result)
        run.note("result", result)
        write_atomic(run.report, render_compare_page(result, compare_runs([result])))
    return MethodComparison(run, result)


def config_for_method(config: CompressConfig, method: str) -> CompressConfig:
    """The config with this method, a space that it serves, and without options that mean nothing to it."""
    options, record = config.supernet, METHODS[method]
    space = options.space if options.space in record.spaces else None
    unused = {name: value for name, value in usual_values(options).items() if name in record.unused}
    return replace(
        config,
        supernet=replace(options, **unused, method=method, space=space),
        fidelity=config.fidelity if record.shared else FidelityOptions(),
    )


def join_results(run: RunFolder, config: CompressConfig, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One document of the results of all methods."""
    first, descriptions = next(iter(results.values())), METHODS.descriptions()
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        "run": run.path.resolve().name,
        "folder": str(run.path),
        **{key: first[key] for key in ALIKE},
        "minutes": config.search.minutes,
        "methods": {
            name: {
                **{key: result[key] for key in PER_METHOD},
                **{key: result.get(key) for key in ADDED},
                "note": descriptions[name],
            }
            for name, result in results.items()
        },
        "environment": environment(),
    }
