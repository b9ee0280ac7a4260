"""The pipeline of `compress`: one method on one task. Everything goes into the run folder and can be resumed."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from archwright.compression.context import RunContext, from_settings, to_settings
from archwright.compression.finetuning import finetune_original
from archwright.compression.methods import METHODS, space_for
from archwright.compression.order import measure_order
from archwright.compression.result import build_result
from archwright.compression.run import FinishedRun, load_run
from archwright.compression.search import run_search
from archwright.compression.studies.fidelity import measure_fidelity
from archwright.compression.validation import validate, validate_new_run
from archwright.configs import compress as o
from archwright.configs.compress import CompressConfig
from archwright.configs.yaml_file import write_config
from archwright.reports.compress.page import render_compress_page
from archwright.store import RunFolder, atomic_folder, begin_run, is_run, report_database_loss, write_atomic
from archwright.threads import choose_threads
from archwright.training.task_data import TaskData, load_task_data


def run_compression(
    config: CompressConfig, task_data: TaskData | None = None, *, lender: Path | None = None
) -> FinishedRun:
    """The finished run, now or from an earlier time; a lender is a run of the same options but for the method."""
    config = resolve_space(config)
    method = METHODS[config.supernet.method]
    task_data = task_data or load_data(config)
    validate(config, task_data)
    folder, settings = config.output.out or default_folder(config, task_data), to_settings(config)
    threads = choose_threads(config.output.threads, config.search.workers, note=folder / "threads.json")
    if not is_run(folder):
        validate_new_run(config, task_data)
    run = begin_run(folder, settings)
    if run.is_complete(settings):
        return load_run(run.path)
    with run.lock():
        run.renew(settings)
        run.note_once("threads", {"threads": threads})
        write_config(run.path / "config.yaml", from_settings({**settings, "out": run.path.resolve()}))
        if lender is not None:
            copy_original(run, RunFolder(lender))
        context = RunContext(run, config, task_data)
        start = time.monotonic() - sum(run.seconds.values())
        original = finetune_original(context)
        order = measure_order(context, original) if method.samplers else None
        method.prepare(context, original, order)  # trains the super-network, or lists what to evaluate
        del original  # the memory is needed; with --start original it has become the super-network
        run.note("ready", {"method": config.supernet.method})
        evaluator, minutes, deadline = method.build_evaluator(context), config.search.minutes, None
        if minutes is not None:  # a tenth of it belongs to the search even when training took longer than planned
            deadline = max(start + 60 * minutes, time.monotonic() + 6 * minutes)
        with report_database_loss():
            with run.phase("search"):
                study = run_search(evaluator, deadline=deadline)
            result = build_result(evaluator, study)
        if config.fidelity.honesty:
            with run.phase("honesty"):
                result["honesty"] = measure_fidelity(evaluator)
        run.note("result", result)
        write_atomic(run.report, render_compress_page(result))
        run.finish(settings)
    return load_run(run.path)


def resolve_space(config: CompressConfig) -> CompressConfig:
    """The config with the method's usual space where none is given."""
    options = config.supernet
    return replace(config, supernet=replace(options, space=space_for(options.method, options.space)))


def load_data(config: CompressConfig) -> TaskData:
    return load_task_data(config.model, config.data, seed=config.output.seed, device=config.output.device)


def default_folder(config: CompressConfig, task_data: TaskData, *more: str) -> Path:
    """runs/MODEL-TASK and method and space, or `more` instead of them."""
    options = config.supernet
    method = () if options.method == o.SupernetOptions.method else (options.method,)
    parts = (Path(config.model.model).name, task_data.task.name, *(more or (*method, str(options.space))))
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def copy_original(run: RunFolder, lender: RunFolder) -> None:
    """Takes over the fine-tuned original and the time it took, instead of training it again."""
    if run.original.exists() or not lender.original.exists():
        return
    run.note("plan", {"original": lender.note("plan")["original"]})
    run.note("seconds", {"original": lender.seconds.get("original", 0.0)})
    with atomic_folder(run.original) as beside:
        shutil.copytree(lender.original, beside, copy_function=os.link, dirs_exist_ok=True)
