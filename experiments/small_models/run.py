"""Small encoders from nothing: does distillation help, and is the architecture that a proxy chose better than chance?

    python experiments/small_models/run.py runs/small_models --data DATA [--steps 150] [--seeds 0]
    python experiments/small_models/run.py runs/small_models --data DATA --seeds 0,1 --finished

`nlu-tiny` designs of (nearly) equal size: those found with W-PCA, V-PCA, the number of parameters and proxies of the
gallery, and five random ones. Each is distilled from MiniLM on WikiText-2, then fine-tuned on parts of SST-2 and MRPC;
the W-PCA design on CoLA, RTE and SQuAD as well, from scratch, after four times the distillation, and on the two with a
teacher during the task. Another seed is another search, other random designs, other weights. Resumable; what is
finished is not repeated, and --finished collects it without training more. Writes results.csv beside this file;
summary.py makes the text and the figure.
"""

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import archwright as aw
from archwright.spaces import ARCHITECTURES

HERE = Path(__file__).parent
SPACE = "nlu-tiny"
PROXIES = ("w_pca", "v_pca", "parameters", "found_log_weights_attention", "found_weights_attention_mass")
RANDOM = 5
NEAR = 0.02
"""Random designs differ at most so much from the W-PCA design in parameters, as a share."""
LENGTH = 64
VALIDATION_LINES = 300
"""Of WikiText-2's validation text: what the loss of the distillation is looked at."""
TASKS: dict[str, dict[str, Any]] = {
    "glue/RTE": {"epochs": 2, "train_rows": 1500},
    "glue/MRPC": {"epochs": 2, "train_rows": 2000},
    "glue/CoLA": {"epochs": 2, "train_rows": 4000},
    "glue/SST-2": {"epochs": 2, "train_rows": 4000},
    "squad": {"epochs": 2, "train_rows": 800, "test_rows": 400, "max_length": 128},
}
TELLING = ("glue/SST-2", "glue/MRPC")
"""Tasks for all designs; on the others every small budget ends at chance."""
STARTS: dict[str, tuple[int, dict[str, Any]]] = {
    "distilled": (1, {}),
    "scratch": (0, {}),
    "longer": (4, {}),
    "longer-taught": (4, {"teacher": "minilm", "teacher_epochs": 3}),
}
"""Times --steps of distillation before the task, and who teaches during it."""
SHARED = {"batch_size": 32, "learning_rate": 3e-4, "threads": 1, "validation_rows": 200, "max_length": LENGTH}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--only", default="")
    parser.add_argument("--proxies", default=",".join(PROXIES))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--finished", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in map(int, options.seeds.split(",")):
        for row in judged(options, seed):
            rows.append(row)
            print(row, flush=True)
            write(rows)


def write(rows: Sequence[dict[str, Any]]) -> None:
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def judged(options: argparse.Namespace, seed: int) -> Iterator[dict[str, Any]]:
    """The first design from every start on every task, the others distilled and on the tasks that tell them apart."""
    found = designs(options, seed)
    first = next(iter(found))
    for name, file in found.items():
        if options.only and name not in options.only.split(","):
            continue
        for start in STARTS if name == first else ("distilled",):
            for task in TASKS if name == first and not STARTS[start][1] else TELLING:
                if task in options.tasks.split(",") and (
                    not options.finished or is_finished(options, name, start, task, seed)
                ):
                    yield row_of(name, start, task, seed, fine_tuned(options, name, file, start, task, seed))


def designs(options: argparse.Namespace, seed: int) -> dict[str, Path]:
    """Name of each design to its file: those of the proxies, the random ones."""
    found = {}
    names = options.proxies.split(",")
    for proxy in names:
        folder = options.out / f"design-{proxy}-{seed}"
        if not (folder / "design.json").exists():
            aw.design(space=SPACE, proxy=(proxy,), seed=seed, workers=1, out=folder)
        found[proxy] = folder / "design.json"
    size = json.loads(found[PROXIES[0]].read_text())["counts"]["parameters"]
    for place, config in enumerate(chance(size, seed)):
        file = options.out / f"design-random{place}-{seed}" / "design.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(json.dumps({"schema": "archwright/design/1", "space": SPACE, "config": config}))
        found[f"random{place}"] = file
    return found


def chance(size: int, seed: int) -> list[dict[str, Any]]:
    """Random designs of about this size."""
    space, rng = ARCHITECTURES[SPACE], np.random.default_rng((seed, 6))
    found: list[dict[str, Any]] = []
    while len(found) < RANDOM:
        config = space.sample(rng)
        if abs(space.counts(config).parameters / size - 1) <= NEAR:
            found.append(dict(config))
    return found


def distilled(options: argparse.Namespace, name: str, file: Path, steps: int, seed: int) -> Path:
    out = options.out / f"distil-{name}-{steps}-{seed}"
    texts, few = options.data / "wikitext-2", options.out / "valid.txt"
    few.write_text("\n".join((texts / "valid.txt").read_text().splitlines()[:VALIDATION_LINES]))
    lesson = {"lesson": "distil", "teacher": "minilm", "corpus": texts / "train.txt", "corpus_validation": few}
    trained({**SHARED, **lesson, "learning_rate": 6e-4, "design": file, "steps": steps}, out, seed)
    return out


def fine_tuned(options: argparse.Namespace, name: str, file: Path, start: str, task: str, seed: int) -> dict[str, Any]:
    share, teacher = STARTS[start]
    steps = options.steps * share
    begin = {"model": str(distilled(options, name, file, steps, seed))} if steps else {"design": file}
    out = folder_of(options, name, start, task, seed)
    return trained({**SHARED, "task": task, "data": options.data / task, **begin, **teacher, **TASKS[task]}, out, seed)


def folder_of(options: argparse.Namespace, name: str, start: str, task: str, seed: int) -> Path:
    folder: Path = options.out / f"{task.replace('/', '-')}-{name}-{start}-{seed}"
    return folder


def is_finished(options: argparse.Namespace, name: str, start: str, task: str, seed: int) -> bool:
    return (folder_of(options, name, start, task, seed) / "result.json").exists()


def trained(asked: dict[str, Any], out: Path, seed: int) -> dict[str, Any]:
    """The result of a training, done now unless its folder has it."""
    noted = out / "result.json"
    if not noted.exists():
        aw.train(**asked, out=out, seed=seed)
    result: dict[str, Any] = json.loads(noted.read_text())
    return result


def row_of(name: str, start: str, task: str, seed: int, result: dict[str, Any]) -> dict[str, Any]:
    return {
        "design": name, "start": start, "task": task, "seed": seed, "parameters": result["parameters"],
        "metrics": json.dumps(result["validation"]["after"]["splits"]["test"]), "steps": result["steps"],
        "seconds": round(result["seconds"]["total"], 1), "commit": result["environment"]["commit"],
        "processor": result["environment"]["cpu"],
    }  # fmt: skip


if __name__ == "__main__":
    main()
