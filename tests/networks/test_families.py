"""The contract of every model family: what its record names is in its networks."""

import pytest

from archwright.networks.families import FAMILIES
from archwright.networks.families.family import Family
from tests.designed import DESIGNED, designed
from tests.tiny import CONFIGS, shared_tiny

TINY = {config.model_type: name for name, config in (*DESIGNED.items(), *CONFIGS.items())}
"""A tiny network of every family."""


@pytest.mark.parametrize("name", FAMILIES)
def test_the_record_names_what_is_there(name: str) -> None:
    family, tiny = FAMILIES[name], TINY[name]
    network = designed(tiny) if tiny in DESIGNED else shared_tiny(tiny)
    assert isinstance(family, Family) and network.config.family is family
    tables = (*family.embeddings, *filter(None, (family.embedding_norm, family.positions)))
    assert all(network.backbone.get_submodule(path) is not None for path in tables)
    assert len(network.backbone.get_submodule(family.layers)) == family.layer_count(network.config.backbone)
    for placed in network.placed_layers():
        parts = placed.parts
        attention = (parts.query, parts.key, parts.value, parts.mix) if placed.heads else ()
        for path in (*attention, *filter(None, (parts.up, parts.gate, parts.down))):
            assert placed.layer.get_submodule(path) is not None
        assert placed.units == placed.layer.get_submodule(parts.down).weight.shape[1]
