"""How many tokens W-PCA needs in `nlu-large`: the same random designs scored with 2,112 tokens and with 1,088.

    python -m experiments.design.tokens --designs 120 --out tokens.csv

Every design runs once, on 33 rows; the smaller score is that of the first 17 rows of the same states. A row per design
is written at once, so the same command goes on after a crash; at the end it prints the rank agreement.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from archwright.configs import design as do
from archwright.designing.limits import DesignLimits
from archwright.designing.prefix_cache import SingleLayer
from archwright.designing.proxy_evaluator import proxy_setup
from archwright.environment import environment
from archwright.probe import record
from archwright.proxies.pca import dimensions, spectrum
from archwright.random_streams import INITIAL_WEIGHTS, generator
from archwright.scoring.request import batch_tensors
from archwright.spaces import ARCHITECTURES
from archwright.statistics.ranks import kendall, spearman

ROWS, FEW, LENGTH = 33, 17, 64
SPACE = ARCHITECTURES["nlu-large"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    made = {name: environment()[name] for name in ("commit", "cpu")}
    for number, config in enumerate(random_designs(options.designs, options.seed)):
        if number < len(rows):
            continue
        begun = process_time()
        many, few = components(config, options.seed)
        size = SPACE.counts(config).parameters
        row = {"design": number, "seed": options.seed, "parameters": size, "v_pca_2112": many, "v_pca_1088": few}
        row |= {"w_pca_2112": size * many, "w_pca_1088": size * few, "core_seconds": f"{process_time() - begun:.2f}"}
        rows.append({name: str(value) for name, value in (row | made).items()})
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(rows[-1]), lineterminator="\n")
            if number == 0:
                writer.writeheader()
            writer.writerow(rows[-1])
    for proxy in ("v_pca", "w_pca"):
        many, few = ([float(row[f"{proxy}_{tokens}"]) for row in rows] for tokens in (2112, 1088))
        print(f"{proxy}: {len(rows)} designs, Spearman {spearman(many, few):.4f}, Kendall {kendall(many, few):.4f}")


def random_designs(count: int, seed: int) -> list[dict[str, Any]]:
    """Within the limit of the space, as a search may try them."""
    rng, limits = np.random.default_rng(seed), DesignLimits.from_options(SPACE, do.LimitOptions())
    designs: list[dict[str, Any]] = []
    while len(designs) < count:
        config = SPACE.sample(rng)
        designs += [config] if limits.allow(config) else []
    return designs


def components(config: dict[str, Any], seed: int) -> tuple[int, int]:
    """V-PCA with all rows and with the first of them."""
    scoring = do.DesignScoringOptions(seed=seed, batch_rows=ROWS, length=LENGTH)
    request = proxy_setup(SPACE, ("v_pca",), scoring).request(config)
    assert SPACE.prefix_layers is not None
    weights = generator(request.seed[0], INITIAL_WEIGHTS, request.seed[1]).initial_seed()
    parts = SPACE.prefix_layers(SPACE, config, seed=weights, loss=request.loss, vocabulary=request.batch.vocabulary)
    with torch.no_grad():
        hidden = parts.embeddings(batch_tensors(request.batch)["input_ids"])
    many = few = 0
    for place, word in enumerate(parts.words(config)):
        network = SingleLayer(parts.layer(place, word))
        probe = record(network, {"input_ids": hidden}, keep=("output", "pre_activation"))
        (layer,) = probe.layers
        assert layer.output is not None and layer.pre_activation is not None and layer.ffn_input is not None
        first = replace(layer.pre_activation, value=layer.pre_activation.value[:FEW])
        many += dimensions(spectrum(layer))
        few += dimensions(spectrum(replace(layer, pre_activation=first, ffn_input=layer.ffn_input[:FEW])))
        hidden = layer.output.value
    return many, few


if __name__ == "__main__":
    main()
