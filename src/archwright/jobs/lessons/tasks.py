"""The lesson on a task: with its labels, or with a teacher's layers and answers."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from archwright.data.corpus import Text
from archwright.data.epochs import shuffled
from archwright.data.making import MADE, tokenizer_in
from archwright.data.official import Asked, asked_rows, more_dev
from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.jobs import training_options as to
from archwright.jobs.checks import check_room
from archwright.jobs.lessons.brief import Brief, Course, Place, check_batch
from archwright.jobs.lessons.evaluation import GLUE_PREFIX, asked_answers, column_of, more_rows, scores
from archwright.jobs.lessons.material import USUAL, check_tokens
from archwright.jobs.lessons.networks import Design, built, design_of, source_of
from archwright.jobs.lessons.reading import PROJECTIONS
from archwright.jobs.looking import generator
from archwright.jobs.scene import Scene, names_match, own_labels, scene_for
from archwright.jobs.training import fresh, keep
from archwright.networks.load import load_supernet, saved_network, stock_config
from archwright.networks.pruned import HEADS, PrunedConfig, PrunedNetwork
from archwright.subnet.supernet import plain_update
from archwright.train import Schedule, task_loss, train
from archwright.train.lessons import layerwise_update, projections_for

TEACHER = "teacher"
"""Folder of the fine-tuned teacher in the run folder, and the name of its training."""
WHOLE = o.Supernet(train_embeddings=True)


def task(brief: Brief, place: Place) -> Course:
    """Fine-tuning: everything that can be wrong with task, network and teacher is found here."""
    if brief.lesson.corpus is not None:
        raise BadInput("--lesson finetune learns a task, not --corpus; leave it out or choose another --lesson.")
    scene, network = scene_of(brief, place)
    check_room(network, {"--max-length": max(int(rows.lengths.max()) for rows in scene.encoded.values())})
    rows = scene.encoded["train"]
    check_batch(len(rows), brief.recipe, place.together, brief.pace.accumulate, scene.task.name)
    words: dict[str, Any] = {
        "model": network,
        "update": plain_update(network, loss=partial(task_loss, together=place.together)),
    }
    if brief.lesson.teacher is not None:
        words = taught(brief, place, scene, network)
    return Course(
        network=network,
        tokenizer=scene.tokenizer,
        batches=shuffled(rows, brief.recipe.batch_size, (place.seed, 0)),
        judged=partial(judged, brief, scene, network, more_columns(brief, scene)),
        rows=rows.rows,
        untrained=not scene.fitted,
        facts={"task": scene.task.name, "metric": scene.task.metric, "note": scene.task.note}
        | {"labels": list(scene.task.labels), "teacher": brief.lesson.teacher},
        answers=partial(answers, brief, scene, network, asked_of(brief, scene)),
        **words,
    )


def scene_of(brief: Brief, place: Place) -> tuple[Scene, PrunedNetwork]:
    """The task, and the network with a head for it: trained weights to go on from, or untrained ones of a design."""
    design = design_of(brief.pupil)
    with ExitStack() as stack:
        source = source_of(str(brief.pupil.model))
        if design is not None:
            source = stack.enter_context(TemporaryDirectory())
            untrained_checkpoint(brief, design, place.seed, Path(source))
        ours = is_pruned(source)
        config = PrunedConfig.from_pretrained(source) if ours else stock_config(source)
        scene = scene_for(
            config, source, task_data(brief.data), seed=place.seed, device=place.device, held_out=brief.recipe.held_out
        )
        if ours:
            return scene, on_with(saved_network(Path(source)), scene, fitted=scene.fitted)
        return scene, fresh(scene, o.Model(model=source, pooling=brief.pupil.pooling), WHOLE)


def is_pruned(source: str) -> bool:
    """Whether this is the folder of a network that was fine-tuned or pruned here."""
    try:
        found = json.loads((Path(source) / "config.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(found.get("model_type") == PrunedConfig.model_type)


def on_with(network: PrunedNetwork, scene: Scene, *, fitted: bool) -> PrunedNetwork:
    """The network as it is where its head is for this task, else with a new head on the same body."""
    if fitted:
        return network.to(scene.device)
    values = {k: v for k, v in network.config.to_dict().items() if k in BODY}
    names = dict(enumerate(scene.task.labels)) or {0: "score"}
    kind = scene.task.kind
    config = PrunedConfig(**values, kind=kind, id2label=names, label2id={name: i for i, name in names.items()})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(scene.seed)
        made = HEADS[kind](config)
    made.backbone.load_state_dict(network.backbone.state_dict())
    return made.to(scene.device).eval()


BODY = ("backbone", "layers", "places", "pooling", "grouping", "pad_token_id", "bos_token_id", "eos_token_id")
"""Fields of a config that say nothing about the head."""


def task_data(data: to.Data) -> o.Data:
    """What every job knows of data."""
    return o.Data(**{f.name: getattr(data, f.name) for f in fields(o.Data)})


def untrained_checkpoint(brief: Brief, design: Design, seed: int, folder: Path) -> None:
    """The architecture with first weights, as a checkpoint like others."""
    if brief.pupil.tokenizer in MADE:
        raise BadInput(f"--tokenizer {brief.pupil.tokenizer} is made of a --corpus; a task needs a folder or hub id.")
    name = brief.pupil.tokenizer or brief.lesson.teacher
    tokenizer = tokenizer_in(source_of(name)) if name else USUAL[design.space.text](Text("", []), None)
    built(design, design.space.losses[0], vocabulary=len(tokenizer), seed=seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def judged(brief: Brief, scene: Scene, network: PrunedNetwork, more: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics on the rows that are not trained on: the official dev rows, MNLI's mismatched ones too."""
    found: dict[str, Any] = {"test": scores(scene, network, scene.test)}
    if validates(brief):
        found["validation"] = scores(scene, network, scene.validation)
    for column, rows in more.items():
        found[column] = scores(scene, network, more_rows(scene, rows, brief.data.max_length))
    return {**found["test"], "rows": scene.encoded["test"].rows, "splits": found}


