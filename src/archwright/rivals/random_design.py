"""Rival: a random design of the student's space and size, trained with the student's teacher, steps and seed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from archwright.random_streams import RIVAL_DESIGNS
from archwright.rivals import NoRival, RivalRequest, RivalResult
from archwright.search import Config
from archwright.store import write_atomic
from archwright.training.objectives.finetune import TEACHER
from archwright.training.pipeline import run_training
from archwright.training.students import StudentDesign, student_design

DRAWN = 1000
CLOSE = 0.95
"""Share of the student's parameters from which on a design counts as one of its size."""


def train_random_design(request: RivalRequest) -> RivalResult:
    """Where the student's teacher has learnt the task already, it teaches the rival as it is."""
    config = request.config
    design = student_design(config.student)
    if design is None:
        raise NoRival("the student went on from trained weights, which a random design does not have")
    if design.plan is not None:
        raise NoRival("the student lies outside of its space (--scaled-up)")
    chosen, file = choose_random_design(design, config.output.seed), request.folder / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(chosen, indent=1))
    student = replace(
        config.student,
        design=None,
        space=space_name(config.student.space, config.student.design),
        variant=design.space.variant,
        config=file,
    )
    teacher = request.student / TEACHER
    result = run_training(
        replace(
            config,
            student=student,
            objective=replace(config.objective, teacher=str(teacher)) if teacher.exists() else config.objective,
            schedule=replace(config.schedule, steps=request.steps, epochs=None, minutes=None),
            checks=replace(config.checks, rivals=(), submission=False),
        ),
        request.folder / "training",
    )
    labels = " ".join(str(layer["label"]) for layer in design.space.layers(chosen))
    return RivalResult(
        f"random design: {labels}",
        result["parameters"],
        result["seconds"]["total"],
        result["validation"]["after"],
        result["steps"],
    )


def choose_random_design(design: StudentDesign, seed: int) -> Config:
    """The first of many random designs with 95 to 100 % of the student's parameters, else the largest below it."""
    rng, space = np.random.default_rng((seed, RIVAL_DESIGNS)), design.space
    own, most = space.canonical(design.config), space.counts(design.config).parameters
    drawn = [config for config in (space.sample(rng) for _ in range(DRAWN)) if space.canonical(config) != own]
    sizes = {place: space.counts(config).parameters for place, config in enumerate(drawn)}
    fitting = [place for place, size in sizes.items() if size <= most]
    if not fitting:
        raise NoRival(f"none of {DRAWN:,} random designs has at most {most:,} parameters")
    close = next((place for place in fitting if sizes[place] >= CLOSE * most), None)
    return drawn[max(fitting, key=sizes.__getitem__) if close is None else close]


def space_name(space: str | None, file: Path | None) -> str:
    """As the options have it, or as `archwright design` wrote it."""
    return space or str(json.loads(Path(str(file)).read_text("utf-8"))["space"])
