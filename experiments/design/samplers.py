"""Genetic, random and local search at the same budget, on the same proxy: a CSV and a figure.

    python experiments/design/samplers.py --space nlu-tiny --seeds 5

Goes on where it was when started again. Columns name commit, seed and hardware; both files are written beside this one.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import archwright as aw

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "figures"
MACHINE = ("commit", "cpu", "cores", "torch")
SAMPLERS = ("genetic", "random", "local")


def main() -> None:
    given = arguments()
    document = aw.design(
        space=given.space, proxy=(given.proxy,), population=given.population, generations=given.generations,
        seeds=given.seeds, against=SAMPLERS[1:], sampler=SAMPLERS[0], out=given.out, workers=given.workers,
        **({"text": given.text} if given.text else {}),
    ).as_json()  # fmt: skip
    name = f"samplers-{given.space}-{given.proxy}"
    write(document, given.to / f"{name}.csv")
    draw(document, FIGURES / f"{name}.png")
    for sampler, runs in document["against"].items():
        scores = [run["score"] for run in runs]
        print(f"{sampler}: {np.mean(scores):.4g} ± {np.std(scores):.2g} over {len(runs)} seeds")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", default="nlu-tiny")
    parser.add_argument("--proxy", default="w_pca")
    parser.add_argument("--population", type=int, default=50)
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/design-samplers"))
    parser.add_argument("--to", type=Path, default=HERE)
    return parser.parse_args()


def write(document: dict[str, Any], file: Path) -> None:
    """One row per search and generation."""
    made = {name: document["environment"][name] for name in MACHINE} | {"seed": document["seed"]}
    fixed = {name: document[name] for name in ("space", "population")} | {"proxy": document["proxies"][0]}
    rows = [
        {
            **fixed,
            "sampler": sampler,
            "repeat": run["repeat"],
            "parameters": run["parameters"],
            **point_of(point),
            **made,
        }
        for sampler, runs in document["against"].items()
        for run in runs
        for point in run["history"]
    ]
    with open(file, "w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def point_of(point: dict[str, Any]) -> dict[str, Any]:
    return {name: point[name] for name in ("generation", "evaluations", "distinct", "best", "mean")}


def draw(document: dict[str, Any], file: Path) -> None:
    """Best score so far, mean over seeds with one deviation around it."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for sampler, runs in document["against"].items():
        x = [point["evaluations"] for point in runs[0]["history"]]
        best = np.array([[point["best"] for point in run["history"]] for run in runs])
        axes.plot(x, best.mean(axis=0), label=sampler)
        axes.fill_between(x, best.mean(0) - best.std(0), best.mean(0) + best.std(0), alpha=0.2)
    axes.set(xlabel="designs tried", ylabel=f"best {document['proxies'][0]}", title=document["space"])
    axes.legend()
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
