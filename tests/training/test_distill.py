"""Layer-wise distillation: its losses by hand, its layers against another way to see them, its gradients, its hooks."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AlbertConfig, AutoModel, GPT2Config, GPT2Model

from archwright.errors import BadInput
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.objectives.distill import LossWeights, layerwise_update, prediction_loss, state_loss
from archwright.training.objectives.layers import (
    LayerStates,
    Projections,
    build_projections,
    layer_map,
    record_input,
    record_layers,
    record_output,
    run_network,
)
from tests.tiny import BATCHES, ENCODERS, tiny, tiny_batch
from tests.training.cases import FLEXI, NLU, Rows, answers_of, labelled, mlm_network, seeded

RNG = np.random.default_rng(0)


def test_layers_are_matched_from_the_end() -> None:
    assert layer_map(6, 12) == [(1, 2), (2, 4), (3, 6), (4, 8), (5, 10), (6, 12)]
    assert layer_map(12, 12) == [(i, i) for i in range(1, 13)]
    assert layer_map(12, 6) == [(2, 1), (4, 2), (6, 3), (8, 4), (10, 5), (12, 6)]
    assert layer_map(4, 6) == [(1, 2), (2, 3), (3, 5), (4, 6)]
    assert layer_map(6, 4) == [(2, 1), (3, 2), (5, 3), (6, 4)]


@pytest.mark.parametrize("student", range(1, 14))
@pytest.mark.parametrize("teacher", range(1, 14))
def test_every_layer_of_the_shorter_one_has_its_own_partner(student: int, teacher: int) -> None:
    pairs = layer_map(student, teacher)
    assert len(pairs) == min(student, teacher) and pairs[-1] == (student, teacher)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs)) and min(pairs[0]) >= 1


def heard(embeddings: Any, mixed: list[Any], hidden: list[Any]) -> LayerStates:
    """One row of two tokens with one feature each."""
    one, *rest = (torch.tensor(values, dtype=torch.float32)[None, :, None] for values in (embeddings, *mixed, *hidden))
    return LayerStates([one], dict(enumerate(rest[: len(mixed)], 1)), dict(enumerate(rest[len(mixed) :], 1)))


def test_the_loss_of_states_by_hand() -> None:
    student = heard([1.0, 2.0], [[1.0, 1.0]], [[0.0, 3.0]])
    teacher = heard([2.0, 0.0], [[9.0, 9.0], [4.0, 1.0]], [[9.0, 9.0], [1.0, 1.0]])
    between = Projections(student, teacher, {1: "layer"})
    for matrix, value in zip(between.parameters(), (2.0, 0.5, 3.0), strict=True):  # embeddings, hidden, attention
        nn.init.constant_(matrix, value)
    both = state_loss(student, teacher, between, [(1, 2)], torch.tensor([[True, True]]), SINGLE_PROCESS)
    embedded, attention, hidden = (0 + 16) / 2, (1 + 4) / 2, (1 + 0.25) / 2
    assert float(both.detach()) == pytest.approx(embedded + attention + hidden)
    one = state_loss(student, teacher, between, [(1, 2)], torch.tensor([[True, False]]), SINGLE_PROCESS)
    assert float(one.detach()) == pytest.approx(0 + 1 + 1)  # padding has no part


def test_the_loss_of_logits_by_hand() -> None:
    found, aim = torch.tensor([[0.0, 0.0], [0.0, np.log(3.0)]]), torch.tensor([[np.log(3.0), 0.0], [0.0, 0.0]])
    expected = (np.log(2) - 0.5 * np.log(1 / 4) - 0.5 * np.log(3 / 4)) / 2
    assert float(prediction_loss(found, aim, SINGLE_PROCESS)) == pytest.approx(expected, rel=1e-6)
    assert float(prediction_loss(torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [0.0]]), SINGLE_PROCESS)) == 5.0


TEACHERS = {
    **{name: config for name, config in ENCODERS.items() if name != "modernbert"},  # whose norms come first
    "albert": AlbertConfig(
        vocab_size=40,
        hidden_size=16,
        embedding_size=6,
        num_attention_heads=4,
        intermediate_size=10,
        num_hidden_layers=3,
    ),
}


@pytest.mark.parametrize("name", TEACHERS)
def test_every_family_is_heard_as_it_tells_itself(name: str) -> None:
    """Hidden states are compared with those that transformers gives; attention with the last norm done by hand."""
    with torch.random.fork_rng(devices=[]):
        network = AutoModel.from_config(TEACHERS[name]).double().eval()
    batch = tiny_batch("distilbert" if name == "albert" else name)
    with torch.no_grad(), record_layers(network) as told:
        assert not quiet(network)
        answer = network(**batch.inputs, output_hidden_states=True)
    states = [told.embeddings, *(told.hidden[number] for number in sorted(told.hidden))]
    assert len(states) == 4 and all(map(torch.equal, states, answer.hidden_states))
    assert sorted(told.attention) == [1, 2, 3]
    for mixed in told.attention.values():  # what a norm gave, weights 1 and bias 0
        assert torch.allclose(mixed.mean(-1), torch.zeros(()).double(), atol=1e-9)
        assert torch.allclose(mixed.var(-1, correction=0), torch.ones(()).double(), atol=1e-3)
    assert quiet(network)


def quiet(network: nn.Module) -> bool:
    """Whether none of our hooks is left; transformers has its own."""
    kinds = ("_forward_hooks", "_forward_pre_hooks")
    hooks = [hook for one in network.modules() for kind in kinds for hook in getattr(one, kind).values()]
    return not any(getattr(hook, "func", None) in (record_input, record_output) for hook in hooks)


UNUSED = {"segments", "token_type_embeddings", "pooler"}
"""Parts of a body that these batches, or nobody, need."""
STUDENTS = {
    "nlu": lambda: mlm_network(NLU),
    "flexibert": lambda: mlm_network(FLEXI),
    "pruned": lambda: tiny("electra-narrow"),
    "albert": lambda: AutoModel.from_config(TEACHERS["albert"]).double().eval(),
    "distilbert": lambda: AutoModel.from_config(ENCODERS["distilbert"]).double().eval(),
}
"""Networks that may learn, as different from one another as they come."""


@pytest.mark.parametrize("name", STUDENTS)
def test_gradients_reach_the_student_and_the_matrices_never_the_teacher(name: str) -> None:
    student, teacher = STUDENTS[name](), tiny("bert", seed=5)
    between = build_projections(student, teacher, generator=seeded(0)).double()
    before = {key: value.clone() for key, value in teacher.state_dict().items()}
    layerwise_update(student.train(), answers_of(student, teacher.train()), between, LossWeights())(
        labelled(0), RNG, 0.0
    )
    assert all(p.grad is None for p in teacher.parameters()) and not teacher.training and student.training
    assert all(torch.equal(value, before[key]) for key, value in teacher.state_dict().items())
    assert all(p.grad.any() for p in between.parameters())
    body = student.base_model if name in ("pruned", "distilbert", "albert") else student.encoder
    assert all(p.grad is not None for key, p in body.named_parameters() if not set(key.split(".")) & UNUSED)
    assert quiet(student) and quiet(teacher)


@pytest.mark.parametrize("kind", ["choice", "embeddings"])
def test_rows_of_several_texts_are_learnt_without_their_logits(kind: str) -> None:
    student, teacher = tiny("electra-narrow", kind=kind), tiny("bert", kind=kind, seed=5)
    batch = BATCHES[kind]("bert")
    with torch.no_grad(), record_layers(teacher) as whole:
        run_network(teacher, batch.inputs, logits=True)
    with torch.no_grad(), record_layers(teacher) as body:
        run_network(teacher, batch.inputs, logits=False)
    assert all(torch.equal(state, body.hidden[number]) for number, state in whole.hidden.items())
    between = build_projections(student, teacher, generator=seeded(0)).double()
    update = layerwise_update(student, answers_of(student, teacher), between, LossWeights())
    assert update(replace(labelled(0), inputs=batch.inputs), RNG, 0.0) > 0


def test_mobile_blocks_have_their_own_matrix_and_all_else_is_shared() -> None:
    between = build_projections(mlm_network(NLU), tiny("bert"), generator=seeded(0))
    shapes = {name: tuple(matrix.shape) for name, matrix in between.named_parameters()}
    assert shapes == {
        "embeddings.weight": (16, 48),
        "hidden.weight": (16, 48),
        "mixed.NluLayer-48.weight": (16, 48),
        "mixed.MobileLayer-12.weight": (16, 12),
    }
    assert torch.equal(
        build_projections(mlm_network(NLU), tiny("bert"), generator=seeded(0)).hidden.weight, between.hidden.weight
    )
    assert not torch.equal(
        build_projections(mlm_network(NLU), tiny("bert"), generator=seeded(1)).hidden.weight, between.hidden.weight
    )


def squared(found: torch.Tensor, aim: torch.Tensor, real: torch.Tensor) -> float:
    return float(((found - aim)[real] ** 2).mean())


def test_the_whole_loss_by_another_way() -> None:
    student, teacher, batch = tiny("electra-narrow"), tiny("bert", seed=5), labelled(0)
    between = build_projections(student, teacher, generator=seeded(0)).double()
    found = float(
        layerwise_update(student, answers_of(student, teacher, logits=True), between, LossWeights(logits=0.5))(
            batch, RNG, 0.0
        )
    )
    real = batch.inputs["attention_mask"].bool()
    with torch.no_grad():
        (mine, mixed), (aims, aim_mixed) = (seen(network.backbone, batch) for network in (student, teacher))
        matrices = [between.embeddings, *[between.hidden] * 3]
        expected = sum(squared(m(h), aim, real) for m, h, aim in zip(matrices, mine, aims, strict=True))
        (attention,) = between.mixed.values()
        expected += sum(squared(attention(h), aim, real) for h, aim in zip(mixed, aim_mixed, strict=True))
        logits, wanted = (network(**batch.inputs).logits for network in (student, teacher))
    soft = -(wanted.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()
    assert found == pytest.approx(expected + 0.5 * float(soft), rel=1e-9)


def seen(body: Any, batch: Rows) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Hidden states that the body gives by itself, and what its attention blocks return."""
    mixed: list[torch.Tensor] = []
    hooks = [
        layer.attention.register_forward_hook(lambda _, __, out: mixed.append(out[0])) for layer in body.encoder.layer
    ]
    states = body(**batch.inputs, output_hidden_states=True).hidden_states
    for hook in hooks:
        hook.remove()
    return list(states), mixed


def test_hooks_are_gone_after_an_error() -> None:
    network = tiny("bert")
    with pytest.raises(KeyboardInterrupt), record_layers(network):
        raise KeyboardInterrupt
    assert quiet(network)


def test_what_stands_at_padding_does_not_matter() -> None:
    student, teacher, batch = mlm_network(NLU), tiny("bert", seed=5), labelled(0)
    between = build_projections(student, teacher, generator=seeded(0)).double()
    update = layerwise_update(student, answers_of(student, teacher), between, LossWeights())
    padding = batch.inputs["attention_mask"] == 0
    other = Rows({**batch.inputs, "input_ids": batch.inputs["input_ids"].masked_fill(padding, 9)}, batch.targets)
    assert padding.any()
    assert float(update(batch, RNG, 0.0)) == pytest.approx(float(update(other, RNG, 0.0)), rel=1e-12)


def test_a_teacher_that_cannot_be_listened_to_is_refused() -> None:
    teacher = GPT2Model(GPT2Config(vocab_size=9, n_embd=8, n_head=2, n_layer=1))
    with pytest.raises(BadInput, match="gpt2"):
        build_projections(mlm_network(NLU), teacher, generator=seeded(0))
