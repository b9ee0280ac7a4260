"""Orders of heads, units and layers: by definition, on planted cases, and without a trace in the network."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from archwright.networks.pruned import POOLINGS, PrunedNetwork
from archwright.subnet.extract import extract
from archwright.subnet.importance import Order, layer_order, reorder, taylor_order, taylor_scores
from archwright.subnet.keep import LayerKeep
from archwright.subnet.slicing import subnetwork
from archwright.train import task_loss
from tests.subnet import oracle
from tests.tiny import STOCK, TinyBatch, shared_tiny, tiny, tiny_batch

FULL = [([0, 1, 2, 3], list(range(10)))] * 3


def random_order(seed: int, layers: int = 3) -> Order:
    rng = np.random.default_rng(seed)
    heads = tuple(tuple(rng.permutation(4).tolist()) for _ in range(layers))
    units = tuple(tuple(rng.permutation(10).tolist()) for _ in range(layers))
    return Order(heads, units, tuple(rng.permutation(layers).tolist()))


def layers_of(model: PrunedNetwork) -> nn.ModuleList:
    return model.backbone.get_submodule(model.config.family.layers)


@pytest.mark.parametrize("name", STOCK)
def test_reordering_changes_no_answer(name: str) -> None:
    model, batch = tiny(name, pooling="mean"), tiny_batch(name)
    before, weights = model(**batch.inputs).logits, copy.deepcopy(model.state_dict())
    reorder(model, random_order(3))
    torch.testing.assert_close(model(**batch.inputs).logits, before, rtol=0, atol=1e-9)
    assert sum(not torch.equal(value, weights[key]) for key, value in model.state_dict().items()) == 3 * 10


@pytest.mark.parametrize("name", STOCK)
def test_the_first_after_reordering_are_the_best_before(name: str) -> None:
    model, batch, order = tiny(name), tiny_batch(name), random_order(2)
    best = tuple(
        LayerKeep(tuple(sorted(h[:2])), tuple(sorted(u[:3]))) for h, u in zip(order.heads, order.units, strict=True)
    )
    with subnetwork(model, best):
        before = model(**batch.inputs).logits
    reorder(model, order)
    with subnetwork(model, (LayerKeep(2, 3),) * 3):
        torch.testing.assert_close(model(**batch.inputs).logits, before, rtol=0, atol=1e-9)


def expected_scores(model: PrunedNetwork, name: str, batches: list[TinyBatch]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean over texts of |sum over tokens of activation x gradient|: text by text, without padding, by hand."""
    state = {key: value.detach().clone().requires_grad_() for key, value in model.named_parameters()}
    heads, units, texts = torch.zeros(3, 4).double(), torch.zeros(3, 10).double(), 0
    for batch in batches:
        for row, target in enumerate(batch.targets):
            length = int(batch.inputs["attention_mask"][row].sum())
            inputs = {key: value[row : row + 1, :length] for key, value in batch.inputs.items()}
            seen = oracle.run(state, name, FULL, inputs, pooling=model.config.pooling)
            loss = -torch.log_softmax(seen.logits[0], -1)[target]
            grads = torch.autograd.grad(loss, [*seen.contexts, *seen.hidden_units])
            products = [x * g for x, g in zip([*seen.contexts, *seen.hidden_units], grads, strict=True)]
            heads += torch.stack([p.reshape(length, 4, 4).sum((0, 2)).abs() for p in products[:3]]).detach()
            units += torch.stack([p[0].sum(0).abs() for p in products[3:]]).detach()
            texts += 1
    return heads / texts, units / texts


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", STOCK)
def test_taylor_scores_follow_their_definition(name: str, pooling: str) -> None:
    model = shared_tiny(name, pooling)
    batches = [tiny_batch(name, seed=3, texts=4), tiny_batch(name, seed=4, texts=1, length=5)]
    found = taylor_scores(model, batches, task_loss)
    for scores, expected in zip(found, expected_scores(model, name, batches), strict=True):
        torch.testing.assert_close(scores, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", STOCK)
def test_a_useless_head_and_unit_come_last(name: str) -> None:
    model, family = tiny(name), shared_tiny(name, "cls").config.family
    with torch.no_grad():
        layers_of(model)[1].get_submodule(family.mix).weight[:, 4:8] = 0
        layers_of(model)[2].get_submodule(family.down).weight[:, 6] = 0
    order = taylor_order(model, [tiny_batch(name, texts=5)], task_loss)
    assert (order.heads[1][-1], order.units[2][-1]) == (1, 6)
    assert all(sorted(row) == [0, 1, 2, 3] for row in order.heads)
    assert all(sorted(row) == list(range(10)) for row in order.units)
    assert sorted(order.layers) == [0, 1, 2]


def do_nothing(model: PrunedNetwork, place: int) -> None:
    """Make a layer pass its input on: nothing is added, and what is already normal is normalised."""
    family, layers = model.config.family, layers_of(model)
    before = (
        layers[place - 1].get_submodule(family.ffn_norm)
        if place
        else model.backbone.get_submodule(family.embedding_norm)
    )
    with torch.no_grad():
        for path in (family.mix, family.down):
            layers[place].get_submodule(path).weight.zero_()
            layers[place].get_submodule(path).bias.zero_()
        for norm in (before, *(layers[place].get_submodule(path) for path in (family.attention_norm, family.ffn_norm))):
            norm.weight.fill_(1)
            norm.bias.zero_()


def own_answers(model: PrunedNetwork, name: str) -> list[TinyBatch]:
    """Batches whose targets are what the model itself says, so that every change costs."""
    batches = [tiny_batch(name, seed=s, texts=6, labels=1) for s in (5, 6)]
    with torch.no_grad():
        return [TinyBatch(b.inputs, model(**b.inputs).logits.squeeze(-1)) for b in batches]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("name", ["bert", "distilbert"])
def test_a_layer_that_does_nothing_comes_last(name: str, place: int) -> None:
    model = tiny(name, labels=())
    do_nothing(model, place)
    assert layer_order(model, own_answers(model, name), task_loss)[-1] == place


def test_layers_go_one_by_one_where_it_costs_least() -> None:
    model, batches = tiny("roberta", seed=3), [tiny_batch("roberta", seed=s, texts=n) for s, n in ((0, 5), (1, 2))]

    def cost(gone: set[int]) -> float:
        small = extract(model, tuple(LayerKeep(0, 0) if i in gone else LayerKeep(4, 10) for i in range(3)))
        logits = torch.cat([small(**b.inputs).logits for b in batches])
        return float(nn.functional.cross_entropy(logits.detach(), torch.cat([b.targets for b in batches])))

    first = min(range(3), key=lambda layer: cost({layer}))
    second = min({0, 1, 2} - {first}, key=lambda layer: cost({first, layer}))
    (kept,) = {0, 1, 2} - {first, second}
    assert layer_order(model, batches, task_loss) == (kept, second, first)


def test_measuring_leaves_no_trace_and_repeats() -> None:
    model, batches = tiny("bert").train(), [tiny_batch("bert", seed=s) for s in range(2)]
    weights, rng = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    first, second = (taylor_order(model, iter(batches), task_loss) for _ in range(2))
    assert first == second  # in train mode too: dropout plays no part
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
    assert torch.equal(rng, torch.random.get_rng_state())


def test_another_batch_gives_another_order() -> None:
    model = shared_tiny("bert", "mean")
    orders = {taylor_order(model, [tiny_batch("bert", seed=s)], task_loss) for s in range(4)}
    assert len(orders) == 4


def test_an_error_while_measuring_leaves_no_trace() -> None:
    def broken(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("broken")

    for measure in (taylor_scores, layer_order):
        model = tiny("bert").train()
        with pytest.raises(RuntimeError, match="broken"):
            measure(model, [tiny_batch("bert")], broken)
        assert model.training
        assert not any(m._forward_pre_hooks for m in model.modules())
