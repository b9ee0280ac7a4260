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
    runs = Path(sys.argv[1])
    results = {path.parent.name: json.loads(path.read_text()) for path in runs.glob("*/result.json")}
    results = {name: results[name] for name in sorted(results, reverse=True)}
    rows = [row_of(name, result, entry) for name, result in results.items() for entry in result["front"]]
    rows += [{**dict.fromkeys(rows[0]), **row} for row in earlier_rows() if row["method"] not in results]
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    texts = {name: runs / name / "text.json" for name in results}
    parts = [describe(results), table(results), *map(times, results.items())]
    parts += [written(name, file) for name, file in texts.items() if file.exists()]
    (HERE / "summary.md").write_text("\n".join(parts))
    draw(results, FIGURES / "smollm2.png")
    print((HERE / "summary.md").read_text())


def earlier_rows() -> list[dict[str, Any]]:
    """What results.csv has; methods that were not run again stay, with their own commit."""
    with open(HERE / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def describe(results: dict[str, Any]) -> str:
    """Commit, seed and hardware of every run."""
    lines = []
    for name, result in results.items():
        machine = result["environment"]
        place = f"{machine['cpu']}, {machine['threads']} thread of {machine['cores']} cores"
        rows = ", ".join(f"{count:,} {split}" for split, count in result["rows"].items())
        lines.append(f"- {name}: commit {machine['commit']}, seed {result['seed']}, {place}; blocks: {rows}")
    return "\n".join(lines) + "\n"


def times(run: tuple[str, dict[str, Any]]) -> str:
    """What each phase of a run took, in seconds of the clock it was run by."""
    name, result = run
    phases = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in result["seconds_by_phase"].items())
    return f"Seconds of {name}: {phases}; {len(result['trials'])} trials.\n"


def written(name: str, file: Path) -> str:
    """The text of the exported network, as it is."""
    text = json.loads(file.read_text())["text"].replace("\n", "\n> ")
    return f"The exported network of at most 50 % ({name}) writes, greedily:\n\n> {text}\n"


def row_of(name: str, result: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    machine = {key: result["environment"][key] for key in ("commit", "cpu", "cores", "threads")}
    keys = ("trial", "source", "nonembedding_share", "parameters", "validation_error", "test_error")
    return {"method": name, "seed": result["seed"], **{key: entry.get(key) for key in keys}, **machine}


def table(results: dict[str, Any]) -> str:
    """The test perplexity of the network with the best validation perplexity up to each size."""
    lines = [
        "| at most | " + " | ".join(results) + " |",
        "|---|" + "---|" * len(results),
        "| original | " + " | ".join(f"{result['original']['test_error']:.1f}" for result in results.values()) + " |",
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
