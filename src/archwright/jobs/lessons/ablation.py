"""Scores of several architectures over the steps of their pre-training: how early does the ranking settle?"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from archwright.benchmarks.nas_bert import ORIGIN, ablation
from archwright.data.making import MADE
from archwright.data.places import public_data
from archwright.errors import BadInput
from archwright.jobs import training_options as to
from archwright.jobs.environment import environment
from archwright.jobs.lessons.brief import Brief, Course, Place
from archwright.jobs.lessons.networks import MODEL
from archwright.jobs.lessons.running import SCHEMA, check_folder, fit, locked, place_of, run_course, schedule_for
from archwright.judge.settling import Settling, settling
from archwright.report.train_page import train_html
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.store import begin, whole_folder, write_whole

FEWEST = 3
"""Architectures that can be ranked."""
DRAWS = 14
"""Place that needs random numbers of its own."""
PUBLISHED = "nas-bert"


def ablated(brief: Brief, folder: Path) -> dict[str, Any]:
    """One training per architecture, judged at every step asked for."""
    marks, configs = checked_marks(brief), drawn(brief)
    check_folder(folder)
    if judges_by_task(brief):
        check_task(brief, configs[0])
    place = place_of(brief, folder)
    if place.together.first:
        begin(folder, brief.as_options())
    place.together.wait()
    rows = [judged_over(brief, config, marks, folder / f"architecture-{n}") for n, config in enumerate(configs)]
    scores = {mark: [row[mark] for row in rows] for mark in marks}
    document = {
        "schema": SCHEMA,
        "lesson": brief.name,
        "ablation": {
            "space": brief.pupil.space,
            "score": "the task's metric" if judges_by_task(brief) else "minus the validation loss",
            "task": brief.data.task,
            "architectures": [
                {"config": config, "scores": {str(mark): row[mark] for mark in marks}}
                for config, row in zip(configs, rows, strict=True)
            ],
            **as_json(settling(scores)),
        },
        "published": published(),
        "seed": brief.output.seed,
        "environment": environment(),
    }
    if place.together.first:
        place.run.note("result", document)
        write_whole(place.run.report, train_html(document))
    return document


def checked_marks(brief: Brief) -> list[int]:
    marks = sorted(set(brief.checks.ablate_steps))
    if len(marks) < 2 or marks[0] < 0:
        raise BadInput(f"--ablate-steps needs two different numbers of steps or more, got {brief.checks.ablate_steps}.")
    if brief.checks.random < FEWEST:
        raise BadInput(f"--random must be at least {FEWEST} to rank architectures, got {brief.checks.random}.")
    if brief.pupil.space is None or brief.pupil.config or brief.pupil.design or brief.pupil.model:
        raise BadInput("--ablate-steps draws architectures of --space; leave out --config, --design and --model.")
    if brief.way.head is None:
        raise BadInput("--ablate-steps needs a --lesson on a --corpus: mlm, electra, lm or distil.")
    return marks


def judges_by_task(brief: Brief) -> bool:
    return brief.data.task is not None or brief.data.train is not None


def check_task(brief: Brief, config: Config) -> None:
    """Finds what is wrong with the fine-tunings before any pre-training, by setting up the first."""
    own = None if brief.pupil.tokenizer in MADE else brief.pupil.tokenizer
    with TemporaryDirectory() as beside:
        file = Path(beside) / "config.json"
        file.write_text(json.dumps(config))
        first = tuning(brief, replace(brief.pupil, config=file, tokenizer=own, vocabulary=None))
        first.way(first, place_of(first, Path(beside)))


def tuning(brief: Brief, pupil: to.Pupil) -> Brief:
    """Fine-tuning by the preset, but for the size of a batch where one is given."""
    pace = to.Pace(batch_size=brief.pace.batch_size, checkpoint_seconds=brief.pace.checkpoint_seconds)
    return replace(brief, pupil=pupil, lesson=to.Lesson(preset=brief.lesson.preset), pace=pace)


def drawn(brief: Brief) -> list[Config]:
    """Different architectures of the space, the same for the same seed."""
    space = ARCHITECTURES[str(brief.pupil.space)].space(brief.pupil.variant)
    rng = np.random.default_rng((brief.output.seed, DRAWS))
    found: list[Config] = []
    while len(found) < brief.checks.random:
        config = space.canonical(space.sample(rng))
        if config not in found:
            found.append(config)
    return found


def judged_over(brief: Brief, config: Config, marks: list[int], folder: Path) -> dict[int, float]:
    """Scores by number of steps of one architecture, in a folder of its own; what is known is not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.json"
    place = place_of(brief, folder)
    if place.together.first:
        write_whole(file, json.dumps(config))
    place.together.wait()
    one = one_architecture(brief, file, marks[-1])
    known = {int(step): value for step, value in (place.run.note("scores") or {}).items()}
    if set(marks) <= set(known):
        return known
    course = one.way(one, place)
    with locked(place):
        course.prepared()
        for mark in marks:
            if mark:
                fit(one, place, course, schedule_for(one, place, course), stop=mark)
            if mark not in known:
                known[mark] = scored(one, place, course, mark)
                if place.together.first:
                    place.run.note("scores", {str(step): value for step, value in known.items()})
            place.together.wait()
    if place.together.first:
        place.run.checkpoints("training").remove()
    return {int(step): value for step, value in place.run.note("scores").items()}


def one_architecture(brief: Brief, config: Path, steps: int) -> Brief:
    pace = replace(brief.pace, steps=steps, epochs=None, minutes=None)
    return replace(brief, pupil=replace(brief.pupil, config=config), pace=pace, checks=to.Checks(submission=False))


def scored(brief: Brief, place: Place, course: Course, mark: int) -> float:
    """Higher is better: the task's first metric after fine-tuning from here, or minus the validation loss."""
    if not judges_by_task(brief):
        return -float(course.judged()["loss"]) if place.together.first else 0.0
    start = place.run.path / f"step-{mark}" / MODEL
    if place.together.first:
        with whole_folder(start) as beside:
            course.network.save_pretrained(beside)
            course.tokenizer.save_pretrained(beside)
    place.together.wait()
    tuned = tuning(brief, to.Pupil(model=str(start), pooling=brief.pupil.pooling))
    result = run_course(tuned, place.run.path / f"task-{mark}")
    return float(next(iter(result["validation"]["after"].values())))


def as_json(found: Settling) -> dict[str, Any]:
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
    return as_json(settling({step: scores[step] for step in steps if step not in copies})) | {"copies": copies}
