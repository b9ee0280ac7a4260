"""`archwright score`: training-free scores of one or many architectures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.configs import scoring as so
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.reports.rank.score import render_score_page, score_table
from archwright.scoring.request import ScoreResult
from archwright.scoring.scorer import check_page, open_scorer, scoring_setup
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.config_files import read_configs
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
    designs, proxies, looks = config.architectures, config.proxies, config.scoring
    space = ARCHITECTURES[designs.space].with_variant(designs.variant)
    if designs.html is not None:
        check_page(designs.html)
    configs = configs_of(space, designs, looks.seed)
    setup = scoring_setup(space, proxies, looks)
    repeats = [(seed, batch) for seed in range(looks.seeds) for batch in range(looks.batches)]
    wanted = [setup.look(config, seed=seed, batch=batch) for config in configs for seed, batch in repeats]
    with open_scorer(looks) as see:
        found = see.scores(wanted, "looking")
    per = [found[place : place + len(repeats)] for place in range(0, len(found), len(repeats))]
    rows = [row_of(space, place, config, seen) for place, (config, seen) in enumerate(zip(configs, per, strict=True))]
    head = {"schema": SCHEMA, "space": designs.space, "variant": space.variant, "n": len(rows), "seed": looks.seed}
    document = {**head, "size": space.size(), "rows": rows, "environment": environment()}
    if designs.html is not None:
        write_atomic(designs.html, render_score_page(document))
    return ScoreTable(document)


def row_of(space: ArchitectureSpace, place: int, config: Config, seen: Sequence[ScoreResult]) -> dict[str, Any]:
    scores, missing = together(seen)
    counts = vars(space.counts(config))
    seconds = float(np.mean([one.seconds for one in seen]))
    return {
        "id": str(place), "config": config, "counts": counts, "scores": scores, "missing": missing, "seconds": seconds
    }  # fmt: skip


def together(seen: Sequence[ScoreResult]) -> tuple[dict[str, float | None], dict[str, str]]:
    """Means over looks at one architecture; a score that any look does not have is missing, with the first reason."""
    missing = {name: why for one in reversed(seen) for name, why in one.missing.items()}
    names = [name for name in (*seen[0].scores, *missing)]
    return {n: None if n in missing else float(np.mean([one.scores[n] for one in seen])) for n in names}, missing


def configs_of(space: ArchitectureSpace, designs: so.ArchitectureOptions, seed: int) -> list[Config]:
    """The architectures asked for, each known to be in the space."""
    if (designs.config is None) == (designs.random is None):
        raise BadInput("give either --config FILE or --random N.")
    if designs.config is not None:
        configs = read_configs(designs.config)
    else:
        rng = np.random.default_rng((seed, 1))
        configs = [space.sample(rng) for _ in range(designs.random or 0)]
    for config in configs:
        space.check(config)
    return configs
