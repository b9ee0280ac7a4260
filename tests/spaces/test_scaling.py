"""Scaling up: every width and the depth times a factor, counted anew, and built."""

import numpy as np
import pytest
import torch

from archwright.errors import BadInput
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.lts_gpt2 import LtsGpt2Config
from archwright.networks.nlu.config import NluConfig
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.cells import CELLS
from archwright.spaces.flexibert import FLEXIBERT as FLEXIBERT_SPACE
from archwright.spaces.lts_gpt2 import LTS_GPT2
from archwright.spaces.nlu import NLU_LARGE, NLU_TINY

NLU = NluConfig([["base", 8], ["mobile", 16]], hidden_size=16, heads=2, vocab_size=40, max_position_embeddings=12)
FLEXIBERT = FlexiBertConfig([("SA/SDP", 2, (8,)), ("DSC/5", 2, (8, 24))], 32, 16, 40, 12)
GPT2 = LtsGpt2Config(n_head=[2, 4], d_inner=[64, 96], d_model=32, d_embed=16, n_token=40, cutoffs=[])
plans = pytest.mark.parametrize(
    ("space", "plan"),
    [(NLU_TINY, NLU), (FLEXIBERT_SPACE, FLEXIBERT), (LTS_GPT2, GPT2)],
    ids=lambda each: each.model_type,
)


@plans
@pytest.mark.parametrize("factor", (1, 2, 3))
def test_counts_are_those_of_the_network_that_is_built(space: ArchitectureSpace, plan: NluConfig, factor: int) -> None:
    larger = space.scale_up(plan, factor)
    network = space.plan_network(larger, generator=torch.Generator().manual_seed(0))
    counts = space.plan_counts(larger)
    assert counts.parameters == sum(weight.numel() for weight in getattr(network, "encoder", network).parameters())
    assert counts.depth == factor * space.plan_counts(plan).depth
    assert counts.width == factor * space.plan_counts(plan).width
    assert network(torch.zeros(1, 5, dtype=torch.long)).last_hidden_state.shape == (1, 5, counts.width)


@plans
def test_once_is_the_same_and_the_plan_itself_stays(space: ArchitectureSpace, plan: NluConfig) -> None:
    before = plan.to_dict()
    assert space.scale_up(plan, 1).to_dict() == before
    space.scale_up(plan, 2)
    assert plan.to_dict() == before


def test_layers_are_repeated_where_they_stood_and_widened() -> None:
    assert NLU_TINY.scale_up(NLU, 2).layers == [["base", 16], ["base", 16], ["mobile", 32], ["mobile", 32]]
    assert [units for _, _, units in FLEXIBERT_SPACE.scale_up(FLEXIBERT, 2).layers] == [[16], [16], [16, 48], [16, 48]]
    larger = LTS_GPT2.scale_up(GPT2, 2)
    assert (larger.n_head, larger.d_inner, larger.n_layer) == ([2, 2, 4, 4], [128, 128, 192, 192], 4)
    assert NLU_TINY.scale_up(NLU, 2).inner_size == 8 and NLU_TINY.scale_up(NLU, 2).embedding_size == NLU.embedding_size


def test_a_small_design_twice_as_wide_has_the_blocks_of_large() -> None:
    small, large = NLU_TINY, NLU_LARGE
    config = small.sample(np.random.default_rng(0))
    larger = small.scale_up(small.plan(config), 2)
    words = [f"{block}-{units}" for block, units in larger.layers]
    same = large.plan({name: word for name, word in zip(large.choices, words, strict=True)})
    assert larger.to_dict() == same.to_dict()


@pytest.mark.parametrize("factor", (0, -1, 1.5, True, "2"))
def test_a_factor_that_is_none_is_refused(factor: object) -> None:
    with pytest.raises(BadInput, match="whole number from 1"):
        NLU_TINY.scale_up(NLU, factor)  # type: ignore[arg-type]


def test_cells_cannot_be_scaled() -> None:
    with pytest.raises(BadInput, match="networks of rnn cannot be scaled up"):
        CELLS.scale_up(CELLS.plan(CELLS.sample(np.random.default_rng(0))), 2)
