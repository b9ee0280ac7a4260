"""What a formula looks at: LPZero's six inputs, and those of the extended space beside them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from archwright.probe import Layer, Probe, Signal, Weight

    Recorded = Iterable[Signal | Weight | None]


@dataclass(frozen=True)
class Part:
    """One tensor of a probe, read when needed; several inputs may share it."""

    owner: Any
    kind: str
    """A key of READ."""

    @property
    def key(self) -> tuple[int, str]:
        """The same for the same tensor, as long as the probe lives."""
        return id(self.owner), self.kind

    def read(self) -> "torch.Tensor":
        return READ[self.kind](self.owner)


READ: "dict[str, Callable[[Any], torch.Tensor]]" = {
    "value": lambda one: one.value,
    "gradient": lambda one: one.gradient,
    "product": lambda one: one.value * one.gradient,
    "inputs": lambda probe: probe.inputs,
}


@dataclass(frozen=True)
class Source:
    """Tensors of a layer by role; several of a layer are each taken through the chain and then averaged."""

    latex: str
    summary: str
    find: "Callable[[Probe, Layer], list[Part]]"
    """Nothing where the layer does not have the role."""
    python: str
    """Expression in probe and layer that gives the same."""
    passes: tuple[str, ...] = ("forward",)
    roles: tuple[str, ...] = ()
    """Those `record` has to keep."""
    whole: bool = False
    """Of the whole network: the same number joins those of every layer."""
    nonnegative: bool = False
    scalar: bool = False
    """One number to begin with."""


def values(found: "Recorded") -> list[Part]:
    return [Part(one, "value") for one in found if one is not None]


def gradients(found: "Recorded") -> list[Part]:
    return [Part(one, "gradient") for one in found if one is not None and one.gradient is not None]


def products(found: "Recorded") -> list[Part]:
    """Value times gradient, element by element."""
    return [Part(one, "product") for one in found if one is not None and one.gradient is not None]


LOSS = ("loss",)

LPZERO: dict[str, Source] = {
    "A": Source(
        r"\theta_A",
        "outputs of the FFN activation function, batch x time x units",
        lambda probe, layer: values(layer.activations),
        "[s.value for s in layer.activations]",
        roles=("activations",),
    ),
    "J": Source(
        r"\theta_J",
        "gradient of the loss at the input embeddings, batch x time x width",
        lambda probe, layer: [] if probe.inputs is None else [Part(probe, "inputs")],
        "[] if probe.inputs is None else [probe.inputs]",
        passes=("inputs",),
        whole=True,
    ),
    "G": Source(
        r"\theta_G",
        "gradients of the linears",
        lambda probe, layer: gradients(layer.linears),
        "[w.gradient for w in layer.linears if w.gradient is not None]",
        passes=LOSS,
    ),
    "H": Source(
        r"\theta_H",
        "what the heads work on: query, key, value, or a transform's input; batch x time x width",
        lambda probe, layer: values(layer.projections),
        "[s.value for s in layer.projections]",
        roles=("projections",),
    ),
    "W": Source(
        r"\theta_W",
        "weights of the linears",
        lambda probe, layer: values(layer.linears),
        "[w.value for w in layer.linears]",
    ),
    "S": Source(
        r"\theta_S",
        "attention probabilities, batch x heads x time x time",
        lambda probe, layer: values([layer.probabilities]),
        "[s.value for s in [layer.probabilities] if s is not None]",
        roles=("probabilities",),
        nonnegative=True,
    ),
}


def number(name: str) -> "Callable[[Any], torch.Tensor]":
    """Reads a count as a tensor of one number."""

    def read(counts: Any) -> "torch.Tensor":
        import torch

        return torch.tensor(float(getattr(counts, name)), dtype=torch.float64)

    return read


READ |= {name: number(name) for name in ("parameters", "nonembedding", "attention", "ffn", "flops", "depth", "width")}


def count(name: str, summary: str) -> Source:
    """A count as a factor: one number of the architecture, without looking at the network."""

    return Source(
        rf"n_\mathrm{{{name}}}",
        summary,
        lambda probe, layer: [] if probe.counts is None else [Part(probe.counts, name)],
        f"[] if probe.counts is None else [torch.tensor(float(probe.counts.{name}), dtype=torch.float64)]",
        passes=(),
        whole=True,
        nonnegative=True,
        scalar=True,
    )


def weights(role: str, letter: str, what: str) -> dict[str, Source]:
    """Weights of one role, their gradients, and both multiplied element by element."""
    graded = f"for w in layer.{role} if w.gradient is not None]"
    return {
        f"W{letter}": Source(
            rf"W_\mathrm{{{role}}}",
            f"weights of {what}",
            lambda probe, layer: values(getattr(layer, role)),
            f"[w.value for w in layer.{role}]",
        ),
        f"G{letter}": Source(
            rf"G_\mathrm{{{role}}}",
            f"gradients of {what}",
            lambda probe, layer: gradients(getattr(layer, role)),
            f"[w.gradient {graded}",
            passes=LOSS,
        ),
        f"WG{letter}": Source(
            rf"(W \odot G)_\mathrm{{{role}}}",
            f"weight times gradient of {what}, element by element",
            lambda probe, layer: products(getattr(layer, role)),
            f"[w.value * w.gradient {graded}",
            passes=LOSS,
        ),
    }


def signals(role: str, letter: str, what: str) -> dict[str, Source]:
    """What modules of a role gave, its gradient, and both multiplied element by element."""
    every = f"(layer.{role} if isinstance(layer.{role}, tuple) else [layer.{role}])"
    graded = f"for s in {every} if s is not None and s.gradient is not None]"

    def found(layer: "Layer") -> "tuple[Signal | None, ...]":
        given = getattr(layer, role)
        return given if isinstance(given, tuple) else (given,)

    return {
        letter: Source(
            letter,
            what,
            lambda probe, layer: values(found(layer)),
            f"[s.value for s in {every} if s is not None]",
            roles=(role,),
        ),
        f"d{letter}": Source(
            rf"\partial {letter}",
            f"gradient of the loss at the {what}",
            lambda probe, layer: gradients(found(layer)),
            f"[s.gradient {graded}",
            passes=LOSS,
            roles=(role,),
        ),
        f"{letter}d{letter}": Source(
            rf"{letter} \odot \partial {letter}",
            f"{what} times their gradient, element by element",
            lambda probe, layer: products(found(layer)),
            f"[s.value * s.gradient {graded}",
            passes=LOSS,
            roles=(role,),
        ),
    }


BESIDE: dict[str, Source] = {
    **weights("linears", "", "the linears"),
    **weights("attention", "a", "the linears of attention or another operator"),
    **weights("ffn", "f", "the linears of the FFN"),
    **signals("activations", "A", "outputs of the FFN activation function"),
    **signals("output", "Z", "hidden states after the layer"),
    **signals("context", "C", "outputs of the heads"),
    "P": Source(
        "P",
        "FFN pre-activations, batch x time x units",
        lambda probe, layer: values([layer.pre_activation]),
        "[s.value for s in [layer.pre_activation] if s is not None]",
        roles=("pre_activation",),
    ),
    "n_parameters": count("parameters", "parameters, all"),
    "n_nonembedding": count("nonembedding", "parameters without embeddings"),
    "n_attention": count("attention", "parameters of attention"),
    "n_ffn": count("ffn", "parameters of FFNs"),
    "n_flops": count("flops", "FLOPs of a forward pass"),
    "n_depth": count("depth", "number of layers"),
    "n_width": count("width", "width of the hidden states"),
}

SOURCES: dict[str, Source] = {**LPZERO, **{name: source for name, source in BESIDE.items() if name not in LPZERO}}
"""All inputs by name, in the order in which commutative formulas name them."""

INPUTS: tuple[str, ...] = tuple(LPZERO)
"""LPZero's own."""

EXTENDED: tuple[str, ...] = tuple(SOURCES)
"""LPZero's own, then pairs joined element by element, gradients, hidden states, weights by role, and counts."""


FORWARD: tuple[str, ...] = tuple(n for n, source in SOURCES.items() if source.passes == ("forward",))
"""Those of the extended space that a forward pass is enough for."""

COUNTS: tuple[str, ...] = tuple(name for name, source in SOURCES.items() if source.scalar)
"""One number of the architecture each; they may also be the third factor of a formula."""


def passes_needed(inputs: Iterable[str]) -> tuple[str, ...]:
    """Passes that `record` has to run for these inputs."""
    return tuple(dict.fromkeys(name for one in inputs for name in SOURCES[one].passes))


def roles_needed(inputs: Iterable[str]) -> tuple[str, ...]:
    """Roles that `record` has to keep for these inputs."""
    return tuple(dict.fromkeys(role for one in inputs for role in SOURCES[one].roles))
