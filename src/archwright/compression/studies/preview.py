"""`archwright compress --preview MODEL`: what the spaces of a model look like, in seconds and without training."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.networks.load import stock_config, supernet_config
from archwright.reports.compress.preview import preview_text, render_preview_page
from archwright.search import Bits, sample, smallest
from archwright.spaces.subnetwork import SPACES, SubnetSpace, subnet_space
from archwright.store import write_atomic
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import count, nonembedding_parameters, parameters, positions
from archwright.training.adapters import checkpoint_of

if TYPE_CHECKING:
    from rich.console import Console

SAMPLES, EXAMPLES = 500, 3
LABELS = ("0", "1")
"""A head for two classes, so that totals mean something."""


@dataclass(frozen=True)
class Preview:
    """The spaces of one model."""

    facts: Mapping[str, Any]
    page: Path | None

    def as_json(self) -> dict[str, Any]:
        return dict(self.facts)

    def show(self, console: "Console") -> None:
        console.print(preview_text(self.facts))
        if self.page:
            console.print(f"page: {self.page}", soft_wrap=True, highlight=False)


def preview_spaces(model: str, *, out: Path | None, seed: int) -> Preview:
    """Mask gallery (Figure 2), sizes of 500 samples per space (Figure 3), smallest size, share of the embeddings."""
    config = supernet_config(stock_config(checkpoint_of(model)), labels=LABELS)
    whole = read_anatomy(config)
    spaces = {
        name: subnet_space(name, whole) for name, space in SPACES.items() if space.alike or not whole.shared_layer
    }
    facts = {
        "schema": "archwright/preview/1",
        "model": model,
        "family": config.backbone["model_type"],
        "layers": whole.layers,
        "heads": whole.heads,
        "units": whole.units,
        "parameters": parameters(whole, whole.full),
        "embedding_parameters": whole.embeddings,
        "nonembedding_parameters": nonembedding_parameters(whole, whole.full),
        "smallest_parameters": parameters(whole, spaces["small"].build(smallest(spaces["small"].choices))),
        "spaces": {name: describe_space(space, np.random.default_rng(seed)) for name, space in spaces.items()},
    }
    page = None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        page = out / "preview.html"
        write_atomic(page, render_preview_page(facts))
    return Preview(facts, page)


def describe_space(space: SubnetSpace, rng: np.random.Generator) -> dict[str, Any]:
    """Number of sub-networks, a few examples and the sizes of random ones; `gallery` is 1 for a head that is kept."""
    whole, specs = space.anatomy, [space.build(sample(space.choices, rng)) for _ in range(SAMPLES)]
    parameters_of_whole = nonembedding_parameters(whole, whole.full)
    return {
        "description": SPACES[space.name].__doc__,
        "size_log10": sum(
            math.log10(2) * c.length if isinstance(c, Bits) else math.log10(len(c)) for c in space.choices.values()
        ),
        "gallery": [
            [[int(head in set(positions(layer.heads))) for head in range(whole.heads)] for layer in spec]
            for spec in specs[:EXAMPLES]
        ],
        "unit_shares": [[count(layer.units) / whole.units for layer in spec] for spec in specs[:EXAMPLES]],
        "shares": [nonembedding_parameters(whole, spec) / parameters_of_whole for spec in specs],
    }
