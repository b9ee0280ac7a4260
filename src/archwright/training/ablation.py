"""Scores of several architectures over the steps of their pre-training: how early does the ranking settle?"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from archwright.benchmarks.nas_bert import ORIGIN, ablation
from archwright.configs import training as to
from archwright.data.public_data import public_data
from archwright.data.text.tokenizer_training import TOKENIZER_TRAINERS
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.reports.train_page import train_html
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.statistics.ranks import RankStability, rank_stability
from archwright.store import begin, whole_folder, write_whole
from archwright.training.pipeline import (
    SCHEMA,
    check_folder,
    fit_plan,
    locked,
    run_training,
    schedule_for,
    training_context,
)
from archwright.training.plan import TrainConfig, TrainingContext, TrainingPlan
from archwright.training.students import MODEL

FEWEST = 3
"""Architectures that can be ranked."""
DRAWS = 14
"""Place that needs random numbers of its own."""
PUBLISHED = "nas-bert"


def ablate_steps(options: TrainConfig, folder: Path) -> dict[str, Any]:
    """One training per architecture, judged at every step asked for."""
    marks, configs = checked_marks(options), drawn(options)
    check_folder(folder)
    if judges_by_task(options):
        check_task(options, configs[0])
    place = training_context(options, folder)
    if place.group.first:
        begin(folder, options.as_options())
    place.group.wait()
    rows = [judged_over(options, config, marks, folder / f"architecture-{n}") for n, config in enumerate(configs)]
    scores = {mark: [row[mark] for row in rows] for mark in marks}
    document = {
        "schema": SCHEMA,
        "lesson": options.name,
        "ablation": {
            "space": options.student.space,
            "score": "the task's metric" if judges_by_task(options) else "minus the validation loss",
            "task": options.data.task,
            "architectures": [
                {"config": config, "scores": {str(mark): row[mark] for mark in marks}}
                for config, row in zip(configs, rows, strict=True)
            ],
            **as_json(rank_stability(scores)),
        },
        "published": published(),
        "seed": options.output.seed,
        "environment": environment(),
    }
    if place.group.first:
        place.run.note("result", document)
        write_whole(place.run.report, train_html(document))
    return document


def checked_marks(options: TrainConfig) -> list[int]:
    marks = sorted(set(options.checks.ablate_steps))
    if len(marks) < 2 or marks[0] < 0:
        raise BadInput(
            f"--ablate-steps needs two different numbers of steps or more, got {options.checks.ablate_steps}."
        )
    if options.checks.random < FEWEST:
        raise BadInput(f"--random must be at least {FEWEST} to rank architectures, got {options.checks.random}.")
    if options.student.space is None or options.student.config or options.student.design or options.student.model:
        raise BadInput("--ablate-steps draws architectures of --space; leave out --config, --design and --model.")
    if options.way.head is None:
        raise BadInput("--ablate-steps needs a --lesson on a --corpus: mlm, electra, lm or distil.")
    return marks


def judges_by_task(options: TrainConfig) -> bool:
    return options.data.task is not None or options.data.train is not None


def check_task(options: TrainConfig, config: Config) -> None:
    """Finds what is wrong with the fine-tunings before any pre-training, by setting up the first."""
    own = None if options.student.tokenizer in TOKENIZER_TRAINERS else options.student.tokenizer
    with TemporaryDirectory() as beside:
        file = Path(beside) / "config.json"
        file.write_text(json.dumps(config))
        first = tuning(options, replace(options.student, config=file, tokenizer=own, vocabulary=None))
        first.way(first, training_context(first, Path(beside)))


def tuning(options: TrainConfig, student: to.StudentOptions) -> TrainConfig:
    """Fine-tuning by the preset, but for the size of a batch where one is given."""
    pace = to.ScheduleOptions(batch_size=options.pace.batch_size, checkpoint_seconds=options.pace.checkpoint_seconds)
    return replace(options, student=student, lesson=to.ObjectiveOptions(preset=options.lesson.preset), pace=pace)


def drawn(options: TrainConfig) -> list[Config]:
    """Different architectures of the space, the same for the same seed."""
    space = ARCHITECTURES[str(options.student.space)].with_variant(options.student.variant)
    rng = np.random.default_rng((options.output.seed, DRAWS))
    found: list[Config] = []
    while len(found) < options.checks.random:
        config = space.canonical(space.sample(rng))
        if config not in found:
            found.append(config)
    return found


def judged_over(options: TrainConfig, config: Config, marks: list[int], folder: Path) -> dict[int, float]:
    """Scores by number of steps of one architecture, in a folder of its own; what is known is not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.json"
    place = training_context(options, folder)
    if place.group.first:
        write_whole(file, json.dumps(config))
    place.group.wait()
    one = one_architecture(options, file, marks[-1])
    known = {int(step): value for step, value in (place.run.note("scores") or {}).items()}
    if set(marks) <= set(known):
        return known
    course = one.way(one, place)
    with locked(place):
        course.prepared()
        for mark in marks:
            if mark:
                fit_plan(one, place, course, schedule_for(one, place, course), stop=mark)
            if mark not in known:
                known[mark] = scored(one, place, course, mark)
                if place.group.first:
                    place.run.note("scores", {str(step): value for step, value in known.items()})
            place.group.wait()
    if place.group.first:
        place.run.checkpoints("training").remove()
    return {int(step): value for step, value in place.run.note("scores").items()}


def one_architecture(options: TrainConfig, config: Path, steps: int) -> TrainConfig:
    pace = replace(options.pace, steps=steps, epochs=None, minutes=None)
    return replace(
        options, student=replace(options.student, config=config), pace=pace, checks=to.CheckOptions(submission=False)
    )


def scored(options: TrainConfig, place: TrainingContext, course: TrainingPlan, mark: int) -> float:
    """Higher is better: the task's first metric after fine-tuning from here, or minus the validation loss."""
    if not judges_by_task(options):
        return -float(course.judged()["loss"]) if place.group.first else 0.0
    start = place.run.path / f"step-{mark}" / MODEL
    if place.group.first:
        with whole_folder(start) as beside:
            course.network.save_pretrained(beside)
            course.tokenizer.save_pretrained(beside)
    place.group.wait()
    tuned = tuning(options, to.StudentOptions(model=str(start), pooling=options.student.pooling))
    result = run_training(tuned, place.run.path / f"task-{mark}")
    return float(next(iter(result["validation"]["after"].values())))


def as_json(found: RankStability) -> dict[str, Any]:
    return {"moments": [asdict(moment) for moment in found.moments], "settled_at": found.settled_at}


def published() -> dict[str, Any] | None:
    """The same for the ten architectures of the FlexiBERT benchmark, where its table is there.

    Its scores after 50,000 and 100,000 steps are, to the last digit, those after 500,000 and 1,000,000: such copies say
    nothing about an early ranking, so they are left out and told.
    """
    try:
        folder = public_data(PUBLISHED, origin=ORIGIN, option="ARCHWRIGHT_DATA")
        rows = ablation(folder, "train")
    except BadInput:
        return None
    steps, names = sorted({int(row["steps"]) for row in rows}), sorted({row["id"] for row in rows})
    table = {(row["id"], int(row["steps"])): row["glue"] for row in rows}
    scores = {step: [table[name, step] for name in names] for step in steps}
    copies = {step: other for step in steps for other in steps if step < other and scores[step] == scores[other]}
    return as_json(rank_stability({step: scores[step] for step in steps if step not in copies})) | {"copies": copies}
