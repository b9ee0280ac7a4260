"""hw-gpt-bench (shared weights): seven weights that say which layer should be large, and where they come from.

    python experiments/ranking/positions.py

The features of a network are sums of logarithms of its layers' FFN weights, and of those of attention: over the layers
that all depths have, over the same rising with the place, and over the layers beyond; and what is in no linear, which
tells biases. Weights are fitted inside (embed, layers) cells of one size and judged inside those of the same size or of
the other, of which they have seen no label; `s-cross-fitted` is ten folds of the same size, each judged with weights
from the other nine. Writes positions.csv.
"""

import csv
from pathlib import Path

import numpy as np

from archwright.environment import environment
from archwright.networks.roles import Counts
from archwright.random_streams import FOLDS
from archwright.statistics import judge_proxy
from archwright.statistics.many_scores import Mask
from archwright.statistics.ranks import Values
from archwright.statistics.resampling import folds
from experiments.ranking.travel import COLUMNS, SEED, Table, columns_of, load_table

HERE = Path(__file__).parent
TEN = 10
"""Folds of the cross-fitting."""


def main() -> None:
    tables = {size: load_table("hw-gpt-bench", size) for size in ("s", "m")}
    features = {size: layer_sums(table.ranked.counts) for size, table in tables.items()}
    fitted = {source: fit_inside_cells(features[source], tables[source]) for source in tables}
    rows = []
    for size, table in tables.items():
        scores = {source: features[size] @ weights for source, weights in fitted.items()}
        scores[f"{size}-cross-fitted"] = cross_fit(features[size], table)
        for source, score in scores.items():
            judged = columns_of(judge_proxy(score, table.resampling))
            machine = {name: environment()[name] for name in ("commit", "cpu")}
            weights = " ".join(f"{weight:.3f}" for weight in fitted.get(source, ()))
            rows.append(
                {"judged_on": size, "weights_from": source, "weights": weights, **judged, "seed": SEED, **machine}
            )
            print(size, "with weights from", source, {name: judged[name] for name in COLUMNS}, weights, flush=True)
    with open(HERE / "positions.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def layer_sums(counts: tuple[Counts, ...]) -> Values:
    """Rows x seven: FFN then attention, each over shared layers, over these rising, and over those beyond; biases."""
    shared = min(len(count.layers) for count in counts)
    rows = []
    for count in counts:
        logs = np.log([(layer.ffn, layer.mixing) for layer in count.layers])  # layers x 2
        places = np.arange(1, shared + 1) / shared
        parts = [logs[:shared].sum(0), places @ logs[:shared], logs[shared:].sum(0)]
        biases = (count.nonembedding - sum(layer.total for layer in count.layers)) / (count.width * count.depth)
        rows.append([*np.stack(parts).T.ravel(), biases])
    return np.array(rows)


def fit_inside_cells(features: Values, table: Table, rows: Mask | None = None) -> Values:
    """Least squares on what differs inside cells, results in standard deviations of their cell; on all rows or some."""
    chosen = np.ones(len(features), dtype=bool) if rows is None else rows
    cells = np.array(table.ranked.cells)
    inside, wanted = np.zeros_like(features), np.zeros(len(features))
    for cell in np.unique(cells):
        here = chosen & (cells == cell)
        inside[here] = features[here] - features[here].mean(0)
        truth = table.ranked.truth[here]
        wanted[here] = (truth - truth.mean()) / truth.std()
    return np.asarray(np.linalg.lstsq(inside, wanted, rcond=None)[0])


def cross_fit(features: Values, table: Table) -> Values:
    """Of every row a score with weights from the other folds, from the mean of its cell there."""
    cells = np.array(table.ranked.cells)
    split = folds(cells, table.resampling.groups, rng=np.random.default_rng((SEED, FOLDS)), count=TEN)
    scores = np.empty(len(features))
    for fold in range(TEN):
        weights = fit_inside_cells(features, table, split != fold)
        for cell in np.unique(cells):
            inside = cells == cell
            known, judged = inside & (split != fold), inside & (split == fold)
            scores[judged] = (features[judged] - features[known].mean(0)) @ weights
    return scores


if __name__ == "__main__":
    main()
