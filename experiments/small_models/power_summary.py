"""What power.csv shows, as text: python experiments/small_models/power_summary.py [--pilot]

First what the experiment can see: every design was trained in the same cells (seed of weights x part of the text), so
the loss is design + cell + rest, and the rest is what is left of a table of designs x cells without row and column
means. From the variance of the random designs, and of the rest, follow the smallest difference and the smallest rank
correlation that are found four times out of five. Then the differences and correlations with their intervals.
Writes power.md beside this file; --pilot writes power_pilot.md, of the designs of the pilot alone.
"""

import argparse
import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from archwright.statistics.bootstrap import CORRELATIONS, bootstrap_correlation

HERE = Path(__file__).parent
POWER, LEVEL = 0.8, 0.05
JUDGED = {"before": "held-out distillation loss before training", "loss": "held-out distillation loss",
          "mlm_loss": "held-out loss of hidden words", "accuracy": "accuracy"}  # fmt: skip
"""Columns, and what they are; of all but accuracy less is better."""
PILOT_DESIGNS = {f"random-{number}" for number in range(4)}
PLANNED = (20, 4), (20, 2), (60, 4), (60, 1)
"""Random designs and cells that the plan is worked out for."""
Row = dict[str, str]


@dataclass(frozen=True)
class Judged:
    """One measure of all designs, in the cells that all of them were trained in."""

    names: list[str]
    values: NDArray[np.float64]
    """Designs x cells."""
    rest: float
    """Variance of a single training, without what its design and its cell have in common with others.

    Of accuracies in a single cell that of a share of so many test rows, the least it can be; of losses in a single cell
    that of the random designs, the most it can be.
    """

    @property
    def random(self) -> NDArray[np.bool_]:
        return np.array([name.startswith("random-") for name in self.names])

    @property
    def means(self) -> NDArray[np.float64]:
        return np.asarray(self.values.mean(1))

    @property
    def between(self) -> float:
        """Variance of random designs, at infinitely many cells."""
        return max(0.0, float(self.means[self.random].var(ddof=1)) - self.rest / self.values.shape[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pilot", action="store_true", help="the designs of the pilot alone: the plan")
    pilot = parser.parse_args().pilot
    rows, scores = read(HERE / "power.csv"), read(HERE / "power_scores.csv")
    rows = [row for row in rows if not pilot or row["design"] in PILOT_DESIGNS]
    lines: list[str] = []
    kinds = {(row["stage"], row["start"], row["steps"]) for row in rows}
    for stage, start, steps in sorted(kinds, reverse=True):
        own = [row for row in rows if (row["stage"], row["start"], row["steps"]) == (stage, start, steps)]
        for column, words in JUDGED.items():
            if any(row[column] for row in own):
                judged = collect(own, column)
                if judged.random.sum() > 2:
                    lines += describe(f"{stage}, {start} start, {steps} steps: {words}", judged, scores, column)
    (HERE / ("power_pilot.md" if pilot else "power.md")).write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def read(file: Path) -> list[Row]:
    return list(csv.DictReader(file.open()))


def collect(rows: Sequence[Row], column: str) -> Judged:
    """All designs in the cells that are complete; the rest from the designs that were trained in all cells."""
    cells = sorted({(row["weights"], row["data"]) for row in rows})
    found = {(row["design"], row["weights"], row["data"]): float(row[column]) for row in rows if row[column]}
    names = sorted({row["design"] for row in rows})
    complete = [cell for cell in cells if all((name, *cell) in found for name in names)]
    often = [name for name in names if all((name, *cell) in found for cell in cells)]
    values = np.array([[found[name, *cell] for cell in complete] for name in names])
    rest = interaction(np.array([[found[name, *cell] for cell in cells] for name in often]))
    if column == "accuracy" and math.isnan(rest):
        rest = float((values * (1 - values)).mean()) / int(rows[0]["test_rows"])
    elif math.isnan(rest):
        rest = float(values[[name.startswith("random-") for name in names]].var(ddof=1))
    return Judged(names, values, rest)


def interaction(table: NDArray[np.float64]) -> float:
    """Variance of what is left of designs x cells without the means of rows and columns."""
    if table.ndim < 2 or min(table.shape) < 2:
        return math.nan
    left = table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()
    return float((left**2).sum() / ((table.shape[0] - 1) * (table.shape[1] - 1)))


def describe(title: str, judged: Judged, scores: Sequence[Row], column: str) -> list[str]:
    count, cells = int(judged.random.sum()), judged.values.shape[1]
    lines = [f"### {title}", ""]
    lines += [
        f"{count} random designs, {cells} cells: mean {judged.means[judged.random].mean():.4f}, standard deviation "
        f"between designs {judged.between**0.5:.4f}, of a single training {judged.rest**0.5:.4f}.", "",
    ]  # fmt: skip
    lines += ["| random designs | cells | smallest difference of a design | smallest Spearman |", "|---|---|---|---|"]
    for designs, planned in dict.fromkeys(((count, cells), *PLANNED)):
        difference, correlation = smallest_effects(judged, designs, planned)
        seen = f"{correlation:.2f}" if correlation < 1 else "none"
        lines.append(f"| {designs} | {planned} | {difference:.4f} | {seen} |")
    lines += ["", *differences(judged, column), *correlations(judged, scores, column), ""]
    return lines


def smallest_effects(judged: Judged, designs: int, cells: int) -> tuple[float, float]:
    """What is found with 80 % probability at 5 %: of a design from the mean of random ones, and of a correlation.

    Noise makes a correlation smaller by the root of the reliability of the means.
    """
    rest = judged.rest / cells
    normal = stats.norm.ppf(POWER) + stats.norm.ppf(1 - LEVEL / 2)
    difference = normal * math.sqrt(rest + (judged.between + rest) / designs)
    reliability = judged.between / (judged.between + rest) if judged.between else 0.0
    correlation = math.tanh(normal * 1.03 / math.sqrt(max(designs - 3, 1)))
    return difference, correlation / math.sqrt(reliability) if reliability else math.inf


def differences(judged: Judged, column: str) -> Iterator[str]:
    """Of each chosen design from the mean of the random ones, and how many of these are better."""
    random, sign = judged.means[judged.random], higher_is_better(column)
    if judged.random.all():
        return
    yield "| design | minus the mean of random designs, 95 % | its place among random designs, best first |"
    yield "|---|---|---|"
    cells, count = judged.values.shape[1], len(random)
    rest = judged.rest / cells
    error = math.sqrt(rest + random.var(ddof=1) / count)
    half = stats.t.ppf(1 - LEVEL / 2, count - 1) * error
    for name, mean in zip(judged.names, judged.means, strict=True):
        if not name.startswith("random-"):
            apart = mean - random.mean()
            place = 1 + int((sign * random > sign * mean).sum())
            yield f"| {name} | {apart:+.4f} [{apart - half:+.4f}, {apart + half:+.4f}] | {place} of {count + 1} |"
    yield ""


def correlations(judged: Judged, scores: Sequence[Row], column: str) -> Iterator[str]:
    """Of each proxy with the measure over random designs; the sign is such that 1 is a perfect proxy."""
    known: Mapping[str, Row] = {row["design"]: row for row in scores}
    names = [name for name in judged.names if name.startswith("random-")]
    better = judged.means[judged.random] * higher_is_better(column)
    yield "| proxy | Spearman over random designs, 95 % | with the number of parameters held |"
    yield "|---|---|---|"
    size = np.array([float(known[name]["parameters"]) for name in names])
    for proxy in scores[0]:
        if proxy != "design":
            values = np.array([float(known[name][proxy]) for name in names])
            found = bootstrap_correlation(values, better, CORRELATIONS["spearman"], rng=np.random.default_rng(0))
            same = "" if proxy == "parameters" else f"{partial_spearman(values, better, size):.2f}"
            text = "" if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
            yield f"| {proxy} | {text} | {same} |"


def higher_is_better(column: str) -> int:
    return 1 if column == "accuracy" else -1


def partial_spearman(one: NDArray[np.float64], other: NDArray[np.float64], held: NDArray[np.float64]) -> float:
    """Of the ranks without what the ranks of a third column explain of them."""
    a, b, c = (stats.rankdata(values) for values in (one, other, held))
    ab, ac, bc = (float(np.corrcoef(x, y)[0, 1]) for x, y in ((a, b), (a, c), (b, c)))
    return (ab - ac * bc) / math.sqrt(max((1 - ac**2) * (1 - bc**2), 1e-12))


if __name__ == "__main__":
    main()
