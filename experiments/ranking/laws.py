"""Which terms of a scaling law hold on every benchmark, and on every four of the five: the evidence for each.

    python -m experiments.ranking.laws

For each benchmark left out, and once for all five (these weights are the shipped ones), every term is judged on each of
the others with a weight from the rest of them (`statistics/scaling.py`). The benchmark that is left out has no part in
this. Writes laws.csv: what a term gains over the size alone, and whether it is kept; travel.py judges the laws.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archwright.environment import environment
from archwright.proxies.scaling_law import TERMS
from archwright.random_streams import SCALING_LAW
from archwright.statistics.scaling import TermEvidence, choose_law
from experiments.ranking.travel import SEED, TABLES, Table, group_tables, load_table

HERE = Path(__file__).parent


def main() -> None:
    tables = [load_table(*names) for names in TABLES]
    machine = {name: environment()[name] for name in ("commit", "cpu")}
    rows: list[dict[str, Any]] = []
    for left_out in (*dict(TABLES), ""):
        benchmarks = group_tables(tables, without=left_out)
        weights, evidence = choose_law(benchmarks, TERMS, rng=np.random.default_rng((SEED, SCALING_LAW)))
        print(f"without {left_out or 'nothing'}: {weights or 'size alone'}", flush=True)
        rows += [describe(entry, left_out, weights, tables) | {"seed": SEED, **machine} for entry in evidence]
    with open(HERE / "laws.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def describe(entry: TermEvidence, left_out: str, weights: dict[str, float], tables: Sequence[Table]) -> dict[str, Any]:
    variants = [table.variant for table in tables if table.benchmark == entry.benchmark]
    return {
        "left_out": left_out or "none", "term": entry.term, "kept": entry.term in weights,
        "judged_on": f"{entry.benchmark}-{variants[entry.table]}", "weight": round(entry.weight, 4),
        "gain": round(entry.gain, 5), "gain_low": round(entry.low, 5), "gain_high": round(entry.high, 5),
    }  # fmt: skip


if __name__ == "__main__":
    main()
