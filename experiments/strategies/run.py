"""The seven ways to train a super-network: hypervolume of the same 100 uniform sub-networks, and of a search after it.

    python experiments/strategies/run.py runs/strategies [--seeds 0,1,2]

One original per seed; every strategy starts from it and has equally many steps. Resumable. Writes results.csv and
summary.md beside this file.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from archwright.compression.context import to_settings
from archwright.compression.methods import load_evaluator
from archwright.compression.pipeline import copy_original, resolve_space, run_compression
from archwright.configs import compress as o
from archwright.search import sample
from archwright.statistics.pareto import hypervolume
from archwright.store import RunFolder, begin_run
from archwright.subnet.spec import nonembedding_parameters

HERE = Path(__file__).parent
STRATEGIES = ("standard", "random", "random-linear", "sandwich", "kd", "full", "front")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    rows = []
    for seed in options.seeds.split(","):
        for strategy in STRATEGIES:
            folder = options.out / f"{strategy}-{seed}"
            rows.append(row_of(result(folder, options, strategy, seed), uniform(folder)))
            print(rows[-1], flush=True)
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (HERE / "summary.md").write_text(table(rows))


def result(folder: Path, options: argparse.Namespace, strategy: str, seed: str) -> dict[str, Any]:
    """A finished run; the original and the order are those of the seed's first run."""
    config = o.CompressConfig(
        data=o.DataOptions(train_rows=options.rows, validation_rows=400, test_rows=50),
        supernet=o.SupernetOptions(space="small", strategy=strategy, teacher="in-place", order="taylor"),
        search=o.SearchOptions(trials=60, corners=("largest",)),
        measure=o.MeasureOptions(rounds=3),
        output=o.OutputOptions(out=folder, seed=int(seed), threads=1),
    )
    first = RunFolder(options.out / f"{STRATEGIES[0]}-{seed}")
    run = begin_run(folder, to_settings(resolve_space(config)))
    if first.path != folder:
        copy_original(run, first)
        run.note("order", first.note("order"))
    return run_compression(config).result


def uniform(folder: Path) -> list[tuple[float, float]]:
    """Validation error and share of 100 uniform sub-networks, the same ones for every strategy of a seed."""
    noted = folder / "uniform.json"
    if not noted.exists():
        torch.set_num_threads(1)
        evaluator = load_evaluator(RunFolder(folder))
        rng, of = np.random.default_rng((evaluator.context.seed, 100)), evaluator.space.anatomy
        configs = [sample(evaluator.space.choices, rng) for _ in range(100)]
        shares = [
            nonembedding_parameters(of, evaluator.space.build(c)) / nonembedding_parameters(of, of.full)
            for c in configs
        ]
        errors = [evaluator.error(config, evaluator.context.task_data.validation) for config in configs]
        noted.write_text(json.dumps(list(zip(errors, shares, strict=True))))
    return [tuple(point) for point in json.loads(noted.read_text())]


def row_of(searched: dict[str, Any], points: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        "strategy": searched["strategy"],
        "seed": searched["seed"],
        "rows": searched["rows"]["train"],
        "hypervolume_uniform": hypervolume(points, (1.0, 1.0)),
        "mean_error_uniform": float(np.mean([error for error, _ in points])),
        "hypervolume_searched": searched["hypervolume"],
        "supernet_seconds": searched["seconds_by_phase"]["supernet"],
        **{key: searched["environment"][key] for key in ("commit", "cpu", "cores", "threads")},
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| strategy | seeds | of 100 uniform ones: hypervolume | mean error, % | hypervolume searched | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        some = [row for row in rows if row["strategy"] == strategy]
        cells = [spread([row[key] for row in some]) for key in ("hypervolume_uniform",)]
        cells += [spread([100 * row["mean_error_uniform"] for row in some], 1)]
        cells += [spread([row["hypervolume_searched"] for row in some])]
        cells += [f"{np.mean([row['supernet_seconds'] for row in some]):.0f}"]
        lines.append(f"| {strategy} | {len(some)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def spread(values: list[float], digits: int = 3) -> str:
    """Mean and half of the 95 % interval over seeds."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {half:.{digits}f}"


if __name__ == "__main__":
    main()
