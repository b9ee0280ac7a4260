"""One method on one task: check, prepare, search, measure; everything lands in the run folder and can be resumed."""

import json
import os
import shutil
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from archwright.jobs import options as o
from archwright.jobs.brief import Brief
from archwright.jobs.checks import check_method, check_network, check_training, space_before, usual_values
from archwright.jobs.honesty import check_honesty, drawn, honesty_of
from archwright.jobs.measuring import result_of
from archwright.jobs.methods import METHODS, space_for
from archwright.jobs.run import FinishedRun, finished
from archwright.jobs.scene import EMBEDDED, Scene, build_scene
from archwright.jobs.searching import check_search, searched
from archwright.networks.load import saved_network
from archwright.report import report_html
from archwright.store import RunFolder, answering, begin, check_store, is_run, whole_folder, write_whole


@dataclass(frozen=True)
class Asked:
    """All options of a run."""

    model: o.Model
    data: o.Data
    supernet: o.Supernet
    search: o.Search
    budget: o.Budget
    measure: o.Measure
    honesty: o.Honesty
    output: o.Output

    def by(self, method: str) -> "Asked":
        """The same for this method, in a space that it serves and without what it has no use for."""
        space = self.supernet.space if self.supernet.space in METHODS[method].spaces else None
        usual = {name: value for name, value in usual_values(self.supernet).items() if name in METHODS[method].unused}
        honesty = self.honesty if METHODS[method].shared else o.Honesty()
        return replace(self, supernet=replace(self.supernet, **usual, method=method, space=space), honesty=honesty)

    def into(self, folder: Path) -> "Asked":
        return replace(self, output=replace(self.output, out=folder))


def compressed(asked: Asked, scene: Scene | None = None, *, lender: Path | None = None) -> FinishedRun:
    """The finished run, now or from an earlier time; a lender is a run of the same options but for the method."""
    asked = spaced(asked)
    scene = scene or scene_of(asked)
    check(asked, scene)
    search, output = asked.search, asked.output
    torch.set_num_threads(output.threads or max(1, (os.cpu_count() or 1) // search.workers))
    options = as_options(asked)
    folder = output.out or default_folder(asked, scene)
    if not is_run(folder):
        check_network(scene, asked.model, asked.supernet, asked.budget, asked.measure)
        check_store(search.store)
    run = begin(folder, options)
    if run.is_finished(options):
        return finished(run.path)
    with run.locked():
        run.renew(options)
        borrow_original(run, lender)
        brief = Brief(run, scene, asked.model, asked.supernet, search, asked.budget, asked.measure)
        result = found(brief, asked.honesty)
        run.note("result", result)
        write_whole(run.report, report_html(result))
        run.finish(options)
    return finished(run.path)


def borrow_original(run: RunFolder, lender: Path | None) -> None:
    """Takes over the fine-tuned original and the time it took, instead of training it again."""
    other = RunFolder(lender) if lender else run
    if run.original.exists() or not other.original.exists():
        return
    run.note("plan", {"original": other.note("plan")["original"]})
    run.note("seconds", {"original": other.seconds.get("original", 0.0)})
    with whole_folder(run.original) as beside:
        shutil.copytree(other.original, beside, copy_function=os.link, dirs_exist_ok=True)


def spaced(asked: Asked) -> Asked:
    """The same with the space named."""
    settings = asked.supernet
    return replace(asked, supernet=replace(settings, space=space_for(settings.method, settings.space)))


def scene_of(asked: Asked) -> Scene:
    return build_scene(asked.model, asked.data, seed=asked.output.seed, device=asked.output.device)


def check(asked: Asked, scene: Scene) -> None:
    """BadInput for everything that can be known before anything is written."""
    check_training(asked.supernet, asked.output)
    check_method(asked.supernet, asked.search)
    settings, asks = asked.supernet, asked.honesty
    shared = METHODS[settings.method].shared
    check_honesty(asks.honesty, asks.honesty_epochs, method=settings.method, shared=shared)
    space = space_before(scene, asked.model, asked.supernet, asked.search)
    check_search(asked.search, asked.budget, asked.measure, space)
    drawn(space, asks.honesty, scene.seed)  # refuses more than there are


def found(brief: Brief, honesty: o.Honesty) -> dict[str, Any]:
    """Prepares, searches, measures: the result of the run."""
    run, method = brief.run, METHODS[brief.supernet.method]
    begun = time.monotonic() - sum(run.seconds.values())
    method.prepared(brief)
    run.note("ready", {"method": brief.supernet.method})
    ground = method.ground_of(brief)
    with answering():
        with run.phase("search"):
            study = searched(ground, deadline=end_of_search(brief.search.minutes, begun))
        result = result_of(ground, study, saved_network(run.original).to(brief.scene.device))
    if honesty.honesty:
        with run.phase("honesty"):
            result["honesty"] = honesty_of(ground, honesty.honesty, epochs=honesty.honesty_epochs)
    return result


def end_of_search(minutes: float | None, begun: float) -> float | None:
    """A tenth of the time belongs to the search even when training took longer than planned."""
    return None if minutes is None else max(begun + 60 * minutes, time.monotonic() + 6 * minutes)


def default_folder(asked: Asked, scene: Scene, *more: str) -> Path:
    settings = asked.supernet
    method = () if settings.method == o.Supernet.method else (settings.method,)
    parts = (Path(asked.model.model).name, scene.task.name, *(more or (*method, str(settings.space))))
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def as_options(asked: Asked) -> dict[str, Any]:
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
