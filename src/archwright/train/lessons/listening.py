"""What goes on inside an encoder: its embeddings, and every layer's states after attention and at its end."""

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from archwright.errors import BadInput
from archwright.networks.families import FAMILIES
from archwright.train.lessons.masked import Headed

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

    embeddings: list[torch.Tensor] = field(default_factory=list)
    """The input of the first layer, once it was heard."""
    mixed: dict[int, torch.Tensor] = field(default_factory=dict)
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)

    @property
    def first(self) -> torch.Tensor:
        return self.embeddings[-1]


def posts(network: Any) -> list[Post]:
    """All layers of a network of our spaces, of a pruned one, or of a Hugging Face encoder that norms last."""
    body = network if hasattr(network, "roles") else network.base_model
    if hasattr(body, "roles"):
        return [Post(roles.output, roles.mixed) for roles in body.roles().layers]
    family = FAMILIES.get(body.config.model_type)
    if family is None or family.causal:
        known = ", ".join(sorted(name for name, one in FAMILIES.items() if not one.causal))
        raise BadInput(f"layers of {body.config.model_type!r} cannot be listened to; take an encoder of {known}.")
    layers = body.get_submodule(family.layers)
    return [Post(layer, part(layer, family.attention_norm)) for layer in layers]


def part(layer: nn.Module, path: str) -> nn.Module | None:
    try:
        return layer.get_submodule(path)
    except AttributeError:
        return None


@contextmanager
def listening(network: Any) -> Iterator[Heard]:
    """Notes what every pass inside the block says; no hook is left behind."""
    heard, layers = Heard(), posts(network)
    with ExitStack() as hooks:
        first = layers[0].layer.register_forward_pre_hook(partial(note_input, heard), with_kwargs=True)
        hooks.callback(first.remove)
        for number, post in enumerate(layers, 1):
            for module, notes in ((post.layer, heard.hidden), (post.mixed, heard.mixed)):
                if module is not None:
                    hooks.callback(module.register_forward_hook(partial(note_output, notes, number)).remove)
        yield heard


def note_input(heard: Heard, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    heard.embeddings.append(args[0] if args else kwargs["hidden_states"])


def note_output(notes: dict[int, torch.Tensor], number: int, _: nn.Module, __: Any, output: Any) -> None:
    notes[number] = output[0] if isinstance(output, tuple) else output


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
