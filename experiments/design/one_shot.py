"""W-PCA and SPOS in one table with their costs (W-PCA, Appendix E.2, Table 8), in one space and on one task.

    archwright train --model minilm --task glue/SST-2 --data DATA/glue/SST-2 --train-rows 8000 --epochs 2 --out runs/t
    python -m experiments.design.one_shot --data DATA/glue/SST-2 --teacher runs/t/model --steps 300 --train-steps 300

Both search with the same genetic algorithm and budget; what they find, and a random design of the size, is filled from
the teacher and trained alike. A row per design goes into one_shot.csv beside this file as soon as it is there; the same
command with the same --out goes on after a crash. `search_core_seconds` is processor time of the whole search, the
super-network's training included, summed over the calls that it took.
"""

import argparse
import csv
import json
from pathlib import Path
from time import process_time
from typing import Any

import archwright as aw
from archwright.environment import environment
from archwright.rivals.random_design import choose_random_design
from archwright.spaces import ARCHITECTURES
from archwright.training.students import StudentDesign

TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = (
    *("space", "task", "method", "seed", "parameters", "score", "search_core_seconds"),
    *("supernet_steps", "train_steps", "metric", "test", "test_rows", "layers", "commit", "cpu"),
)


def main() -> None:
    options = parse_arguments()
    rows = read_rows(options.table)
    for seed in range(options.seeds):
        found = {name: search(name, seed, options) for name in ("w_pca", "spos")}
        found["random"] = draw_random(found["w_pca"], seed, options.space)
        for method, document in found.items():
            key = (options.space, options.task, method, str(seed), str(options.steps), str(options.train_steps))
            known = {tuple(row[name] for name in KEY) for row in rows}
            if key not in known:
                rows.append(train_design(method, document, seed, options))
                write_rows(options.table, rows)
    for row in rows:
        print({name: row[name] for name in ("method", "seed", "parameters", "search_core_seconds", "test")})


KEY = ("space", "task", "method", "seed", "supernet_steps", "train_steps")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--space", default="nlu-tiny")
    parser.add_argument("--task", default="glue/SST-2")
    parser.add_argument("--data", type=Path, required=True, help="folder of the GLUE task, or with its folder")
    parser.add_argument("--teacher", default="minilm")
    parser.add_argument("--text", type=Path, help="text of the first stage; WikiText-2 if not said")
    parser.add_argument("--steps", type=int, default=300, help="of each stage of the super-network")
    parser.add_argument("--train-steps", type=int, default=300, help="of every design that was found")
    parser.add_argument("--train-rows", type=int, default=8000, help="that they learn from")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--population", type=int, default=20)
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/one-shot"))
    parser.add_argument("--table", type=Path, default=TABLE)
    return parser.parse_args()


def search(method: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The document of `archwright design`; scores and stages that are there are not worked out again."""
    file = options.out / f"{method}-{seed}-search.json"
    if file.exists():
        document: dict[str, Any] = json.loads(file.read_text())
        return document
    given: dict[str, Any] = {"proxy": ("w_pca",), "workers": 1}
    if method == "spos":
        given = {"method": "spos", "task": options.task, "data": options.data, "teacher": options.teacher}
        given |= {"steps": options.steps, "batch_size": options.batch_size, "validation_rows": 256}
    budget = {"population": options.population, "generations": options.generations}
    folder, spent = options.out / f"{method}-{seed}", options.out / f"{method}-{seed}-seconds.txt"
    spent.parent.mkdir(parents=True, exist_ok=True)
    begun = process_time()
    try:
        document = aw.design(space=options.space, text=options.text, seed=seed, out=folder, **budget, **given).as_json()
    finally:
        before = float(spent.read_text()) if spent.exists() else 0.0
        spent.write_text(str(before + process_time() - begun))
    document["search_core_seconds"] = round(float(spent.read_text()), 1)
    file.write_text(json.dumps(document))
    return document


def draw_random(document: dict[str, Any], seed: int, space: str) -> dict[str, Any]:
    """A random design with 95 to 100 % of the parameters of the one that W-PCA found."""
    config = choose_random_design(StudentDesign(ARCHITECTURES[space], document["config"]), seed)
    parameters = ARCHITECTURES[space].counts(config).parameters
    return {"config": config, "parameters": parameters, "layers": ARCHITECTURES[space].layers(config)}


def train_design(method: str, document: dict[str, Any], seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """A row of the table."""
    folder = options.out / f"{method}-{seed}-trained"
    file = options.out / f"{method}-{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document["config"]))
    words = {"space": options.space, "config": file, "teacher": options.teacher, "start": "teacher"}
    words |= {"task": options.task, "data": options.data, "label_weight": 1.0, "threads": 1}
    words |= {"train_rows": options.train_rows, "learning_rate": 3e-4}
    words |= {"steps": options.train_steps, "batch_size": options.batch_size, "seed": seed, "out": folder}
    trained, made = aw.train(**words).as_json(), environment()
    after = trained["validation"]["after"]
    values = (
        *(options.space, options.task, method, seed, document["parameters"], document.get("score", "")),
        *(document.get("search_core_seconds", ""), options.steps, options.train_steps),
        *(trained["metric"], after["splits"]["test"].get(trained["metric"], ""), after["rows"]),
        " ".join(str(layer["label"]).replace(" ", "-") for layer in document["layers"]),
        *(made["commit"], made["cpu"]),
    )
    return {name: str(value) for name, value in zip(COLUMNS, values, strict=True)}


def read_rows(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(table.open())) if table.exists() else []


def write_rows(table: Path, rows: list[dict[str, str]]) -> None:
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
