"""Tiny trainings of every lesson, for tests in this process and in others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.networks import lts_gpt2
from archwright.networks.cells.model import CellConfig, build_cells
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.network import build_flexibert
from archwright.networks.nlu.config import NluConfig
from archwright.networks.nlu.network import build_nlu
from archwright.spaces.checkpoints import space_of_model
from archwright.subnet.spec import LayerSpec
from archwright.subnet.strategies import STRATEGIES, SubnetDraws
from archwright.subnet.supernet import plain_update, supernet_update
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.losses import distillation, task_loss
from archwright.training.objectives.causal import RecurrentStates, causal_update
from archwright.training.objectives.distill import LossWeights, layerwise_update
from archwright.training.objectives.electra import electra_update, share_embeddings
from archwright.training.objectives.layers import build_projections, encoder_layers, layer_map
from archwright.training.objectives.mlm import mlm_update
from archwright.training.teaching.answers import KeptAnswers
from tests.tiny import tiny

WORDS = 40
MASK = 3


@dataclass(frozen=True)
class Rows:
    """A batch with the positions of its rows."""

    inputs: dict[str, torch.Tensor]
    targets: torch.Tensor
    rows: Sequence[int] = ()

    def to(self, device: torch.device) -> "Rows":
        return self


@dataclass(frozen=True)
class Case:
    """One training: what is trained, how, on what."""

    model: nn.Module
    update: Callable[..., Any]
    batches: list[Rows]
    carry: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


def text(seed: int, *, rows: int = 3, time: int = 8, padded: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids and their mask; rows end at different places."""
    rng = np.random.default_rng((seed, rows))
    ids = torch.tensor(rng.integers(4, WORDS, size=(rows, time)))
    lengths = np.append(rng.integers(3, time + 1, size=rows - 1), time) if padded else np.full(rows, time)
    mask = torch.tensor(np.arange(time) < lengths[:, None]).long()
    return ids * mask, mask


def labelled(seed: int, rows: int = 3) -> Rows:
    ids, mask = text(seed, rows=rows)
    return Rows({"input_ids": ids, "attention_mask": mask}, torch.arange(rows) % 3)


def masked(seed: int, rows: int = 3) -> Rows:
    """About a third of the tokens hidden, at least one per row."""
    ids, mask = text(seed, rows=rows)
    hidden = torch.tensor(np.random.default_rng((seed, 1)).random(ids.shape) < 0.3) & mask.bool()
    hidden[:, 1] = True
    inputs = {"input_ids": ids.masked_fill(hidden, MASK), "attention_mask": mask}
    return Rows(inputs, torch.where(hidden, ids, -100))


def next_tokens(seed: int, rows: int = 3, first: Sequence[int] = ()) -> Rows:
    ids, mask = text(seed, rows=rows, padded=False)
    aims = torch.cat([ids[:, 1:], torch.full((rows, 1), -100)], 1)
    return Rows({"input_ids": ids, "attention_mask": mask}, aims, first)


def both(one: Rows, other: Rows) -> Rows:
    """The rows of two batches in one."""
    inputs = {name: torch.cat([one.inputs[name], other.inputs[name]]) for name in one.inputs}
    return Rows(inputs, torch.cat([one.targets, other.targets]), (*one.rows, *other.rows))


FLEXI = FlexiBertConfig(
    layers=[["SA/SDP", 2, [12]], ["DSC/5", 4, [8, 8]], ["SA/WMA", 4, [12]]],
    hidden_size=16,
    embedding_size=8,
    vocab_size=WORDS,
    max_position_embeddings=16,
    loss="mlm",
)
NLU = NluConfig(
    layers=[["base", 12], ["mobile", 8], ["mobile", 12]],
    hidden_size=48,
    heads=4,
    embedding_size=8,
    vocab_size=WORDS,
    max_position_embeddings=16,
    loss="mlm",
)
GPT2 = lts_gpt2.LtsGpt2Config(
    n_head=[2, 4], d_inner=[12, 8], d_model=16, d_embed=16, n_token=WORDS, n_positions=16, cutoffs=[20, 30]
)
CELLS = CellConfig(vocab_size=WORDS, embedding_size=8, hidden_size=10, num_hidden_layers=2)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def mlm_network(config: Any = FLEXI) -> Any:
    made = {FlexiBertConfig: build_flexibert, NluConfig: build_nlu}
    return spread(made[type(config)](config, generator=seeded(0)))


