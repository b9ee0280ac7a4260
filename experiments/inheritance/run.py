"""`train --start teacher` against a random start at equal time, and SQuAD with all its questions.

    python experiments/inheritance/run.py runs/inheritance --data DATA [--seeds 0,1] [--only glue/SST-2] [--most 2]

The design that W-PCA found in `nlu-tiny` learns each task from MiniLM, which is fine-tuned for it once: started from
it, started at random, on SST-2 also without the teacher's layers, and started at random from the labels alone, which
is cheaper per step. The steps are such that all take about as long, filling the student included. On SQuAD the student
is started from the teacher alone.
Every training is a process of its own, so processor seconds are those of all it did, evaluation included. Resumable:
what is finished is not repeated, and with --most a call ends after so many trainings. Writes results.csv and summary.md
beside this file.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from archwright.environment import environment

HERE = Path(__file__).parent
TABLE, SUMMARY = HERE / "results.csv", HERE / "summary.md"
BLOCKS = ("base-660", "mobile-396", "base-660", "mobile-792", "mobile-396", "mobile-264")
"""`design --space nlu-tiny --proxy w_pca --population 20 --generations 10`, see ../design/found.csv."""
STARTS: dict[str, dict[str, Any]] = {
    "teacher": {"start": "teacher", "label_weight": 1.0},
    "random": {"start": "random", "label_weight": 1.0},
    "answers": {"start": "random", "label_weight": 1.0, "layer_weight": 0.0},
    "labels": {"start": "random"},
}
"""From the teacher; at random and with the teacher's layers and answers, with its answers, with the labels alone."""
RATE = 3e-4


@dataclass(frozen=True)
class Task:
    """What is learnt, and how long."""

    metric: str
    steps: dict[str, int]
    """Of the student by its start."""
    teacher: dict[str, Any]
    """How MiniLM learns the task first."""
    options: dict[str, Any] = field(default_factory=dict)
    majority: float | None = None
    """Share of the more frequent class among the test rows."""


