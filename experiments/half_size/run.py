"""Half the encoder within two points? And what is the importance order worth?

    python experiments/half_size/run.py --data GLUE    (about an hour on 2 cores; resumable)
    python experiments/half_size/run.py --summary      (only writes tables and figure from what is there)

Runs `archwright compress` on SST-2 and movie reviews with MiniLM, 4,000 training rows, three seeds, with and without
the Taylor order, two runs at a time with one thread each; then `archwright select --params 50% --recover-epochs 2`, and
for comparison a network without its top three layers, fine-tuned for as many epochs as the others in all. Writes
results.csv (one row per run), random.csv (errors of the same 30 random sub-networks with and without order), summary.md
beside this file, and the figure into docs/figures.
"""

import argparse
import csv
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "figures"
ORDERS = ("taylor", "none")
OPTIONS = ["--train-rows", "4000", "--validation-rows", "800", "--epochs", "2", "--trials", "80", "--threads", "1"]
SPACE = ["--space", "small", "--strategy", "full", "--teacher", "in-place"]
"""The defaults of their time, in which layers have an order."""


def command(task: str, order: str, seed: int, out: Path, data: Path | None) -> list[str]:
    where = ["--data", str(data / task.removeprefix("glue/"))] if data and task.startswith("glue/") else []
    name = [sys.executable, "-m", "archwright", "compress", "--task", task, *where, "--order", order]
    return [*name, "--seed", str(seed), "--out", str(out), *OPTIONS, *SPACE]


def products(runs: Path, job: tuple[str, str, int]) -> tuple[Path, Path, Path]:
    out = folder(runs, *job)
    return out / "result.json", out / "select.json", dropped(runs, job)


def dropped(runs: Path, job: tuple[str, str, int]) -> Path:
    """Without the top layers there is no order: one training per task and seed, kept with the first run."""
    return folder(runs, job[0], ORDERS[0], job[2]) / "dropped.json"


def recovery(out: Path) -> list[str]:
    name = [sys.executable, "-m", "archwright", "select", str(out), "--params", "50%", "--threads", "1"]
    return [*name, "--recover-epochs", "2", "--json", str(out / "select.json")]


def run_all(jobs: list[tuple[str, str, int]], runs: Path, data: Path | None) -> None:
    """All runs, two at a time; those that are finished answer at once."""

    def one(job: tuple[str, str, int]) -> None:
        out = folder(runs, *job)
        steps = {
            out / "result.json": command(*job, out, data),
            out / "select.json": recovery(out),
            dropped(runs, job): [sys.executable, str(HERE / "dropped.py"), str(out)],
        }
        for product, words in steps.items():
            if not product.exists():
                with open(out.with_suffix(".log"), "a") as log:
                    subprocess.run(words, check=True, stdout=log, stderr=log)
        print("done", *job, flush=True)

    runs.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, jobs))


def folder(runs: Path, task: str, order: str, seed: int) -> Path:
    return runs / f"{task.replace('/', '-').lower()}-{order}-{seed}"


def row(task: str, order: str, seed: int, runs: Path) -> dict[str, Any]:
    """The pick with at most half of the non-embedding parameters, before and after recovery, against the original."""
    files = products(runs, (task, order, seed))
    result, chosen, without = (json.loads(path.read_text()) for path in files)
    original, best, after = result["original"], chosen["selected"], chosen["recovery"]["after"]
    return {
        "task": task,
        "order": order,
        "seed": seed,
        "original_validation_error": round(original["validation_error"], 4),
        "original_test_error": round(original["test_error"], 4),
        "supernet_test_error": round(result["supernet"]["test_error"], 4),
        "half_share": round(best["nonembedding_share"], 3),
        "half_validation_error": round(best["validation_error"], 4),
        "half_test_error": round(best["test_error"], 4),
        "lost_validation": round(100 * (best["validation_error"] - original["validation_error"]), 2),
        "lost_test": round(100 * (best["test_error"] - original["test_error"]), 2),
        "recovered_test_error": round(after["test_error"], 4),
        "lost_test_recovered": round(100 * (after["test_error"] - original["test_error"]), 2),
        "dropped_share": round(without["nonembedding_share"], 3),
        "dropped_test_error": round(without["test_error"], 4),
        "lost_test_dropped": round(100 * (without["test_error"] - original["test_error"]), 2),
        "test_rows": result["rows"]["test"],
        "latency_ratio": round(best["latency_ms"]["median"] / original["latency_ms"]["median"], 3),
        "hypervolume": round(result["hypervolume"], 4),
        "seconds": round(result["seconds"]),
        "config": json.dumps(best["config"]),
        "commit": result["environment"]["commit"],
        "cpu": result["environment"]["cpu"],
        "threads": result["environment"]["threads"],
    }


def random_errors(out: Path, number: int = 30) -> list[float]:
    """Validation errors of the same random sub-networks in the run's super-network."""
    import numpy as np
    import torch

    from archwright.compression.methods import load_evaluator
    from archwright.objectives.error import measure_error
    from archwright.search import sample
    from archwright.store import RunFolder

    torch.set_num_threads(1)
    evaluator = load_evaluator(RunFolder(out))
    rng = np.random.default_rng(2024)
    keeps = [evaluator.space.build(sample(evaluator.space.choices, rng)) for _ in range(number)]
    task_data = evaluator.context.task_data
    return [
        measure_error(evaluator.network, task_data.validation, keep, metric=task_data.task.metric) for keep in keeps
    ]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def summarise(jobs: list[tuple[str, str, int]], runs: Path) -> None:
    from summary import draw, table

    found = {job: json.loads((folder(runs, *job) / "result.json").read_text()) for job in jobs if is_done(runs, job)}
    rows = [row(*job, runs) for job in found]
    write_csv(HERE / "results.csv", rows)
    errors = [
        {"task": job[0], "order": job[1], "seed": job[2], "network": i, "validation_error": round(value, 4)}
        for job in found
        if all((job[0], order, job[2]) in found for order in ORDERS)
        for i, value in enumerate(random_errors(folder(runs, *job)))
    ]
    write_csv(HERE / "random.csv", errors)
    (HERE / "summary.md").write_text(table(rows, errors))
    draw(found, errors, FIGURES / "half_size.png")


def is_done(runs: Path, job: tuple[str, str, int]) -> bool:
    return all(path.exists() for path in products(runs, job))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with SST-2/train.tsv and SST-2/dev.tsv")
    parser.add_argument("--runs", type=Path, default=Path("runs/half_size"))
    parser.add_argument("--tasks", nargs="+", default=["movie-reviews", "glue/SST-2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    jobs = [(task, order, seed) for order in ORDERS for seed in given.seeds for task in given.tasks]
    if not given.summary:
        run_all(jobs, given.runs, given.data)
    summarise(jobs, given.runs)


if __name__ == "__main__":
    main()
