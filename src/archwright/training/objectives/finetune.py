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

from archwright.configs import compress as o
from archwright.configs import training as to
from archwright.data.epochs import shuffled_epochs
from archwright.data.tasks.glue_submission import UnlabelledRows, extra_dev_rows, test_rows
from archwright.data.text.corpus import Corpus
from archwright.data.text.tokenizer_training import TOKENIZER_TRAINERS, read_tokenizer
from archwright.errors import BadInput
from archwright.networks.load import load_supernet, saved_network, stock_config
from archwright.networks.pruned import HEADS, PrunedConfig, PrunedNetwork
from archwright.random_streams import generator
from archwright.subnet.supernet import plain_update
from archwright.training.corpus import USUAL, check_tokens
from archwright.training.evaluation import GLUE_PREFIX, column_of, more_rows, predict_test_rows, scores
from archwright.training.loop import train_network
from archwright.training.losses import task_loss
from archwright.training.objectives.distill import layerwise_update
from archwright.training.objectives.layer_matching import projections_for
from archwright.training.objectives.pretraining import PROJECTIONS
from archwright.training.plan import TrainConfig, TrainingContext, TrainingPlan, check_batch
from archwright.training.pretrained import check_room, load_checkpoint, save_network
from archwright.training.schedule import Schedule
from archwright.training.students import StudentDesign, build_student, checkpoint_source, student_design
from archwright.training.task_data import TaskData, names_match, own_labels, prepare_task_data

TEACHER = "teacher"
"""Folder of the fine-tuned teacher in the run folder, and the name of its training."""
WHOLE = o.SupernetOptions(train_embeddings=True)


def task(options: TrainConfig, place: TrainingContext) -> TrainingPlan:
    """Fine-tuning: everything that can be wrong with task, network and teacher is found here."""
    if options.lesson.corpus is not None:
        raise BadInput("--lesson finetune learns a task, not --corpus; leave it out or choose another --lesson.")
    task_data, network = scene_of(options, place)
    check_room(network, {"--max-length": max(int(rows.lengths.max()) for rows in task_data.encoded.values())})
    rows = task_data.encoded["train"]
    check_batch(len(rows), options.recipe, place.group, options.pace.accumulate, task_data.task.name)
    words: dict[str, Any] = {
        "model": network,
        "update": plain_update(network, loss=partial(task_loss, group=place.group)),
    }
    if options.lesson.teacher is not None:
        words = taught(options, place, task_data, network)
    return TrainingPlan(
        network=network,
        tokenizer=task_data.tokenizer,
        batches=shuffled_epochs(rows, options.recipe.batch_size, (place.seed, 0)),
        judged=partial(judged, options, task_data, network, more_columns(options, task_data)),
        rows=rows.rows,
        untrained=not task_data.fitted,
        facts={"task": task_data.task.name, "metric": task_data.task.metric, "note": task_data.task.note}
        | {"labels": list(task_data.task.labels), "teacher": options.lesson.teacher},
        answers=partial(answers, options, task_data, network, asked_of(options, task_data)),
        **words,
    )


def scene_of(options: TrainConfig, place: TrainingContext) -> tuple[TaskData, PrunedNetwork]:
    """The task, and the network with a head for it: trained weights to go on from, or untrained ones of a design."""
    design = student_design(options.student)
    with ExitStack() as stack:
        source = checkpoint_source(str(options.student.model))
        if design is not None:
            source = stack.enter_context(TemporaryDirectory())
            untrained_checkpoint(options, design, place.seed, Path(source))
        ours = is_pruned(source)
        config = PrunedConfig.from_pretrained(source) if ours else stock_config(source)
        task_data = prepare_task_data(
            config,
            source,
            task_options(options.data),
            seed=place.seed,
            device=place.device,
            held_out=options.recipe.held_out,
        )
        if ours:
            return task_data, on_with(saved_network(Path(source)), task_data, fitted=task_data.fitted)
        return task_data, load_checkpoint(
            task_data, o.ModelOptions(model=source, pooling=options.student.pooling), WHOLE
        )


