"""Fine-tuning on a task: with its labels, or with a teacher's layers and answers."""

from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from archwright.configs import compress as o
from archwright.data.epochs import shuffled_epochs
from archwright.data.tasks.glue_submission import extra_dev_rows, format_answers, leaderboard_rows
from archwright.data.text.kinds import TEXT_KINDS
from archwright.data.text.tokenizer import TOKENIZER_TRAINERS, read_tokenizer
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.networks.load import (
    default_pooling,
    load_saved_network,
    load_supernet,
    network_class,
    stock_config,
)
from archwright.networks.pruned import PrunedConfig, PrunedNetwork
from archwright.networks.stock_heads import stock_head
from archwright.objectives.error import predict
from archwright.random_streams import DISTILLATION_PROJECTIONS, generator
from archwright.subnet.supernet import plain_update
from archwright.tasks import TASK_KINDS
from archwright.training.checkpoint_head import in_order, match_head
from archwright.training.collapse import watch_task
from archwright.training.evaluation import GLUE_PREFIX, column_of, evaluation_rows, scores
from archwright.training.forecast import seconds_per_batch
from archwright.training.inheritance.start import check_start, start_from_teacher
from archwright.training.loop import Update, train_network
from archwright.training.objectives.distill import LossWeights, layerwise_update
from archwright.training.objectives.layers import build_projections, encoder_layers, layer_map
from archwright.training.objectives.pretraining import check_same_tokens
from archwright.training.plan import TrainingContext, TrainingObjective, TrainingPlan, check_batch
from archwright.training.precision import mixed_precision
from archwright.training.schedule import Schedule
from archwright.training.students import (
    StudentDesign,
    build_student,
    checkpoint_source,
    is_pruned_checkpoint,
    student_design,
)
from archwright.training.task_data import (
    TaskData,
    check_positions,
    load_checkpoint,
    prepare_task_data,
    save_network,
)
from archwright.training.teaching.answers import KeptAnswers
from archwright.training.teaching.augmentation import build_replacer
from archwright.training.teaching.rows import TaughtRows, check_taught_rows, read_unlabelled

TEACHER = "teacher"
"""Folder of the fine-tuned teacher in the run folder, and the name of its training."""
TEACHER_SCHEDULE = "teacher-schedule"
TEACHER_SHARE = 0.3
"""Of --minutes that a teacher may take to learn the task."""
BODY_FIELDS = ("backbone", "layers", "places", "pooling", "grouping", "pad_token_id", "bos_token_id", "eos_token_id")
"""Fields of a config that say nothing about the head."""


def plan_finetuning(context: TrainingContext) -> TrainingPlan:
    """Everything that can be wrong with task, network and teacher is found here."""
    config, recipe = context.config, context.recipe
    if config.objective.corpus is not None:
        raise BadInput("--lesson finetune learns a task, not --corpus; leave it out or choose another --lesson.")
    task_data, network = load_student_and_task(context)
    task, train = task_data.task, task_data.encoded["train"]
    check_positions(network, {"--max-length": max(int(rows.lengths.max()) for rows in task_data.encoded.values())})
    check_batch(len(train), context, task.name)
    update = plain_update(network, loss=partial(task_data.loss, group=context.group))
    parts: dict[str, Any] = {"model": network, "update": update}
    if config.objective.teacher is not None:
        parts = teacher_parts(context, task_data, network)
    glue = config.task.data if task.name.startswith(GLUE_PREFIX) else None
    name = task.name.removeprefix(GLUE_PREFIX)
    extra = {} if glue is None else extra_dev_rows(name, glue, task.labels)
    unlabelled = leaderboard_rows(name, glue) if glue is not None and config.checks.submission else []

    def evaluate() -> dict[str, Any]:
        """Metrics on the rows that are not trained on: the official dev rows, MNLI's mismatched ones too."""
        data, splits = config.task, {"test": scores(task_data, network, task_data.test)}
        # Validation rows that are not the test rows are held out of train, or in a file that does not test.
        of_file = data.validation is not None and (data.test is not None or data.validation_role == "choose")
        cut = recipe.held_out or (data.data is None and data.validation is None and data.test is None)
        if of_file or cut:
            splits["validation"] = scores(task_data, network, task_data.validation)
        for column, rows in extra.items():
            splits[column] = scores(task_data, network, evaluation_rows(task_data, rows, data.max_length))
        return {**splits["test"], "rows": task_data.encoded["test"].rows, "splits": splits}

    def answer_test_rows() -> dict[str, Any]:
        """Numbers of the rows, and the answers as the leaderboard wants them."""
        answers = {}
        for test in unlabelled:
            predictions = predict(network, evaluation_rows(task_data, test.rows, config.task.max_length)).tolist()
            answers[test.column] = test.index, format_answers(test.column, predictions, task.labels)
        return answers

    facts = {"task": task.name, "metric": task.metric, "note": task.note, "labels": list(task.labels)}
    common: dict[str, Any] = {
        "batches": shuffled_epochs(train, recipe.batch_size, (context.seed, 0)),
        "rows": train.rows,
        "encoded": task_data.encoded,
    }
    return TrainingPlan(
        network=network,
        tokenizer=task_data.tokenizer,
        evaluate=evaluate,
        new_head=not task_data.head.kept,
        facts=facts | {"teacher": config.objective.teacher},
        answer_test_rows=answer_test_rows,
        watch=watch_task(task_data, network),
        **(common | parts),
    )


