"""Scores of several architectures over the steps of their pre-training: how early does the ranking settle?"""

import json
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from archwright.benchmarks.nas_bert import ORIGIN, read_ablation
from archwright.configs import training as to
from archwright.configs.training import TrainConfig
from archwright.data.public_data import public_data
from archwright.data.text.tokenizer import TOKENIZER_TRAINERS
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.random_streams import ABLATION_ARCHITECTURES
from archwright.reports.train import render_train_page
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.statistics.ranks import RankStability, rank_stability
from archwright.store import RunFolder, atomic_folder, begin_run, write_atomic
from archwright.training.objectives import OBJECTIVES, objective_name
from archwright.training.pipeline import (
    SCHEMA,
    check_inputs,
    decide_schedule,
    fit_plan,
    keep_answers,
    note_precision,
    prepare_context,
    remove_leftovers,
    run_options,
    run_training,
)
from archwright.training.plan import TrainingContext, TrainingPlan
from archwright.training.students import MODEL
from archwright.training.validation import check_folder

FEWEST = 3
"""Architectures that can be ranked."""


def ablate_steps(config: TrainConfig, folder: Path) -> dict[str, Any]:
    """One training per architecture, evaluated at every number of steps asked for."""
    steps, configs = check_steps(config), sample_architectures(config)
    check_folder(folder)
    by_task = config.task.task is not None or config.task.train is not None
    if by_task:
        check_finetuning(config, configs[0])
    context = prepare_context(config, folder)
    if context.group.first:
        begin_run(folder, run_options(config))
    context.group.wait()
    rows = [
        score_architecture(config, architecture, steps, folder / f"architecture-{n}", by_task=by_task)
        for n, architecture in enumerate(configs)
    ]
    document = {
        "schema": SCHEMA,
        "lesson": context.objective.name,
        "ablation": {
            "space": config.student.space,
            "score": "the task's metric" if by_task else "minus the validation loss",
            "task": config.task.task,
            "architectures": [
                {"config": architecture, "scores": {str(step): row[step] for step in steps}}
                for architecture, row in zip(configs, rows, strict=True)
            ],
            **stability_json(rank_stability({step: [row[step] for row in rows] for step in steps})),
        },
        "published": published_stability(),
        "seed": config.output.seed,
        "environment": environment(),
    }
    if context.group.first:
        context.run.note("result", document)
        write_atomic(context.run.report, render_train_page(document))
    return document


def check_steps(config: TrainConfig) -> list[int]:
    """The numbers of steps to evaluate at, in ascending order."""
    student, checks = config.student, config.checks
    steps = sorted(set(checks.ablate_steps))
    if len(steps) < 2 or steps[0] < 0:
        raise BadInput(f"--ablate-steps needs two different numbers of steps or more, got {checks.ablate_steps}.")
    if checks.random < FEWEST:
        raise BadInput(f"--random must be at least {FEWEST} to rank architectures, got {checks.random}.")
    if student.space is None or student.config or student.design or student.model:
        raise BadInput("--ablate-steps draws architectures of --space; leave out --config, --design and --model.")
    if OBJECTIVES[objective_name(config.objective)].head is None:
        raise BadInput("--ablate-steps needs a --lesson on a --corpus: mlm, electra, lm or distil.")
    return steps


def sample_architectures(config: TrainConfig) -> list[Config]:
    """Different architectures of the space, the same for the same seed."""
    space = ARCHITECTURES[str(config.student.space)].with_variant(config.student.variant)
    rng = np.random.default_rng((config.output.seed, ABLATION_ARCHITECTURES))
    configs: list[Config] = []
    while len(configs) < config.checks.random:
        candidate = space.canonical(space.sample(rng))
        if candidate not in configs:
            configs.append(candidate)
    return configs


def check_finetuning(config: TrainConfig, architecture: Config) -> None:
    """Finds what is wrong with the fine-tunings before any pre-training, by setting up the first."""
    student = config.student
    tokenizer = None if student.tokenizer in TOKENIZER_TRAINERS else student.tokenizer
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(architecture))
        first = finetuning_config(config, replace(student, config=file, tokenizer=tokenizer, vocabulary=None))
        context = prepare_context(first, Path(folder))
        context.objective.plan(context)


