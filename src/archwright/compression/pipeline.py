"""One method on one task: check, prepare, search, measure; everything lands in the run folder and can be resumed."""

import json
import os
import shutil
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from archwright.compression.context import RunContext
from archwright.compression.fidelity import check_fidelity, draw_subnets, measure_fidelity
from archwright.compression.methods import METHODS, space_for
from archwright.compression.result import build_result
from archwright.compression.run import FinishedRun, open_finished
from archwright.compression.search import check_search, run_search
from archwright.compression.validation import check_method, check_network, check_training, space_before, usual_values
from archwright.configs import compress as o
from archwright.networks.embedded import EMBEDDED
from archwright.networks.load import saved_network
from archwright.reports import report_html
from archwright.store import RunFolder, answering, begin, check_store, is_run, whole_folder, write_whole
from archwright.training.task_data import TaskData, load_task_data


@dataclass(frozen=True)
class CompressConfig:
    """All options of a run."""

    model: o.Model
    data: o.Data
    supernet: o.Supernet
    search: o.Search
    budget: o.Budget
    measure: o.Measure
    honesty: o.Honesty
    output: o.Output

    def by(self, method: str) -> "CompressConfig":
        """The same for this method, in a space that it serves and without what it has no use for."""
        space = self.supernet.space if self.supernet.space in METHODS[method].spaces else None
        usual = {name: value for name, value in usual_values(self.supernet).items() if name in METHODS[method].unused}
        honesty = self.honesty if METHODS[method].shared else o.Honesty()
        return replace(self, supernet=replace(self.supernet, **usual, method=method, space=space), honesty=honesty)

    def into(self, folder: Path) -> "CompressConfig":
        return replace(self, output=replace(self.output, out=folder))


def run_compression(
    asked: CompressConfig, task_data: TaskData | None = None, *, lender: Path | None = None
) -> FinishedRun:
    """The finished run, now or from an earlier time; a lender is a run of the same options but for the method."""
    asked = resolve_space(asked)
    task_data = task_data or scene_of(asked)
    check(asked, task_data)
    search, output = asked.search, asked.output
    torch.set_num_threads(output.threads or max(1, (os.cpu_count() or 1) // search.workers))
    options = as_options(asked)
    folder = output.out or default_folder(asked, task_data)
    if not is_run(folder):
        check_network(task_data, asked.model, asked.supernet, asked.budget, asked.measure)
        check_store(search.store)
    run = begin(folder, options)
    if run.is_finished(options):
        return open_finished(run.path)
    with run.locked():
        run.renew(options)
        borrow_original(run, lender)
        context = RunContext(run, task_data, asked.model, asked.supernet, search, asked.budget, asked.measure)
        result = search_and_measure(context, asked.honesty)
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


def resolve_space(asked: CompressConfig) -> CompressConfig:
    """The same with the space named."""
    settings = asked.supernet
    return replace(asked, supernet=replace(settings, space=space_for(settings.method, settings.space)))


def scene_of(asked: CompressConfig) -> TaskData:
    return load_task_data(asked.model, asked.data, seed=asked.output.seed, device=asked.output.device)


def check(asked: CompressConfig, task_data: TaskData) -> None:
    """BadInput for everything that can be known before anything is written."""
    check_training(asked.supernet, asked.output)
    check_method(asked.supernet, asked.search)
    settings, asks = asked.supernet, asked.honesty
    shared = METHODS[settings.method].shared
    check_fidelity(asks.honesty, asks.honesty_epochs, method=settings.method, shared=shared)
    space = space_before(task_data, asked.model, asked.supernet, asked.search)
    check_search(asked.search, asked.budget, asked.measure, space)
    draw_subnets(space, asks.honesty, task_data.seed)  # refuses more than there are


def search_and_measure(context: RunContext, honesty: o.Honesty) -> dict[str, Any]:
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


def default_folder(asked: CompressConfig, task_data: TaskData, *more: str) -> Path:
    settings = asked.supernet
    method = () if settings.method == o.Supernet.method else (settings.method,)
    parts = (Path(asked.model.model).name, task_data.task.name, *(more or (*method, str(settings.space))))
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def as_options(asked: CompressConfig) -> dict[str, Any]:
    """All options of a run as JSON values that mean the same in every folder."""
    groups = [getattr(asked, group.name) for group in fields(asked)]
    values = {f.name: getattr(group, f.name) for group in groups for f in fields(group)}
    values |= {"model": located(values["model"]), "store": located_store(values["store"])}
    return dict(json.loads(json.dumps(values, default=lambda value: str(Path(value).resolve()))))


def located(model: str) -> str:
    return str(Path(model).resolve()) if model not in EMBEDDED and Path(model).is_dir() else model


def located_store(store: str | None) -> str | None:
    scheme, found, file = (store or "").partition("sqlite:///")
    return f"sqlite:///{Path(file).resolve()}" if found and not scheme else store