OBJECTIVE = TrainingObjective("finetune", "finetuning", plan_finetuning, teacher=None)


def load_student_and_task(context: TrainingContext) -> tuple[TaskData, PrunedNetwork]:
    """The task, and the network with a head for it: trained weights to go on from, or untrained ones of a design."""
    config = context.config
    design = student_design(config.student)
    with ExitStack() as stack:
        source = checkpoint_source(str(config.student.model))
        if design is not None:
            source = stack.enter_context(TemporaryDirectory())
            write_untrained_checkpoint(context, design, Path(source))
        pruned = is_pruned_checkpoint(source)
        task_data = prepare_task_data(
            PrunedConfig.from_pretrained(source) if pruned else stock_config(source),
            source,
            o.DataOptions(**{f.name: getattr(config.task, f.name) for f in fields(o.DataOptions)}),
            seed=context.seed,
            device=context.device,
            held_out=context.recipe.held_out,
            tokenizer_name=untrained_tokenizer(context) if design else None,
        )
        if TASK_KINDS[task_data.task.kind].teach is not None:
            raise BadInput(f"--task {task_data.task.kind} has no targets but a larger network's; take `compress`.")
        if pruned:
            return task_data, fit_head(load_saved_network(Path(source)), task_data, fitted=task_data.head.kept)
        pooling = config.student.pooling or teachers_pooling(context)
        model = o.ModelOptions(model=source, pooling=pooling, weights="float32")
        return task_data, load_checkpoint(task_data, model, o.SupernetOptions(train_embeddings=True))


def teachers_pooling(context: TrainingContext) -> str | None:
    """How the teacher reads a text, for a student that starts from it; None: as the student's family does."""
    if context.config.student.start == "random":
        return None
    source = checkpoint_source(str(context.config.objective.teacher))
    if is_pruned_checkpoint(source):
        return str(PrunedConfig.from_pretrained(source).pooling)
    return default_pooling(source)


def fit_head(network: PrunedNetwork, task_data: TaskData, *, fitted: bool) -> PrunedNetwork:
    """The network as it is where its head is for this task, else with a new head on the same body."""
    if fitted:
        return network.to(task_data.device)
    values = {name: value for name, value in network.config.to_dict().items() if name in BODY_FIELDS}
    names = dict(enumerate(task_data.task.labels)) or {0: "score"}
    kind = task_data.task.kind
    config = PrunedConfig(
        **values,
        kind=kind,
        problem_type=stock_head(kind).problem_type,
        id2label=names,
        label2id={name: i for i, name in names.items()},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task_data.seed)
        headed = network_class(kind)(config)
    headed.backbone.load_state_dict(network.backbone.state_dict())
    return headed.to(task_data.device).eval()


def write_untrained_checkpoint(context: TrainingContext, design: StudentDesign, folder: Path) -> None:
    """The architecture with first weights, as a checkpoint like others."""
    student = context.config.student
    if student.tokenizer in TOKENIZER_TRAINERS:
        raise BadInput(f"--tokenizer {student.tokenizer} is made of a --corpus; a task needs a folder or hub id.")
    name = untrained_tokenizer(context)
    tokenizer = read_tokenizer(checkpoint_source(name)) if name else TEXT_KINDS[design.space.text].tokenizer((), None)
    network = build_student(design, design.space.losses[0], vocabulary=len(tokenizer), seed=context.seed)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def untrained_tokenizer(context: TrainingContext) -> str | None:
    """Folder or hub id of the tokenizer of a new network; None: the usual one of its space."""
    return context.config.student.tokenizer or context.config.objective.teacher


def teacher_parts(context: TrainingContext, task_data: TaskData, network: PrunedNetwork) -> dict[str, Any]:
    """What a plan with a teacher has of its own: model, update, rows and preparation."""
    config, options = context.config, context.config.teaching
    name = str(config.objective.teacher)
    source = checkpoint_source(name)
    check_same_tokens(task_data.tokenizer, read_tokenizer(source), name)
    teacher, tuned = load_task_teacher(source, task_data)
    draws = generator(context.seed, DISTILLATION_PROJECTIONS)
    projections = build_projections(network, teacher, generator=draws).to(context.device)
    if config.student.start == "teacher":
        check_start(network, teacher)
    rows = taught_rows(context, task_data, teacher, source)
    pairs = layer_map(len(encoder_layers(network)), len(encoder_layers(teacher)))
    weights = LossWeights(layers=options.layer_weight, logits=options.logit_weight, labels=options.label_weight)
    layers = [theirs for _, theirs in pairs] if weights.layers else []
    answers = KeptAnswers(teacher, layers, logits=weights.logits > 0)

    def prepare() -> dict[str, Any]:
        facts = finetune_teacher(context, task_data, teacher, tuned)
        if config.student.start == "random":
            return facts
        return facts | start_from_teacher(context, network, teacher, task_data.encoded["train"], projections)

    return {
        "model": nn.ModuleDict({"student": network, "projections": projections}),
        "update": layerwise_update(
            *(network, answers, projections, weights),
            group=context.group,
            independent=TASK_KINDS[task_data.task.kind].independent,
            label_loss=partial(task_data.loss, group=context.group),
        ),
        "prepare": prepare,
        "teacher": answers,
        "taught": lambda: rows.encoded,
        "batches": lambda epoch: shuffled_epochs(rows.encoded, context.recipe.batch_size, (context.seed, 0))(epoch),
        "rows": task_data.encoded["train"].rows + len(rows) - len(rows.labelled),
        "encoded": task_data.encoded | ({} if rows.unlabelled is None else {"unlabelled": rows.unlabelled}),
    }


