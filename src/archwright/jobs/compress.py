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
from archwright.jobs.scene import EMBEDDED, Scene, build_scene
from archwright.jobs.searching import Ground, check_latency, check_search, searched
from archwright.jobs.training import fresh, importance_order, original_network, planned, space_of, super_network
from archwright.networks.load import stock_config, supernet_config
from archwright.networks.pruned import PrunedForSequenceClassification
from archwright.objectives import measure_latency
from archwright.report import report_html
from archwright.search import smallest
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.store import begin, check_store, is_run, write_whole
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


def check_training(settings: o.Supernet, output: o.Output) -> None:
    """Numbers that no training can use."""
    rules = {
        "--epochs": settings.epochs > 0,
        "--original-epochs": settings.original_epochs is None or settings.original_epochs >= 0,
        "--learning-rate": 0 < settings.learning_rate < 1,
        "--batch-size": settings.batch_size >= 1,
        "--temperature": settings.temperature > 0,
        "--checkpoint-seconds": settings.checkpoint_seconds >= 0,
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


def check_network(scene: Scene, model: o.Model, settings: o.Supernet, budget: o.Budget, measure: o.Measure) -> None:
    """What is wrong with the weights, or asks too much of them, found before anything is written."""
    network = fresh(scene, model, settings)
    check_room(
        network, {"--max-length": max(e.lengths.max() for e in scene.encoded.values()), "--length": measure.length}
    )
    if budget.latency_ms is None:
        return
    space = subnet_space(settings.space, anatomy(network.config))
    keeps = {"smallest": space.build(smallest(space.choices))}
    timings = measure_latency(network, keeps, batch=1, length=scene.length(measure.length), rounds=measure.rounds)
    check_latency(budget.latency_ms, timings["smallest"].low)


def check_room(network: PrunedForSequenceClassification, lengths: dict[str, int]) -> None:
    positions = network.backbone.embeddings.position_embeddings
    room = positions.num_embeddings - (0 if positions.padding_idx is None else positions.padding_idx + 1)
    for option, length in lengths.items():
        if length > room:
            raise BadInput(f"{option} must be at most {room}, the positions of this model, got {length} tokens.")


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
