"""Costs that are counted are those of the extracted network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from archwright.networks.load import load_supernet, stock_config, supernet_config
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.spec import (
    Anatomy,
    LayerSpec,
    SubnetSpec,
    as_part,
    count,
    flops,
    int8_bytes,
    nonembedding_parameters,
    parameters,
    positions,
    sizes,
)
from tests.tiny import DECODERS, STOCK, shared_tiny, tiny

parts = st.one_of(st.just(0), st.integers(0, 4), st.sets(st.integers(0, 3)).map(lambda s: as_part(sorted(s))))
units = st.one_of(st.just(0), st.integers(0, 10), st.sets(st.integers(0, 9)).map(lambda s: as_part(sorted(s))))
specs = st.lists(st.builds(LayerSpec, parts, units), min_size=3, max_size=3).map(tuple)
SOME = settings(max_examples=6, deadline=None, derandomize=True)


EMBEDDINGS = ("embeddings.", "embeddings_project.", "wte.", "wpe.", "embed_tokens.")
EMBEDDINGS += ("encoder.relative_attention_bias.", "encoder.rel_embeddings.", "encoder.LayerNorm.")
ASKED = [*((name, "classification") for name in STOCK), *((name, "lm") for name in DECODERS)]
ASKED += [("distilbert", "choice"), ("qwen3", "choice"), ("electra-narrow", "qa"), ("gpt2", "qa")]
ASKED += [("bert", "tokens"), ("mistral", "tokens"), ("roberta", "multi-label")]
ASKED += [("roberta", "embeddings"), ("qwen2", "embeddings")]
"""Networks and kinds of tasks."""


def real_sizes(model: nn.Module) -> tuple[int, int, int]:
    """All parameters, those outside the embeddings, bytes after int8: looked up in the network, shared ones once."""
    total = embeddings = octets = 0
    for name, parameter in model.named_parameters():
        total += parameter.numel()
        embeddings += parameter.numel() * name.removeprefix("backbone.").startswith((*EMBEDDINGS, "lm_head."))
        octets += parameter.numel() * (1 if parameter.dim() == 2 else 4)
    return total, total - embeddings, octets


@pytest.mark.parametrize(("name", "kind"), ASKED)
def test_counts_are_those_of_the_extracted_network(name: str, kind: str) -> None:
    model = shared_tiny(name, None, kind)
    of = read_anatomy(model.config)

    @SOME
    @given(specs)
    def check(spec: SubnetSpec) -> None:
        counted = (parameters(of, spec), nonembedding_parameters(of, spec), int8_bytes(of, spec))
        assert counted == real_sizes(extract(model, spec))

    check()


@pytest.mark.covering
@pytest.mark.parametrize("length", [5, 17])
@pytest.mark.parametrize(("name", "kind"), [pair for pair in ASKED if pair[1] != "choice"])
def test_flops_are_those_that_torch_counts(name: str, kind: str, length: int) -> None:
    model = shared_tiny(name, None, kind)
    of = read_anatomy(model.config)
    ids = torch.arange(3, 3 + length).unsqueeze(0)

    @SOME
    @given(specs)
    def check(spec: SubnetSpec) -> None:
        with counted_flops() as counter:
            extract(model, spec).requires_grad_(False)(input_ids=ids)  # the counter wants no leaf with a gradient
        assert flops(of, spec, length=length) == counter.get_total_flops()

    check()


@contextmanager
def counted_flops() -> Iterator[FlopCounterMode]:
    """Attention as plain matrix products, because the counter does not know the CPU's fused one."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        yield counter


def test_the_anatomy_of_an_extracted_network_is_that_of_its_origin() -> None:
    model = shared_tiny("bert", "cls")
    assert read_anatomy(extract(model, (LayerSpec(1, 2), LayerSpec(0, 0), LayerSpec(0, 3))).config) == read_anatomy(
        model.config
    )


