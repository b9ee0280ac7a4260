"""Table, CSV and figure of what `run.py` left in a folder.

    python experiments/smollm2/summary.py runs/smollm2

Writes results.csv, summary.md beside this file, and the figure into docs/figures.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "docs" / "figures"
SIZES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
COLOURS = ("#0b6e8f", "#c2571a", "#8a8a8a", "#6a4fa3", "#b0305c")


def main() -> None:
    results = {path.parent.name: json.loads(path.read_text()) for path in Path(sys.argv[1]).glob("*/result.json")}
    results = {name: results[name] for name in sorted(results, reverse=True)}
    rows = [row_of(name, result, entry) for name, result in results.items() for entry in result["front"]]
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (HERE / "summary.md").write_text(table(results))
    draw(results, FIGURES / "smollm2.png")
    print(table(results))


def row_of(name: str, result: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    machine = {key: result["environment"][key] for key in ("commit", "cpu", "cores", "threads")}
    keys = ("trial", "nonembedding_share", "parameters", "validation_error", "test_error")
    return {"method": name, "seed": result["seed"], **{key: entry[key] for key in keys}, **machine}


def table(results: dict[str, Any]) -> str:
    """The test perplexity of the network with the best validation perplexity up to each size."""
    first = next(iter(results.values()))
    lines = [
        "| at most | " + " | ".join(results) + " |",
        "|---|" + "---|" * len(results),
        "| original | " + " | ".join([f"{first['original']['test_error']:.1f}"] * len(results)) + " |",
        "| 100 % | " + " | ".join(best(result, 1.0) for result in results.values()) + " |",
    ]
    lines += [
        f"| {size:.0%} | " + " | ".join(best(result, size) for result in results.values()) + " |" for size in SIZES
    ]
    return "\n".join(lines) + "\n"


def best(result: dict[str, Any], size: float) -> str:
    fitting = [entry for entry in result["front"] if entry["nonembedding_share"] <= size]
    return f"{min(fitting, key=lambda entry: entry['validation_error'])['test_error']:,.0f}" if fitting else ""


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for colour, (name, result) in zip(COLOURS, results.items(), strict=False):
        points = [(100 * e["nonembedding_share"], e["test_error"]) for e in result["front"] if e["test_error"] < 1e5]
        axis.plot(*zip(*points, strict=True), marker="o", ms=4, color=colour, label=name)
    axis.axhline(next(iter(results.values()))["original"]["test_error"], color="#444", lw=0.8, ls="--")
    axis.set(yscale="log", xlabel="% of the non-embedding parameters", ylabel="test perplexity, WikiText-2")
    axis.set_title("SmolLM2-135M")
    axis.grid(alpha=0.25)
    axis.legend()
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
