"""Masked and causal language modelling, and ELECTRA: their losses by hand, and where gradients go."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from archwright.networks import lts_gpt2
from archwright.networks.cells.model import build_cells
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.spaces.flexibert import FLEXIBERT
from archwright.spaces.nlu import NLU_SMALL
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.losses import task_loss
from archwright.training.objectives.causal import RecurrentStates, causal_update
from archwright.training.objectives.electra import (
    electra_update,
    fill_in,
    replaced_token_loss,
    sample_tokens,
    share_embeddings,
)
from archwright.training.objectives.mlm import mlm_update
from tests.tiny import STOCK
from tests.training.cases import (
    CELLS,
    FLEXI,
    GPT2,
    NLU,
    Rows,
    generator_network,
    labelled,
    masked,
    mlm_network,
    next_tokens,
    seeded,
    spread,
)

RNG = np.random.default_rng(0)


def entropies(logits: torch.Tensor, targets: torch.Tensor) -> list[float]:
    """Of every target by hand."""
    shares = np.exp(logits.detach().numpy())
    shares /= shares.sum(-1, keepdims=True)
    return [-np.log(shares[(*at, int(targets[at]))]) for at in np.ndindex(*targets.shape) if targets[at] != -100]


@pytest.mark.parametrize("config", [FLEXI, NLU], ids=["flexibert", "nlu"])
def test_masked_tokens_alone_go_through_the_vocabulary(config: Any) -> None:
    network, batch, seen = mlm_network(config), masked(0), []
    expected = np.mean(entropies(network(**batch.inputs).logits, batch.targets))
    network.head.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[0]))
    assert float(mlm_update(network)(batch, RNG, 0.0)) == pytest.approx(expected, rel=1e-9)
    assert seen == [int((batch.targets != -100).sum())]
    assert all(p.grad is not None for p in network.parameters())


def test_a_stock_network_with_such_a_head_learns_too() -> None:
    from transformers import AutoModelForMaskedLM

    network, batch = AutoModelForMaskedLM.from_config(STOCK["bert"]).double().eval(), masked(0)
    expected = np.mean(entropies(network(**batch.inputs).logits, batch.targets))
    assert float(mlm_update(network)(batch, RNG, 0.0)) == pytest.approx(expected, rel=1e-9)


def test_next_tokens_of_the_gpt2_space() -> None:
    network, batch = spread(lts_gpt2.build_lts_gpt2(GPT2, seeded(0))), next_tokens(0)
    expected = np.mean(entropies(network(**batch.inputs).logits, batch.targets))
    assert float(causal_update(network)(batch, RNG, 0.0)) == pytest.approx(expected, rel=1e-9)
    network.zero_grad()
    network(**batch.inputs, labels=batch.inputs["input_ids"]).loss.backward()
    whole = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    causal_update(network)(batch, RNG, 0.0)
    assert all(torch.allclose(p.grad, g, atol=1e-12) for p, g in zip(network.parameters(), whole, strict=True))


def streams(rows: int, windows: int, time: int = 6) -> tuple[torch.Tensor, list[Rows]]:
    """Ids of whole texts, and windows of them one after another; what follows a window is its last target."""
    ids = torch.tensor(np.random.default_rng(5).integers(4, 40, size=(rows, windows * time + 1)))
    starts = range(0, windows * time, time)
    return ids, [
        Rows(
            {"input_ids": ids[:, at : at + time]},
            ids[:, at + 1 : at + time + 1],
            [windows * row + at // time for row in range(rows)],
        )
        for at in starts
    ]


def test_a_recurrent_network_reads_on_from_batch_to_batch() -> None:
    network, states = spread(build_cells(CELLS, seeded(0))), RecurrentStates()
    ids, windows = streams(3, 3)
    whole = task_loss(network(input_ids=ids[:, :-1]).logits, ids[:, 1:])
    update = causal_update(network, states=states)
    parts = [float(update(batch, RNG, 0.0)) for batch in windows]
    assert np.mean(parts) == pytest.approx(float(whole.detach()), rel=1e-9)
    begun = float(causal_update(network, states=RecurrentStates())(windows[0], RNG, 0.0))
    again = [float(update(windows[0], RNG, 0.0)), float(update(windows[2], RNG, 0.0))]
    assert again[0] == begun == parts[0]  # a new epoch begins with empty states
    assert again[1] == float(causal_update(network)(windows[2], RNG, 0.0)) != parts[2]  # and so does a leap


def test_what_was_read_survives_being_saved() -> None:
    network, one, other = spread(build_cells(CELLS, seeded(0))), RecurrentStates(), RecurrentStates()
    _, windows = streams(2, 3)
    update = causal_update(network, states=one)
    update(windows[0], RNG, 0.0)
    other.restore(one.state())
    assert float(update(windows[1], RNG, 0.0)) == float(causal_update(network, states=other)(windows[1], RNG, 0.0))
    fresh = RecurrentStates()
    fresh.restore(RecurrentStates().state())
    assert (fresh.rows, fresh.states) == ([], None)


def test_tokens_are_drawn_with_their_probabilities() -> None:
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    logits = torch.tensor(np.log(np.maximum(shares, 1e-30))).expand(20000, 4)
    found = np.bincount(sample_tokens(logits, np.random.default_rng(1)).numpy(), minlength=4) / 20000
    assert found[1] == 0 and found == pytest.approx(shares, abs=0.015)
    assert torch.equal(sample_tokens(logits, np.random.default_rng(1)), sample_tokens(logits, np.random.default_rng(1)))
    assert not torch.equal(
        sample_tokens(logits, np.random.default_rng(1)), sample_tokens(logits, np.random.default_rng(2))
    )


def test_a_token_that_the_generator_got_right_is_not_replaced() -> None:
    batch = Rows({"input_ids": torch.tensor([[7, 3, 3, 9]])}, torch.tensor([[-100, 5, 6, -100]]))
    ids, replaced = fill_in(batch, torch.tensor([5, 8]))
    assert ids.tolist() == [[7, 5, 8, 9]] and replaced.tolist() == [[False, False, True, False]]


class Said(nn.Module):
    """A discriminator that always says the same."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        return type("Answer", (), {"logits": torch.tensor([[0.0, np.log(3.0), np.log(3.0), 50.0]])})


