"""First weights from a teacher: exact where the student has room, by least squares where it has not."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import layer_norm
from transformers import AutoModel, BertConfig, DistilBertConfig, GPT2Config, RobertaConfig

from archwright.data.batching import Batch
from archwright.data.encoding import Encoded
from archwright.errors import BadInput
from archwright.networks.nlu.config import NluConfig
from archwright.networks.nlu.network import NluModel, build_nlu
from archwright.training.inheritance.fitting import explained_variance, fit_linear, fit_norm
from archwright.training.inheritance.layers import low_rank_scores, low_rank_values
from archwright.training.inheritance.start import (
    calibration_batches,
    check_start,
    inherit_from_teacher,
    lift_states,
    split_rows,
)
from archwright.training.inheritance.states import record_teacher

SIZES: dict[str, Any] = {"vocab_size": 60, "hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 20}
ROOM: dict[str, Any] = {"num_hidden_layers": 2, "max_position_embeddings": 20, "layer_norm_eps": 1e-12}


def teacher_of(config_class: Any = BertConfig, **changes: Any) -> Any:
    torch.manual_seed(0)
    network = AutoModel.from_config(config_class(**{**SIZES, **ROOM, **changes})).eval()
    for name, parameter in network.named_parameters():  # of a size at which layers matter, as trained ones do
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.3)
        elif "LayerNorm" in name or "layer_norm" in name:
            parameter.data.add_(0.1 * torch.randn_like(parameter))
    return network


def student_of(*blocks: tuple[str, int], **changes: Any) -> NluModel:
    sizes = {"hidden_size": 24, "heads": 4, "embedding_size": 24, "vocab_size": 60, "max_position_embeddings": 20}
    config = NluConfig(blocks, **{**sizes, **changes})
    return build_nlu(config, generator=torch.Generator().manual_seed(1)).encoder


def rows_of(number: int = 24, length: int = 12) -> list[Batch]:
    rng, batches = np.random.default_rng(0), []
    for first in range(0, 4 * number, number):
        ids = torch.from_numpy(rng.integers(5, 60, size=(number, length)))
        mask = (torch.arange(length) < torch.from_numpy(rng.integers(4, length + 1, size=number))[:, None]).long()
        inputs = {"input_ids": ids * mask, "attention_mask": mask}
        batches.append(Batch(inputs, torch.zeros(number), np.arange(first, first + number)))
    return batches


@pytest.mark.parametrize("config_class", [BertConfig, RobertaConfig])
def test_a_student_with_room_for_all_of_it_is_the_teacher(config_class: Any) -> None:
    teacher, student, batches = teacher_of(config_class), student_of(("base", 20), ("base", 20)), rows_of()
    parts = inherit_from_teacher(student, teacher, batches)
    assert [part.part for part in parts] == ["embeddings", "layer 1 (base-20)", "layer 2 (base-20)"]
    assert min(float(part.explained or 0) for part in parts) > 1 - 1e-5
    assert not student.training and all(not module._forward_hooks for module in teacher.modules())


def test_a_wider_student_holds_nearly_all_of_it_and_zeros() -> None:
    student, batches = student_of(("base", 20), ("mobile", 20), hidden_size=40, inner_size=20), rows_of()
    parts = inherit_from_teacher(student, teacher_of(), batches)
    assert min(float(part.explained or 0) for part in parts[:2]) > 0.9
    states = student(**batches[0].inputs, output_hidden_states=True).hidden_states
    assert all(not state[..., 24:].any() and state[..., :24].std() > 0.5 for state in states)


@pytest.mark.parametrize("block", ["base", "mobile"])
def test_a_narrow_student_has_much_more_of_it_than_a_new_one(block: str) -> None:
    sizes = {"hidden_size": 16, "embedding_size": 12, "inner_size": 8}
    student, teacher, batches = student_of((block, 12), (block, 12), **sizes), teacher_of(), rows_of()
    parts = inherit_from_teacher(student, teacher, batches)
    (wanted,) = (teacher(**batch.inputs).last_hidden_state for batch in batches[3:])
    lift = lift_states(16, record_teacher(teacher, batches[:3], [1, 2]))
    mask, targets = batches[3].inputs["attention_mask"].bool(), (wanted @ lift.T).detach()
    new, filled = (
        explained_variance(body(**batches[3].inputs).last_hidden_state[mask], targets[mask])
        for body in (student_of((block, 12), (block, 12), **sizes), student)
    )
    assert filled == pytest.approx(float(parts[-1].explained or 0), abs=1e-4)
    assert new < -0.2 and -0.05 < filled < 0.999 and float(parts[0].explained or 0) > 0.5
    again = student_of((block, 12), (block, 12), **sizes)
    inherit_from_teacher(again, teacher, batches)
    assert all(torch.equal(a, b) for a, b in zip(student.parameters(), again.parameters(), strict=True))


def test_passes_in_bfloat16_fit_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, teacher, batches = {"hidden_size": 40, "inner_size": 20}, teacher_of(), rows_of()
    kinds, forward = set(), nn.functional.layer_norm

    def listen(values: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        kinds.add((torch.is_autocast_enabled("cpu"), values.dtype))
        return forward(values, *args, **options)

    monkeypatch.setattr(nn.functional, "layer_norm", listen)
    exact, quick = (student_of(("base", 20), ("mobile", 20), **sizes) for _ in range(2))
    shares = [
        [float(part.explained or 0) for part in inherit_from_teacher(student, teacher, batches, precision)]
        for student, precision in ((exact, "float32"), (quick, "bfloat16"))
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.02) and shares[0] != shares[1]
    assert any(autocast for autocast, _ in kinds)
    assert all(parameter.dtype is torch.float32 for parameter in quick.parameters())


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 16, 20, 32, 40, 70, 300])
@pytest.mark.parametrize("choices", [1, 2])
def test_judged_rows_are_not_fitted_on(rows: int, choices: int) -> None:
    texts = rows * choices
    encoded = Encoded(np.ones(4 * texts, np.int32), 4 * np.arange(texts + 1), None, np.zeros(rows), 0, choices=choices)
    fit, judged = (
        [row for batch in part for row in batch.rows] for part in split_rows(calibration_batches(encoded, 0))
    )
    assert sorted(fit + judged) == list(range(rows)) and len(fit) >= 1
    assert bool(judged) == (rows > 1) and abs(len(fit) / rows - 0.75) < (0.3 if rows < 8 else 0.2)


@pytest.mark.parametrize(("batches", "none"), [(1, True), (2, False)])
def test_without_rows_to_judge_by_nothing_is_said_to_be_explained(batches: int, none: bool) -> None:
    parts = inherit_from_teacher(student_of(("base", 20), ("base", 20)), teacher_of(), rows_of()[:batches])
    assert {part.explained is None for part in parts} == {none}


def test_layers_between_two_of_the_teacher_pass_on() -> None:
    student = student_of(*[("base", 20)] * 4)
    parts = inherit_from_teacher(student, teacher_of(), rows_of())
    assert [part.explained is None for part in parts] == [False, True, False, True, False]
    assert float(parts[2].explained or 0) > 0.8 and float(parts[4].explained or 0) > 0.7


def test_fewer_layers_than_the_teacher() -> None:
    parts = inherit_from_teacher(student_of(("base", 20)), teacher_of(), rows_of())
    assert parts[1].source == "layer 2 of the teacher" and float(parts[1].explained or 0) > 0.0


def test_scores_and_values_of_a_head() -> None:
    rng = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(6, 11, generator=rng, dtype=torch.float64) for _ in range(3))
    mix = torch.randn(9, 6, generator=rng, dtype=torch.float64)
    inputs = torch.randn(200, 11, generator=rng, dtype=torch.float64) * torch.linspace(0.2, 3, 11)
    root = torch.linalg.cholesky(inputs.T @ inputs / 200)
    scores = (inputs @ query.T) @ (inputs @ key.T).T / 6**0.5
    moved = inputs @ value.T @ mix.T
    errors: list[tuple[float, float]] = []
    for size in (3, 6, 8):
        small_query, small_key = low_rank_scores(query, key, root, size)
        small_value, small_mix = low_rank_values(value, mix, root, size)
        assert len(small_query) == min(size, 6) and len(small_value) == min(size, 6)
        near = (inputs @ small_query.T) @ (inputs @ small_key.T).T / size**0.5
        errors.append((float((near - scores).norm()), float((inputs @ small_value.T @ small_mix.T - moved).norm())))
    first_rows = (inputs @ query[:3].T) @ (inputs @ key[:3].T).T / 6**0.5
    assert errors[0][0] < float((first_rows - scores).norm())
    assert errors[0][1] < float((inputs @ value[:3].T @ mix[:, :3].T - moved).norm())
    assert max(errors[1]) < 1e-8 and max(errors[2]) < 1e-8


@torch.no_grad()
def test_least_squares_finds_what_made_the_numbers() -> None:
    rng = torch.Generator().manual_seed(4)
    features, made = torch.randn(400, 5, generator=rng), nn.Linear(5, 3)
    linear = nn.Linear(5, 3)
    for _ in range(20):  # each time what the ridge held back is less
        fit_linear(linear, features, made(features))
    assert torch.allclose(linear.weight, made.weight, atol=1e-5) and torch.allclose(linear.bias, made.bias, atol=1e-5)
    norm, states = nn.LayerNorm(5), torch.randn(400, 5, generator=rng)
    gain, bias = torch.randn(5, generator=rng), torch.randn(5, generator=rng)
    fit_norm(norm, states, layer_norm(states, (5,)) * gain + bias)
    assert torch.allclose(norm.weight, gain, atol=1e-4) and torch.allclose(norm.bias, bias, atol=1e-4)


def test_what_cannot_be_started_from() -> None:
    student = student_of(("base", 20))
    small = GPT2Config(vocab_size=60, n_embd=16, n_head=2, n_layer=1, n_positions=16)
    with pytest.raises(BadInput, match="--start teacher takes layers of an encoder such as bert"):
        check_start(student, AutoModel.from_config(small))
    with pytest.raises(BadInput, match="--start teacher fills networks of the nlu spaces, got 'bert'"):
        check_start(teacher_of(), teacher_of())


def test_a_teacher_without_segments() -> None:
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=60, dim=24, n_heads=4, hidden_dim=20, n_layers=2, max_position_embeddings=20)
    parts = inherit_from_teacher(
        student_of(("base", 20), ("base", 20)), AutoModel.from_config(config).eval(), rows_of()
    )
    assert min(float(part.explained or 0) for part in parts) > 0.99
