"""What a formula looks at: LPZero's six inputs, and those of the extended space beside them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
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
    """Tensors of a layer by role; several of a layer are each taken through the chain and then averaged, or added."""

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
    integer: bool = False
    """A whole number, zero or more: its logarithm, with the guard at zero, is never negative."""
    summed: bool = False
    """The numbers of several tensors of a layer are added up: their number counts."""
    per_network: bool = False
    """The same in every layer; where it is one number it may multiply a score."""


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
        per_network=True,
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
        return as_scalar(getattr(counts, name))

    return FormulaInput(
        rf"n_\mathrm{{{name}}}",
        summary,
        lambda probe, layer: [] if probe.counts is None else [TensorReference(probe.counts, name, load)],
        f"[] if probe.counts is None else [torch.tensor(float(probe.counts.{name}), dtype=torch.float64)]",
        passes=(),
        nonnegative=True,
        scalar=True,
        integer=True,
        per_network=True,
    )


def layer_count(symbol: str, summary: str, python: str, number: "Callable[[Probe, Layer], int]") -> FormulaInput:
    """One number of a layer, from the shapes of its weights; a layer that has none of what is counted lacks the role.

    `python` is an expression in probe and layer.
    """

    def find(probe: "Probe", layer: "Layer") -> list[TensorReference]:
        counted = number(probe, layer)
        return [TensorReference(layer, symbol, lambda _: as_scalar(counted))] if counted else []

    source = f"[torch.tensor(float(n), dtype=torch.float64) for n in [{python}] if n]"
    return FormulaInput(symbol, summary, find, source, passes=(), nonnegative=True, scalar=True, integer=True)


def as_scalar(number: int) -> "torch.Tensor":
    import torch

    return torch.tensor(float(number), dtype=torch.float64)


def count_weights(linears: "Iterable[Weight]") -> int:
    return sum(linear.value.numel() for linear in linears)


def widest(linears: "Iterable[Weight]") -> int:
    """Most outputs of a linear, 0 without one."""
    return max((len(linear.value) for linear in linears), default=0)


def but_last_ffn(probe: "Probe", layer: "Layer") -> "tuple[Weight, ...]":
    """The linears of a layer, of the last one without those of its FFN: nothing mixes tokens behind them."""
    return (*layer.attention, *layer.recurrent) if layer is probe.layers[-1] else layer.linears


BUT_LAST_FFN = "([*layer.attention, *layer.recurrent] if layer is probe.layers[-1] else layer.linears)"
"""The same as Python."""


def add_up(source: FormulaInput) -> FormulaInput:
    """The same input with the numbers of a layer's tensors added up."""
    summary = f"{source.summary}; added over those of a layer, not averaged"
    return replace(source, latex=rf"{{\textstyle\sum}} {source.latex}", summary=summary, summed=True)


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

LAYER_COUNTS: dict[str, FormulaInput] = {
    "l_heads": layer_count(r"h_l", "heads of the layer", "layer.heads", lambda probe, layer: layer.heads),
    "l_linears": layer_count(
        r"k_l", "number of linears of the layer", "len(layer.linears)", lambda probe, layer: len(layer.linears)
    ),
    "l_width": layer_count(
        r"d_l",
        "width that the first linear of the layer reads",
        "(layer.linears[0].value.shape[1] if layer.linears else 0)",
        lambda probe, layer: layer.linears[0].value.shape[1] if layer.linears else 0,
    ),
    "l_inner": layer_count(
        r"f_l",
        "outputs of the widest linear of its FFN",
        "max([len(w.value) for w in layer.ffn], default=0)",
        lambda probe, layer: widest(layer.ffn),
    ),
    "l_weights": layer_count(
        r"w_l",
        "weights of the linears of the layer",
        "sum(w.value.numel() for w in layer.linears)",
        lambda probe, layer: count_weights(layer.linears),
    ),
    "l_attention": layer_count(
        r"w_{l,\mathrm{attention}}",
        "weights of the linears of its attention or other operator",
        "sum(w.value.numel() for w in layer.attention)",
        lambda probe, layer: count_weights(layer.attention),
    ),
    "l_ffn": layer_count(
        r"w_{l,\mathrm{ffn}}",
        "weights of the linears of its FFN",
        "sum(w.value.numel() for w in layer.ffn)",
        lambda probe, layer: count_weights(layer.ffn),
    ),
    "l_linears_but_last_ffn": layer_count(
        r"k_l^{-}",
        "number of linears of the layer, of the last one without its FFN",
        f"len({BUT_LAST_FFN})",
        lambda probe, layer: len(but_last_ffn(probe, layer)),
    ),
    "l_weights_but_last_ffn": layer_count(
        r"w_l^{-}",
        "weights of the linears of the layer, of the last one without its FFN",
        f"sum(w.value.numel() for w in {BUT_LAST_FFN})",
        lambda probe, layer: count_weights(but_last_ffn(probe, layer)),
    ),
}
"""One number per layer each, known without running the network."""

SUMMED: dict[str, FormulaInput] = {
    f"{name}_sum": add_up({**EXTENSIONS, **LPZERO}[name]) for name in ("A", "H", "W", "Wa", "Wf", "G")
}
"""Inputs of which a layer may have several tensors."""

ROLE_WISE: dict[str, FormulaInput] = {
    "W_but_last_ffn": FormulaInput(
        r"\theta_W^{-}",
        "weights of the linears, of the last layer without its FFN",
        lambda probe, layer: values(but_last_ffn(probe, layer)),
        f"[w.value for w in {BUT_LAST_FFN}]",
    ),
}
ROLE_WISE["W_but_last_ffn_sum"] = add_up(ROLE_WISE["W_but_last_ffn"])

EXTENDED_INPUTS: dict[str, FormulaInput] = {**LPZERO, **{n: x for n, x in EXTENSIONS.items() if n not in LPZERO}}

FORMULA_INPUTS: dict[str, FormulaInput] = {**EXTENDED_INPUTS, **SUMMED, **ROLE_WISE, **LAYER_COUNTS}
"""All inputs by name, in the order in which commutative formulas name them."""

INPUTS: tuple[str, ...] = tuple(LPZERO)
"""LPZero's own."""

EXTENDED: tuple[str, ...] = tuple(EXTENDED_INPUTS)
"""LPZero's own, then pairs joined element by element, gradients, hidden states, weights by role, and counts."""

FORWARD: tuple[str, ...] = tuple(name for name, item in EXTENDED_INPUTS.items() if item.passes == ("forward",))
"""Those of the extended space that a forward pass is enough for."""

LAYERS: tuple[str, ...] = tuple(LAYER_COUNTS)
"""Counts of single layers: no network is run for them."""

POSITIONAL: tuple[str, ...] = ("A", "H", "W", "S", "Wa", "Wf", *SUMMED, *ROLE_WISE, *LAYERS)
"""What knows where a layer stands and how much is in it, beside LPZero's inputs that need no gradient."""

COUNTS: tuple[str, ...] = tuple(name for name, item in FORMULA_INPUTS.items() if item.per_network and item.scalar)
"""One number of the architecture each; they may also be the third factor of a formula."""


def required_passes(inputs: Iterable[str]) -> tuple[str, ...]:
    """Passes that `record` has to run for these inputs."""
    return tuple(dict.fromkeys(name for used in inputs for name in FORMULA_INPUTS[used].passes))


def required_roles(inputs: Iterable[str]) -> tuple[str, ...]:
    """Roles that `record` has to keep for these inputs."""
    return tuple(dict.fromkeys(role for used in inputs for role in FORMULA_INPUTS[used].roles))
