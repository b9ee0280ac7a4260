"""`archwright compress`: from a checkpoint and a task to a Pareto front of smaller models."""

import json
import os
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from archwright.jobs import options as o
from archwright.jobs.checks import check_network, check_training, space_before
from archwright.jobs.measuring import result_of
from archwright.jobs.preview import Previewed, previewed
from archwright.jobs.run import FinishedRun, finished
from archwright.jobs.scene import EMBEDDED, Scene, build_scene
from archwright.jobs.searching import Ground, check_search, searched
from archwright.jobs.training import importance_order, original_network, planned, space_of, super_network
from archwright.report import report_html
from archwright.store import answering, begin, check_store, is_run, write_whole


def compress(
    model: o.Model,
    data: o.Data,
    supernet: o.Supernet,
    search: o.Search,
    budget: o.Budget,
    measure: o.Measure,
    output: o.Output,
    preview: o.Preview,
) -> FinishedRun | Previewed:
    """The finished run: its front, its report, and what to do with them."""
    if preview.preview is not None:
        return previewed(preview.preview, out=output.out, seed=output.seed)
    check_training(supernet, output)
    scene = build_scene(model, data, seed=output.seed, device=output.device)
    check_search(search, budget, measure, space_before(scene, supernet))
    torch.set_num_threads(output.threads or max(1, (os.cpu_count() or 1) // search.workers))
    options = as_options((model, data, supernet, search, budget, measure, output))
    folder = output.out or default_folder(model, scene, supernet)
    if not is_run(folder):
        check_network(scene, model, supernet, budget, measure)
        check_store(search.store)
    run = begin(folder, options)
    if run.is_finished(options):
        return finished(run.path)
    with run.locked():
        run.renew(options)
        begun = time.monotonic() - sum(run.seconds.values())
        plan = planned(run, scene, model, supernet, search.minutes)
        original = original_network(run, scene, model, supernet, plan.original)
        order = importance_order(run, scene, supernet, original)
        network = super_network(run, scene, model, supernet, original=original, order=order, steps=plan.supernet)
        ground = Ground(
            run, scene, network, space_of(supernet.space, network, order), search, budget, measure, output.seed
        )
        with answering():
            with run.phase("search"):
                study = searched(ground, deadline=end_of_search(search.minutes, begun))
            original = original_network(run, scene, model, supernet, plan.original)  # training may have changed it
            result = result_of(ground, study, original, model, supernet)
        run.note("result", result)
        write_whole(run.report, report_html(result))
        run.finish(options)
    return finished(run.path)


def end_of_search(minutes: float | None, begun: float) -> float | None:
    """A tenth of the time belongs to the search even when training took longer than planned."""
    return None if minutes is None else max(begun + 60 * minutes, time.monotonic() + 6 * minutes)


def default_folder(model: o.Model, scene: Scene, settings: o.Supernet) -> Path:
    parts = (Path(model.model).name, scene.task.name, settings.space)
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def as_options(groups: tuple[Any, ...]) -> dict[str, Any]:
    """All options of a run as JSON values that mean the same in every folder."""
    values = {f.name: getattr(group, f.name) for group in groups for f in fields(group)}
    values |= {"model": located(values["model"]), "store": located_store(values["store"])}
    return dict(json.loads(json.dumps(values, default=lambda value: str(Path(value).resolve()))))


def located(model: str) -> str:
    return str(Path(model).resolve()) if model not in EMBEDDED and Path(model).is_dir() else model


def located_store(store: str | None) -> str | None:
    scheme, found, file = (store or "").partition("sqlite:///")
    return f"sqlite:///{Path(file).resolve()}" if found and not scheme else store