TASKS = {
    "glue/SST-2": Task(
        *("accuracy", {"teacher": 400, "random": 440, "answers": 880, "labels": 1000}),
        *({"epochs": 2}, {"train_rows": 8000}, 444 / 872),
    ),
    "glue/MRPC": Task(
        *("accuracy", {"teacher": 115, "random": 125, "labels": 280}),
        *({"epochs": 2}, {}, 279 / 408),
    ),
    "glue/QQP": Task(
        *("accuracy", {"teacher": 200, "random": 220, "labels": 480}),
        *({"epochs": 1}, {}, 623 / 1000),
    ),
    "squad": Task(
        *("f1", {"teacher": 320}),
        *({"epochs": 1, "learning_rate": 1e-4}, {"test_rows": 1500, "max_length": 192}),
    ),
}
COLUMNS = (
    *("task", "network", "start", "seed", "rows", "steps", "metric", "test", "test_rows", "majority", "restarted"),
    *("answers_alike", "training_seconds", "core_seconds", "precision", "commit", "cpu"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--only", default="", help="tasks, with commas between them")
    parser.add_argument("--most", type=int, default=10**6, help="trainings of this call")
    options = parser.parse_args()
    write_design(options.out)
    rows = read_rows()
    known = {(row["task"], row["network"], row["start"], row["seed"]) for row in rows}
    for task, network, start, seed in plan_trainings(options):
        if (task, network, start, str(seed)) in known:
            continue
        if options.most == 0:
            break
        options.most -= 1
        rows.append(train(options, task, network, start, seed))
        print(rows[-1], flush=True)
        write_rows(rows)
    write_summary(rows)


def write_design(out: Path) -> None:
    """The student's architecture, as `train --config` reads it."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "design.json").write_text(json.dumps({f"block.{at}": word for at, word in enumerate(BLOCKS)}))


def plan_trainings(options: argparse.Namespace) -> Iterator[tuple[str, str, str, int]]:
    """Task, network, start and seed of every training; teachers and the first seed of all tasks come first."""
    tasks = options.only.split(",") if options.only else list(TASKS)
    for place, seed in enumerate(map(int, options.seeds.split(","))):
        for task in tasks:
            if place == 0:
                yield task, "teacher", "pre-trained", 0
            for start in TASKS[task].steps:
                yield task, "student", start, seed


def train(options: argparse.Namespace, name: str, network: str, start: str, seed: int) -> dict[str, str]:
    """A row of the table."""
    task = TASKS[name]
    if network == "teacher":
        before = processor_seconds()
        trained = train_teacher(options.out, options.data, name)
    else:
        asked = {"task": name, "data": options.data / name, "seed": seed, **task.options, **STARTS[start]}
        asked |= {"steps": task.steps[start], "learning_rate": RATE}
        asked |= {"space": "nlu-tiny", "config": options.out / "design.json"}
        asked |= {} if start == "labels" else {"teacher": train_teacher(options.out, options.data, name) / "model"}
        before = processor_seconds()
        trained = archwright_train({**asked, "out": task_folder(options.out, name) / f"{start}-{seed}"})
    result = json.loads((trained / "result.json").read_text())
    return describe(name, network, start, seed, result, processor_seconds() - before)


def train_teacher(out: Path, data: Path, name: str) -> Path:
    """The run folder of MiniLM fine-tuned for a task, trained where it is not there."""
    task = TASKS[name]
    asked = {"task": name, "data": data / name, "seed": 0, **task.options, **task.teacher, "model": "minilm"}
    return archwright_train({**asked, "out": task_folder(out, name) / "teacher"})


def task_folder(out: Path, name: str) -> Path:
    return out / name.replace("/", "-")


def archwright_train(asked: dict[str, Any]) -> Path:
    """Runs the command to its end; the folder."""
    asked = {**asked, "threads": 1}
    words = [word for key, value in asked.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    subprocess.run([sys.executable, "-m", "archwright", "train", *words], check=True, stdout=subprocess.DEVNULL)
    return Path(asked["out"])


def processor_seconds() -> float:
    """Of all processes that have been run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def describe(name: str, network: str, start: str, seed: int, result: dict[str, Any], seconds: float) -> dict[str, str]:
    after, made, task = result["validation"]["after"], environment(), TASKS[name]
    test = after["splits"]["test"]
    values = (
        *(name, network, start, seed, result["rows"], result["steps"]),
        *(task.metric, round(test[task.metric], 4), after["rows"], task.majority or ""),
        *("yes" if result["collapse"] else "no", result["collapsed"] or "no"),
        *(round(result["seconds"]["training"], 1), round(seconds, 1)),
        *(result["precision"], made["commit"], made["cpu"]),
    )
    return {column: str(value) for column, value in zip(COLUMNS, values, strict=True)}


def read_rows() -> list[dict[str, str]]:
    return list(csv.DictReader(TABLE.open())) if TABLE.exists() else []


def write_rows(rows: Sequence[dict[str, str]]) -> None:
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_summary(rows: Sequence[dict[str, str]]) -> None:
    """Per task: the teacher, students by start with their seeds, and what is above the more frequent class."""
    names = {"teacher": "student from the teacher", "random": "student at random, with the teacher"}
    names |= {"answers": "student at random, with the teacher's answers", "labels": "student at random, labels alone"}
    names |= {"pre-trained": "teacher"}
    lines = ["| task | network | metric, by seed | begun again, collapsed | core-seconds |", "|---|---|---|---|---|"]
    for task in TASKS:
        for start, name in names.items():
            own = [row for row in rows if (row["task"], row["start"]) == (task, start)]
            if own:
                values = " / ".join(f"{100 * float(row['test']):.1f}" for row in own)
                bad = sum(row["restarted"] == "yes" for row in own), sum(row["answers_alike"] != "no" for row in own)
                seconds = f"{mean(float(row['core_seconds']) for row in own):.0f}"
                lines.append(f"| {task} | {name} | {own[0]['metric']} {values} | {bad[0]}, {bad[1]} | {seconds} |")
    SUMMARY.write_text("\n".join([*lines, "", *differences(rows)]) + "\n")


def differences(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    """Seed by seed between the starts, and from the more frequent class in standard errors of a share."""
    students = [row for row in rows if row["network"] == "student"]
    scores = {(row["task"], row["start"], row["seed"]): float(row["test"]) for row in students}
    for (task, start, seed), score in scores.items():
        others = {name: scores.get((task, name, seed)) for name in ("random", "answers", "labels")}
        apart = ", ".join(f"{100 * (score - it):+.1f} points ({name})" for name, it in others.items() if it is not None)
        if start == "teacher" and apart:
            yield f"- {task}, seed {seed}: from the teacher {apart}"
    for row in students:
        if row["majority"]:
            share, count, score = float(row["majority"]), int(row["test_rows"]), float(row["test"])
            errors = (score - share) / (score * (1 - score) / count) ** 0.5
            where = f"{row['task']}, {row['start']}, seed {row['seed']}"
            yield f"- {where}: {errors:+.1f} standard errors from the more frequent class ({share:.1%})"


if __name__ == "__main__":
    main()
