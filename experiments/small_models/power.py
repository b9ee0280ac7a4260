"""Do designs that proxies choose learn better than random ones? An experiment that is planned to see it.

    python experiments/small_models/power.py runs/power --data DATA --pilot
    python experiments/small_models/power.py runs/power --data DATA [--designs 20] [--pairs 0-0,1-1] [--most 10]
    python experiments/small_models/power.py runs/power --data DATA --tasks glue/SST-2,glue/QQP [--pairs 1-1,0-1]
    python experiments/small_models/power_summary.py

`nlu-tiny`: the designs found by W-PCA, V-PCA, the number of parameters and a formula of the gallery, and random designs
within the space's limit, of whatever size. Each is filled from MiniLM (--start teacher; random is the other choice) and
distilled on WikiText-2 with hidden words to guess, once for every pair of a seed of its weights and a part of the text:
all designs see the same pairs, so that what they have in common drops out. Judged by the loss against the teacher and
that of hidden words, on lines that nothing was trained on; with --tasks also by fine-tuning what was distilled.

The third command is the whole: four pairs and two tasks, about three core-hours. What is fine-tuned was distilled
before; where its folder is gone, it is distilled again.

--pilot trains the first random designs alone, so that power_summary.py can say what the whole would see. Resumable;
with --most a call ends after so many trainings. Writes power.csv and power_scores.csv beside this file.
"""

import argparse
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import archwright as aw
from archwright.configs import design as do
from archwright.designing.limits import DesignLimits
from archwright.environment import environment
from archwright.spaces import ARCHITECTURES

HERE = Path(__file__).parent
FOUND = HERE.parent / "design" / "found.csv"
TABLE, SCORES = HERE / "power.csv", HERE / "power_scores.csv"
SPACE = "nlu-tiny"
FORMULA = "found_rising_weights"
"""Of the gallery, the one with the highest rank agreement on held-out NAS-BERT networks."""
PROXIES = ("w_pca", "v_pca", "parameters", FORMULA)
BUDGET = {"population": 20, "generations": 10}
PILOT = 4
"""Random designs."""
LENGTH, BATCH = 64, 32
LINES = {"train": 3000, "validation": 200}
"""Of a part of the text, and of the lines that judge."""
TASK_STEPS = 120
COLUMNS = (
    *("stage", "design", "start", "weights", "data", "steps", "parameters", "before", "loss", "mlm_loss", "accuracy"),
    *("test_rows", "core_seconds", "commit", "cpu"),
)
KEY = COLUMNS[:6]


