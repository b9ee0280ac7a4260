"""The pipeline of `train`: validate, plan, prepare the teacher, evaluate, fit, evaluate, save, report.

Every step is resumable: the same command in the same folder goes on where it was interrupted, bit by bit.
"""

import json
import shutil
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch

from archwright.checksums import write_checksums
from archwright.configs.options import make_config
from archwright.configs.training import TrainConfig
from archwright.configs.yaml_file import write_config
from archwright.data.public_data import EMBEDDED
from archwright.data.tasks.glue_submission import zip_submission
from archwright.devices import deterministic_algorithms, resolve_device
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.exporting.compact import save_checkpoint
from archwright.logs import logger
from archwright.networks.cells.model import CellForCausalLM
from archwright.networks.pruned import PrunedNetwork
from archwright.reports.train import render_train_page
from archwright.store import RunFolder, atomic_folder, begin_run, is_run, write_atomic
from archwright.store.logs import TrainingLog, read_log
from archwright.threads import choose_threads
from archwright.training.collapse import SLOWER, check_steps
from archwright.training.digests import NOTE, bind_run, digest_file, digest_rows, digest_tokenizer, digest_weights
from archwright.training.distributed import join_process_group
from archwright.training.evaluation import published_beside
from archwright.training.forecast import forecast_line, time_steps
from archwright.training.loop import model_tensors, train_network
from archwright.training.objectives import OBJECTIVES, objective_name
from archwright.training.plan import PRECISION, TrainingContext, TrainingPlan, training_recipe
from archwright.training.precision import choose_precision, mixed_precision
from archwright.training.schedule import Schedule
from archwright.training.students import MODEL, checkpoint_source
from archwright.training.teaching.rows import FILE as AUGMENTED
from archwright.training.validation import COMMAND, check_folder

SCHEMA = "archwright/train/1"
LOG = "log.csv"
POINTS = 200
"""Of the curve of the loss in the result; the log has every step."""
EDGE = 10
"""Steps whose mean is the loss at the beginning, and at the end."""
ANSWERS = "teacher-answers"
"""Folder of the teacher's answers in the run folder, while it trains."""
LEAST_SHARE = 0.3
"""Of --minutes that are the student's, however long the preparation took."""
PHASE, SECOND_PHASE = "training", "training-again"
COLLAPSE = "collapse"
INPUTS = {
    "rows": ("corpus", "train", "data", "task"),
    "tokenizer": ("tokenizer", "model", "teacher", "corpus"),
    **{name: (name,) for name in ("model", "teacher", "design", "config")},
}
"""What a run reads, and the options that name it."""


def run_training(config: TrainConfig, folder: Path) -> dict[str, Any]:
    """The result of the training in this folder, now or from an earlier time."""
    check_folder(folder)
    if is_run(folder) and "split" not in RunFolder(folder).settings:  # begun by a version that split rows at random
        config = replace(config, task=replace(config.task, split="random"))
    context = prepare_context(config, folder)
    run, group = context.run, context.group
    if is_run(folder):
        begin_run(folder, run_options(config))  # refuses other options
        result = run.note("result")
        if result is not None and (folder / MODEL).exists():
            if group.first:  # a kill may have come after the result
                remove_leftovers(run)
                run.sweep()
            return dict(result)

    plan = context.objective.plan(context)  # student, data and teacher: what is wrong with them is found here
    if group.first:
        options = run_options(config)
        begin_run(folder, options)
        check_inputs(context, plan)
        run.note_once("threads", {"threads": torch.get_num_threads()})
        note_precision(context, plan, begun=run.note("schedule") is not None)
        del options["command"]
        write_config(folder / "config.yaml", make_config(TrainConfig, {**options, "out": folder.resolve()}))
    group.wait()
    with run.lock() if group.first else nullcontext(), deterministic_algorithms(config.output.deterministic):
        started = perf_counter()
        facts = {**plan.facts, **plan.prepare()}  # fine-tunes a teacher where the plan has one to train
        before = evaluate_before(context, plan) if context.objective.head is not None else None
        schedule = decide_schedule(context, plan, perf_counter() - started)
        keep_answers(context, plan, schedule)
        prepared = max(perf_counter() - started, run.note("schedule").get("prepared", 0.0))  # it may have been resumed

        schedule = fit_watched(context, plan, schedule)

        if group.first:
            result = {**describe_training(context, plan, schedule), **summarize(context, plan, before), **facts}
            result |= describe_answers(context, plan)
            if "task" in facts:
                result["published_scores"] = published_beside(
                    facts["task"], result["validation"]["after"], result["parameters"]
                )
            result["seconds"] = {"prepared": prepared, "total": perf_counter() - started, **result["seconds"]}
            save_result(context, plan, result)
        group.wait()
        return dict(run.note("result"))


