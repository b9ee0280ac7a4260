"""The best formula of layers' sizes of every benchmark, on all others: which of them travel.

    python -m experiments.ranking.formulas --out runs/scores

Each was found by `archwright discover BENCHMARK --exhaustive --inputs layers --reduction positional` on one benchmark
(experiments/discover/repeated.csv) and is judged on all rows of the others, of which its search saw nothing; on its own
benchmark the number is too good, and marked so. Writes formulas.csv: Spearman, within cells, and the difference to the
parameters with intervals.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from archwright.configs.discover import FormulaOptions
from archwright.configs.scoring import BenchmarkOptions, RecordingOptions
from archwright.discovery.context import DiscoveryContext, Phases, open_context
from archwright.discovery.score_table import is_usable, settle
from archwright.environment import environment
from archwright.proxies.formulas.formula import parse
from archwright.random_streams import RESAMPLING
from archwright.statistics import judge_proxy
from experiments.ranking.travel import LARGE_SAMPLES, SAMPLES, SEED, TABLES, columns_of

HERE = Path(__file__).parent
FOUND = {
    "nas-bert-trained": "rising(log(l_weights_but_last_ffn))",
    "lts-gpt2-trained": "sum(l_attention)",
    "nas-bench-nlp-trained": "but_last(inverse(l_weights) * l_linears_but_last_ffn)",
    "hw-gpt-bench-s": "sum(sqrt(l_attention) + sqrt(l_ffn))",
    "hw-gpt-bench-m": "rising(l_ffn + l_weights_but_last_ffn)",
    "width-depth-heads-trained": "falling(l_weights)",
}
"""By the benchmark and variant it was found on: the choice of one standard error."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("runs/scores"), help="folder with statistics of networks")
    out = parser.parse_args().out
    formulas = FormulaOptions(exhaustive=True, inputs="layers", reduction="positional", fold_seeds=1)
    machine = {name: environment()[name] for name in ("commit", "cpu")}
    rows: list[dict[str, Any]] = []
    for benchmark, variant in TABLES:
        options = BenchmarkOptions(benchmark=benchmark, variant=variant)
        with open_context(options, formulas, RecordingOptions(out=out, workers=1), Phases()) as context:
            for origin, row in judge_formulas(context).items():
                own = origin == f"{benchmark}-{variant}"
                rows.append({"judged_on": f"{benchmark}-{variant}", "found_on": origin, "own": own, **row, **machine})
                print(rows[-1], flush=True)
    with open(HERE / "formulas.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def judge_formulas(context: DiscoveryContext) -> dict[str, dict[str, Any]]:
    """By where they were found; without numbers where a layer lacks what the formula counts."""
    rows = context.benchmark_rows
    samples = SAMPLES if len(rows.rows) < 1000 else LARGE_SAMPLES
    resampling = rows.resample(rng=np.random.default_rng((SEED, RESAMPLING)), samples=samples)
    judged = {}
    for origin, text in FOUND.items():
        scores = context.table.scores(parse(text))
        usable = is_usable(scores, context.rows.rows_per_network)
        column = settle(scores)[context.rows.networks] if usable else np.full(len(rows.rows), np.nan)
        judged[origin] = {"formula": text} | columns_of(judge_proxy(column, resampling))
    return judged


if __name__ == "__main__":
    main()