def is_pruned(source: str) -> bool:
    """Whether this is the folder of a network that was fine-tuned or pruned here."""
    try:
        found = json.loads((Path(source) / "config.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(found.get("model_type") == PrunedConfig.model_type)


def on_with(network: PrunedNetwork, task_data: TaskData, *, fitted: bool) -> PrunedNetwork:
    """The network as it is where its head is for this task, else with a new head on the same body."""
    if fitted:
        return network.to(task_data.device)
    values = {k: v for k, v in network.config.to_dict().items() if k in BODY}
    names = dict(enumerate(task_data.task.labels)) or {0: "score"}
    kind = task_data.task.kind
    config = PrunedConfig(**values, kind=kind, id2label=names, label2id={name: i for i, name in names.items()})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task_data.seed)
        made = HEADS[kind](config)
    made.backbone.load_state_dict(network.backbone.state_dict())
    return made.to(task_data.device).eval()


BODY = ("backbone", "layers", "places", "pooling", "grouping", "pad_token_id", "bos_token_id", "eos_token_id")
"""Fields of a config that say nothing about the head."""


def task_options(data: to.TaskOptions) -> o.DataOptions:
    """What every job knows of data."""
    return o.DataOptions(**{f.name: getattr(data, f.name) for f in fields(o.DataOptions)})


def untrained_checkpoint(options: TrainConfig, design: StudentDesign, seed: int, folder: Path) -> None:
    """The architecture with first weights, as a checkpoint like others."""
    if options.student.tokenizer in TOKENIZER_TRAINERS:
        raise BadInput(
            f"--tokenizer {options.student.tokenizer} is made of a --corpus; a task needs a folder or hub id."
        )
    name = options.student.tokenizer or options.lesson.teacher
    tokenizer = read_tokenizer(checkpoint_source(name)) if name else USUAL[design.space.text](Corpus("", []), None)
    build_student(design, design.space.losses[0], vocabulary=len(tokenizer), seed=seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def judged(
    options: TrainConfig, task_data: TaskData, network: PrunedNetwork, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Metrics on the rows that are not trained on: the official dev rows, MNLI's mismatched ones too."""
    found: dict[str, Any] = {"test": scores(task_data, network, task_data.test)}
    if validates(options):
        found["validation"] = scores(task_data, network, task_data.validation)
    for column, rows in more.items():
        found[column] = scores(task_data, network, more_rows(task_data, rows, options.data.max_length))
    return {**found["test"], "rows": task_data.encoded["test"].rows, "splits": found}


def validates(options: TrainConfig) -> bool:
    """Whether there are validation rows that are not the test rows: held out of train, or a file for each."""
    data = options.data
    return bool(options.recipe.held_out) or (data.data is None and bool(data.validation) == bool(data.test))


def more_columns(options: TrainConfig, task_data: TaskData) -> Mapping[str, Any]:
    name, folder = task_data.task.name.removeprefix(GLUE_PREFIX), options.data.data
    official = task_data.task.name.startswith(GLUE_PREFIX) and folder is not None
    return extra_dev_rows(name, folder, task_data.task.labels) if official and folder is not None else {}


def asked_of(options: TrainConfig, task_data: TaskData) -> list[UnlabelledRows]:
    """GLUE's test rows, where they are there and answers are wanted."""
    name, folder = task_data.task.name.removeprefix(GLUE_PREFIX), options.data.data
    if not (options.checks.submission and task_data.task.name.startswith(GLUE_PREFIX) and folder is not None):
        return []
    return test_rows(name, folder)


def answers(
    options: TrainConfig, task_data: TaskData, network: PrunedNetwork, asked: list[UnlabelledRows]
) -> dict[str, Any]:
    """By column of a submission."""
    return {rows.column: predict_test_rows(task_data, network, rows, options.data.max_length) for rows in asked}


def taught(options: TrainConfig, place: TrainingContext, task_data: TaskData, network: PrunedNetwork) -> dict[str, Any]:
    """Model, update and preparation of a course with a teacher: no label plays a part for the student."""
    name = str(options.lesson.teacher)
    source = checkpoint_source(name)
    check_tokens(task_data.tokenizer, read_tokenizer(source), name)
    teacher, tuned = teacher_network(source, task_data)
    bridge = projections_for(network, teacher, generator=generator(place.seed, PROJECTIONS)).to(place.device)
    return {
        "model": nn.ModuleDict({"student": network, "projections": bridge}),
        "update": layerwise_update(network, teacher, bridge, gamma=1.0, group=place.group),
        "prepared": partial(prepared_teacher, options, place, task_data, teacher, tuned),
    }


def teacher_network(source: str, task_data: TaskData) -> tuple[PrunedNetwork, bool]:
    """The teacher with a head for the task, and whether that head was trained for it, in the order of our labels."""
    ours = is_pruned(source)
    config = PrunedConfig.from_pretrained(source) if ours else stock_config(source)
    tuned = names_match(config, task_data.task) and own_labels(config, task_data.task) == task_data.task.labels
    if ours:
        return on_with(saved_network(Path(source)), task_data, fitted=tuned), tuned
    network = load_supernet(
        source, kind=task_data.task.kind, labels=task_data.task.labels, seed=task_data.seed, keep_head=tuned
    )
    return network.to(task_data.device), tuned


def prepared_teacher(
    options: TrainConfig, place: TrainingContext, task_data: TaskData, teacher: PrunedNetwork, tuned: bool
) -> dict[str, Any]:
    """Fine-tunes the teacher with the labels, once per run; returns how good it is."""
    folder, run = place.run.path / TEACHER, place.run
    if folder.exists():
        teacher.load_state_dict(saved_network(folder).state_dict())
    elif not tuned:
        fit_teacher(options, place, task_data, teacher)
        if place.group.first:
            save_network(teacher, task_data, folder)
            run.checkpoints(TEACHER).remove()
    place.group.wait()
    teacher.requires_grad_(False).eval()
    return {"teacher_metrics": scores(task_data, teacher, task_data.test)} if place.group.first else {}


def fit_teacher(options: TrainConfig, place: TrainingContext, task_data: TaskData, teacher: PrunedNetwork) -> None:
    batches = shuffled_epochs(task_data.encoded["train"], options.recipe.batch_size, (place.seed, 1))
    hand = options.pace.accumulate * place.group.processes
    steps = max(1, round(options.lesson.teacher_epochs * len(batches(0)) / hand))
    train_network(
        teacher,
        batches,
        plain_update(teacher, loss=partial(task_loss, group=place.group)),
        Schedule(steps=steps, learning_rate=options.lesson.teacher_learning_rate, accumulate=options.pace.accumulate),
        seed=2 * place.seed + 1,
        checkpoints=place.run.checkpoints(TEACHER),
        every_seconds=options.pace.checkpoint_seconds,
        title=f"fine-tuning the teacher on {column_of(task_data.task.name)}",
        group=place.group,
    )