def main() -> None:
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    designs = list_designs(options)
    score_designs(options, designs)
    rows = read_rows(TABLE)
    chosen_first = sorted(designs, key=lambda name: name.startswith("random-"))
    for key in plan_trainings(options, chosen_first):
        known = {tuple(row[name] for name in KEY) for row in rows}
        if key in known:
            continue
        if options.most == 0:
            break
        options.most -= 1
        rows.append(train(options, designs, key))
        write_rows(TABLE, COLUMNS, rows)
        print(rows[-1], flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--designs", type=int, default=20, help="random ones")
    parser.add_argument("--pairs", default="0-0,1-1,0-1,1-0", help="a seed of weights and a part of the text each")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--start", choices=("teacher", "random"), default="teacher")
    parser.add_argument("--tasks", default="", help="fine-tuned on behind the text, with commas between them")
    parser.add_argument("--pilot", action="store_true", help=f"{PILOT} random designs")
    parser.add_argument("--most", type=int, default=10**6, help="trainings of this call")
    return parser.parse_args()


def list_designs(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Name to config: random designs within the limit, then what searches found."""
    space, rng = ARCHITECTURES[SPACE], np.random.default_rng(18)
    limits = DesignLimits.from_options(space, do.LimitOptions())
    designs: dict[str, dict[str, Any]] = {}
    while len(designs) < (PILOT if options.pilot else options.designs):
        config = space.sample(rng)
        if limits.allow(config):
            designs[f"random-{len(designs)}"] = dict(config)
    if options.pilot:
        return designs
    with FOUND.open() as file:
        rows = [row for row in csv.DictReader(file) if row["space"] == SPACE and row["population"] == "20"]
    for row in rows:
        if row["by"] in PROXIES:
            designs[row["by"]] = {f"block.{at}": word for at, word in enumerate(row["layers"].split())}
    folder = options.out / f"design-{FORMULA}"
    designs[FORMULA] = aw.design(space=SPACE, proxy=(FORMULA,), workers=1, out=folder, **BUDGET).as_json()["config"]
    return designs


def score_designs(options: argparse.Namespace, designs: Mapping[str, dict[str, Any]]) -> None:
    """Every proxy of every design, as `archwright score` has it."""
    known = {row["design"]: row for row in read_rows(SCORES)}
    missing = [name for name in designs if name not in known]
    if not missing:
        return
    file = options.out / "designs.json"
    file.write_text(json.dumps([designs[name] for name in missing]))
    table = aw.score(space=SPACE, config=file, proxies=PROXIES, workers=1, out=options.out / "scores").as_json()
    for name, row in zip(missing, table["rows"], strict=True):
        known[name] = {"design": name, **{proxy: str(row["scores"][proxy]) for proxy in PROXIES}}
    write_rows(SCORES, ("design", *PROXIES), list(known.values()))


def plan_trainings(options: argparse.Namespace, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Keys of the table; pairs of seeds are outermost, so that what is there at any time is balanced."""
    for stage in ("text", *filter(None, options.tasks.split(","))):
        steps = options.steps if stage == "text" else TASK_STEPS
        for pair in options.pairs.split(","):
            weights, data = pair.split("-")
            for name in names:
                yield stage, name, options.start, weights, data, str(steps)


def train(options: argparse.Namespace, designs: Mapping[str, dict[str, Any]], key: tuple[str, ...]) -> dict[str, str]:
    """A row of the table."""
    stage, name, start, weights, data, steps = key
    begun = process_time()
    if stage == "text":
        result = distil(options, name, designs[name], start, weights, data)
    else:
        folder = distilled_folder(options, name, start, weights, data)
        if not (folder / "model").exists():
            distil(options, name, designs[name], start, weights, data)
            begun = process_time()
        out = folder.with_name(f"{folder.name}-{stage.replace('/', '-')}")
        asked = {"model": str(folder / "model"), "task": stage, "data": options.data / stage, "learning_rate": 3e-4}
        result = aw.train(**asked, steps=int(steps), batch_size=BATCH, seed=int(weights), threads=1, out=out).as_json()
    before, after, made = result["validation"]["before"], result["validation"]["after"], environment()
    values = (
        *(*key, result["parameters"], (before or {}).get("loss", ""), after.get("loss", "")),
        *(after.get("mlm_loss", ""), after.get("accuracy", "")),
        *(after.get("rows", ""), round(process_time() - begun, 1)),
        *(made["commit"], made["cpu"]),
    )
    return {column: str(value) for column, value in zip(COLUMNS, values, strict=True)}


def distil(
    options: argparse.Namespace, name: str, config: dict[str, Any], start: str, weights: str, data: str
) -> dict[str, Any]:
    """The document of a design's training on text."""
    folder = distilled_folder(options, name, start, weights, data)
    asked: dict[str, Any] = {"teacher": "minilm", "start": start, "mlm_weight": 1.0, "lesson": "distil"}
    asked |= {"space": SPACE, "config": folder.with_suffix(".json"), "out": folder, "max_length": LENGTH}
    asked |= {"corpus": part_of_text(options, data), "corpus_validation": part_of_text(options, "validation")}
    asked |= {"teacher_cache": options.out / "answers", "validation_rows": 64, "learning_rate": 5e-4}
    asked |= {"steps": options.steps, "batch_size": BATCH, "seed": int(weights), "threads": 1}
    asked["config"].write_text(json.dumps(config))
    document: dict[str, Any] = aw.train(**asked).as_json()
    return document


def distilled_folder(options: argparse.Namespace, name: str, start: str, weights: str, data: str) -> Path:
    return Path(options.out) / f"{name}-{start}-{weights}-{data}-{options.steps}"


def part_of_text(options: argparse.Namespace, part: str) -> Path:
    """Consecutive lines of WikiText-2: a part by its number, or those that judge."""
    file = options.out / f"text-{part}.txt"
    if not file.exists():
        source = "valid" if part == "validation" else "train"
        lines = [
            line for line in (options.data / "wikitext-2" / f"{source}.txt").read_text().splitlines() if line.strip()
        ]
        first = 0 if part == "validation" else int(part) * LINES["train"]
        count = LINES["validation" if part == "validation" else "train"]
        file.write_text("\n".join(lines[first : first + count]))
    return file


def read_rows(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(table.open())) if table.exists() else []


def write_rows(table: Path, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
