"""What goes on inside an encoder: its embeddings, and every layer's states after attention and at its end."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from archwright.errors import BadInput
from archwright.networks.families import FAMILIES
from archwright.training.objectives.mlm import Headed

TEXT = ("input_ids", "attention_mask", "token_type_ids")
"""What a body reads."""


class Post(NamedTuple):
    """Where to listen in one layer."""

    layer: nn.Module
    mixed: nn.Module | None
    """Gives the state after attention, residual and norm; None: the layer has no attention."""


@dataclass
class Heard:
    """Of one pass, batch x time x width each; by number of the layer, counted from 1."""

    inputs: list[torch.Tensor] = field(default_factory=list)
    """Of the first layer, every time it was run."""
    mixed: dict[int, torch.Tensor] = field(default_factory=dict)
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)

    @property
    def embeddings(self) -> torch.Tensor:
        return self.inputs[0]


def posts(network: Any) -> list[Post]:
    """All layers of a network of our spaces, of a pruned one, or of a Hugging Face encoder that norms last.

    A layer that is run again and again, as in ALBERT, is there as often.
    """
    body = network if hasattr(network, "roles") else network.base_model
    if hasattr(body, "roles"):
        return [Post(roles.output, roles.mixed) for roles in body.roles().layers]
    kind = body.config.model_type
    if kind in SHARED:
        return SHARED[kind](body)
    family = FAMILIES.get(kind)
    if family is None or family.causal:
        known = ", ".join(sorted({*SHARED, *(name for name, one in FAMILIES.items() if not one.causal)}))
        raise BadInput(f"layers of {kind!r} cannot be listened to; take an encoder of {known}.")
    return [Post(layer, part(layer, family.attention_norm)) for layer in body.get_submodule(family.layers)]


def albert_posts(body: Any) -> list[Post]:
    """Groups follow one another; the layers of each are run several times in a row."""
    groups = body.encoder.albert_layer_groups
    turns = body.config.num_hidden_layers // len(groups)
    layers = [layer for group in groups for _ in range(turns) for layer in group.albert_layers]
    return [Post(layer, layer.attention.LayerNorm) for layer in layers]


SHARED: dict[str, Callable[[Any], list[Post]]] = {"albert": albert_posts}
"""Families that run a layer more than once."""


def part(layer: nn.Module, path: str) -> nn.Module | None:
    try:
        return layer.get_submodule(path)
    except AttributeError:
        return None


@contextmanager
def listening(network: Any) -> Iterator[Heard]:
    """Notes what one pass inside the block says; no hook is left behind."""
    heard, layers = Heard(), posts(network)
    with ExitStack() as hooks:
        first = layers[0].layer.register_forward_pre_hook(partial(note_input, heard), with_kwargs=True)
        hooks.callback(first.remove)
        for modules, notes in (
            ([post.layer for post in layers], heard.hidden),
            ([post.mixed for post in layers], heard.mixed),
        ):
            for module, numbers in places_of(modules).items():
                hooks.callback(module.register_forward_hook(partial(note_output, notes, iter(numbers))).remove)
        yield heard


def places_of(modules: Sequence[nn.Module | None]) -> dict[nn.Module, list[int]]:
    """The numbers of the layers that each module serves, in the order in which it is run."""
    places: dict[nn.Module, list[int]] = {}
    for number, module in enumerate(modules, 1):
        if module is not None:
            places.setdefault(module, []).append(number)
    return places


def note_input(heard: Heard, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    heard.inputs.append(args[0] if args else kwargs["hidden_states"])


def note_output(notes: dict[int, torch.Tensor], turns: Iterator[int], _: nn.Module, __: Any, output: Any) -> None:
    notes[next(turns)] = output[0] if isinstance(output, tuple) else output


def answer(network: Any, inputs: dict[str, torch.Tensor], *, logits: bool) -> torch.Tensor | None:
    """One pass: the logits, or None when they are not wanted and the head is spared."""
    if logits:
        found: torch.Tensor = network(**inputs).logits
        return found
    ours = isinstance(network, Headed)
    body = network if ours else network.base_model
    known = inspect.signature(body.forward).parameters
    text = {name: inputs[name] for name in TEXT if name in inputs and name in known}
    body(**text, **({"loss_alone": True} if ours else {}))
    return None
