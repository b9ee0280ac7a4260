"""The layers of an encoder: recording their states, pairing those of student and teacher, and bridging their widths."""

import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from archwright.errors import BadInput
from archwright.networks.families import FAMILIES
from archwright.networks.families.albert import RepeatingEncoder
from archwright.subnet.importance import evaluating
from archwright.training.objectives.heads import Headed
from archwright.training.precision import mixed_precision

PROJECTION_RIDGE = 1e-3
"""Times the mean square of a feature."""
ENCODER_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class RecordedLayer(NamedTuple):
    """The modules of one layer whose outputs are recorded."""

    layer: nn.Module
    attention: nn.Module | None
    """Gives the state after attention, residual and norm; None: the layer has no attention."""


@dataclass
class LayerStates:
    """Of one pass, batch x time x width each; by number of the layer, counted from 1.

    Packed states are those of real tokens alone, tokens x width each.
    """

    inputs: list[torch.Tensor] = field(default_factory=list)
    """Of the first layer, every time it was run."""
    attention: dict[int, torch.Tensor] = field(default_factory=dict)
    """After attention, residual and norm."""
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)
    """At the end of the layer."""
    packed: torch.Tensor | None = None
    """Texts x time, where there is no padding, of packed states."""

    @property
    def embeddings(self) -> torch.Tensor:
        return self.inputs[0]


def encoder_layers(network: Any) -> list[RecordedLayer]:
    """All layers of a network of our spaces, of a pruned one, or of a Hugging Face encoder that norms last.

    A layer that is run again and again, as in ALBERT, is there as often.
    """
    body = network if hasattr(network, "roles") else network.base_model
    if hasattr(body, "roles"):
        return [RecordedLayer(roles.output, roles.mixed) for roles in body.roles().layers]
    kind = body.config.model_type
    if kind == "albert" and not isinstance(
        body.encoder, RepeatingEncoder
    ):  # groups follow one another; the layers of each are run several times in a row
        groups = body.encoder.albert_layer_groups
        turns = body.config.num_hidden_layers // len(groups)
        layers = [layer for group in groups for _ in range(turns) for layer in group.albert_layers]
        return [RecordedLayer(layer, layer.attention.LayerNorm) for layer in layers]
    family = FAMILIES.get(kind)
    if family is None or family.norms_first:
        known = ", ".join(sorted(name for name, other in FAMILIES.items() if not other.norms_first))
        raise BadInput(f"layers of {kind!r} cannot be listened to; take an encoder of {known}.")
    return [
        RecordedLayer(layer, dict(layer.named_modules()).get(family.attention_norm))
        for layer in body.get_submodule(family.layers)
    ]


@contextmanager
def record_layers(network: Any) -> Iterator[LayerStates]:
    """Records the states of one pass inside the block; no hook is left behind."""
    states, layers = LayerStates(), encoder_layers(network)
    with ExitStack() as hooks:
        first = layers[0].layer.register_forward_pre_hook(partial(record_input, states), with_kwargs=True)
        hooks.callback(first.remove)
        for modules, outputs in (
            ([layer.layer for layer in layers], states.hidden),
            ([layer.attention for layer in layers], states.attention),
        ):
            for module, numbers in numbers_by_module(modules).items():
                hooks.callback(module.register_forward_hook(partial(record_output, outputs, iter(numbers))).remove)
        yield states


def numbers_by_module(modules: Sequence[nn.Module | None]) -> dict[nn.Module, list[int]]:
    """The numbers of the layers that each module serves, in the order in which it is run."""
    numbers: dict[nn.Module, list[int]] = {}
    for number, module in enumerate(modules, 1):
        if module is not None:
            numbers.setdefault(module, []).append(number)
    return numbers