def test_grouped_heads_are_counted_as_they_go() -> None:
    """By hand: width 16, heads of 4 features, 10 units, 3 linears in the FFN, no biases, norms of 16 weights."""
    groups, queries = (read_anatomy(shared_tiny(f"llama-{name}").config) for name in ("groups", "queries"))
    rest = (LayerSpec(0, 0),) * 2
    head = 16 + 16 * 3  # final norm and a score for each of three labels

    def one(of: Anatomy, heads: int) -> int:
        return nonembedding_parameters(of, (LayerSpec(heads, 0), *rest)) - head

    # a group: 2 query heads in q and mix, 1 head in k and in v
    assert [one(groups, n) for n in range(5)] == [0] + [n * 16 * 4 * (2 + 2 + 1 + 1) + 16 for n in (1, 2, 3, 4)]
    # a query head of both groups in q and mix; the 2 heads in k and in v are there from the first on
    assert [one(queries, n) for n in range(5)] == [0] + [16 * 4 * (n * (2 + 2) + 2 + 2) + 16 for n in (1, 2, 3, 4)]
    assert nonembedding_parameters(groups, (LayerSpec(0, 7), *rest)) - head == 3 * 16 * 7 + 16


def test_output_embeddings_count_as_embeddings() -> None:
    tied, free = (read_anatomy(shared_tiny(name, None, "lm").config) for name in ("llama-groups", "llama-queries"))
    assert (tied.embeddings, free.embeddings) == (40 * 16, 2 * 40 * 16)
    per_token = 2 * 40 * 16
    for of in (tied, free):
        bare = (LayerSpec(0, 0),) * 3
        assert nonembedding_parameters(of, bare) == 16  # the last norm
        assert flops(of, bare, length=9) == 9 * per_token


def test_labels_count() -> None:
    two, one = (read_anatomy(tiny(labels=labels).config) for labels in (("no", "yes"), ()))
    assert (two.labels, one.labels) == (2, 1)
    assert parameters(two, two.full) - parameters(one, one.full) == 17


def test_minilm_has_the_published_number_of_parameters(minilm: Path) -> None:
    """22,713,216 is the bare encoder with its pooler; our head has the pooler's shape and one more row per label."""
    of = read_anatomy(supernet_config(stock_config(str(minilm)), labels=("negative", "positive"), pooling="mean"))
    assert (of.layers, of.heads, of.units, of.width, of.full_layers[0].features) == (6, 12, 1536, 384, 32)
    assert parameters(of, of.full) == 22_713_216 + 2 * 385 == 22_713_986
    assert of.embeddings == 11_918_592
    assert round(of.embeddings / 22_713_216, 3) == 0.525
    assert nonembedding_parameters(of, of.full) == 22_713_986 - 11_918_592
    gone = (LayerSpec(0, 0),) * 6
    assert nonembedding_parameters(of, gone) == 384 * 384 + 384 + 2 * 385
    layer = 4 * (384 * 384 + 384) + 2 * 384 * 1536 + 1536 + 384 + 4 * 384
    assert nonembedding_parameters(of, of.full) - nonembedding_parameters(of, (*of.full[:5], LayerSpec(0, 0))) == layer


@pytest.mark.slow
def test_minilm_itself_has_as_many(minilm: Path) -> None:
    model = load_supernet(str(minilm), labels=("negative", "positive"))
    of = read_anatomy(model.config)
    spec = (LayerSpec((0, 5, 7), 100), LayerSpec(0, 700), LayerSpec(12, 0), LayerSpec(0, 0), *of.full[4:])
    assert real_sizes(model) == (parameters(of, of.full), nonembedding_parameters(of, of.full), int8_bytes(of, of.full))
    small = extract(model, spec)
    assert real_sizes(small) == (parameters(of, spec), nonembedding_parameters(of, spec), int8_bytes(of, spec))
    for length in (16, 128):
        with counted_flops() as counter:
            small(input_ids=torch.ones(1, length, dtype=torch.long))
        assert flops(of, spec, length=length) == counter.get_total_flops()


def test_a_part_is_a_number_or_positions() -> None:
    assert (count(3), count((1, 4)), count(()), count(0)) == (3, 2, 0, 0)
    assert (positions(3), positions((1, 4))) == ((0, 1, 2), (1, 4))
    assert [as_part(p) for p in ([], [0], [0, 1, 2], [1], [0, 2])] == [0, 1, 3, (1,), (0, 2)]
    assert sizes((LayerSpec(2, (1, 5, 6)), LayerSpec(0, 0))) == [(2, 3), (0, 0)]