def evaluate_only(config: TrainConfig) -> dict[str, Any]:
    """The network as it is, evaluated; nothing is written."""
    if config.student.model is None:
        raise BadInput("--evaluate-only judges trained weights; give --model.")
    with TemporaryDirectory() as folder:
        context = prepare_context(config, Path(folder))
        plan = context.objective.plan(context)
        if plan.new_head:
            raise BadInput(
                f"--evaluate-only needs a network that was trained for this task, {config.student.model} was not."
            )
        after = dict(plan.evaluate()) if context.group.first else {}
    return {
        "schema": SCHEMA,
        "lesson": context.objective.name,
        "evaluate_only": True,
        "seed": context.seed,
        "steps": 0,
        "rows": plan.rows,
        "parameters": sum(p.numel() for p in plan.network.parameters()),
        **plan.facts,
        "validation": {"before": None, "after": after},
        "environment": environment(),
    }


def prepare_context(config: TrainConfig, folder: Path) -> TrainingContext:
    """What follows from the config before any data is read; alone, or among the processes that torchrun has started."""
    output = config.output
    objective = OBJECTIVES[objective_name(config.objective)]
    recipe = training_recipe(config, objective)
    group = join_process_group(cpu=resolve_device(output.device).type == "cpu")
    choose_threads(output.threads, group.processes, note=folder / "threads.json")
    return TrainingContext(config, objective, recipe, RunFolder(folder), group)


def run_options(config: TrainConfig) -> dict[str, Any]:
    """The options as JSON values that mean the same in every folder."""
    values = {f.name: getattr(group, f.name) for group in vars(config).values() for f in fields(group)}
    for name in ("model", "teacher", "tokenizer"):
        source = values[name]
        if source and source not in EMBEDDED and Path(source).is_dir():
            values[name] = str(Path(source).resolve())
    plain = json.loads(json.dumps(values, default=lambda value: str(Path(value).resolve())))
    return {"command": COMMAND, **plain}


def check_inputs(context: TrainingContext, plan: TrainingPlan) -> None:
    """BadInput where what the run reads is not what it was begun with; notes it for a new run."""
    run, config = context.run, context.config
    noted = run.note(NOTE) or {}
    found: dict[str, dict[str, Any]] = {
        "rows": {"digest": digest_rows(plan.encoded, plan.facts.get("labels"))},
        "tokenizer": {"digest": digest_tokenizer(plan.tokenizer)},
    }
    for name, source in (("model", config.student.model), ("teacher", config.objective.teacher)):
        if source is not None:
            found[name] = digest_weights(checkpoint_source(source), noted.get(name, {}))
    for name, file in (("design", config.student.design), ("config", config.student.config)):
        if file is not None:
            found[name] = {"digest": digest_file(file)}
    bind_run(run, found, INPUTS, begun=run.note("schedule") is not None)


def note_precision(context: TrainingContext, plan: TrainingPlan, *, begun: bool) -> None:
    """Decides the precision of a new run; one that an earlier version `begun` goes on in float32, without a note."""
    precision = context.config.schedule.precision
    if context.run.note(PRECISION) is not None or (begun and precision == "auto"):
        return
    if precision == "auto":
        precision = choose_precision(context.device, hidden_width(plan.network))
        if precision == "bfloat16":
            words = "the training multiplies in bfloat16, which this device is made for; --precision float32 does not"
            logger.warning(words)
    context.run.note_once(PRECISION, {"precision": precision})


def hidden_width(network: Any) -> int:
    """Of its layers' state; 0 for recurrent networks, which multiply step by step."""
    if isinstance(network, CellForCausalLM):
        return 0
    config = network.backbone.config if isinstance(network, PrunedNetwork) else network.config
    return int(getattr(config, "hidden_size", 0))


def evaluate_before(context: TrainingContext, plan: TrainingPlan) -> Any:
    """Metrics before the training, worked out once per run by the first process."""
    metrics = context.run.note("before")
    if metrics is None and context.group.first:
        metrics = context.run.note("before", dict(plan.evaluate()))
    context.group.wait()
    return metrics