def validates(brief: Brief) -> bool:
    """Whether there are validation rows that are not the test rows: held out of train, or a file for each."""
    data = brief.data
    return bool(brief.recipe.held_out) or (data.data is None and bool(data.validation) == bool(data.test))


def more_columns(brief: Brief, scene: Scene) -> Mapping[str, Any]:
    name, folder = scene.task.name.removeprefix(GLUE_PREFIX), brief.data.data
    official = scene.task.name.startswith(GLUE_PREFIX) and folder is not None
    return more_dev(name, folder, scene.task.labels) if official and folder is not None else {}


def asked_of(brief: Brief, scene: Scene) -> list[Asked]:
    """GLUE's test rows, where they are there and answers are wanted."""
    name, folder = scene.task.name.removeprefix(GLUE_PREFIX), brief.data.data
    if not (brief.checks.submission and scene.task.name.startswith(GLUE_PREFIX) and folder is not None):
        return []
    return asked_rows(name, folder)


def answers(brief: Brief, scene: Scene, network: PrunedNetwork, asked: list[Asked]) -> dict[str, Any]:
    """By column of a submission."""
    return {rows.column: asked_answers(scene, network, rows, brief.data.max_length) for rows in asked}


def taught(brief: Brief, place: Place, scene: Scene, network: PrunedNetwork) -> dict[str, Any]:
    """Model, update and preparation of a course with a teacher: no label plays a part for the student."""
    name = str(brief.lesson.teacher)
    source = source_of(name)
    check_tokens(scene.tokenizer, tokenizer_in(source), name)
    teacher, tuned = teacher_network(source, scene)
    bridge = projections_for(network, teacher, generator=generator(place.seed, PROJECTIONS)).to(place.device)
    return {
        "model": nn.ModuleDict({"student": network, "projections": bridge}),
        "update": layerwise_update(network, teacher, bridge, gamma=1.0, together=place.together),
        "prepared": partial(prepared_teacher, brief, place, scene, teacher, tuned),
    }


def teacher_network(source: str, scene: Scene) -> tuple[PrunedNetwork, bool]:
    """The teacher with a head for the task, and whether that head was trained for it, in the order of our labels."""
    ours = is_pruned(source)
    config = PrunedConfig.from_pretrained(source) if ours else stock_config(source)
    tuned = names_match(config, scene.task) and own_labels(config, scene.task) == scene.task.labels
    if ours:
        return on_with(saved_network(Path(source)), scene, fitted=tuned), tuned
    network = load_supernet(source, kind=scene.task.kind, labels=scene.task.labels, seed=scene.seed, keep_head=tuned)
    return network.to(scene.device), tuned


def prepared_teacher(brief: Brief, place: Place, scene: Scene, teacher: PrunedNetwork, tuned: bool) -> dict[str, Any]:
    """Fine-tunes the teacher with the labels, once per run; returns how good it is."""
    folder, run = place.run.path / TEACHER, place.run
    if folder.exists():
        teacher.load_state_dict(saved_network(folder).state_dict())
    elif not tuned:
        fit_teacher(brief, place, scene, teacher)
        if place.together.first:
            keep(teacher, scene, folder)
            run.checkpoints(TEACHER).remove()
    place.together.wait()
    teacher.requires_grad_(False).eval()
    return {"teacher_metrics": scores(scene, teacher, scene.test)} if place.together.first else {}


def fit_teacher(brief: Brief, place: Place, scene: Scene, teacher: PrunedNetwork) -> None:
    batches = shuffled(scene.encoded["train"], brief.recipe.batch_size, (place.seed, 1))
    hand = brief.pace.accumulate * place.together.processes
    steps = max(1, round(brief.lesson.teacher_epochs * len(batches(0)) / hand))
    train(
        teacher,
        batches,
        plain_update(teacher, loss=partial(task_loss, together=place.together)),
        Schedule(steps=steps, learning_rate=brief.lesson.teacher_learning_rate, accumulate=brief.pace.accumulate),
        seed=2 * place.seed + 1,
        checkpoints=place.run.checkpoints(TEACHER),
        every_seconds=brief.pace.checkpoint_seconds,
        title=f"fine-tuning the teacher on {column_of(scene.task.name)}",
        together=place.together,
    )
