"""The rivals of a trained network: run one after another, and put into its result and its page."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from archwright.configs import design as do
from archwright.configs import training as to
from archwright.configs.options import changed_flags, refuse_options
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.networks.nlu.network import NluModel
from archwright.parallel.launcher import launched_processes
from archwright.reports.design import render_design_page
from archwright.reports.train import render_train_page
from archwright.rivals import CHECKPOINT, RIVALS, NoRival, RivalRequest
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import RunFolder, digest, write_atomic
from archwright.tasks import TASK_KINDS
from archwright.training.objectives import objective_name
from archwright.training.pipeline import run_training
from archwright.training.students import CAUSAL_HEAD

FOLDER = "rivals"
STUDENT = "this network"

Document = dict[str, Any]


def check_train_rivals(config: to.TrainConfig) -> None:
    """BadInput for a command whose result is not one network with one task."""
    if not config.checks.rivals:
        return
    check_names(config.checks.rivals)
    others = {
        "--glue": config.task.glue is not None,
        "--evaluate-only": config.checks.evaluate_only,
        "--ablate-steps": bool(config.checks.ablate_steps),
        f"--lesson {objective_name(config.objective)}": config.objective.corpus is not None,
    }
    for option, given in others.items():
        if given:
            raise BadInput(f"--rivals needs one network that is fine-tuned on one task, got {option}; leave one out.")
    if (processes := launched_processes()) > 1:
        raise BadInput(f"--rivals is the work of one process, got {processes} of them; leave out torchrun.")


def check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise BadInput(f"--rivals must name each rival once, got {','.join(names)}.")


def run_rivals(config: to.TrainConfig, folder: Path, result: Mapping[str, Any]) -> Document:
    """The table of a trained network and its rivals; those that an earlier command has trained are not trained again.

    Every rival has the student's size as a limit, and the time that the student has taken, at most --minutes.
    """
    spent = seconds_spent(result)
    minutes = min(config.schedule.minutes or math.inf, spent / 60)
    request = RivalRequest(config, folder, folder, result["parameters"], minutes, steps=steps_taken(config, result))
    own = {"parameters": result["parameters"], "seconds": spent, "metrics": scores_of(result["validation"]["after"])}
    networks = [{"rival": STUDENT, "what": describe_student(config), **own, "steps": result["steps"], "missing": None}]
    networks += [
        run_rival(name, replace(request, folder=folder / FOLDER / name), result["metric"])
        for name in config.checks.rivals
    ]
    return {
        "task": result["task"],
        "metric": result["metric"],
        "rows": result["validation"]["after"]["rows"],
        "minutes": request.minutes,
        "networks": networks,
        "published_scores": result.get("published_scores"),
    }


def seconds_spent(result: Mapping[str, Any]) -> float:
    """Wall clock of the training: of one that was resumed, what its log and its notes say of earlier processes.

    The log has no steps before a collapse; a total of one process has them.
    """
    seconds, collapse = result["seconds"], result.get("collapse") or {"seconds": 0.0}
    parts = sum(seconds[name] for name in ("prepared", "training", "validation")) + collapse["seconds"]
    return float(max(seconds["total"], parts))


def steps_taken(config: to.TrainConfig, result: Mapping[str, Any]) -> int:
    """Optimizer updates; within --minutes those before a collapse too, which the second training went without."""
    collapse = result.get("collapse")
    again = collapse["step"] if collapse and config.schedule.minutes is not None else 0
    return int(result["steps"]) + int(again)


def run_rival(name: str, request: RivalRequest, metric: str) -> Document:
    """A row of the table: what it came to, or why there is no such network.

    That nothing is small enough is noted for good; what else hinders a rival may be gone at the next attempt.
    """
    noted = RunFolder(request.folder).note("rival")
    if noted is not None:
        return {key: value for key, value in noted.items() if key != "checksum"}
    logger.warning("rival %s: at most %s parameters, %.1f minutes", name, f"{request.parameters:,}", request.minutes)
    try:
        result = RIVALS[name](request)
        row = {"rival": name, **asdict(result), "metrics": scores_of(result.metrics), "missing": None}
    except NoRival as reason:
        row = missing_row(name, str(reason))
    except BadInput as reason:
        logger.warning("rival %s: %s", name, reason)
        return missing_row(name, str(reason).rstrip("."))
    request.folder.mkdir(parents=True, exist_ok=True)
    RunFolder(request.folder).note("rival", row)
    return row


def missing_row(name: str, reason: str) -> Document:
    return {"rival": name, **dict.fromkeys(("what", "parameters", "seconds", "steps", "metrics")), "missing": reason}


def scores_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """On the test rows: the numbers without the count of rows."""
    return dict(metrics["splits"]["test"])


def describe_student(config: to.TrainConfig) -> str:
    student = config.student
    if student.model is not None:
        return f"went on from {Path(student.model).name}"
    return "a design, filled from its teacher" if student.start == "teacher" else "a design from a random start"


def add_train_rivals(config: to.TrainConfig, folder: Path, result: Document) -> Document:
    """The result with its rivals, on disk as well."""
    document = {**result, "rivals": run_rivals(config, folder, result)}
    run = RunFolder(folder)
    run.note("result", document)
    write_atomic(run.report, render_train_page(document))
    return document


def check_design_rivals(config: do.DesignConfig) -> None:
    """BadInput, before anything is searched, for a space or a task that the rivals cannot be about."""
    options = config.rivals
    if not options.rivals:
        refuse_options(changed_flags(options), "without --rivals")
        return
    check_names(options.rivals)
    space = ARCHITECTURES[config.space.space]
    if CAUSAL_HEAD in space.losses:
        able = ", ".join(name for name, each in ARCHITECTURES.items() if CAUSAL_HEAD not in each.losses)
        raise BadInput(f"--rivals needs a space of encoders, which learn tasks ({able}), got {config.space.space}.")
    task = load_task(options.rivals_task, data=options.rivals_data, seed=config.scoring.seed)
    if TASK_KINDS[task.kind].teach is not None:
        raise BadInput(f"--rivals-task must have labels to learn, got {options.rivals_task!r}; try movie-reviews.")


def add_design_rivals(config: do.DesignConfig, document: Document, files: tuple[Path, Path]) -> Document:
    """Trains the found design and its rivals; the document with their table, in design.json and on the page as well."""
    options, space = config.rivals, ARCHITECTURES[config.space.space].with_variant(config.space.variant)
    config_text = json.dumps(document["config"], indent=1)
    task = repr((options.rivals_task, options.rivals_data, options.rivals_minutes, config.scoring.seed))
    folder = config.scoring.out / FOLDER / digest(repr(space), config_text, task)[:12]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "config.json", config_text)
    training = training_config(config, space, folder / "config.json")
    result = run_training(training, folder / "design")
    document = {**document, "rivals": run_rivals(training, folder / "design", result)}
    design_file, page = files
    write_atomic(design_file, json.dumps(document, indent=1))
    write_atomic(page, render_design_page(document))
    return document


def training_config(config: do.DesignConfig, space: ArchitectureSpace, design: Path) -> to.TrainConfig:
    """How a found design is trained: taught by MiniLM and, where its blocks allow it, filled from it."""
    options = config.rivals
    start = "teacher" if NluModel in space.classes else "random"
    return to.TrainConfig(
        student=to.StudentOptions(space=config.space.space, variant=config.space.variant, config=design, start=start),
        objective=to.ObjectiveOptions(teacher=CHECKPOINT),
        teaching=to.TeachingOptions(label_weight=1.0),
        schedule=to.ScheduleOptions(minutes=options.rivals_minutes),
        task=to.TaskOptions(task=options.rivals_task, data=options.rivals_data),
        checks=to.CheckOptions(rivals=options.rivals),
        output=replace(to.TrainConfig().output, seed=config.scoring.seed),
    )
