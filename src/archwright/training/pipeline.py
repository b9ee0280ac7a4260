"""One training from beginning to end: the run folder, the plan, the log, the result; resumable at any moment."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch

from archwright.configs import training as to
from archwright.configs.options import make_config
from archwright.configs.yaml_file import write_config
from archwright.data.tasks.glue_submission import zip_submission
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.exporting.trained import save_trained
from archwright.reports.train_page import train_html
from archwright.store import RunFolder, begin, is_run, whole_folder, write_whole
from archwright.store.logs import Log, read_log
from archwright.threads import choose_threads
from archwright.training import loop
from archwright.training.distributed import join_process_group
from archwright.training.plan import COMMAND, TrainConfig, TrainingContext, TrainingPlan
from archwright.training.recipes import Recipe
from archwright.training.schedule import Schedule
from archwright.training.students import MODEL
from archwright.training.task_data import resolve_device

SCHEMA = "archwright/train/1"
LOG = "log.csv"
POINTS = 200
"""Of the curve of the loss in the result; the log has every step."""
EDGE = 10
"""Steps whose mean is the loss at the beginning, and at the end."""
TIMED_STEPS = 4
PHASE = "training"


def training_context(options: TrainConfig, folder: Path) -> TrainingContext:
    """Alone, or among the processes that torchrun has started."""
    wanted = resolve_device(options.output.device)
    group = join_process_group(cpu=wanted.type == "cpu")
    choose_threads(options.output.threads, group.processes, note=folder / "threads.json")
    return TrainingContext(RunFolder(folder), group, options.output.seed)


def first_process() -> bool:
    """Whether this process is alone, or the first of those that torchrun has started."""
    return int(os.environ.get("RANK", "0")) == 0


def check_folder(folder: Path) -> None:
    """Refuses the folder of another command."""
    if is_run(folder) and RunFolder(folder).settings.get("command") != COMMAND:
        raise BadInput(f"--out must be a new folder or one of `archwright train`, {folder} is another command's run.")


def run_training(options: TrainConfig, folder: Path) -> dict[str, Any]:
    """The result of the training in this folder, now or from an earlier time."""
    check_folder(folder)
    place = training_context(options, folder)
    done = finished(options, place.run)
    if done is not None:
        return done
    course = options.way(options, place)
    if place.group.first:
        run, values = begin(folder, options.as_options()), options.as_options()
        run.note_once("threads", {"threads": torch.get_num_threads()})
        del values["command"]
        write_config(folder / "config.yaml", make_config(to.TrainConfig, {**values, "out": folder.resolve()}))
    place.group.wait()
    with locked(place):
        result = train_and_evaluate(options, place, course)
    return result


def finished(options: TrainConfig, run: RunFolder) -> dict[str, Any] | None:
    """The result of the same command, if it came to its end."""
    if not is_run(run.path):
        return None
    begin(run.path, options.as_options())  # refuses other options
    found = run.note("result")
    return dict(found) if found is not None and (run.path / MODEL).exists() else None


def locked(place: TrainingContext) -> AbstractContextManager[None]:
    return place.run.locked() if place.group.first else nullcontext()


def train_and_evaluate(options: TrainConfig, place: TrainingContext, course: TrainingPlan) -> dict[str, Any]:
    """Prepares, trains, judges, keeps."""
    run, first, begun = place.run, place.group.first, perf_counter()
    facts = {**course.facts, **course.prepared()}
    before = noted(place, "before", course.judged) if options.way.head is not None else None
    schedule = schedule_for(options, place, course)
    prepared = perf_counter() - begun
    fit_plan(options, place, course, schedule)
    if first:
        result = {**head_of(options, course, schedule, place.group.processes), **told(run, before, course), **facts}
        result["seconds"] = {"prepared": prepared, "total": perf_counter() - begun, **result["seconds"]}
        kept(course, run, result)
    place.group.wait()
    return dict(run.note("result"))


def fit_plan(
    options: TrainConfig, place: TrainingContext, course: TrainingPlan, schedule: Schedule, *, stop: int | None = None
) -> None:
    """The training itself, up to a step or to its end; goes on where the last one ended."""
    with logging(place.run.path / LOG, place.group.first) as log:
        loop.train_network(
            course.model,
            course.batches,
            course.update,
            schedule,
            seed=2 * place.seed,
            checkpoints=place.run.checkpoints(PHASE),
            every_seconds=options.pace.checkpoint_seconds,
            title=f"{options.name}: {schedule.steps} steps",
            stop=stop,
            carry=course.carry,
            log=log,
            group=place.group,
        )


def evaluate_only(options: TrainConfig, _: Path) -> dict[str, Any]:
    """The network as it is, judged; nothing is written."""
    if options.student.model is None:
        raise BadInput("--evaluate-only judges trained weights; give --model.")
    with TemporaryDirectory() as folder:
        place = training_context(options, Path(folder))
        course = options.way(options, place)
        if course.untrained:
            raise BadInput(
                f"--evaluate-only needs a network that was trained for this task, {options.student.model} was not."
            )
        after = dict(course.judged()) if place.group.first else {}
    facts = {"rows": course.rows, "parameters": sum(p.numel() for p in course.network.parameters()), **course.facts}
    head = {"schema": SCHEMA, "lesson": options.name, "evaluate_only": True, "seed": options.output.seed, "steps": 0}
    return {**head, **facts, "validation": {"before": None, "after": after}, "environment": environment()}


def noted(place: TrainingContext, name: str, judged: Any) -> Any:
    """What is judged once, by the first process."""
    found = place.run.note(name)
    if found is None and place.group.first:
        found = place.run.note(name, dict(judged()))
    place.group.wait()
    return found


def head_of(options: TrainConfig, course: TrainingPlan, schedule: Schedule, processes: int) -> dict[str, Any]:
    network = course.network
    return {
        "schema": SCHEMA,
        "lesson": options.name,
        "preset": options.lesson.preset,
        "pupil": {k: v for k, v in options.as_options().items() if k in ("design", "space", "config", "model") and v},
        "parameters": sum(p.numel() for p in network.parameters()),
        "rows": course.rows,
        "steps": schedule.steps,
        "epochs": schedule.steps * schedule.accumulate * processes / len(course.batches(0)),
        "processes": processes,
        "batch_size": options.recipe.batch_size,
        "schedule": vars(schedule),
        "seed": options.output.seed,
        "environment": environment(),
    }


def told(run: RunFolder, before: Any, course: TrainingPlan) -> dict[str, Any]:
    """What the log and the trained network say."""
    rows = read_log(run.path / LOG)
    tokens, seconds = (sum(row[name] for row in rows) for name in ("tokens", "seconds"))
    begun = perf_counter()
    after = dict(course.judged())
    return {
        "tokens": int(tokens),
        "tokens_per_second": tokens / seconds if seconds else None,
        "losses": {**edges(rows), "curve": curve(rows)},
        "validation": {"before": before, "after": after},
        "seconds": {"training": seconds, "validation": perf_counter() - begun},
        "answers": {column: len(index) for column, (index, _) in submitted(run, course).items()},
    }


def submitted(run: RunFolder, course: TrainingPlan) -> dict[str, Any]:
    """Answers to the test rows of the leaderboard; written as a zip where there are any."""
    found = dict(course.answers())
    if found:
        write_whole(run.path / "submission.zip", zip_submission(found))
        run.note("answers", found)
    return found


def kept(course: TrainingPlan, run: RunFolder, result: dict[str, Any]) -> None:
    """The network and its tokenizer on disk, whole or not at all; then nothing is left to resume."""
    for name, network in {**course.beside, MODEL: course.network}.items():
        with whole_folder(run.path / name) as beside:
            save_trained(network, course.tokenizer, beside)
    write_whole(run.report, train_html(result))
    run.note("result", result)
    run.checkpoints(PHASE).remove()


def schedule_for(options: TrainConfig, place: TrainingContext, course: TrainingPlan) -> Schedule:
    """How long and how fast; decided once per run, so that a resumed one goes on with the same."""
    recipe, run = options.recipe, place.run
    known = run.note("schedule")
    place.group.wait()
    planned = planned_steps(options, place, course) if known is None else None  # in all: a loss asks the others
    if planned is not None and place.group.first:
        run.note("schedule", {"steps": planned})
    place.group.wait()
    return Schedule(
        steps=int(run.note("schedule")["steps"]),
        accumulate=options.pace.accumulate,
        **{name: getattr(recipe, name) for name in PACE},
    )


PACE = ("learning_rate", "warmup", "weight_decay", "layer_decay", "betas", "eps")


def planned_steps(options: TrainConfig, place: TrainingContext, course: TrainingPlan) -> int:
    """The steps asked for, fewer when --minutes is short."""
    steps = asked_steps(options.recipe, len(course.batches(0)), options.pace.accumulate * place.group.processes)
    if options.pace.minutes is None:
        return steps
    return max(1, min(steps, int(60 * options.pace.minutes / seconds_per_step(options, course))))


def asked_steps(recipe: Recipe, batches: int, hand: int) -> int:
    if recipe.steps is not None:
        return recipe.steps
    return max(1, round((recipe.epochs or 1.0) * batches / hand))


def seconds_per_step(options: TrainConfig, course: TrainingPlan) -> float:
    """Timed on a few batches; leaves weights and gradients as they were."""
    rows, rng = course.batches(0), np.random.default_rng(0)
    course.model.train()
    times = []
    for place in range(min(TIMED_STEPS, len(rows))):
        begun = perf_counter()
        course.update(rows[place], rng, 0.5)
        times.append(perf_counter() - begun)
    course.model.zero_grad(set_to_none=True)
    return options.pace.accumulate * float(np.median(times)) * OPTIMIZER


OPTIMIZER = 1.15
"""A step of the optimizer takes about a seventh of the rest."""


@contextmanager
def logging(path: Path, first: bool) -> Iterator[Any]:
    """What appends a line per step; steps that come again after an interruption are in the file once."""
    if not first:
        yield None
        return
    with Log(path) as log:
        yield log


def edges(rows: list[dict[str, float]]) -> dict[str, float | None]:
    """The mean loss of the first and of the last ten steps, which never are the same steps unless there is one."""
    losses = [row["loss"] for row in rows]
    few = max(1, min(EDGE, len(losses) // 2))
    parts = {"first": losses[:few], "last": losses[-few:]}
    return {name: float(np.mean(part)) if part else None for name, part in parts.items()}


def curve(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The loss in at most `POINTS` parts of the training, each the mean of its steps."""
    parts = np.array_split(np.arange(len(rows)), min(POINTS, len(rows))) if rows else []
    return [
        {"step": rows[int(part[-1])]["step"] + 1, "loss": float(np.mean([rows[int(i)]["loss"] for i in part]))}
        for part in parts
    ]