def finetuning_config(config: TrainConfig, student: to.StudentOptions) -> TrainConfig:
    """Fine-tuning by the preset, but for the size of a batch where one is given."""
    schedule = to.ScheduleOptions(
        batch_size=config.schedule.batch_size,
        precision=config.schedule.precision,
        checkpoint_seconds=config.schedule.checkpoint_seconds,
    )
    objective = to.ObjectiveOptions(preset=config.objective.preset)
    return replace(config, student=student, objective=objective, schedule=schedule)


def score_architecture(
    config: TrainConfig, architecture: Config, steps: list[int], folder: Path, *, by_task: bool
) -> dict[int, float]:
    """Scores of one architecture by number of steps, in a folder of its own; what is known is not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.json"
    own = replace(
        config,
        student=replace(config.student, config=file),
        schedule=replace(config.schedule, steps=steps[-1], epochs=None, minutes=None),
        checks=to.CheckOptions(submission=False),
    )
    context = prepare_context(own, folder)
    run, group = context.run, context.group
    if group.first:
        write_atomic(file, json.dumps(architecture))
    group.wait()
    known = {int(step): value for step, value in (run.note("scores") or {}).items()}
    if set(steps) <= set(known):
        return known
    plan = context.objective.plan(context)
    if group.first:  # what the whole ablation reads
        check_inputs(replace(context, config=config, run=RunFolder(folder.parent)), plan)
        note_precision(context, plan, begun=run.note("schedule") is not None)
    group.wait()
    with run.lock() if group.first else nullcontext():
        plan.prepare()
        schedule = decide_schedule(context, plan)
        keep_answers(context, plan, schedule)
        for step in steps:
            if step:
                fit_plan(context, plan, schedule, stop=step)
            if step not in known:
                known[step] = score_network(context, plan, step, by_task=by_task)
                if group.first:
                    run.note("scores", {str(step): value for step, value in known.items()})
            group.wait()
    if group.first:
        remove_leftovers(run)
    return {int(step): value for step, value in run.note("scores").items()}


def score_network(context: TrainingContext, plan: TrainingPlan, step: int, *, by_task: bool) -> float:
    """Higher is better: the task's first metric after fine-tuning from here, or minus the validation loss."""
    group, student = context.group, context.config.student
    if not by_task:
        return -float(plan.evaluate()["loss"]) if group.first else 0.0
    start = context.run.path / f"step-{step}" / MODEL
    if group.first:
        with atomic_folder(start) as folder:
            plan.network.save_pretrained(folder)
            plan.tokenizer.save_pretrained(folder)
    group.wait()
    tuning = finetuning_config(context.config, to.StudentOptions(model=str(start), pooling=student.pooling))
    result = run_training(tuning, context.run.path / f"task-{step}")
    return float(next(iter(result["validation"]["after"].values())))


def stability_json(stability: RankStability) -> dict[str, Any]:
    return {"moments": [asdict(moment) for moment in stability.moments], "settled_at": stability.settled_at}


def published_stability() -> dict[str, Any] | None:
    """The same for the ten architectures of the FlexiBERT benchmark, where its table is there.

    Its scores after 50,000 and 100,000 steps are, to the last digit, those after 500,000 and 1,000,000: such copies say
    nothing about an early ranking, so they are left out and told.
    """
    try:
        rows = read_ablation(public_data("nas-bert", origin=ORIGIN, option="ARCHWRIGHT_DATA"), "train")
    except BadInput:
        return None
    steps, names = sorted({int(row["steps"]) for row in rows}), sorted({row["id"] for row in rows})
    table = {(row["id"], int(row["steps"])): row["glue"] for row in rows}
    scores = {step: [table[name, step] for name in names] for step in steps}
    copies = {step: other for step in steps for other in steps if step < other and scores[step] == scores[other]}
    stability = rank_stability({step: scores[step] for step in steps if step not in copies})
    return stability_json(stability) | {"copies": copies}
