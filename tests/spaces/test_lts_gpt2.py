"""The space of GPT-2 architectures: what it accepts, how it draws, how many there are, what they weigh."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from archwright.data.text.snippets import gpt2_encoder, snippets
from archwright.errors import BadInput
from archwright.networks.lts_gpt2 import count
from archwright.search.choices import crossover, largest, middle, mutate, sample, smallest
from archwright.spaces import lts_gpt2
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.lts_gpt2 import DOMAINS, Domain, LtsGpt2Space, from_lists

GRID, BENCHMARK = LtsGpt2Space("grid"), LtsGpt2Space("benchmark")
SPACES = {"grid": GRID, "benchmark": BENCHMARK}


def design(**changes: Any) -> dict[str, Any]:
    given = {"n_layer": 2, "d_model": 128, "d_embed": 128, "div_val": 2, "n_head": [2, 8], "d_inner": [512, 576]}
    return from_lists(given) | changes


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("corner", [smallest, middle, largest])
def test_corners_belong_to_the_space(space: ArchitectureSpace, corner: Any) -> None:
    config = space.canonical(corner(space.choices))
    space.check(config)
    counts = space.counts(config)
    assert (counts.depth, counts.width) == (config["n_layer"], config["d_model"])
    assert counts.parameters > counts.nonembedding > counts.attention + counts.ffn


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_whatever_is_drawn_mutated_or_crossed_has_a_canonical_form_in_the_space(space: LtsGpt2Space) -> None:
    rng = np.random.default_rng(0)
    config = other = sample(space.choices, rng)
    for _ in range(100):
        config = mutate(space.choices, crossover(space.choices, config, other, rng), rng)
        other = space.sample(rng)
        for one in (config, other):
            canonical = space.canonical(one)
            space.check(canonical)
            assert space.canonical(canonical) == canonical
        config = space.canonical(config)


def test_layers_beyond_the_depth_make_no_difference() -> None:
    one, two = design(n_head2=8, d_inner2=4096), design(n_head9=4, d_inner15=320)
    assert GRID.canonical(one) == GRID.canonical(two) == GRID.canonical(design())
    assert set(GRID.canonical(one)) == set(GRID.choices)
    assert GRID.canonical(one) != GRID.canonical(design(n_head1=4))


def test_a_narrow_inner_is_lifted_in_the_grid_and_kept_in_the_benchmark() -> None:
    config = design(d_model=512, d_inner0=832)
    assert GRID.canonical(config)["d_inner0"] == 1024
    assert BENCHMARK.canonical(config)["d_inner0"] == 832
    with pytest.raises(BadInput, match=r"^d_inner0 must be 1024 to .* at d_model 512, got 832\.$"):
        GRID.check(config)
    BENCHMARK.check(config)


def test_draws_are_even_above_the_bound() -> None:
    """At width 1024 there are 33 values; drawing from `choices` would heap 29 of 61 on the least."""
    rng, seen = np.random.default_rng(0), Counter[int]()
    for _ in range(1500):
        config = GRID.sample(rng)
        if config["d_model"] == 1024:
            seen.update(config[f"d_inner{layer}"] for layer in range(config["n_layer"]))
    assert set(seen) == set(range(2048, 4097, 64))
    mean = seen.total() / 33
    assert all(abs(times - mean) < 5 * mean**0.5 for times in seen.values())


def test_draws_repeat_with_the_seed_and_differ_without() -> None:
    one, same, other = (GRID.sample(np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert one == same != other


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no such choice": ({"heads": 3}, r"a GPT-2 design has no heads; its choices are n_layer, "),
    "too deep": ({"n_layer": 17}, r"n_layer must be one of 2 to 16, got 17\."),
    "between the steps": ({"d_model": 130}, r"d_model must be one of 128 to 1024 in steps of 64, got 130\."),
    "other heads": ({"n_head1": 3}, r"n_head1 must be one of 2, 4, 8, got 3\."),
    "no value": ({"d_inner1": None}, r"d_inner1 must be an integer, got None; "),
    "a truth value": ({"div_val": True}, r"div_val must be an integer, got True; "),
    "a number as text": ({"d_embed": "128"}, r"d_embed must be an integer, got '128'; "),
    "inner between the steps": ({"d_inner0": 513}, r"d_inner0 must be one of 256 to 4096 in steps of 64, got 513\."),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_designs_outside_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    GRID.check(design())
    with pytest.raises(BadInput, match=f"^{message}"):
        GRID.check(design(**change))


def test_the_benchmark_takes_any_inner_of_a_positive_size() -> None:
    BENCHMARK.check(design(d_inner0=513, d_inner1=1))
    with pytest.raises(BadInput, match=r"^d_inner1 must be 1 to 65536 at d_model 128, got 0\.$"):
        BENCHMARK.check(design(d_inner1=0))


def test_the_grid_counts_itself_and_the_papers_number_needs_a_width_per_layer() -> None:
    size = {name: math.log10(number) for name, number in GRID.size().items()}
    assert size["raw"] == pytest.approx(39.51, abs=0.01)
    assert size["distinct"] == pytest.approx(37.52, abs=0.01)
    assert size["if each layer had its own d_model"] == pytest.approx(54.16, abs=0.01)


def test_counting_equals_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Domain(range(1, 4), (64, 128), (128, 192, 256), 2, False, n_head=(2, 4), d_embed=(128,), div_val=(1, 2))
    monkeypatch.setitem(lts_gpt2.DOMAINS, "tiny", tiny)
    space = LtsGpt2Space("tiny")
    every = [dict(zip(space.choices, values, strict=True)) for values in product(*space.choices.values())]
    size = space.size()
    assert size["raw"] == len(every)
    assert size["distinct"] == len({tuple(space.canonical(config).items()) for config in every})


def test_flops_are_those_that_torch_counts() -> None:
    config = design(n_head0=4)
    network = GRID.network(config, generator=torch.Generator(), vocabulary=9)
    hidden, mask = torch.zeros(1, 64, 128), torch.ones(64, 64, dtype=torch.bool)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        for layer in network.layers:
            hidden = layer(hidden, mask, None)
    assert counter.get_total_flops() == 64 * GRID.counts(config).flops


def test_a_network_for_scoring_has_the_layers_of_the_whole_one_and_few_embeddings() -> None:
    config = design(div_val=4, d_embed=256)
    counts, whole = GRID.counts(config), GRID.build(config)
    assert counts.parameters == count(whole) == whole.sizes()["total"]
    small = GRID.network(config, generator=torch.Generator().manual_seed(0), vocabulary=300)
    assert not small.training
    assert small.sizes()["nonembedding"] == counts.nonembedding == whole.sizes()["nonembedding"]
    assert small.embeddings.tokens.tables[0].weight.shape == (300, 256)
    ids = torch.arange(12).view(2, 6) % 300
    assert float(small(ids, labels=ids).loss.detach()) == pytest.approx(math.log(300), abs=0.1)


def test_a_network_of_the_space_learns_real_text(data_dir: Path) -> None:
    text = snippets(
        data_dir / "wikitext-2" / "train.txt",
        gpt2_encoder(data_dir / "gpt2-bpe"),
        "lm",
        rows=40,
        length=32,
        seed=(0,),
    )
    batches = torch.from_numpy(text.input_ids).view(5, 8, 32)
    torch.manual_seed(0)  # dropout
    config = design(d_model=64)
    network = BENCHMARK.network(config, generator=torch.Generator().manual_seed(0), vocabulary=text.vocabulary).train()
    optimizer, losses = torch.optim.AdamW(network.parameters(), lr=3e-3), []
    for step in range(30):
        loss = network(batches[step % 5], labels=batches[step % 5], loss_alone=True).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[0] == pytest.approx(math.log(text.vocabulary), abs=0.3)
    assert np.mean(losses[-5:]) < losses[0] - 1


def test_another_loss_is_refused() -> None:
    with pytest.raises(BadInput, match=r"one of lm here, got 'mlm'"):
        GRID.network(design(), generator=torch.Generator(), loss="mlm")


def test_the_domains_are_those_of_the_papers() -> None:
    grid = DOMAINS["grid"]
    sizes = [len(values) for values in (grid.n_layer, grid.d_model, grid.d_inner, grid.n_head, grid.d_embed)]
    assert sizes == [15, 15, 61, 3, 3]
    assert replace(grid, widening=0).inners(1024) == list(grid.d_inner)
    assert [len(grid.inners(width)) for width in (128, 1024)] == [61, 33]