def test_detection_is_the_mean_over_real_tokens() -> None:
    inputs = {"input_ids": torch.zeros(1, 4, dtype=torch.long), "attention_mask": torch.tensor([[1, 1, 1, 0]])}
    replaced = torch.tensor([[False, True, False, False]])
    expected = (np.log(2) - np.log(3 / 4) - np.log(1 / 4)) / 3
    assert float(replaced_token_loss(Said(), inputs, replaced, SINGLE_PROCESS)) == pytest.approx(expected, rel=1e-6)


def pair() -> tuple[Any, Any, nn.ModuleDict]:
    config = FlexiBertConfig(**{**FLEXI.to_dict(), "loss": "electra"})
    told, generator = mlm_network(config), spread(generator_network(config))
    return generator, told, share_embeddings(generator, told)


def test_electra_is_the_weighted_sum_and_no_gradient_goes_through_the_draw() -> None:
    generator, told, both = pair()
    batch = masked(0)
    guess, detect, whole = (
        float(electra_update(generator, told, weights=weights)(batch, np.random.default_rng(3), 0.0))
        for weights in ((1.0, 0.0), (0.0, 1.0), (1.0, 50.0))
    )
    assert whole == pytest.approx(guess + 50 * detect, rel=1e-9)
    assert guess == pytest.approx(np.mean(entropies(generator(**batch.inputs).logits, batch.targets)), rel=1e-9)
    both.zero_grad()
    electra_update(generator, told, weights=(0.0, 1.0))(batch, np.random.default_rng(3), 0.0)
    shared = told.get_input_embeddings().weight
    assert all(p.grad is None or not p.grad.any() for p in generator.parameters() if p is not shared)
    assert shared.grad.any() and any(p.grad.any() for p in told.encoder.layers.parameters())


def test_generator_and_discriminator_share_their_tokens() -> None:
    generator, told, both = pair()
    assert generator.get_input_embeddings() is told.get_input_embeddings()
    names = [name for name, _ in both.named_parameters() if "tokens" in name]
    assert names == ["discriminator.encoder.embeddings.tokens.weight"]


def test_the_generator_is_a_quarter_as_wide() -> None:
    wide = FlexiBertConfig(layers=[["DSC/5", 4, [1024, 512]], ["LT/DFT", 2, [512], True]])
    small: Any = FLEXIBERT.generator_plan(wide)
    assert (small.hidden_size, small.embedding_size, small.loss) == (64, 128, "mlm")
    assert small.layers == [["DSC/5", 2, [256, 128]], ["LT/DFT", 2, [128], True]]
    wide = type(NLU)(layers=[["base", 132], ["mobile", 792]], loss="electra")
    narrow: Any = NLU_SMALL.generator_plan(wide)
    assert (narrow.hidden_size, narrow.inner_size, narrow.heads, narrow.embedding_size) == (132, 33, 3, 128)
    assert narrow.layers == [["base", 33], ["mobile", 198]] and wide.layers == [["base", 132], ["mobile", 792]]
    assert NLU_SMALL.generator_plan(wide, 1.0).layers == wide.layers
    network = generator_network(wide)
    assert network(**labelled(0).inputs).logits.shape[-1] == 30522
