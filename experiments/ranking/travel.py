"""What travels from one benchmark of trained architectures to another: every count on all five, with ranks.

    python experiments/ranking/travel.py

Closed-form proxies only, on all rows of all benchmarks below ARCHWRIGHT_DATA. The terms and weights of the scaling law
that a benchmark judges come from the other four, `positional_fit` is cross-fitted inside each. Writes travel.csv beside
this file, with commit, seed and hardware; hw-gpt-bench (shared weights) has two tables, s and m, left out together.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.benchmarks import BENCHMARKS
from archwright.environment import environment
from archwright.networks.roles import LayerSize
from archwright.proxies import PROXIES
from archwright.proxies.scaling_law import TERMS, law_terms
from archwright.random_streams import RESAMPLING, SCALING_LAW
from archwright.scoring.ranked_rows import RankedRows, benchmark_folder, count_column
from archwright.scoring.ranking import layer_features
from archwright.statistics import Resampling, judge_proxy
from archwright.statistics.positional import positional_predictions
from archwright.statistics.proxies import Judgement
from archwright.statistics.scaling import Benchmarks, LawTable, choose_law, fit_law

Values = NDArray[np.float64]
HERE = Path(__file__).parent
SEED, SAMPLES, LARGE_SAMPLES = 0, 1000, 200
TABLES = (
    ("nas-bert", "trained"), ("lts-gpt2", "trained"), ("nas-bench-nlp", "trained"),
    ("hw-gpt-bench", "s"), ("hw-gpt-bench", "m"), ("width-depth-heads", "trained"),
)  # fmt: skip
LAW, LAW_UNCHOSEN = "scaling_law", "scaling_law_all_terms"
"""The law with the terms that the other benchmarks bear out, and with all of them whatever these say."""
COLUMNS = (
    *("spearman", "kendall_b", "within_cells", "within_given_parameters"),
    *("minus_parameters", "minus_parameters_within"),
)


def reach(layers: Sequence[LayerSize]) -> float:
    """The proxy of that name out of counts, so that no network is built."""
    weights = [layer.total for layer in layers[:-1]] + [layers[-1].mixing]
    return sum(math.log(max(1, layer.heads * count)) for layer, count in zip(layers, weights, strict=True))


def rising_weights(layers: Sequence[LayerSize]) -> float:
    """rising(log(l_weights_but_last_ffn)), which `discover` found on nas-bert."""
    weights = [layer.total for layer in layers[:-1]] + [layers[-1].mixing]
    return sum(place / len(layers) * math.log(max(1, count)) for place, count in enumerate(weights, start=1))


LAYER_FORMULAS: Mapping[str, Callable[[Sequence[LayerSize]], float]] = {
    "reach": reach,
    "found_rising_weights": rising_weights,
}
"""Proxies that read the sizes of layers alone, judged on all rows like the counts."""
HEADLESS = ("nas-bench-nlp",)
"""Where reach is missing: recurrent cells have no heads."""


@dataclass(frozen=True)
class Table:
    """One benchmark in one variant, counted."""

    benchmark: str
    variant: str
    ranked: RankedRows
    resampling: Resampling
    law: LawTable


def main() -> None:
    tables = [load_table(*names) for names in TABLES]
    machine = {name: environment()[name] for name in ("commit", "cpu", "cores")}
    rows: list[dict[str, Any]] = []
    for table in tables:
        judged = judge_table(table, tables)
        order = sorted(judged, key=lambda name: -(judged[name][0].spearman or -1.0))
        for name, (judgement, weights) in judged.items():
            rows.append(
                {"benchmark": table.benchmark, "variant": table.variant, "proxy": name, "rank": order.index(name) + 1}
                | {"n": judgement.n} | columns_of(judgement) | {"weights": weights, "seed": SEED, **machine}
            )  # fmt: skip
            print(
                f"{table.benchmark:18} {table.variant:8} {name:22} {judgement.spearman or 0:+.4f} {weights}", flush=True
            )
    with open(HERE / "travel.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def load_table(name: str, variant: str) -> Table:
    record = BENCHMARKS[name]
    benchmark = record.load(benchmark_folder(record), variant)
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained[benchmark.target]))
    ranked = RankedRows(benchmark, benchmark.target, rows, {}, {}, {}, "")
    samples = SAMPLES if len(rows) < 1000 else LARGE_SAMPLES
    resampling = ranked.resample(rng=np.random.default_rng((SEED, RESAMPLING)), samples=samples)
    terms = [law_terms(count) for count in ranked.counts]
    columns = {term: np.array([entry[term] for entry in terms]) for term in ("size", *TERMS)}
    return Table(name, variant, ranked, resampling, LawTable(columns, ranked.truth, resampling.groups))


def group_tables(tables: Sequence[Table], *, without: str) -> Benchmarks:
    """For the scaling law, all benchmarks but one."""
    names = dict.fromkeys(table.benchmark for table in tables if table.benchmark != without)
    return {name: [table.law for table in tables if table.benchmark == name] for name in names}


def judge_table(table: Table, tables: Sequence[Table]) -> dict[str, tuple[Judgement, str]]:
    """Every closed-form proxy, the laws with weights of the other benchmarks, and the positional fit."""
    counts = {name: proxy for name, proxy in PROXIES.items() if proxy.closed_form and name != LAW}
    judged = {
        name: (judge_proxy(count_column(proxy, table.ranked.counts), table.resampling), "")
        for name, proxy in counts.items()
    }
    for name, formula in LAYER_FORMULAS.items():
        if table.benchmark not in HEADLESS or name != "reach":
            column = np.array([formula(count.layers) for count in table.ranked.counts])
            judged[name] = judge_proxy(column, table.resampling), ""
    others = group_tables(tables, without=table.benchmark)
    for name, weights in fit_laws(others).items():
        judged[name] = judge_proxy(table.law.score(weights), table.resampling), written(weights) or "size alone"
    if (features := layer_features(table.ranked.counts)) is not None:
        cells, groups = table.resampling.cells, table.resampling.groups
        rng = np.random.default_rng((SEED, SCALING_LAW, 1))
        predicted = positional_predictions(features, table.ranked.truth, cells, groups, rng=rng)
        if np.isfinite(predicted).any():
            judged["positional_fit"] = judge_proxy(predicted, table.resampling), "labels of 4/5 of each cell"
    return judged


def fit_laws(benchmarks: Benchmarks) -> dict[str, dict[str, float]]:
    """Weights by name of the law."""
    chosen, _ = choose_law(benchmarks, TERMS, rng=np.random.default_rng((SEED, SCALING_LAW)))
    parts = [table for tables in benchmarks.values() for table in tables]
    return {LAW: chosen, LAW_UNCHOSEN: fit_law(parts, TERMS, rng=np.random.default_rng((SEED, SCALING_LAW)))}


def written(weights: Mapping[str, float]) -> str:
    return " ".join(f"{name} {weight:.3f}" for name, weight in weights.items())


def columns_of(judgement: Judgement) -> dict[str, float | None]:
    found = judgement.as_dict()
    names = [name + end for name in COLUMNS for end in ("", "_low", "_high")]
    return {name: None if found[name] is None else round(found[name], 4) for name in names}


if __name__ == "__main__":
    main()
