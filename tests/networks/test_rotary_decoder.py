"""Rotary decoders: causal, rotary, as many numbers as counted, and readable by a probe."""

import pytest
import torch
from torch.nn import functional

from archwright.errors import BadInput
from archwright.networks.rotary_decoder import (
    RotaryDecoderConfig,
    RotaryDecoderShape,
    build_rotary_decoder,
    turn_pairs,
)
from archwright.probe import record
from archwright.proxies import PROXIES, passes_of, roles_of

KINDS = {
    "hw-gpt": RotaryDecoderConfig([2, 3], [4, 4], [20, 28], hidden_size=12, vocab_size=31, max_position_embeddings=9),
    "open-lm": RotaryDecoderConfig(
        [3, 3], [4, 4], [20, 20], hidden_size=13, vocab_size=31, parallel=False, gated=True, bias=False,
        norm_bias=False, norm_queries=True, rotary_share=1.0, tie_word_embeddings=False, initial="scaled",
    ),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def config(request: pytest.FixtureRequest) -> RotaryDecoderConfig:
    return KINDS[request.param]


def build(config: RotaryDecoderConfig) -> torch.nn.Module:
    return build_rotary_decoder(config, torch.Generator().manual_seed(3))


def test_counts_are_those_of_the_network(config: RotaryDecoderConfig) -> None:
    network, counts = build(config), RotaryDecoderShape.of(config).counts()
    assert sum(parameter.numel() for parameter in network.parameters()) == counts.parameters
    layers = network.roles().layers
    assert [sum(linear.weight.numel() for linear in layer.ffn) for layer in layers] == [s.ffn for s in counts.layers]
    mixing = [sum(linear.weight.numel() for linear in layer.attention) for layer in layers]
    assert mixing == [size.mixing for size in counts.layers]
    assert sum(p.numel() for layer in layers for of in layer.attention for p in of.parameters()) == counts.attention


def test_a_token_does_not_see_those_behind_it(config: RotaryDecoderConfig) -> None:
    network = build(config)
    ids = torch.randint(31, (2, 8), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[:, 5:] = (ids[:, 5:] + 1) % 31
    with torch.no_grad():
        one, other = network(ids).logits, network(changed).logits
    assert torch.equal(one[:, :5], other[:, :5]) and not torch.equal(one[:, 5:], other[:, 5:])


def test_the_loss_is_that_of_the_next_token(config: RotaryDecoderConfig) -> None:
    network, ids = build(config), torch.arange(16).reshape(2, 8)
    answer = network(ids, ids)
    expected = functional.cross_entropy(answer.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert torch.equal(answer.loss, expected)


def test_rotary_scores_depend_on_distance_alone() -> None:
    """q_i k_j after turning is the same for all pairs of the same distance; features beyond `size` are left alone."""
    query, key = (torch.randn(6, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    turned = [turn_pairs(x.expand(1, 1, 7, 6), 4)[0, 0] for x in (query, key)]
    scores = turned[0] @ turned[1].T
    for distance in range(-6, 7):
        line = scores.diagonal(distance)
        torch.testing.assert_close(line, line[:1].expand_as(line))
    assert torch.equal(turned[0][:, 4:], query[4:].expand(7, 2))
    assert not torch.allclose(scores[0, 0], scores[0, 3])


def test_a_parallel_layer_by_hand() -> None:
    network = build(KINDS["hw-gpt"])
    layer = network.layers[0]
    hidden, mask = torch.randn(1, 3, 12, generator=torch.Generator().manual_seed(2)), torch.ones(3, 3).tril().bool()
    with torch.no_grad():
        attended = layer.attention(layer.attention_norm(hidden), mask)
        ffn = layer.ffn.down(functional.gelu(layer.ffn.up(layer.ffn_norm(hidden))))
        torch.testing.assert_close(layer(hidden, mask), hidden + attended + ffn)


def test_one_seed_gives_one_network_and_a_probe_reads_it(config: RotaryDecoderConfig) -> None:
    one, other = build(config), build(config)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    proxies = [PROXIES[name] for name in ("snip", "synflow", "w_pca", "grad_norm", "softmax_confidence")]
    ids = torch.arange(16).reshape(2, 8)
    probe = record(
        one, {"input_ids": ids, "labels": ids}, counts=RotaryDecoderShape.of(config).counts(),
        passes=passes_of(proxies), keep=roles_of(proxies),
    )  # fmt: skip
    assert all(proxy.measure(probe) > 0 for proxy in proxies)


def test_rows_that_are_too_long_are_refused() -> None:
    with pytest.raises(BadInput, match="a row has at most 9 tokens, got 10"):
        build(KINDS["hw-gpt"])(torch.zeros(1, 10, dtype=torch.long))
