"""`archwright compress`: from a checkpoint and a task to a Pareto front of smaller models."""

import json
import os
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.jobs.measuring import result_of
from archwright.jobs.preview import Previewed, previewed
from archwright.jobs.run import FinishedRun, finished
from archwright.jobs.scene import Scene, build_scene
from archwright.jobs.searching import Ground, check_search, searched
from archwright.jobs.training import importance_order, original_network, planned, space_of, super_network
from archwright.networks.load import stock_config, supernet_config
from archwright.report import report_html
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.store import begin, write_whole
from archwright.subnet.keep import anatomy


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
    torch.set_num_threads(output.threads or max(1, (os.cpu_count() or 1) // search.workers))
    check_training(supernet, output)
    scene = build_scene(model, data, seed=output.seed)
    check_search(search, budget, measure, space_before(scene, supernet))
    groups = (model, data, supernet, search, budget, measure, output)
    run = begin(output.out or default_folder(model, scene, supernet), as_options(groups))
    with run.locked():
        begun = time.monotonic() - sum(run.seconds.values())
        plan = planned(run, scene, model, supernet, search.minutes)
        original = original_network(run, scene, model, supernet, plan.original)
        order = importance_order(run, scene, supernet, original)
        network = super_network(run, scene, model, supernet, original=original, order=order, steps=plan.supernet)
        ground = Ground(
            run, scene, network, space_of(supernet.space, network, order), search, budget, measure, output.seed
        )
        with run.phase("search"):
            study = searched(ground, deadline=None if search.minutes is None else begun + 60 * search.minutes)
        original = original_network(run, scene, model, supernet, plan.original)  # training may have changed it
        result = result_of(ground, study, original, model, supernet)
        run.note("result", result)
        write_whole(run.report, report_html(result))
    return finished(run.path)


def check_training(settings: o.Supernet, output: o.Output) -> None:
    """Numbers that no training can use."""
    rules = {
        "--epochs": settings.epochs > 0,
        "--original-epochs": settings.original_epochs is None or settings.original_epochs >= 0,
        "--learning-rate": 0 < settings.learning_rate < 1,
        "--batch-size": settings.batch_size >= 1,
        "--temperature": settings.temperature > 0,
        "--seed": output.seed >= 0,
        "--threads": output.threads >= 0,
    }
    for name, kept in rules.items():
        if not kept:
            value = {**vars(settings), **vars(output)}[name[2:].replace("-", "_")]
            raise BadInput(f"{name} is out of range, got {value}; see `archwright compress --help`.")


def space_before(scene: Scene, settings: o.Supernet) -> SubnetSpace:
    """The space as it can be known before the weights are loaded."""
    config = supernet_config(stock_config(scene.source), labels=scene.task.labels, pooling="cls")
    return subnet_space(settings.space, anatomy(config))


def default_folder(model: o.Model, scene: Scene, settings: o.Supernet) -> Path:
    parts = (Path(model.model).name, scene.task.name, settings.space)
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def as_options(groups: tuple[Any, ...]) -> dict[str, Any]:
    """All options of a run as JSON values."""
    values = {f.name: getattr(group, f.name) for group in groups for f in fields(group)}
    return dict(json.loads(json.dumps(values, default=lambda value: str(Path(value).resolve()))))
