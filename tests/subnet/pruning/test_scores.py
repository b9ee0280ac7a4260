"""Scores of heads and units: against gradients of explicit masks, text by text, and against numbers made by hand."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.pruning.gradients import MaskGradients, mask_gradients
from archwright.subnet.pruning.scores import fisher_diagonal, head_scores, magnitude_scores
from archwright.training.losses import task_loss
from tests.tiny import BATCHES, BY_QUERIES, DECODERS, STOCK, TinyBatch, shared_tiny, tiny

KINDS = [(name, "lm" if name in DECODERS else "classification") for name in STOCK] + [
    ("bert", "choice"),
    ("roberta", "qa"),
    ("electra", "multi-label"),
    ("llama-queries", "classification"),
]


def layers_of(network: PrunedNetwork) -> nn.ModuleList:
    return network.backbone.get_submodule(network.config.family.layers)


def head_of_column(name: str, columns: int) -> list[int]:
    """Four heads everywhere: neighbouring columns, or by queries every fourth query head of one size."""
    size = columns // 8 if name in BY_QUERIES else columns // 4
    return [column // size % 4 for column in range(columns)]


@contextmanager
def explicit_masks(network: PrunedNetwork, name: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Layers x heads and layers x units: leaf tensors of ones that multiply what the heads and units give."""
    masks = torch.ones(3, 4).double().requires_grad_(), torch.ones(3, 10).double().requires_grad_()
    hooks = []
    for place, layer in enumerate(layers_of(network)):
        mix, down = (layer.get_submodule(path) for path in (network.config.family.mix, network.config.family.down))
        owners = head_of_column(name, mix.in_features)
        for linear, mask, owner in ((mix, masks[0], owners), (down, masks[1], list(range(10)))):
            hook = linear.register_forward_pre_hook(lambda _, args, m=mask, p=place, o=owner: (args[0] * m[p][o],))
            hooks.append(hook)
    yield masks
    for hook in hooks:
        hook.remove()


def single_texts(batches: list[TinyBatch]) -> Iterator[TinyBatch]:
    for batch in batches:
        for row in range(len(batch.targets)):
            inputs = {key: value[row : row + 1] for key, value in batch.inputs.items()}
            yield TinyBatch(inputs, batch.targets[row : row + 1])


