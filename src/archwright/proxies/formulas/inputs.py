"""What a formula looks at: LPZero's six inputs, and those of the extended space beside them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from archwright.networks.roles import Counts
    from archwright.probe import Layer, Probe, Signal, Weight

    Recorded = Iterable[Signal | Weight | None]


@dataclass(frozen=True)
class TensorReference:
    """One tensor of a probe, computed when it is read; several inputs may share it."""

    owner: Any
    """What holds it; the probe keeps it alive."""
    kind: str
    """Which tensor of its owner."""
    load: "Callable[[Any], torch.Tensor]"
    """From the owner."""

    @property
    def key(self) -> tuple[int, str]:
        """The same for the same tensor, as long as the probe lives."""
        return id(self.owner), self.kind

    def read(self) -> "torch.Tensor":
        return self.load(self.owner)


@dataclass(frozen=True)
class FormulaInput:
    """Tensors of a layer by role; several of a layer are each taken through the chain and then averaged."""

    latex: str
    summary: str
    find: "Callable[[Probe, Layer], list[TensorReference]]"
    """Nothing where the layer does not have the role."""
    python: str
    """Expression in probe and layer that gives the same."""
    passes: tuple[str, ...] = ("forward",)
    roles: tuple[str, ...] = ()
    """Those `record` has to keep."""
    nonnegative: bool = False
    scalar: bool = False
    """One number to begin with."""


def values(items: "Recorded") -> list[TensorReference]:
    return [TensorReference(item, "value", lambda item: item.value) for item in items if item is not None]


def gradients(items: "Recorded") -> list[TensorReference]:
    graded = (item for item in items if item is not None and item.gradient is not None)
    return [TensorReference(item, "gradient", lambda item: item.gradient) for item in graded]


def products(items: "Recorded") -> list[TensorReference]:
    """Value times gradient, element by element."""
    graded = (item for item in items if item is not None and item.gradient is not None)
    return [TensorReference(item, "product", lambda item: item.value * item.gradient) for item in graded]


LOSS = ("loss",)

LPZERO: dict[str, FormulaInput] = {
    "A": FormulaInput(
        r"\theta_A",
        "outputs of the FFN activation function, batch x time x units",
        lambda probe, layer: values(layer.activations),
        "[s.value for s in layer.activations]",
        roles=("activations",),
    ),
    "J": FormulaInput(
        r"\theta_J",
        "gradient of the loss at the input embeddings, batch x time x width",
        lambda probe, layer: (
            [] if probe.inputs is None else [TensorReference(probe, "inputs", lambda probe: probe.inputs)]
        ),
        "[] if probe.inputs is None else [probe.inputs]",
        passes=("inputs",),
    ),
    "G": FormulaInput(
        r"\theta_G",
        "gradients of the linears",
        lambda probe, layer: gradients(layer.linears),
        "[w.gradient for w in layer.linears if w.gradient is not None]",
        passes=LOSS,
    ),
    "H": FormulaInput(
        r"\theta_H",
        "what the heads work on: query, key, value, or a transform's input; batch x time x width",
        lambda probe, layer: values(layer.projections),
        "[s.value for s in layer.projections]",
        roles=("projections",),
    ),
    "W": FormulaInput(
        r"\theta_W",
        "weights of the linears",
        lambda probe, layer: values(layer.linears),
        "[w.value for w in layer.linears]",
    ),
    "S": FormulaInput(
        r"\theta_S",
        "attention probabilities, batch x heads x time x time",
        lambda probe, layer: values([layer.probabilities]),
        "[s.value for s in [layer.probabilities] if s is not None]",
        roles=("probabilities",),
        nonnegative=True,
    ),
}


def count(name: str, summary: str) -> FormulaInput:
    """One number of the architecture, known without a look at the network: the same in every layer."""

    def load(counts: "Counts") -> "torch.Tensor":
        import torch

        return torch.tensor(float(getattr(counts, name)), dtype=torch.float64)

    return FormulaInput(
        rf"n_\mathrm{{{name}}}",
        summary,
        lambda probe, layer: [] if probe.counts is None else [TensorReference(probe.counts, name, load)],
        f"[] if probe.counts is None else [torch.tensor(float(probe.counts.{name}), dtype=torch.float64)]",
        passes=(),
        nonnegative=True,
        scalar=True,
    )


def weights(role: str, letter: str, what: str) -> dict[str, FormulaInput]:
    """Weights of one role, their gradients, and both multiplied element by element."""
    graded = f"for w in layer.{role} if w.gradient is not None]"
    return {
        f"W{letter}": FormulaInput(
            rf"W_\mathrm{{{role}}}",
            f"weights of {what}",
            lambda probe, layer: values(getattr(layer, role)),
            f"[w.value for w in layer.{role}]",
        ),
        f"G{letter}": FormulaInput(
            rf"G_\mathrm{{{role}}}",
            f"gradients of {what}",
            lambda probe, layer: gradients(getattr(layer, role)),
            f"[w.gradient {graded}",
            passes=LOSS,
        ),
        f"WG{letter}": FormulaInput(
            rf"(W \odot G)_\mathrm{{{role}}}",
            f"weight times gradient of {what}, element by element",
            lambda probe, layer: products(getattr(layer, role)),
            f"[w.value * w.gradient {graded}",
            passes=LOSS,
        ),
    }


def signals(role: str, letter: str, what: str) -> dict[str, FormulaInput]:
    """What modules of a role gave, its gradient, and both multiplied element by element."""
    every = f"(layer.{role} if isinstance(layer.{role}, tuple) else [layer.{role}])"
    graded = f"for s in {every} if s is not None and s.gradient is not None]"

    def signals_of(layer: "Layer") -> "tuple[Signal | None, ...]":
        held = getattr(layer, role)
        return held if isinstance(held, tuple) else (held,)

    return {
        letter: FormulaInput(
            letter,
            what,
            lambda probe, layer: values(signals_of(layer)),
            f"[s.value for s in {every} if s is not None]",
            roles=(role,),
        ),
        f"d{letter}": FormulaInput(
            rf"\partial {letter}",
            f"gradient of the loss at the {what}",
            lambda probe, layer: gradients(signals_of(layer)),
            f"[s.gradient {graded}",
            passes=LOSS,
            roles=(role,),
        ),
        f"{letter}d{letter}": FormulaInput(
            rf"{letter} \odot \partial {letter}",
            f"{what} times their gradient, element by element",
            lambda probe, layer: products(signals_of(layer)),
            f"[s.value * s.gradient {graded}",
            passes=LOSS,
            roles=(role,),
        ),
    }


EXTENSIONS: dict[str, FormulaInput] = {
    **weights("linears", "", "the linears"),
    **weights("attention", "a", "the linears of attention or another operator"),
    **weights("ffn", "f", "the linears of the FFN"),
    **signals("activations", "A", "outputs of the FFN activation function"),
    **signals("output", "Z", "hidden states after the layer"),
    **signals("context", "C", "outputs of the heads"),
    "P": FormulaInput(
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

FORMULA_INPUTS: dict[str, FormulaInput] = {**LPZERO, **{n: x for n, x in EXTENSIONS.items() if n not in LPZERO}}
"""All inputs by name, in the order in which commutative formulas name them."""

INPUTS: tuple[str, ...] = tuple(LPZERO)
"""LPZero's own."""

EXTENDED: tuple[str, ...] = tuple(FORMULA_INPUTS)
"""LPZero's own, then pairs joined element by element, gradients, hidden states, weights by role, and counts."""

FORWARD: tuple[str, ...] = tuple(name for name, item in FORMULA_INPUTS.items() if item.passes == ("forward",))
"""Those of the extended space that a forward pass is enough for."""

COUNTS: tuple[str, ...] = tuple(name for name, item in FORMULA_INPUTS.items() if item.scalar)
"""One number of the architecture each; they may also be the third factor of a formula."""


def required_passes(inputs: Iterable[str]) -> tuple[str, ...]:
    """Passes that `record` has to run for these inputs."""
    return tuple(dict.fromkeys(name for used in inputs for name in FORMULA_INPUTS[used].passes))


def required_roles(inputs: Iterable[str]) -> tuple[str, ...]:
    """Roles that `record` has to keep for these inputs."""
    return tuple(dict.fromkeys(role for used in inputs for role in FORMULA_INPUTS[used].roles))
