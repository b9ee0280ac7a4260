"""A student that starts from its teacher beside its rivals: the same size and time by other ways (`train --rivals`).

    python -m experiments.inheritance.rivals runs/inheritance --data DATA [--tasks glue/SST-2] [--seeds 0]

Teacher, student and rows are those of run.py, whose folders serve here too. Resumable; writes rivals.csv beside this
file. Seconds are of the machine's clock.
"""

import argparse
import csv
import json
from pathlib import Path

from archwright.environment import environment
from experiments.inheritance.run import RATE, STARTS, TASKS, archwright_train, task_folder, train_teacher, write_design

TABLE = Path(__file__).with_suffix(".csv")
RIVALS = "first-layers,compress,random-design"
COLUMNS = (
    *("task", "seed", "network", "parameters", "seconds", "steps", "metric", "test", "test_rows", "what"),
    *("commit", "cpu"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", default="glue/SST-2")
    parser.add_argument("--seeds", default="0")
    options = parser.parse_args()
    write_design(options.out)
    rows = list(csv.DictReader(TABLE.open())) if TABLE.exists() else []
    for seed in map(int, options.seeds.split(",")):
        for task in options.tasks.split(","):
            if (task, str(seed)) not in {(row["task"], row["seed"]) for row in rows}:
                rows += train_with_rivals(options.out, options.data, task, seed)
                with TABLE.open("w", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)


def train_with_rivals(out: Path, data: Path, name: str, seed: int) -> list[dict[str, str]]:
    """A row per network, the student's first."""
    task = TASKS[name]
    asked = {"task": name, "data": data / name, "seed": seed, **task.options, **STARTS["teacher"]}
    asked |= {
        "steps": task.steps["teacher"],
        "learning_rate": RATE,
        "teacher": train_teacher(out, data, name) / "model",
    }
    asked |= {"space": "nlu-tiny", "config": out / "design.json"}
    run = archwright_train({**asked, "rivals": RIVALS, "out": task_folder(out, name) / f"rivals-{seed}"})
    rivals, made = json.loads((run / "result.json").read_text())["rivals"], environment()
    rows = []
    for network in rivals["networks"]:
        values = (
            *(name, seed, network["rival"], network["parameters"], network["seconds"], network["steps"], task.metric),
            *((network["metrics"] or {}).get(task.metric, ""), rivals["rows"], network["what"] or network["missing"]),
            *(made["commit"], made["cpu"]),
        )
        rows.append({column: str(value) for column, value in zip(COLUMNS, values, strict=True)})
    return rows


if __name__ == "__main__":
    main()