def explicit_gradients(network: PrunedNetwork, name: str, batches: list[TinyBatch]) -> MaskGradients:
    rows = []
    with explicit_masks(network, name) as masks:
        for text in single_texts(batches):
            rows.append(torch.autograd.grad(task_loss(network(**text.inputs).logits, text.targets), masks))
    heads, units = (torch.stack(part).unbind(1) for part in zip(*rows, strict=True))
    return MaskGradients(list(heads), list(units))


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_every_text_has_its_own_gradients(name: str, kind: str) -> None:
    network = shared_tiny(name, None, kind)
    batches = [BATCHES[kind](name, seed=3, texts=4), BATCHES[kind](name, seed=4, texts=1, length=5)]
    found, expected = mask_gradients(network, iter(batches), task_loss), explicit_gradients(network, name, batches)
    assert [part.shape for part in found.heads] == [(5, 4)] * 3
    torch.testing.assert_close(found.heads, expected.heads, rtol=1e-7, atol=1e-12)
    torch.testing.assert_close(found.units, expected.units, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(("name", "kind"), [("bert", "classification"), ("mistral-queries", "lm")])
def test_the_gradients_are_what_a_small_step_changes(name: str, kind: str) -> None:
    network, step = shared_tiny(name, None, kind), 1e-5
    (text,) = single_texts([BATCHES[kind](name, texts=1)])
    found = mask_gradients(network, [text], task_loss)
    with torch.no_grad(), explicit_masks(network, name) as masks:
        for mask, gradients, at in ((masks[0], found.heads[1], (1, 2)), (masks[1], found.units[2], (2, 7))):
            losses = []
            for value in (1 + step, 1 - step):
                mask[at] = value
                losses.append(task_loss(network(**text.inputs).logits, text.targets))
            mask[at] = 1
            assert float(gradients[0][at[1]]) == pytest.approx(float(losses[0] - losses[1]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(("name", "kind"), [("distilbert", "classification"), ("gpt2", "lm"), ("llama-groups", "lm")])
def test_head_scores_are_mean_sizes_of_gradients_in_layers_of_length_one(name: str, kind: str) -> None:
    network, batches = shared_tiny(name, None, kind), [BATCHES[kind](name, seed=s, texts=3) for s in range(2)]
    gradients = torch.stack(explicit_gradients(network, name, batches).heads, 1).numpy()
    means = np.array([[sum(abs(row[i][j]) for row in gradients) / 6 for j in range(4)] for i in range(3)])
    lengths = [sum(x * x for x in row) ** 0.5 for row in means]
    expected = [[x / length for x in row] for row, length in zip(means, lengths, strict=True)]
    np.testing.assert_allclose(torch.stack(head_scores(network, batches, task_loss)).numpy(), expected, rtol=1e-7)


def test_the_fisher_diagonal_by_hand() -> None:
    gradients = MaskGradients([torch.tensor([[1.0, -2.0], [3.0, 0.0]])], [torch.tensor([[0.5], [-1.5]])])
    heads, units = fisher_diagonal(gradients)
    assert [part.tolist() for part in heads] == [[5.0, 2.0]]  # (1 + 9) / 2, (4 + 0) / 2
    assert [part.tolist() for part in units] == [[1.25]]  # (0.25 + 2.25) / 2


def ones(name: str, kind: str) -> PrunedNetwork:
    network = tiny(name, kind=kind)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(1)
    return network


@pytest.mark.parametrize(
    ("name", "kind", "head", "unit"),
    [
        ("bert", "classification", 4 * 4 * 16, 2 * 16),  # q, k, v, mix of 4 features; up, down
        ("llama-groups", "lm", 6 * 4 * 16, 3 * 16),  # two queries, one key, one value, two of mix; up, gate, down
        ("llama-queries", "lm", 4 * 4 * 16, 3 * 16),  # one query in each of two groups, and its mix; keys are shared
        ("gpt2", "lm", 4 * 4 * 16, 2 * 16),
    ],
)
def test_magnitudes_of_ones_count_the_weights(name: str, kind: str, head: int, unit: int) -> None:
    heads, units = magnitude_scores(ones(name, kind))
    assert [part.tolist() for part in heads] == [[head] * 4] * 3
    assert [part.tolist() for part in units] == [[unit] * 10] * 3


@pytest.mark.parametrize(
    ("name", "path", "rows", "gain"),
    [
        ("bert", "query", slice(8, 12), 3 * 64),  # 4 x 16 weights of 2 instead of 1: each adds three
        ("bert", "value", slice(8, 12), 3 * 64),
        ("llama-groups", "key", slice(8, 12), 3 * 64),
        ("llama-groups", "query", slice(20, 24), 3 * 64),  # head 2 has the query heads 4 and 5
        ("llama-queries", "query", slice(24, 28), 3 * 64),  # head 2 has the query heads 2 and 6
    ],
)
def test_a_heavier_part_counts_for_its_head_alone(name: str, path: str, rows: slice, gain: int) -> None:
    network = ones(name, "lm" if name in DECODERS else "classification")
    before, _ = magnitude_scores(network)
    linear = layers_of(network)[1].get_submodule(getattr(network.config.family, path))
    with torch.no_grad():
        linear.weight[rows] = 2
    after, _ = magnitude_scores(network)
    expected = torch.zeros(3, 4).double()
    expected[1, 2] = gain
    assert (torch.stack(after) - torch.stack(before)).tolist() == expected.tolist()


@pytest.mark.parametrize("path", ["up", "gate"])
def test_a_heavier_row_of_the_ffn_counts_for_its_unit(path: str) -> None:
    network = ones("llama", "lm")
    with torch.no_grad():
        layers_of(network)[0].get_submodule(getattr(network.config.family, path)).weight[7] = 2
    _, units = magnitude_scores(network)
    assert units[0].tolist() == [48.0] * 7 + [96.0] + [48.0] * 2


def test_recording_leaves_no_trace_and_repeats() -> None:
    network, batches = tiny("bert").train(), [BATCHES["classification"]("bert", seed=s) for s in range(2)]
    first, second = (mask_gradients(network, batches, task_loss) for _ in range(2))
    assert all(map(torch.equal, first.heads, second.heads))
    assert all(map(torch.equal, first.units, second.units))
    assert network.training
    assert all(p.grad is None for p in network.parameters())
    assert not any(m._forward_pre_hooks for m in network.modules())
