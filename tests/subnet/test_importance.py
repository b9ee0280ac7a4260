"""Orders of heads, units and layers: by definition, on planted cases, and without a trace in the network."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.importance import (
    ImportanceOrder,
    evaluating,
    layer_order,
    losses_without,
    mask_scores,
    order_by_importance,
    record_effects,
    reorder,
    take_tokens,
)
from archwright.subnet.pruning.gradients import mask_gradients
from archwright.subnet.pruning.scores import fisher_diagonal
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import LayerSpec
from archwright.training.losses import task_loss
from tests.subnet import oracle
from tests.subnet.decoder_oracle import DECODERS as HAND_WRITTEN
from tests.tiny import BATCHES, DECODERS, ENCODERS, STOCK, TinyBatch, choice_batch, shared_tiny, tiny, tiny_batch

FULL = [([0, 1, 2, 3], list(range(10)))] * 3
PERMUTED = {
    **dict.fromkeys(ENCODERS, 10),
    **{"gpt2": 10, "llama": 12, "llama-groups": 7, "llama-queries": 5, "qwen2": 10, "qwen2-queries": 6},
    **{"qwen3": 10, "qwen3-queries": 5, "mistral": 7, "mistral-queries": 5, "phi3": 7, "phi3-queries": 5},
    **{"gemma2": 10, "gemma2-queries": 5, "gemma3_text": 7, "modernbert": 7, "mpnet": 11, "deberta-v2": 14},
}
"""Tensors of a layer that change places: weights of q, k, v, mix, up, gate, down and biases of all that lead in, where
there are any; removed by queries, keys and values stay. MPNet's heads have numbers, and DeBERTa's positions queries and
keys of their own."""


def random_order(seed: int, layers: int = 3) -> ImportanceOrder:
    rng = np.random.default_rng(seed)
    heads = tuple(tuple(rng.permutation(4).tolist()) for _ in range(layers))
    units = tuple(tuple(rng.permutation(10).tolist()) for _ in range(layers))
    return ImportanceOrder(heads, units, tuple(rng.permutation(layers).tolist()))


def layers_of(model: PrunedNetwork) -> nn.ModuleList:
    return model.backbone.get_submodule(model.config.family.layers)


@pytest.mark.parametrize("name", STOCK)
def test_reordering_changes_no_answer(name: str) -> None:
    model, batch = tiny(name, pooling="mean"), tiny_batch(name)
    before, weights = model(**batch.inputs).logits, copy.deepcopy(model.state_dict())
    reorder(model, random_order(3))
    torch.testing.assert_close(model(**batch.inputs).logits, before, rtol=0, atol=1e-9)
    changed = sum(not torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    assert changed == 3 * PERMUTED[name]


@pytest.mark.parametrize("name", STOCK)
def test_the_first_after_reordering_are_the_best_before(name: str) -> None:
    model, batch, order = tiny(name), tiny_batch(name), random_order(2)
    best = tuple(
        LayerSpec(tuple(sorted(h[:2])), tuple(sorted(u[:3]))) for h, u in zip(order.heads, order.units, strict=True)
    )
    with subnetwork(model, best):
        before = model(**batch.inputs).logits
    reorder(model, order)
    with subnetwork(model, (LayerSpec(2, 3),) * 3):
        torch.testing.assert_close(model(**batch.inputs).logits, before, rtol=0, atol=1e-9)


def owned(name: str, features: torch.Tensor) -> torch.Tensor:
    """Sums over the features of each of the four removable heads."""
    if name not in HAND_WRITTEN:
        return features.reshape(4, 4).sum(1)
    rows = [HAND_WRITTEN[name].query_rows([head]) for head in range(4)]
    return torch.stack([features[chosen].sum() for chosen in rows])


def expected_scores(model: PrunedNetwork, name: str, batches: list[TinyBatch]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean over texts of |sum over tokens of activation x gradient|: text by text, without padding, by hand."""
    state = {key: value.detach().clone().requires_grad_() for key, value in model.named_parameters()}
    heads, units, texts = torch.zeros(3, 4).double(), torch.zeros(3, 10).double(), 0
    for batch in batches:
        for row, target in enumerate(batch.targets):
            length = int(batch.inputs["attention_mask"][row].sum())
            inputs = {key: value[row : row + 1, :length] for key, value in batch.inputs.items()}
            config = model.config
            seen = oracle.run(state, name, FULL, inputs, pooling=config.pooling, kind=config.kind)
            loss = cost_of(seen.logits[0], target)
            grads = torch.autograd.grad(loss, [*seen.contexts, *seen.hidden_units])
            products = [x * g for x, g in zip([*seen.contexts, *seen.hidden_units], grads, strict=True)]
            heads += torch.stack([owned(name, p[0].sum(0)).abs() for p in products[:3]]).detach()
            units += torch.stack([p[0].sum(0).abs() for p in products[3:]]).detach()
            texts += 1
    return heads / texts, units / texts


