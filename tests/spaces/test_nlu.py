"""The NLU space: its sizes, exact counts, shared weights, what it refuses, and that every proxy can look at it."""

import math

import numpy as np
import pytest
import torch

from archwright.errors import BadInput
from archwright.networks.nlu.network import HEADS, NluNetwork, build_block, build_embeddings
from archwright.networks.nlu.supernet import path
from archwright.probe import record
from archwright.proxies import PROXIES, passes_of
from archwright.search import Config, largest, sample, smallest
from archwright.spaces import ARCHITECTURES
from archwright.spaces.nlu import SIZES, NluSpace

torch.set_num_threads(1)
presets = pytest.mark.parametrize("variant", SIZES)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(network: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in network.parameters())


def corners(space: NluSpace) -> list[Config]:
    """All layers alike for each end of each block, and the two ends of the space in turns."""
    words = space.blocks
    ends = [{name: word for name in space.choices} for word in (words[0], words[5], words[6], words[11])]
    turns = {name: words[-1 if place % 2 else 0] for place, name in enumerate(space.choices)}
    return [*ends, turns]


@presets
def test_counts_are_those_of_the_network(variant: str) -> None:
    space, rng = NluSpace(variant), np.random.default_rng(0)
    for config in (*corners(space), *(space.sample(rng) for _ in range(5))):
        with torch.device("meta"):
            network = NluNetwork(space.plan(config))
        counts, encoder = space.counts(config), network.encoder
        tables = (encoder.embeddings.tokens, encoder.embeddings.positions, encoder.embeddings.segments)
        roles = network.roles().layers
        assert counts.parameters == numbers(encoder)
        assert counts.nonembedding == numbers(encoder) - sum(map(numbers, tables))
        assert counts.attention == sum(numbers(linear) for layer in roles for linear in layer.attention)
        assert counts.ffn == sum(numbers(linear) for layer in roles for linear in layer.ffn)
        assert (counts.depth, counts.width) == (len(encoder.layers), encoder.config.hidden_size)
        linears = [linear for layer in roles for linear in (*layer.attention, *layer.ffn)]
        attending = sum(2 * 64 * layer.attention.width for layer in encoder.layers)
        assert counts.flops == 2 * (sum(linear.weight.numel() for linear in linears) + attending)


def test_built_networks_have_so_many_parameters_and_the_loss_adds_its_head() -> None:
    space = NluSpace("tiny")
    config = smallest(space.choices)
    built = space.build(config)
    assert numbers(built.encoder) == space.counts(config).parameters == 6_806_856
    assert numbers(built.head) == 528 * 128 + 128 + 2 * 128 + 30522
    assert built.encoder.embeddings.tokens.weight.shape == (30522, 128)
    assert numbers(space.network(config, generator=seeded(), loss="electra").head) == 528 * 528 + 528 + 528 + 1


def test_golden_counts_of_hand() -> None:
    """Written out for 528 wide: what the spec says of the blocks, added up by hand."""
    space = NluSpace("small")
    joint = 30522 * 128 + (384 * 528 + 528) + (512 + 2) * 528 + 2 * 528
    base = 4 * (528 * 528 + 528) + (528 * 132 + 132) + (132 * 528 + 528) + 2 * 2 * 528
    mobile = 4 * (528 * 132 + 132) + (132 * 132 + 132) + 2 * (132 * 132 + 132) + (132 * 528 + 528) + 2 * (3 * 132 + 528)
    assert space.counts({name: "base-132" for name in space.choices}).parameters == joint + 12 * base
    assert space.counts({name: "mobile-132" for name in space.choices}).parameters == joint + 12 * mobile


@presets
def test_the_limit_is_reached_from_both_sides(variant: str) -> None:
    """The published models have 9.6M and 15.6M parameters: such designs exist, so do smaller and larger ones."""
    space = NluSpace(variant)
    least, most = (space.counts(end(space.choices)).parameters for end in (smallest, largest))
    assert least < 0.75 * space.limit and most > 1.4 * space.limit
    rng = np.random.default_rng(1)
    sizes = [space.counts(space.sample(rng)).parameters for _ in range(300)]
    assert any(0.95 * space.limit < size <= space.limit for size in sizes)
    assert SIZES[variant].limit == {"tiny": 10_000_000, "small": 15_700_000, "large": 67_000_000}[variant]


def test_the_space_counts_itself() -> None:
    assert NluSpace("tiny").size() == {"raw": 2_985_984, "distinct": 2_985_984}
    assert NluSpace("small").size()["raw"] == NluSpace("large").size()["raw"] == 12**12