def spread(network: Any) -> Any:
    """Weights ten times as large, so that tiny networks say something, in float64."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(10)
    return network.double()


def task(group: ProcessGroup) -> Case:
    model = tiny("bert")
    update = plain_update(model, loss=partial(task_loss, group=group))
    return Case(model, update, [labelled(seed, 3 + seed % 2) for seed in range(4)])


def sandwich(group: ProcessGroup) -> Case:
    model = tiny("bert")
    draw = SubnetDraws((LayerSpec(4, 10),) * 3, (LayerSpec(1, 2),) * 3, one_of_many, one_of_many)
    distil = partial(distillation, temperature=4.0, group=group)
    loss = partial(task_loss, group=group)
    update = supernet_update(model, draw, STRATEGIES["full"], loss=loss, distil=distil)
    return Case(model, update, [labelled(seed, 3 + seed % 2) for seed in range(4)])


def one_of_many(rng: np.random.Generator, progress: float = 0.0) -> Any:
    return tuple(LayerSpec(int(rng.integers(0, 5)), int(rng.integers(0, 11))) for _ in range(3))


def masked_case(group: ProcessGroup) -> Case:
    model = mlm_network()
    return Case(model, mlm_update(model, group=group), [masked(seed, 3 + seed % 2) for seed in range(4)])


def masked_nlu(group: ProcessGroup) -> Case:
    model = mlm_network(NLU)
    return Case(model, mlm_update(model, group=group), [masked(seed, 3 + seed % 2) for seed in range(4)])


def causal(group: ProcessGroup) -> Case:
    model = spread(lts_gpt2.build_lts_gpt2(GPT2, seeded(0)))
    return Case(model, causal_update(model, group=group), [next_tokens(seed, 3 + seed % 2) for seed in range(4)])


def recurrent(group: ProcessGroup) -> Case:
    """Four windows of three streams in a row: the states go on from each to the next."""
    model, states = spread(build_cells(CELLS, seeded(0))), RecurrentStates()
    data = [next_tokens(seed, first=(seed, 10 + seed, 20 + seed)) for seed in range(4)]
    return Case(model, causal_update(model, states=states, group=group), data, carry=states)


def generator_network(discriminator: Any, size: float = 0.25) -> Any:
    """ELECTRA's generator for a discriminator of this config."""
    space = space_of_model(discriminator.model_type)
    assert space is not None
    return space.plan_network(space.generator_plan(discriminator, size), generator=seeded(1))


def electra(group: ProcessGroup) -> Case:
    discriminator = FlexiBertConfig(**{**FLEXI.to_dict(), "loss": "electra"})
    told, generator = mlm_network(discriminator), spread(generator_network(discriminator))
    model = share_embeddings(generator, told)
    return Case(model, electra_update(generator, told, group=group), [masked(seed) for seed in range(4)])


def answers_of(student: Any, teacher: Any, *, logits: bool = False) -> KeptAnswers:
    """What the student is compared with by its layers."""
    pairs = layer_map(len(encoder_layers(student)), len(encoder_layers(teacher)))
    return KeptAnswers(teacher, [theirs for _, theirs in pairs], logits=logits)


def layerwise(group: ProcessGroup, gamma: float = 0.0) -> Case:
    """A mixed NLU student and a BERT teacher; with gamma, two classifiers."""
    teacher = tiny("bert", seed=5)
    student = mlm_network(NLU) if not gamma else tiny("electra-narrow")
    projections = build_projections(student, teacher, generator=seeded(2)).double()
    model = nn.ModuleDict({"student": student, "projections": projections})
    answers = answers_of(student, teacher, logits=gamma > 0)
    update = layerwise_update(student, answers, projections, LossWeights(logits=gamma), group=group)
    data = [labelled(seed, 3 + seed % 2) for seed in range(4)]
    return Case(model, update, data, extra={"teacher": teacher})


CASES: dict[str, Callable[[ProcessGroup], Case]] = {
    "task": task,
    "sandwich": sandwich,
    "masked": masked_case,
    "masked-nlu": masked_nlu,
    "causal": causal,
    "recurrent": recurrent,
    "electra": electra,
    "layerwise": layerwise,
    "layerwise-logits": partial(layerwise, gamma=1.0),
}
"""Every lesson."""
DEALT = [name for name in CASES if name not in ("recurrent", "electra")]
"""Those whose gradient follows from the rows alone, not from their order or from draws."""


def gradients(case: Case, batches: list[Rows], group: ProcessGroup = SINGLE_PROCESS) -> dict[str, torch.Tensor]:
    """Of one step over these batches of this process, dropout off."""
    case.model.eval()
    case.model.zero_grad()
    with group.step(batches):
        for batch in batches:
            case.update(batch, np.random.default_rng(7), 0.5)
    group.average([p for p in case.model.parameters() if p.requires_grad])
    return {name: p.grad.clone() for name, p in case.model.named_parameters() if p.grad is not None}
