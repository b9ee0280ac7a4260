"""Ways to a scaling law that is below the parameters on no benchmark: sets of terms, and weights made smaller.

    python -m experiments.ranking.laws

Every law is judged on each benchmark with weights from the others, like those of travel.py. Writes laws.csv: Spearman
minus that of the parameters, by table. Many ways are shown, so the best of them is better than it would be alone.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from archwright.benchmarks import BENCHMARKS
from archwright.environment import environment
from archwright.proxies.scaling_law import TERMS, law_terms
from archwright.random_streams import SCALING_LAW
from archwright.scoring.ranked_rows import benchmark_folder
from archwright.statistics.ranks import spearman
from archwright.statistics.scaling import LawTable, fit_law
from experiments.ranking.travel import SEED, TABLES

HERE = Path(__file__).parent
SETS: Sequence[Sequence[str]] = (
    ("evenness",), ("depth",), ("width",), ("evenness", "depth"), ("evenness", "width"), ("evenness", "depth", "width"),
    TERMS,
)  # fmt: skip
FACTORS = (1.0, 0.5, 0.25, 0.1)


def main() -> None:
    laws = {names: load_law(*names) for names in TABLES}
    plain = {names: spearman(law.parameters, law.truth) for names, law in laws.items()}
    machine = {name: environment()[name] for name in ("commit", "cpu")}
    rows = []
    for terms in SETS:
        weights = {names: fit_others(names[0], laws, terms) for names in TABLES}
        for factor in FACTORS:
            gains = {
                "-".join(names): spearman(law.score(scaled(weights[names], factor)), law.truth) - plain[names]
                for names, law in laws.items()
            }
            rounded = {name: round(gain, 4) for name, gain in gains.items()}
            rows.append({"terms": " ".join(terms), "factor": factor, **rounded, "seed": SEED, **machine})
            print(terms, factor, rounded, flush=True)
    with open(HERE / "laws.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def load_law(name: str, variant: str) -> LawTable:
    record = BENCHMARKS[name]
    table = record.load(benchmark_folder(record), variant)
    rows = [row for row in table.rows if np.isfinite(row.trained[table.target])]
    counts = [table.space.counts(row.config) for row in rows]
    terms = [law_terms(count) for count in counts]
    columns = {term: np.array([entry[term] for entry in terms]) for term in ("size", *TERMS)}
    truth = np.array([row.trained[table.target] for row in rows])
    return LawTable(columns, truth, np.array([float(count.parameters) for count in counts]))


def fit_others(name: str, laws: dict[tuple[str, str], LawTable], terms: Sequence[str]) -> dict[str, float]:
    others = [law for (benchmark, _), law in laws.items() if benchmark != name]
    return fit_law(others, terms, rng=np.random.default_rng((SEED, SCALING_LAW)))


def scaled(weights: dict[str, float], factor: float) -> dict[str, float]:
    return {name: factor * weight for name, weight in weights.items()}


if __name__ == "__main__":
    main()