def decide_schedule(context: TrainingContext, plan: TrainingPlan, spent: float = 0.0) -> Schedule:
    """How long and how fast; decided once per run, so that a resumed one goes on with the same.

    So many seconds are `spent` already, on what comes before; they are part of --minutes.
    """
    recipe, options, run, group = context.recipe, context.config.schedule, context.run, context.group
    known = run.note("schedule")
    kept = plan_answers(context, plan)
    group.wait()
    if known is None:
        steps, per_step = recipe.steps, options.accumulate * group.processes
        if steps is None:
            steps = max(1, round((recipe.epochs or 1.0) * len(plan.batches(0)) / per_step))
        noted: dict[str, Any] = {"steps": steps, "prepared": spent}
        if options.minutes is not None:  # timed in all processes: a loss asks the others
            with mixed_precision(context.device, context.precision):
                times = time_steps(plan, per_step, options.accumulate, kept)
            left = max(60 * options.minutes - spent, LEAST_SHARE * 60 * options.minutes)
            steps = max(1, min(steps, times.steps_within(left)))
            noted |= {"steps": steps, "forecast": times.describe(steps)}
        if group.first:
            run.note("schedule", noted)
            if "forecast" in noted:
                logger.warning("forecast: %s", forecast_line(noted["forecast"], steps))
    group.wait()
    return Schedule(
        steps=int(run.note("schedule")["steps"]),
        accumulate=options.accumulate,
        learning_rate=recipe.learning_rate,
        warmup=recipe.warmup,
        weight_decay=recipe.weight_decay,
        layer_decay=recipe.layer_decay,
        betas=recipe.betas,
        eps=recipe.eps,
    )


def plan_answers(context: TrainingContext, plan: TrainingPlan) -> float:
    """The share of the rows whose answers by the teacher there is room for; 0 without a teacher."""
    limit = int(1e9 * context.config.teaching.teacher_cache_gb)
    if plan.teacher is None or plan.taught is None or limit == 0:
        return 0.0
    return plan.teacher.plan_cache(plan.taught(), limit, context.precision)


def keep_answers(context: TrainingContext, plan: TrainingPlan, schedule: Schedule) -> None:
    """Keeps the teacher's answers on disk where rows come again, or where other runs may share them."""
    options, group = context.config.teaching, context.group
    rows = schedule.steps * schedule.accumulate * group.processes
    again = rows > len(plan.batches(0)) or options.teacher_cache is not None
    if plan.teacher is None or options.teacher_cache_gb == 0 or not again:
        return
    with group.first_ahead():
        plan.teacher.open(options.teacher_cache or context.run.path / ANSWERS)


def describe_answers(context: TrainingContext, plan: TrainingPlan) -> dict[str, Any]:
    """What was kept of the teacher, and tokens per second in the first epoch and from then on."""
    found = plan.teacher.describe() if plan.teacher is not None else {}
    if not found:
        return {}
    first = len(plan.batches(0)) / (context.config.schedule.accumulate * context.group.processes)
    rows = read_log(context.run.path / LOG)
    parts = {"first_epoch": [r for r in rows if r["step"] < first], "later": [r for r in rows if r["step"] >= first]}
    speeds = {
        name: sum(row["tokens"] for row in part) / max(sum(row["seconds"] for row in part), 1e-9) if part else None
        for name, part in parts.items()
    }
    return {"teacher_cache": {**found["teacher_cache"], "tokens_per_second": speeds}}


def fit_watched(context: TrainingContext, plan: TrainingPlan, schedule: Schedule) -> Schedule:
    """The training, begun again at a lower rate, once, where it collapses; the schedule that led to the end.

    Within --minutes the second training has the steps that the first has left over.
    """
    run, group, options = context.run, context.group, context.config.schedule
    noted, checks = group.agree(run.note(COLLAPSE)), check_steps(schedule.steps)
    if noted is None and (plan.watch is None or not options.restart_collapsed or not checks):
        fit_plan(context, plan, schedule)
        return schedule
    if noted is None:
        start = {name: tensor.clone() for name, tensor in model_tensors(plan.model).items()}
        noted = fit_until_collapse(context, plan, schedule, checks)
        if noted is None:
            return schedule
        with torch.no_grad():
            for name, tensor in model_tensors(plan.model).items():
                tensor.copy_(start[name])
    if group.first:
        run.checkpoints(PHASE).remove()
    schedule = replace(schedule, steps=int(noted["steps"]), learning_rate=noted["learning_rate"])
    fit_plan(context, plan, schedule, phase=SECOND_PHASE)
    return schedule


def fit_until_collapse(
    context: TrainingContext, plan: TrainingPlan, schedule: Schedule, checks: Collection[int]
) -> dict[str, Any] | None:
    """Trains; where it collapses, stops there and notes it with the schedule of the training that is to follow."""
    run, group, watch = context.run, context.group, plan.watch
    assert watch is not None
    found: dict[str, Any] = {}

    def is_collapsed(step: int) -> bool:
        if step in checks:
            reason = group.agree(watch.find() if group.first else None)
            plan.model.train()
            if reason is not None:
                found.update(step=step, reason=reason)
        return bool(found)

    fit_plan(context, plan, schedule, watch=is_collapsed)
    if not found:
        return None
    steps = schedule.steps if context.config.schedule.minutes is None else schedule.steps - found["step"]
    found |= {"steps": steps, "learning_rate": SLOWER * schedule.learning_rate}
    if group.first:
        rows = read_log(run.path / LOG)
        run.note(COLLAPSE, found | {"seconds": sum(row["seconds"] for row in rows)})
        words = "the training has collapsed at step %s (%s); it begins again at a learning rate of %.3g"
        logger.warning(words, found["step"], found["reason"], found["learning_rate"])
    return found


