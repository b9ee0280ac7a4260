"""One method on one task: check, prepare, search, measure; everything lands in the run folder and can be resumed."""

import json
import os
import shutil
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from archwright.compression.context import RunContext
from archwright.compression.fidelity import check_fidelity, draw_subnets, measure_fidelity
from archwright.compression.methods import METHODS, space_for
from archwright.compression.result import build_result
from archwright.compression.run import FinishedRun, open_finished
from archwright.compression.search import check_search, run_search
from archwright.compression.validation import check_method, check_network, space_before, usual_values
from archwright.configs import compress as o
from archwright.configs.compress import CompressConfig
from archwright.configs.options import make_config
from archwright.configs.yaml_file import write_config
from archwright.networks.embedded import EMBEDDED
from archwright.networks.load import saved_network
from archwright.reports import report_html
from archwright.store import RunFolder, answering, begin, check_store, is_run, whole_folder, write_whole
from archwright.threads import choose_threads
from archwright.training.task_data import TaskData, load_task_data


def config_for_method(config: CompressConfig, method: str, folder: Path | None = None) -> CompressConfig:
    """The same for this method, in a space that it serves and without what it has no use for."""
    supernet = config.supernet
    space = supernet.space if supernet.space in METHODS[method].spaces else None
    usual = {name: value for name, value in usual_values(supernet).items() if name in METHODS[method].unused}
    return replace(
        config,
        supernet=replace(supernet, **usual, method=method, space=space),
        fidelity=config.fidelity if METHODS[method].shared else o.FidelityOptions(),
        output=config.output if folder is None else replace(config.output, out=folder),
    )


def run_compression(
    config: CompressConfig, task_data: TaskData | None = None, *, lender: Path | None = None
) -> FinishedRun:
    """The finished run, now or from an earlier time; a lender is a run of the same options but for the method."""
    config = resolve_space(config)
    task_data = task_data or scene_of(config)
    check(config, task_data)
    search, output = config.search, config.output
    options = as_options(config)
    folder = output.out or default_folder(config, task_data)
    threads = choose_threads(output.threads, search.workers, note=folder / "threads.json")
    if not is_run(folder):
        check_network(task_data, config.model, config.supernet, config.budget, config.measure)
        check_store(search.store)
    run = begin(folder, options)
    if run.is_finished(options):
        return open_finished(run.path)
    with run.locked():
        run.renew(options)
        run.note_once("threads", {"threads": threads})
        write_config(run.path / "config.yaml", make_config(CompressConfig, {**options, "out": run.path.resolve()}))
        borrow_original(run, lender)
        context = RunContext(run, task_data, config.model, config.supernet, search, config.budget, config.measure)
        result = search_and_measure(context, config.fidelity)
        run.note("result", result)
        write_whole(run.report, report_html(result))
        run.finish(options)
    return open_finished(run.path)


def borrow_original(run: RunFolder, lender: Path | None) -> None:
    """Takes over the fine-tuned original and the time it took, instead of training it again."""
    other = RunFolder(lender) if lender else run
    if run.original.exists() or not other.original.exists():
        return
    run.note("plan", {"original": other.note("plan")["original"]})
    run.note("seconds", {"original": other.seconds.get("original", 0.0)})
    with whole_folder(run.original) as beside:
        shutil.copytree(other.original, beside, copy_function=os.link, dirs_exist_ok=True)


def resolve_space(config: CompressConfig) -> CompressConfig:
    """The same with the space named."""
    settings = config.supernet
    return replace(config, supernet=replace(settings, space=space_for(settings.method, settings.space)))


def scene_of(config: CompressConfig) -> TaskData:
    return load_task_data(config.model, config.data, seed=config.output.seed, device=config.output.device)


def check(config: CompressConfig, task_data: TaskData) -> None:
    """BadInput for everything that can be known before anything is written."""
    check_method(config.supernet, config.search)
    settings, fidelity = config.supernet, config.fidelity
    shared = METHODS[settings.method].shared
    check_fidelity(fidelity.honesty, fidelity.honesty_epochs, method=settings.method, shared=shared)
    space = space_before(task_data, config.model, config.supernet, config.search)
    check_search(config.search, config.budget, config.measure, space)
    draw_subnets(space, fidelity.honesty, task_data.seed)  # refuses more than there are


def search_and_measure(context: RunContext, honesty: o.FidelityOptions) -> dict[str, Any]:
    """Prepares, searches, measures: the result of the run."""
    run, method = context.run, METHODS[context.supernet.method]
    begun = time.monotonic() - sum(run.seconds.values())
    method.prepared(context)
    run.note("ready", {"method": context.supernet.method})
    evaluator = method.ground_of(context)
    with answering():
        with run.phase("search"):
            study = run_search(evaluator, deadline=end_of_search(context.search.minutes, begun))
        result = build_result(evaluator, study, saved_network(run.original).to(context.task_data.device))
    if honesty.honesty:
        with run.phase("honesty"):
            result["honesty"] = measure_fidelity(evaluator, honesty.honesty, epochs=honesty.honesty_epochs)
    return result


def end_of_search(minutes: float | None, begun: float) -> float | None:
    """A tenth of the time belongs to the search even when training took longer than planned."""
    return None if minutes is None else max(begun + 60 * minutes, time.monotonic() + 6 * minutes)


def default_folder(config: CompressConfig, task_data: TaskData, *more: str) -> Path:
    settings = config.supernet
    method = () if settings.method == o.SupernetOptions.method else (settings.method,)
    parts = (Path(config.model.model).name, task_data.task.name, *(more or (*method, str(settings.space))))
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def as_options(config: CompressConfig) -> dict[str, Any]:
    """All options of a run as JSON values that mean the same in every folder."""
    groups = [getattr(config, group.name) for group in fields(config) if group.name not in ("compare", "preview")]
    values = {f.name: getattr(group, f.name) for group in groups for f in fields(group)}
    values |= {"model": located(values["model"]), "store": located_store(values["store"])}
    return dict(json.loads(json.dumps(values, default=lambda value: str(Path(value).resolve()))))


def located(model: str) -> str:
    return str(Path(model).resolve()) if model not in EMBEDDED and Path(model).is_dir() else model


def located_store(store: str | None) -> str | None:
    scheme, found, file = (store or "").partition("sqlite:///")
    return f"sqlite:///{Path(file).resolve()}" if found and not scheme else store