def cost_of(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Of one text: minus the log-likelihood of its label, or the mean of those of its next tokens."""
    likely = torch.log_softmax(logits, -1)
    if target.dim() == 0:
        return -likely[target]
    return -torch.stack([likely[place, word] for place, word in enumerate(target[:-1])]).mean()


@pytest.mark.parametrize(
    ("name", "pooling", "kind"),
    [
        *((name, pooling, "classification") for name in ENCODERS for pooling in ("cls", "mean")),
        *((name, "last", kind) for name in DECODERS for kind in ("classification", "lm")),
    ],
)
def test_mask_scores_follow_their_definition(name: str, pooling: str, kind: str) -> None:
    model, batch = shared_tiny(name, pooling, kind), BATCHES[kind]
    batches = [batch(name, seed=3, texts=4), batch(name, seed=4, texts=1, length=5)]
    found = mask_scores(model, batches, task_loss, torch.abs)
    for scores, expected in zip(found, expected_scores(model, name, batches), strict=True):
        torch.testing.assert_close(torch.stack(scores), expected, rtol=1e-9, atol=1e-12)


def test_pieces_of_a_text_are_squared_one_by_one() -> None:
    model, batch = shared_tiny("llama", "last", "lm"), BATCHES["lm"]("llama", seed=3, texts=2, length=7)
    heads, units = mask_scores(model, [batch], task_loss, torch.square, span=3)
    down = model.placed_layers()[1].layer.get_submodule(model.placed_layers()[1].parts.down)
    with evaluating(model), torch.enable_grad():
        effects = record_effects(model, [down], batch, task_loss)[down]  # texts x tokens x units
    pieces = torch.stack([effects[:, 0:3].sum(1), effects[:, 3:6].sum(1), effects[:, 6:].sum(1)])
    torch.testing.assert_close(units[1], pieces.square().sum((0, 1)) / 2)
    rows = mask_gradients(model, [batch], task_loss, span=3)
    assert len(rows.units[1]) == len(rows.heads[1]) == 6
    torch.testing.assert_close(rows.units[1].square().sum(0) / 2, units[1])
    torch.testing.assert_close(rows.heads[1].square().sum(0) / 2, heads[1])


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_squares_are_the_fisher_diagonal(name: str) -> None:
    model, batches = shared_tiny(name), [tiny_batch(name, seed=3, texts=4), tiny_batch(name, seed=4, texts=2)]
    expected = fisher_diagonal(mask_gradients(model, batches, task_loss))
    torch.testing.assert_close(mask_scores(model, batches, task_loss, torch.square), expected)
    order = order_by_importance(model, batches, task_loss, torch.square, remove_layers=False)
    sums = [float(heads.sum() + units.sum()) for heads, units in zip(*expected, strict=True)]
    assert list(order.layers) == sorted(range(len(sums)), key=lambda layer: -sums[layer])
    for row, scores in zip(expected[0], order.head_scores, strict=True):
        assert sorted(row.tolist(), reverse=True) == pytest.approx(list(scores))


@pytest.mark.parametrize("name", STOCK)
def test_a_useless_head_and_unit_come_last(name: str) -> None:
    model, family = tiny(name), shared_tiny(name).config.family
    columns = HAND_WRITTEN[name].query_rows([1]) if name in HAND_WRITTEN else slice(4, 8)
    with torch.no_grad():
        layers_of(model)[1].get_submodule(family.mix).weight[:, columns] = 0
        layers_of(model)[2].get_submodule(family.down).weight[:, 6] = 0
    order = order_by_importance(model, [tiny_batch(name, texts=5)], task_loss, torch.abs)
    assert (order.heads[1][-1], order.units[2][-1]) == (1, 6)
    assert all(sorted(row) == [0, 1, 2, 3] for row in order.heads)
    assert all(sorted(row) == list(range(10)) for row in order.units)
    assert sorted(order.layers) == [0, 1, 2]


def do_nothing(model: PrunedNetwork, place: int) -> None:
    """Make a layer pass its input on: nothing is added, and what is already normal is normalised."""
    family, layers = model.config.family, layers_of(model)
    with torch.no_grad():
        for path in (family.mix, family.down):
            for parameter in layers[place].get_submodule(path).parameters():
                parameter.zero_()
        if family.norms_first:
            return  # its norms stand in front of what adds nothing
        before = (
            layers[place - 1].get_submodule(family.ffn_norm)
            if place
            else model.backbone.get_submodule(family.embedding_norm)
        )
        for norm in (before, *(layers[place].get_submodule(path) for path in (family.attention_norm, family.ffn_norm))):
            norm.weight.fill_(1)
            norm.bias.zero_()


def own_answers(model: PrunedNetwork, name: str) -> list[TinyBatch]:
    """Batches whose targets are what the model itself says, so that every change costs."""
    batches = [tiny_batch(name, seed=s, texts=6, labels=1) for s in (5, 6)]
    with torch.no_grad():
        return [TinyBatch(b.inputs, model(**b.inputs).logits.squeeze(-1)) for b in batches]


@pytest.mark.covering
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("name", ["bert", "distilbert", "gpt2", "qwen3"])
def test_a_layer_that_does_nothing_comes_last(name: str, place: int) -> None:
    model = tiny(name, labels=())
    do_nothing(model, place)
    assert layer_order(model, own_answers(model, name), task_loss)[-1] == place


def test_layers_go_one_by_one_where_it_costs_least() -> None:
    model, batches = tiny("roberta", seed=3), [tiny_batch("roberta", seed=s, texts=n) for s, n in ((0, 5), (1, 2))]

    def cost(gone: set[int]) -> float:
        small = extract(model, tuple(LayerSpec(0, 0) if i in gone else LayerSpec(4, 10) for i in range(3)))
        logits = torch.cat([small(**b.inputs).logits for b in batches])
        return float(nn.functional.cross_entropy(logits.detach(), torch.cat([b.targets for b in batches])))

    first = min(range(3), key=lambda layer: cost({layer}))
    second = min({0, 1, 2} - {first}, key=lambda layer: cost({first, layer}))
    (kept,) = {0, 1, 2} - {first, second}
    assert layer_order(model, batches, task_loss) == (kept, second, first)


def test_layers_are_compared_on_a_limited_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batches = tiny("bert"), [tiny_batch("bert", seed=s) for s in range(3)]
    monkeypatch.setattr("archwright.subnet.importance.SHALLOW_TOKENS", batches[0].inputs["input_ids"].numel())
    read: set[int] = set()

    def note(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        read.add(next(place for place, batch in enumerate(batches) if batch.targets is targets))
        return task_loss(logits, targets)

    layer_order(model, batches, note)
    assert read == {0}


def test_measuring_leaves_no_trace_and_repeats() -> None:
    model, batches = tiny("bert").train(), [tiny_batch("bert", seed=s) for s in range(2)]
    weights, rng = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    first, second = (order_by_importance(model, iter(batches), task_loss, torch.abs) for _ in range(2))
    assert first == second  # in train mode too: dropout plays no part
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
    assert torch.equal(rng, torch.random.get_rng_state())


def test_the_choices_of_a_text_count_together() -> None:
    """Choices are rows of their own, but one text: their effects add up before the absolute value is taken."""
    model, batch = shared_tiny("llama-queries", "last", "choice"), choice_batch("llama-queries", texts=1)
    heads, units = mask_scores(model, [batch], task_loss, torch.abs)
    state = {key: value.detach().clone().requires_grad_() for key, value in model.named_parameters()}
    rows = {key: value[0] for key, value in batch.inputs.items()}
    seen = oracle.run(state, "llama-queries", FULL, rows, pooling="last")
    loss = cost_of(seen.logits[:, 0], batch.targets[0])
    gradients = torch.autograd.grad(loss, seen.contexts)
    effects = [(x * g).sum((0, 1)) for x, g in zip(seen.contexts, gradients, strict=True)]
    expected = torch.stack([owned("llama-queries", effect).abs() for effect in effects])
    torch.testing.assert_close(torch.stack(heads), expected.detach(), rtol=1e-9, atol=1e-12)
    assert [part.shape for part in units] == [(10,)] * 3


def test_another_batch_gives_another_order() -> None:
    model = shared_tiny("bert", "mean")
    orders = {order_by_importance(model, [tiny_batch("bert", seed=s)], task_loss, torch.abs) for s in range(4)}
    assert len(orders) == 4


def test_an_error_while_measuring_leaves_no_trace() -> None:
    def broken(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("broken")

    for measure in (partial(mask_scores, reduce=torch.square), layer_order):
        model = tiny("bert").train()
        with pytest.raises(RuntimeError, match="broken"):
            measure(model, [tiny_batch("bert")], broken)
        assert model.training
        assert not any(m._forward_pre_hooks for m in model.modules())


@pytest.mark.covering
@pytest.mark.parametrize("name", STOCK)
def test_the_loss_without_a_layer_is_that_of_the_subnetwork_without_it(name: str) -> None:
    """Computed from the states before the layer; in a network that lacks a layer and an attention already."""
    kind = "lm" if name in DECODERS else "classification"
    model, batches = shared_tiny(name, None, kind), [BATCHES[kind](name, seed=s, texts=2 + s) for s in range(2)]
    for spec in (read_anatomy(model.config).full, (LayerSpec(0, 10), LayerSpec(0, 0), LayerSpec(4, 10))):
        costs = losses_without(model, spec, batches, task_loss)
        assert list(costs) == [place for place, part in enumerate(spec) if any(part)]
        for place, cost in costs.items():
            left = tuple(LayerSpec(0, 0) if i == place else part for i, part in enumerate(spec))
            with torch.no_grad(), subnetwork(model, left):
                losses = [float(task_loss(model(**b.inputs).logits, b.targets)) * len(b.targets) for b in batches]
            assert cost == pytest.approx(sum(losses) / 5, rel=1e-9)
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())


def test_deep_networks_are_compared_on_enough_tokens() -> None:
    batches = [tiny_batch("bert", seed=s, texts=4) for s in range(6)]
    size = batches[0].inputs["input_ids"].numel()
    assert take_tokens(batches, 1) == batches[:1]
    assert take_tokens(batches, size + 1) == batches[:2]
    assert take_tokens(batches, 10**6) == batches