def fit_plan(
    context: TrainingContext,
    plan: TrainingPlan,
    schedule: Schedule,
    *,
    stop: int | None = None,
    phase: str = PHASE,
    watch: Callable[[int], bool] | None = None,
) -> None:
    """The training itself, up to a step or to its end; goes on where the last one of this phase ended."""
    with TrainingLog(context.run.path / LOG) as log:
        train_network(
            plan.model,
            plan.batches,
            plan.update,
            schedule,
            seed=2 * context.seed,
            checkpoints=context.run.checkpoints(phase),
            every_seconds=context.config.schedule.checkpoint_seconds,
            title=f"{context.objective.name}: {schedule.steps} steps",
            stop=stop,
            carry=plan.carry,
            log=log,
            group=context.group,
            precision=context.precision,
            watch=watch,
        )


def describe_training(context: TrainingContext, plan: TrainingPlan, schedule: Schedule) -> dict[str, Any]:
    """What was trained, and how."""
    config, processes, options = context.config, context.group.processes, run_options(context.config)
    return {
        "schema": SCHEMA,
        "lesson": context.objective.name,
        "preset": config.objective.preset,
        "pupil": {k: v for k, v in options.items() if k in ("design", "space", "config", "model") and v},
        "parameters": sum(p.numel() for p in plan.network.parameters()),
        "rows": plan.rows,
        "steps": schedule.steps,
        "epochs": schedule.steps * schedule.accumulate * processes / len(plan.batches(0)),
        "processes": processes,
        "batch_size": context.recipe.batch_size,
        "precision": context.precision,
        "schedule": vars(schedule),
        "forecast": context.run.note("schedule").get("forecast"),
        "seed": context.seed,
        "environment": environment(),
    }


def summarize(context: TrainingContext, plan: TrainingPlan, before: Any) -> dict[str, Any]:
    """The log and the metrics of the trained network; answers for a leaderboard are written as a zip."""
    rows = read_log(context.run.path / LOG)
    tokens, seconds = (sum(row[name] for row in rows) for name in ("tokens", "seconds"))
    started = perf_counter()
    after = dict(plan.evaluate())
    validation_seconds = perf_counter() - started
    answers = dict(plan.answer_test_rows())
    if answers:
        write_atomic(context.run.path / "submission.zip", zip_submission(answers))
        context.run.note("answers", answers)
    return {
        "collapse": context.run.note(COLLAPSE),
        "collapsed": plan.watch.find() if plan.watch is not None else None,
        "tokens": int(tokens),
        "tokens_per_second": tokens / seconds if seconds else None,
        "losses": {**edge_losses(rows), "curve": loss_curve(rows)},
        "validation": {"before": before, "after": after},
        "seconds": {"training": seconds, "validation": validation_seconds},
        "answers": {column: len(index) for column, (index, _) in answers.items()},
    }


def edge_losses(rows: list[dict[str, float]]) -> dict[str, float | None]:
    """The mean loss of the first and of the last ten steps, which never are the same steps unless there is one."""
    losses = [row["loss"] for row in rows]
    few = max(1, min(EDGE, len(losses) // 2))
    parts = {"first": losses[:few], "last": losses[-few:]}
    return {name: float(np.mean(part)) if part else None for name, part in parts.items()}


def loss_curve(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The loss in at most `POINTS` parts of the training, each the mean of its steps."""
    parts = np.array_split(np.arange(len(rows)), min(POINTS, len(rows))) if rows else []
    return [
        {"step": rows[int(part[-1])]["step"] + 1, "loss": float(np.mean([rows[int(i)]["loss"] for i in part]))}
        for part in parts
    ]


def save_result(context: TrainingContext, plan: TrainingPlan, result: dict[str, Any]) -> None:
    """Networks and tokenizer on disk, whole or not at all, and the report; then nothing is left to resume."""
    run = context.run
    for name, network in {**plan.extra_networks, MODEL: plan.network}.items():
        with atomic_folder(run.path / name) as folder:
            save_checkpoint(network, plan.tokenizer, folder)
            write_checksums(folder, "*.safetensors")
    write_atomic(run.report, render_train_page(result))
    run.note("result", result)
    remove_leftovers(run)


def remove_leftovers(run: RunFolder) -> None:
    """What only an unfinished training needs."""
    for phase in (PHASE, SECOND_PHASE):
        run.checkpoints(phase).remove()
    shutil.rmtree(run.path / ANSWERS, ignore_errors=True)
    (run.path / AUGMENTED).unlink(missing_ok=True)