@presets
def test_it_is_listed_and_describes_itself(variant: str) -> None:
    space = ARCHITECTURES[f"nlu-{variant}"]
    assert isinstance(space, NluSpace) and space.name == f"nlu-{variant}"
    unit = SIZES[variant].hidden // 4
    assert space.blocks[0] == f"mobile-{unit}" and space.blocks[-1] == f"base-{6 * unit}" and len(space.blocks) == 12
    assert math.prod(space.batch) >= max(1024, SIZES[variant].hidden)
    config = space.sample(np.random.default_rng(0))
    space.check(config)
    assert space.canonical(config) == config
    traits = space.traits(config)
    assert traits["mobile blocks"] + traits["base blocks"] == len(config)


def test_heads_are_twelve_in_both_blocks() -> None:
    space = NluSpace("small")
    with torch.device("meta"):
        network = NluNetwork(space.plan(corners(space)[-1]))
    assert {layer.heads for layer in network.roles().layers} == {12}
    assert {layer.attention.width // 12 for layer in network.encoder.layers} == {44, 11}


def test_two_designs_of_one_seed_share_their_beginning_and_can_be_put_together() -> None:
    space, ids = NluSpace("tiny"), torch.randint(90, (2, 9), generator=seeded())
    one = sample(space.choices, np.random.default_rng(0))
    other = {**one, "block.5": "base-132", "block.4": "mobile-132"}
    networks = [space.network(config, generator=seeded(4), vocabulary=90) for config in (one, other)]
    hidden = [network(ids).last_hidden_state for network in networks]
    plan = space.plan(one, vocab_size=90)
    state = build_embeddings(plan, seed=4)(ids)
    for place in range(4):
        state = build_block(plan, place, one[f"block.{place}"], seed=4)(state)
    for config, reached in zip((one, other), hidden, strict=True):
        last = state
        for place in (4, 5):
            last = build_block(plan, place, config[f"block.{place}"], seed=4)(last)
        assert torch.equal(last, reached)


def test_the_supernet_holds_every_design() -> None:
    space, ids = NluSpace("tiny"), torch.randint(90, (2, 9), generator=seeded())
    config = space.sample(np.random.default_rng(2))
    supernet = space.supernet(generator=seeded(4), vocabulary=90)
    assert [list(layer.blocks) for layer in supernet.encoder.layers] == [list(space.blocks)] * 6
    with torch.no_grad(), path(supernet, config):
        found = supernet(ids).logits
        torch.testing.assert_close(found, space.network(config, generator=seeded(4), vocabulary=90)(ids).logits)


@pytest.mark.parametrize("loss", HEADS)
def test_every_proxy_can_look_at_it(loss: str) -> None:
    space = NluSpace("tiny")
    config = {**smallest(space.choices), "block.1": "base-132", "block.4": "base-264"}
    network = space.network(config, generator=seeded(), vocabulary=60, loss=loss)
    ids = torch.randint(60, (4, 12), generator=seeded(1))
    batch = {"input_ids": ids, "labels": torch.randint(2, ids.shape, generator=seeded(2))}
    before = {name: value.clone() for name, value in network.state_dict().items()}
    probe = record(
        network,
        batch,
        counts=space.counts(config),
        passes=passes_of(PROXIES.values()),
        loss=loss,
        generator=seeded(3),
    )
    scores = {name: proxy.measure(probe) for name, proxy in PROXIES.items()}
    assert all(math.isfinite(value) for value in scores.values())
    assert scores["parameters"] == space.counts(config).parameters
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "another block": ({"block.2": "base-133"}, r"block\.2 must be one of mobile-132, .* got 'base-133'"),
    "no word": ({"block.2": 132}, r"block\.2 must be one of"),
    "a list": ({"block.2": ["base-132"]}, r"block\.2 must be one of"),
    "one layer more": ({"block.6": "base-132"}, r"has no 'block\.6'; it has block\.0 to block\.5"),
    "something else": ({"heads": 12}, "has no 'heads'"),
}


@pytest.mark.parametrize(("change", "line"), REFUSED.values(), ids=REFUSED)
def test_what_is_outside_is_refused(change: dict[str, object], line: str) -> None:
    space = NluSpace("tiny")
    with pytest.raises(BadInput, match=line):
        space.counts({**smallest(space.choices), **change})


def test_a_missing_layer_an_unknown_size_and_an_unknown_loss_are_refused() -> None:
    space = NluSpace("tiny")
    config = smallest(space.choices)
    with pytest.raises(BadInput, match=r"lacks 'block\.3'"):
        space.check({name: word for name, word in config.items() if name != "block.3"})
    with pytest.raises(BadInput, match="one of tiny, small, large, got 'huge'"):
        NluSpace("huge")
    with pytest.raises(BadInput, match="one of mlm, electra here, got 'lm'"):
        space.network(config, generator=seeded(), loss="lm")


@pytest.mark.parametrize(("size", "rows"), [("tiny", 16), ("small", 16), ("large", 17)])
def test_a_batch_has_more_tokens_than_a_state_is_wide(size: str, rows: int) -> None:
    space = NluSpace(size)
    assert space.batch == (rows, 64) and rows * 64 > space.sizes.hidden and rows * 64 >= 1024
