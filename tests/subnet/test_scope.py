"""Masks and slices undo themselves: after the block the network is the very same object graph, also after an error."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.tiny import STOCK, TinyBatch, shared_tiny, tiny, tiny_batch

HARD: SubnetSpec = (LayerSpec((1, 3), 0), LayerSpec(0, 0), LayerSpec(0, (2, 5)))
OTHER: SubnetSpec = (LayerSpec(2, 3), LayerSpec((0, 3), (1, 8)), LayerSpec(4, 10))
WAYS = {"masked": masked_subnetwork, "subnetwork": subnetwork}
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def inventory(model: PrunedNetwork) -> list[object]:
    """Identities of all modules, parameters and buffers, their classes, attributes, hooks and modes, and configs."""
    modules = [
        (name, id(m), type(m), m.training, sorted(vars(m)), *(len(getattr(m, hooks)) for hooks in HOOKS))
        for name, m in model.named_modules()
    ]
    numbers = [{k: v for k, v in vars(m).items() if isinstance(v, int | float)} for m in model.modules()]
    tensors = [(n, id(p), p.requires_grad) for n, p in [*model.named_parameters(), *model.named_buffers()]]
    state = [(n, t.data_ptr(), t._version) for n, t in model.state_dict().items()]
    configs = [model.config.to_dict(), model.backbone.config.to_dict()]
    return [modules, numbers, tensors, state, list(model.state_dict()), configs]


@contextmanager
def unchanged(model: PrunedNetwork) -> Iterator[None]:
    before = inventory(model)
    yield
    assert inventory(model) == before


@pytest.mark.covering
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", STOCK)
def test_the_network_is_the_same_after_the_block(name: str, way: AbstractContextManager, grad: bool) -> None:
    model, batch = shared_tiny(name), tiny_batch(name)
    expected = model(**batch.inputs).logits
    for spec in (HARD, OTHER):
        with unchanged(model), torch.set_grad_enabled(grad), way(model, spec):
            assert not torch.equal(model(**batch.inputs).logits, expected)
    assert torch.equal(model(**batch.inputs).logits, expected)


@pytest.mark.covering
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", STOCK)
def test_the_network_is_the_same_after_an_error(name: str, way: AbstractContextManager, grad: bool) -> None:
    model = shared_tiny(name)
    with unchanged(model), torch.set_grad_enabled(grad), pytest.raises(KeyboardInterrupt), way(model, HARD):
        raise KeyboardInterrupt


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_block_that_cannot_be_entered_changes_nothing(way: AbstractContextManager) -> None:
    model = shared_tiny("bert", "cls")
    with unchanged(model), pytest.raises(ValueError), way(model, HARD[:2]):  # too few layers
        pass
    wrong = (LayerSpec(2, 3), LayerSpec(2, 3), LayerSpec((0, 7), (1, 30)))  # no such head, no such unit
    with unchanged(model), torch.no_grad(), pytest.raises((IndexError, RuntimeError)), way(model, wrong):
        model(**tiny_batch("bert").inputs)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_the_optimizer_sees_does_not_change_inside(way: AbstractContextManager) -> None:
    model = shared_tiny("distilbert", "cls")
    outside = {id(p) for p in model.parameters()}
    with way(model, OTHER):
        assert {id(p) for p in model.parameters()} == outside
    with way(model, HARD):
        assert {id(p) for p in model.parameters()} < outside


@pytest.mark.parametrize("name", STOCK)
def test_modes_of_single_parts_survive(name: str) -> None:
    model = tiny(name).train()
    layers = model.backbone.get_submodule(model.config.family.layers)
    layers[0].eval()
    with unchanged(model), subnetwork(model, (LayerSpec(2, 3), LayerSpec(0, 0), LayerSpec(0, 4))):
        pass


@pytest.mark.parametrize("inner", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("outer", WAYS.values(), ids=WAYS)
def test_a_block_inside_a_block_is_refused_and_changes_nothing(
    outer: AbstractContextManager, inner: AbstractContextManager
) -> None:
    model, batch = shared_tiny("bert", "cls"), tiny_batch("bert")
    with unchanged(model), outer(model, OTHER):
        expected = model(**batch.inputs).logits
        with pytest.raises(RuntimeError, match="already"), inner(model, HARD):
            pass
        assert torch.equal(model(**batch.inputs).logits, expected)


def test_one_block_after_another_gives_each_its_own_answer() -> None:
    model, batch = shared_tiny("bert", "mean"), tiny_batch("bert")
    first = {i: logits_of(model, spec, batch) for i, spec in enumerate((HARD, OTHER))}
    again = {i: logits_of(model, spec, batch) for i, spec in reversed(list(enumerate((HARD, OTHER))))}
    assert all(torch.equal(first[i], again[i]) for i in first)


def logits_of(model: PrunedNetwork, spec: SubnetSpec, batch: TinyBatch) -> torch.Tensor:
    with subnetwork(model, spec):
        return model(**batch.inputs).logits


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10)), min_size=3, max_size=3), st.booleans(), st.booleans())
def test_any_numbers_of_heads_and_units_are_undone(pairs: list[tuple[int, int]], grad: bool, slicing: bool) -> None:
    model = shared_tiny("qwen3" if sum(units for _, units in pairs) % 2 else "electra-narrow")
    way = subnetwork if slicing else masked_subnetwork
    with unchanged(model), torch.set_grad_enabled(grad), way(model, tuple(LayerSpec(*pair) for pair in pairs)):
        pass
