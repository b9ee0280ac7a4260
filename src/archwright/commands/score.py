"""`archwright score`: training-free scores of one or many architectures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.configs import scoring as so
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.random_streams import RANDOM_ARCHITECTURES
from archwright.reports.rank.score import render_score_page, score_table
from archwright.scoring.request import ScoreResult
from archwright.scoring.scorer import open_scorer
from archwright.scoring.setup import check_page, scoring_setup
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace, read_configs
from archwright.store import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/score/1"


@dataclass(frozen=True)
class ScoreTable:
    """Architectures with their scores."""

    document: Mapping[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One entry per architecture: id, config, counts, scores, missing."""
        return list(self.document["rows"])

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        console.print(score_table(self.document))


def score(config: so.ScoreConfig) -> ScoreTable:
    """Scores of the named or of random architectures."""
    chosen, options = config.architectures, config.scoring
    space = ARCHITECTURES[chosen.space].with_variant(chosen.variant)
    if chosen.html is not None:
        check_page(chosen.html)
    architectures = choose_architectures(space, chosen, options.seed)
    setup = scoring_setup(space, config.proxies, options)
    repeats = [(seed, batch) for seed in range(options.seeds) for batch in range(options.batches)]
    requests = [setup.request(each, seed=seed, batch=batch) for each in architectures for seed, batch in repeats]
    with open_scorer(options) as scorer:
        results = scorer.score(requests, "scoring")
    rows = []
    for number, architecture in enumerate(architectures):
        repeated = results[number * len(repeats) : (number + 1) * len(repeats)]
        rows.append({"id": str(number), **describe_architecture(space, architecture, repeated)})
    document = {
        "schema": SCHEMA,
        "space": chosen.space,
        "variant": space.variant,
        "n": len(rows),
        "seed": options.seed,
        "size": space.size(),
        "rows": rows,
        "environment": environment(),
    }
    if chosen.html is not None:
        write_atomic(chosen.html, render_score_page(document))
    return ScoreTable(document)


def describe_architecture(space: ArchitectureSpace, config: Config, results: Sequence[ScoreResult]) -> dict[str, Any]:
    """Means over repeats; a score that any repeat does not have is missing, with the first reason."""
    missing = {name: why for result in reversed(results) for name, why in result.missing.items()}
    scores = {
        name: None if name in missing else float(np.mean([result.scores[name] for result in results]))
        for name in (*results[0].scores, *missing)
    }
    seconds = float(np.mean([result.seconds for result in results]))
    return {
        "config": config, "counts": space.counts(config).as_json(), "scores": scores, "missing": missing,
        "seconds": seconds,
    }  # fmt: skip


def choose_architectures(space: ArchitectureSpace, options: so.ArchitectureOptions, seed: int) -> list[Config]:
    """The architectures asked for, each known to be in the space."""
    if (options.config is None) == (options.random is None):
        raise BadInput("give either --config FILE or --random N.")
    if options.config is not None:
        configs = read_configs(options.config)
    elif options.random is not None and options.random > 0:
        rng = np.random.default_rng((seed, RANDOM_ARCHITECTURES))
        configs = [space.sample(rng) for _ in range(options.random)]
    else:
        raise BadInput(f"--random must be at least 1, got {options.random}.")
    for config in configs:
        space.check(config)
    return configs
