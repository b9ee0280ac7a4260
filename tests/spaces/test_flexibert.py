"""The FlexiBERT space: how many designs it has, which of them are one network, and what it refuses."""

from itertools import islice, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.errors import BadInput
from archwright.networks.flexibert.mixers import MIXERS
from archwright.search import Config, enumerate_configs, largest, mutate, sample, smallest
from archwright.spaces.flexibert import VARIANTS, FlexiBertSpace

torch.set_num_threads(1)
variants = pytest.mark.parametrize("variant", list(VARIANTS))
seeds = st.integers(0, 2**32).map(np.random.default_rng)
SIZES = {
    "trained": 2 * (6**2 + 6**4),
    "described": 2 * (48**2 + 48**4),
    "published": 24**2 + 24**4,
}


def drawn(variant: str, config: Config, seed: int = 0) -> torch.nn.Module:
    return FlexiBertSpace(variant).network(config, generator=torch.Generator().manual_seed(seed), vocabulary=20)


@variants
def test_the_space_counts_itself(variant: str) -> None:
    assert FlexiBertSpace(variant).size() == {"raw": 10_621_440, "distinct": SIZES[variant]}


def test_the_distinct_designs_can_be_listed() -> None:
    space = FlexiBertSpace("trained")
    found = [tuple(config.items()) for config in enumerate_configs(space.choices, space.canonical)]
    assert len(found) == len(set(found)) == 2664
    assert all(space.canonical(dict(config)) == dict(config) for config in islice(found, 0, None, 50))


@variants
@given(rng=seeds)
@settings(max_examples=25)
def test_canonical_configs_are_inside_and_stay(variant: str, rng: np.random.Generator) -> None:
    space = FlexiBertSpace(variant)
    config = space.canonical(sample(space.choices, rng))
    space.check(config)
    assert config.keys() == space.choices.keys()
    assert space.canonical(config) == config


@variants
@given(rng=seeds)
@settings(max_examples=25)
def test_one_canonical_config_means_one_network_and_the_other_way_round(variant: str, rng: np.random.Generator) -> None:
    space = FlexiBertSpace(variant)
    config = sample(space.choices, rng)
    other = mutate(space.choices, config, rng)
    same_config = space.canonical(config) == space.canonical(other)
    assert same_config == (space.plan(config).to_dict() == space.plan(other).to_dict())


@pytest.mark.parametrize(("variant", "corner"), list(product(VARIANTS, (smallest, largest))))
def test_counts_are_those_of_the_network_with_the_whole_vocabulary(variant: str, corner: object) -> None:
    space = FlexiBertSpace(variant)
    config = corner(space.choices)  # type: ignore[operator]
    built, counts = space.build(config), space.counts(config)
    assert counts.parameters == sum(weight.numel() for weight in built.encoder.parameters())
    assert built.encoder.embeddings.tokens.weight.shape == (30522, 128)


def test_a_smaller_vocabulary_has_fewer_rows_and_the_same_counts() -> None:
    space, config = FlexiBertSpace(), smallest(FlexiBertSpace().choices)
    assert drawn("trained", config).encoder.embeddings.tokens.weight.shape == (20, 128)
    assert space.counts(config).parameters > 30522 * 128


def design(**changes: object) -> Config:
    return {**largest(FlexiBertSpace().choices), **changes}


def widths(variant: str, config: Config) -> list[list[int]]:
    layers = drawn(variant, config).encoder.layers
    return [[linear.out_features for linear in layer.ffn.linears] for layer in layers]


def test_what_the_variants_make_of_one_design() -> None:
    config = design(
        layers=2, hidden=128, **{"stack.0": 3, "feed_forward.0": 1024, "stack.1": 1, "feed_forward.1": 1024}
    )
    assert widths("trained", config) == [[512, 1024, 1024, 128], [512, 128]]
    assert widths("described", config) == [[1024, 1024, 1024, 128], [1024, 128]]
    assert widths("published", config) == [[1024, 1024, 1024, 256], [1024, 256]]


@pytest.mark.parametrize("operation", list(MIXERS))
def test_operators_had_no_effect_when_trained(operation: str) -> None:
    config = design(**{"operation.0": operation})
    made = {variant: type(drawn(variant, config).encoder.layers[0].mixer) for variant in VARIANTS}
    plain = type(drawn("described", design(**{"operation.0": "SA/SDP"})).encoder.layers[0].mixer)
    assert made["trained"] is plain
    assert made["described"] is made["published"]
    assert (made["described"] is plain) == (operation == "SA/SDP")


def test_seeds_repeat_and_differ() -> None:
    one, same, other = (drawn("trained", design(), seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(weight, same[name]) for name, weight in one.items())
    assert not torch.equal(one["head.dense.weight"], other["head.dense.weight"])


@variants
def test_every_loss_of_the_space_gives_a_number(variant: str) -> None:
    space, ids = FlexiBertSpace(variant), torch.randint(20, (2, 8))
    for loss in space.losses:
        network = space.network(design(layers=2), generator=torch.Generator(), vocabulary=20, loss=loss)
        assert not network.training
        assert torch.isfinite(network(ids, ids % 2).loss)


BAD = {
    "an unknown operation": ({"operation.1": "SA/XXX"}, "operation.1"),
    "another depth": ({"layers": 3}, "layers must be one of 2, 4"),
    "a depth that is no number": ({"layers": "2"}, "layers"),
    "true is not 1": ({"stack.0": True}, "stack.0"),
    "2.0 is not 2": ({"heads.0": 2.0}, "heads.0"),
    "a list": ({"hidden": [128]}, "hidden"),
    "none": ({"hidden": None}, "hidden"),
    "an unknown choice": ({"dropout": 0.1}, "'dropout'"),
    "a layer too many": ({"heads.4": 2}, "'heads.4'"),
}


@variants
@pytest.mark.parametrize(("changes", "named"), BAD.values(), ids=BAD)
def test_configs_outside_are_refused_in_one_line(variant: str, changes: Config, named: str) -> None:
    with pytest.raises(BadInput) as error:
        FlexiBertSpace(variant).counts(design(**changes))
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_choices_are_named_but_layers_beyond_the_depth_may_be_missing() -> None:
    space = FlexiBertSpace()
    short = {name: value for name, value in design(layers=2).items() if not name.endswith((".2", ".3"))}
    space.check(short)
    assert space.canonical(short) == space.canonical(design(layers=2))
    with pytest.raises(BadInput, match=r"'stack\.2'"):
        space.check({**short, "layers": 4})


def test_unknown_variants_and_losses_are_refused() -> None:
    with pytest.raises(BadInput, match="trained, described, published"):
        FlexiBertSpace("trian")
    with pytest.raises(BadInput, match="electra, mlm"):
        FlexiBertSpace().network(design(), generator=torch.Generator(), loss="published")
