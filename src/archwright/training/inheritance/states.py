"""What teacher and student compute on some rows, recorded in passing."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from archwright.data.batching import Batch
from archwright.networks.families import FAMILIES
from archwright.networks.families.family import Family
from archwright.networks.nlu.network import NluEmbeddings
from archwright.networks.pruned import PrunedNetwork
from archwright.training.precision import mixed_precision

ROLES = ("query", "key", "value", "mix", "up", "down")
"""Linears of a teacher's layer, as a Family names them."""


@dataclass(frozen=True)
class TeacherLayer:
    """A layer of the teacher: its modules, and what it computed at the tokens of the recorded rows (tokens x width)."""

    number: int
    """From 1."""
    modules: dict[str, Any]
    """Linears by their role: query, key, value, mix, up, down."""
    heads: int
    inputs: torch.Tensor
    attention_sum: torch.Tensor
    """Before the norm behind attention."""
    attention: torch.Tensor
    ffn_sum: torch.Tensor
    outputs: torch.Tensor


def norm_width(body: Any, family: Family) -> int:
    return int(body.get_submodule(family.embedding_norm).weight.shape[0])


def body_of(network: Any) -> Any:
    return network.backbone if isinstance(network, PrunedNetwork) else network


def family_of(network: Any) -> Any:
    return FAMILIES.get(body_of(network).config.model_type)


def teacher_layers(teacher: Any) -> Any:
    return body_of(teacher).get_submodule(family_of(teacher).layers)


def mask_of(batch: Batch) -> torch.Tensor:
    """Batch x time, true where there is no padding."""
    ids = batch.inputs["input_ids"]
    return batch.inputs.get("attention_mask", torch.ones_like(ids)).bool()


@contextmanager
def record(module: nn.Module, *, inputs: bool = False) -> Iterator[list[torch.Tensor]]:
    """What a module was given, or gave, in every pass inside the block; no hook is left behind."""
    tensors: list[torch.Tensor] = []

    def listen(_: nn.Module, given: tuple[Any, ...], output: Any = None) -> None:
        value = given[0] if inputs else output
        tensors.append((value[0] if isinstance(value, tuple) else value).detach())

    hook = module.register_forward_pre_hook(listen) if inputs else module.register_forward_hook(listen)
    try:
        yield tensors
    finally:
        hook.remove()


def at_tokens(tensors: Sequence[torch.Tensor], masks: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tokens x width, without padding, in float32."""
    return torch.cat([tensor[mask].float() for tensor, mask in zip(tensors, masks, strict=True)])


@dataclass(frozen=True)
class TeacherStates:
    """What a teacher computed on some rows, tokens x width each, padding left out."""

    batches: list[Batch]
    embedding_sum: torch.Tensor
    """Before the norm behind the embeddings."""
    embeddings: torch.Tensor
    layers: dict[int, TeacherLayer]
    """By number, from 1; those that a student learns from."""


def record_teacher(
    teacher: Any, batches: list[Batch], numbers: Sequence[int], precision: str = "float32"
) -> TeacherStates:
    """One pass over the rows, with matrix products of this precision."""
    family, body, masks = family_of(teacher), body_of(teacher), [mask_of(batch) for batch in batches]
    known = set(inspect.signature(body.forward).parameters)
    with ExitStack() as stack:

        def listen(module: nn.Module, *, inputs: bool = False) -> list[torch.Tensor]:
            return stack.enter_context(record(module, inputs=inputs))

        norm = body.get_submodule(family.embedding_norm)
        embeddings = listen(norm, inputs=True), listen(norm)
        layers = {}
        for number in numbers:
            layer = teacher_layers(teacher)[number - 1]
            query, attention_norm, ffn_norm = map(
                layer.get_submodule, (family.query, family.attention_norm, family.ffn_norm)
            )
            taps = [(query, True), (attention_norm, True), (attention_norm, False), (ffn_norm, True), (ffn_norm, False)]
            layers[number] = [listen(module, inputs=inputs) for module, inputs in taps]
        stack.enter_context(mixed_precision(next(teacher.parameters()).device, precision))
        for batch in batches:
            body(**{name: value for name, value in batch.inputs.items() if name in known})
    heads = getattr(body.config, family.heads)
    before, after = (at_tokens(tensors, masks) for tensors in embeddings)
    recorded = {}
    for number, tapped in layers.items():
        modules = {role: teacher_layers(teacher)[number - 1].get_submodule(getattr(family, role)) for role in ROLES}
        recorded[number] = TeacherLayer(number, modules, heads, *(at_tokens(tensors, masks) for tensors in tapped))
    return TeacherStates(batches, before, after, recorded)


def pass_on(layer: TeacherLayer) -> TeacherLayer:
    """A layer between two of the teacher's: it has the next one's weights to begin with, and changes nothing."""
    x = layer.inputs
    return TeacherLayer(layer.number, layer.modules, layer.heads, x, x, x, x, x)


def run_embeddings(embeddings: NluEmbeddings, batches: Sequence[Batch]) -> list[torch.Tensor]:
    return [embeddings(b.inputs["input_ids"], mask_of(b), b.inputs.get("token_type_ids")) for b in batches]


@dataclass(frozen=True)
class StudentStates:
    """What enters a layer of the student: its states and where they are no padding, batch by batch."""

    states: list[torch.Tensor]
    masks: list[torch.Tensor]
    precision: str = "float32"
    """Of the matrix products in layers."""

    @classmethod
    def begin(cls, embeddings: NluEmbeddings, rows: TeacherStates, precision: str = "float32") -> "StudentStates":
        return cls(run_embeddings(embeddings, rows.batches), [mask_of(batch) for batch in rows.batches], precision)

    def behind(self, layer: nn.Module) -> "StudentStates":
        with mixed_precision(self.states[0].device, self.precision):
            states = [layer(state, mask).float() for state, mask in zip(self.states, self.masks, strict=True)]
        return StudentStates(states, self.masks, self.precision)

    def run(self, layer: nn.Module, module: nn.Module, *, inputs: bool = False) -> torch.Tensor:
        """What a module inside the layer gives, or is given, tokens x width."""
        with record(module, inputs=inputs) as tensors:
            self.behind(layer)
        return at_tokens(tensors, self.masks)

    @property
    def tokens(self) -> torch.Tensor:
        return at_tokens(self.states, self.masks)