def record_input(states: LayerStates, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    states.inputs.append(args[0] if args else kwargs["hidden_states"])


def record_output(outputs: dict[int, torch.Tensor], numbers: Iterator[int], _: nn.Module, __: Any, output: Any) -> None:
    outputs[next(numbers)] = output[0] if isinstance(output, tuple) else output


def run_network(network: Any, inputs: dict[str, torch.Tensor], *, logits: bool) -> torch.Tensor | None:
    """One pass: the logits, or None when they are not wanted and the head is spared."""
    if logits:
        output: torch.Tensor = network(**inputs).logits
        return output
    ours = isinstance(network, Headed)
    body = network if ours else network.base_model
    known = inspect.signature(body.forward).parameters
    names = [name for name in ENCODER_INPUTS if name in inputs and name in known]
    text = {name: inputs[name].flatten(0, -2) for name in names}  # texts x time, where a row has several texts too
    body(**text, **({"loss_alone": True} if ours else {}))
    return None


def layer_map(student: int, teacher: int) -> list[tuple[int, int]]:
    """Pairs of layers, counted from 1: the shorter network's layers, spread evenly over the longer one to its end.

    Student i learns from teacher i x T/S; with more student than teacher layers, teacher j teaches student j x S/T.
    Where the numbers do not divide, the nearest layer is taken, the higher one of two equally near.
    """
    if student <= teacher:
        return [(i, math.floor(i * teacher / student + 0.5)) for i in range(1, student + 1)]
    return [(math.floor(j * student / teacher + 0.5), j) for j in range(1, teacher + 1)]


class Projections(nn.Module):
    """Trainable matrices from the student's widths to the teacher's.

    One for the hidden states of all layers and one for the embeddings; for what attention gives one per kind of layer,
    because a MobileBERT block's is narrower.
    """

    def __init__(self, student: LayerStates, teacher: LayerStates, kinds: dict[int, str]):
        super().__init__()
        self.kinds = kinds

        def matrix(narrow: torch.Tensor, wide: torch.Tensor) -> nn.Linear:
            return nn.Linear(narrow.shape[-1], wide.shape[-1], bias=False)

        self.embeddings = matrix(student.embeddings, teacher.embeddings)
        self.hidden = matrix(student.hidden[1], teacher.hidden[1])
        wide = teacher.attention[1]
        # Checkpoints of half-done trainings know this table as `mixed`.
        self.mixed = nn.ModuleDict({kinds[number]: matrix(state, wide) for number, state in student.attention.items()})

    def attention(self, number: int, state: torch.Tensor) -> torch.Tensor:
        """What attention of this layer gave, as wide as the teacher's."""
        projected: torch.Tensor = self.mixed[self.kinds[number]](state)
        return projected


def build_projections(student: Any, teacher: Any, *, generator: torch.Generator) -> Projections:
    """Matrices for these two networks, their first values from the generator."""
    states, targets = (probe_layers(network) for network in (student, teacher))
    kinds = {
        number: f"{type(layer.layer).__name__}-{states.attention[number].shape[-1]}"
        for number, layer in enumerate(encoder_layers(student), 1)
        if number in states.attention
    }
    with torch.random.fork_rng(devices=[]):
        projections = Projections(states, targets, kinds)
    for matrix in projections.parameters():
        nn.init.xavier_uniform_(matrix, generator=generator)
    return projections.to(states.hidden[1].device)


@torch.no_grad()
def fit_projections(
    projections: Projections, student: Any, teacher: Any, batches: Sequence[Any], precision: str = "float32"
) -> None:
    """Each matrix by least squares with ridge from the student's states on these rows to the teacher's.

    `precision` is that of the passes over the rows.
    """
    pairs = layer_map(len(encoder_layers(student)), len(encoder_layers(teacher)))
    sums: dict[nn.Linear, tuple[torch.Tensor, torch.Tensor]] = {}

    def add(matrix: nn.Linear, states: torch.Tensor, targets: torch.Tensor) -> None:
        features, wanted = states.double(), targets.double()
        gram, products = sums.get(matrix, (0.0, 0.0))
        sums[matrix] = gram + features.T @ features, products + features.T @ wanted

    with evaluating(student), evaluating(teacher):
        for batch in batches:
            with mixed_precision(next(student.parameters()).device, precision):
                with record_layers(teacher) as targets:
                    run_network(teacher, batch.inputs, logits=False)
                with record_layers(student) as states:
                    run_network(student, batch.inputs, logits=False)
            real = batch.inputs["attention_mask"].flatten(0, -2).bool()
            add(projections.embeddings, states.embeddings[real], targets.embeddings[real])
            for own, theirs in pairs:
                add(projections.hidden, states.hidden[own][real], targets.hidden[theirs][real])
                if own in states.attention:
                    matrix = projections.mixed[projections.kinds[own]]
                    add(matrix, states.attention[own][real], targets.attention[theirs][real])
    for matrix, (gram, products) in sums.items():
        gram.diagonal().add_(PROJECTION_RIDGE * gram.diagonal().mean())
        matrix.weight.copy_(torch.linalg.solve(gram, products).T)


@torch.no_grad()
def probe_layers(network: Any) -> LayerStates:
    """The states of a pass over two tokens, for their widths."""
    learning = network.training
    device = next(network.parameters()).device
    with record_layers(network) as states:
        run_network(network.eval(), {"input_ids": torch.ones(1, 2, dtype=torch.long, device=device)}, logits=False)
    network.train(learning)
    return states