def taught_rows(context: TrainingContext, task_data: TaskData, teacher: PrunedNetwork, source: str) -> TaughtRows:
    """The rows that the teacher answers; what is wrong with them is found here, other words are found later."""
    options = context.config.teaching
    check_taught_rows(options, task_data)
    unlabelled = replacer = None
    if options.unlabelled is not None:
        unlabelled = read_unlabelled(options.unlabelled, task_data, context.config.task)
    if options.augment:
        replacer = build_replacer(options.augment_with, source, teacher, task_data.tokenizer)
    train, run, group = task_data.encoded["train"], context.run, context.group
    return TaughtRows(train, unlabelled, options.augment, replacer, run, group, context.seed)


def load_task_teacher(source: str, task_data: TaskData) -> tuple[PrunedNetwork, bool]:
    """The teacher with a head for the task, and whether it has learnt the task, in the order of our labels.

    Where a task has no labels (questions, numbers) a head of its kind is taken to have, and a line says so.
    """
    pruned, task = is_pruned_checkpoint(source), task_data.task
    config = PrunedConfig.from_pretrained(source) if pruned else stock_config(source)
    head = match_head(config, task)
    tuned = head.kept and in_order(head.labels, task.labels)
    if tuned and not head.trained:
        column = column_of(task.name)
        line = (
            "the teacher's own head answers %s; if it is of another task, train it for %s with `archwright train` first"
        )
        logger.info(line, column, column)
    if pruned:
        return fit_head(load_saved_network(Path(source)), task_data, fitted=tuned), tuned
    network = load_supernet(source, kind=task.kind, labels=task.labels, seed=task_data.seed, keep_head=tuned)
    return network.to(task_data.device), tuned


def finetune_teacher(
    context: TrainingContext, task_data: TaskData, teacher: PrunedNetwork, tuned: bool
) -> dict[str, Any]:
    """Fine-tunes the teacher with the labels, once per run; returns how good it is."""
    config, group, folder = context.config, context.group, context.run.path / TEACHER
    if folder.exists():
        teacher.load_state_dict(load_saved_network(folder).state_dict())
    elif not tuned:
        batches = shuffled_epochs(task_data.encoded["train"], context.recipe.batch_size, (context.seed, 1))
        update = plain_update(teacher, loss=partial(task_data.loss, group=group))
        train_network(
            teacher,
            batches,
            update,
            Schedule(
                steps=teacher_steps(context, teacher, batches, update),
                learning_rate=config.objective.teacher_learning_rate,
                accumulate=config.schedule.accumulate,
            ),
            seed=2 * context.seed + 1,
            checkpoints=context.run.checkpoints(TEACHER),
            every_seconds=config.schedule.checkpoint_seconds,
            title=f"fine-tuning the teacher on {column_of(task_data.task.name)}",
            group=group,
            precision=context.precision,
        )
        if group.first:
            save_network(teacher, task_data, folder)
            context.run.checkpoints(TEACHER).remove()
    group.wait()
    teacher.requires_grad_(False).eval()
    return {"teacher_metrics": scores(task_data, teacher, task_data.test)} if group.first else {}


def teacher_steps(context: TrainingContext, teacher: PrunedNetwork, batches: Any, update: Update) -> int:
    """How long the teacher learns the task: --teacher-epochs, or less where --minutes are few; decided once per run."""
    config, run, group = context.config, context.run, context.group
    noted = group.agree(run.note(TEACHER_SCHEDULE))
    if noted is None:
        minutes, accumulate = config.schedule.minutes, config.schedule.accumulate
        steps = max(1, round(config.objective.teacher_epochs * len(batches(0)) / (accumulate * group.processes)))
        if minutes is not None:
            with mixed_precision(context.device, context.precision):
                seconds = accumulate * seconds_per_batch(teacher, batches(0), update)
            steps = max(1, min(steps, int(TEACHER_SHARE * 60 * minutes / seconds)))
        noted = group.agree({"steps": steps})
        if group.first:
            run.note(TEACHER_SCHEDULE, noted)
    return int(noted["steps"])
