"""Which heads, units and layers matter, measured on data, and a super-network put into that order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PrunedNetwork, find_path
from archwright.progress import progress
from archwright.subnet.slicing import head_owners, slice_layer, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, count

SHALLOW = 6
"""Layers of a network from which one goes at a time; of a deeper one as many as it has sixths."""
LAYER_TOKENS, SHALLOW_TOKENS = 2048, 8192
"""Tokens on which the layers of a deep network, and of a shallow one, are compared."""
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Logits and targets to a scalar."""
Reduction = Callable[[torch.Tensor], torch.Tensor]
REDUCTIONS: dict[str, Reduction] = {"fisher": torch.square, "taylor": torch.abs}
Scores = list[torch.Tensor]
"""One number for every head (or unit) of a layer, layer by layer; layers may have different numbers of them."""


class BatchWork(Protocol):
    """What is measured of a network on one batch, as tensors to be summed over batches. It can be pickled."""

    def __call__(self, model: PrunedNetwork, batch: Any) -> list[torch.Tensor]: ...


class BatchRunner(Protocol):
    """Who measures: this process, several that train together, or a cluster."""

    def total(
        self, work: BatchWork, model: PrunedNetwork, batches: Sequence[Any], advance: Callable[[], None]
    ) -> list[torch.Tensor]:
        """The sums over all batches; `advance` is called after each."""


class LocalRunner:
    """One batch after another, here."""

    def total(
        self, work: BatchWork, model: PrunedNetwork, batches: Sequence[Any], advance: Callable[[], None]
    ) -> list[torch.Tensor]:
        totals = work(model, batches[0])
        advance()
        for batch in batches[1:]:
            totals = [total + part for total, part in zip(totals, work(model, batch), strict=True)]
            advance()
        return totals


HERE = LocalRunner()


@dataclass(frozen=True)
class ImportanceOrder:
    """Best first: heads and units of every layer, and the layers themselves."""

    heads: tuple[tuple[int, ...], ...]
    units: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]
    head_scores: tuple[tuple[float, ...], ...] = ()
    """The scores that heads and units were ordered by, in this order; none in runs of before there was the chain."""
    unit_scores: tuple[tuple[float, ...], ...] = ()


def order_by_importance(
    model: PrunedNetwork,
    batches: Iterable[Any],
    loss: Loss,
    reduce: Reduction,
    *,
    remove_layers: bool = True,
    span: int | None = None,
    runner: BatchRunner = HERE,
) -> ImportanceOrder:
    """Heads and units by their effect on the loss; layers by the loss without them, or by the sum of their scores.

    A layer that is run at every place is run fewer times at the end. Whoever measures, the order is the same up to the
    rounding of sums.
    """
    batches = list(batches)
    scores = mask_scores(model, batches, loss, reduce, span=span, runner=runner)
    ranked = [[row.sort(descending=True, stable=True) for row in part] for part in scores]
    heads, units = (tuple(tuple(row.indices.tolist()) for row in part) for part in ranked)
    head_scores, unit_scores = (tuple(tuple(row.values.tolist()) for row in part) for part in ranked)
    if model.config.family.shared_layer:
        layers = tuple(range(len(heads)))
    elif remove_layers:
        layers = layer_order(model, batches, loss, runner)
    else:
        sums = torch.stack([heads.sum() + units.sum() for heads, units in zip(*scores, strict=True)])
        layers = tuple(sums.argsort(descending=True, stable=True).tolist())
    return ImportanceOrder(heads, units, layers, head_scores, unit_scores)


def mask_scores(
    model: PrunedNetwork,
    batches: Iterable[Any],
    loss: Loss,
    reduce: Reduction,
    *,
    span: int | None = None,
    runner: BatchRunner = HERE,
) -> tuple[Scores, Scores]:
    """Of the heads and of the units of every layer: mean over texts of the reduced gradient of a mask over them.

    Of a text that gradient is the sum over tokens of activation x gradient, so its absolute value is the effect in the
    first order (Molchanov et al. 2017), and its square the diagonal of the Fisher information (Kwon et al. 2022).
    With a span texts are cut into pieces of so many tokens, and each piece counts as a text.
    """
    batches, owners = list(batches), mask_owners(model)
    with progress("importance of heads and units", len(batches), "batches") as bar:
        texts, *sums = runner.total(MaskEffects(loss, reduce, span), model, batches, bar.advance)
    scores = dict(zip(owners, (total / int(texts) for total in sums), strict=True))
    nothing = torch.zeros(0, device=model.device)
    heads, units = ([nothing if m is None else scores[m] for m in part] for part in masked_linears(model))
    return heads, units


def masked_linears(model: PrunedNetwork) -> tuple[list[nn.Module | None], list[nn.Module | None]]:
    """Per layer the linear that reads its heads, and the one that reads its units; None where there are none."""
    layers = model.placed_layers()
    mixes = [placed.layer.get_submodule(placed.parts.mix) if placed.heads else None for placed in layers]
    downs = [placed.layer.get_submodule(placed.parts.down) if placed.units else None for placed in layers]
    return mixes, downs


def mask_owners(model: PrunedNetwork) -> dict[nn.Module, torch.Tensor]:
    """The linears that read heads or units, each once, and whose each of their input features is."""
    mixes, downs = masked_linears(model)
    owners = {m: torch.arange(m.in_features, device=model.device) for m in downs if m is not None}
    for mix, placed in zip(mixes, model.placed_layers(), strict=True):
        if mix is not None:
            owners[mix] = torch.tensor(head_owners(model.config, placed.shape), device=model.device)
    return owners


@dataclass(frozen=True)
class MaskEffects:
    """The number of texts, and for every linear that `mask_owners` names the reduced gradients of a mask over it."""

    loss: Loss
    reduce: Reduction
    span: int | None = None

    def __call__(self, model: PrunedNetwork, batch: Any) -> list[torch.Tensor]:
        owners, texts = mask_owners(model), len(batch.targets)
        with evaluating(model), torch.enable_grad():
            effects = record_effects(model, list(owners), batch, self.loss)
        sums = [torch.tensor(texts, device=model.device)]
        for module, owner in owners.items():
            effect = sum_texts(effects[module], texts, self.span)
            part = effect.new_zeros(len(effect), int(owner.max()) + 1).index_add_(1, owner, effect)
            sums.append(self.reduce(part).sum(0))
        return sums


def sum_texts(effects: torch.Tensor, texts: int, span: int | None = None) -> torch.Tensor:
    """Texts (or pieces of them of `span` tokens) x features: sums over the tokens of each.

    A text of several choices is several rows of `effects`, rows x tokens x features.
    """
    if span is None:
        return effects.unflatten(0, (texts, -1)).sum((1, 2))
    padded = nn.functional.pad(effects, (0, 0, 0, -effects.shape[1] % span))
    return padded.unflatten(1, (-1, span)).sum(2).flatten(0, 1)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards every module is in the mode it was in."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def record_effects(
    model: PrunedNetwork, modules: list[nn.Module], batch: Any, loss: Loss
) -> dict[nn.Module, torch.Tensor]:
    """What went into each module times the gradient of the loss with respect to it: rows x tokens x features.

    Summed over the times that the module was run, as one mask over all of them has it; the weights get no gradient.
    """
    inputs: list[tuple[nn.Module, torch.Tensor]] = []
    with ExitStack() as undo:
        for module in dict.fromkeys(modules):
            hook = module.register_forward_pre_hook(lambda m, args: inputs.append((m, args[0])))
            undo.callback(hook.remove)
        value = loss(model(**batch.inputs).logits, batch.targets)
    gradients = torch.autograd.grad(value * len(batch.targets), [x for _, x in inputs])
    effects: dict[nn.Module, torch.Tensor] = {}
    for (module, x), gradient in zip(inputs, gradients, strict=True):
        effect = at_least_float32(x.detach()) * at_least_float32(gradient)
        effects[module] = effects[module] + effect if module in effects else effect
    return effects


def embedding_sensitivity(model: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> torch.Tensor:
    """How much the loss feels a change of a word vector, by direction: the mean of g g^T (width x width, float64).

    g is the gradient of a text's loss with respect to the vector of one of its tokens, so d^T (g g^T) d is the squared
    effect of a small change d: the empirical Fisher information of the word vectors, the same for all tokens.
    """
    table = model.get_input_embeddings()
    vectors: list[torch.Tensor] = []
    total = torch.zeros((), dtype=torch.float64, device=model.device)
    tokens, batches = 0, list(batches)

    def track(_: nn.Module, args: tuple[Any, ...], out: torch.Tensor) -> torch.Tensor:
        vectors[:] = [out.detach().requires_grad_()]
        return vectors[0]

    shown = progress("importance of word vectors", len(batches), "batches")
    with evaluating(model), torch.enable_grad(), ExitStack() as undo, shown as bar:
        undo.callback(table.register_forward_hook(track).remove)
        for batch in batches:
            value = loss(model(**batch.inputs).logits, batch.targets) * len(batch.targets)
            (gradient,) = torch.autograd.grad(value, vectors)
            rows = gradient[batch.inputs["attention_mask"].flatten(0, -2) > 0].double()  # tokens x width
            total = total + rows.T @ rows
            tokens += len(rows)
            bar.advance()
    return total / tokens


@torch.no_grad()
def layer_order(model: PrunedNetwork, batches: list[Any], loss: Loss, runner: BatchRunner = HERE) -> tuple[int, ...]:
    """Layers, the one to keep longest first: each time the layers go whose removal raises the loss least.

    One by one in networks of up to 11 layers, on batches of about SHALLOW_TOKENS tokens. Of deeper ones a sixth of what
    they have goes at a time, on LAYER_TOKENS.
    """
    full = [LayerSpec(*pair) for pair in model.config.layers]
    some = take_tokens(batches, SHALLOW_TOKENS if len(full) < 2 * SHALLOW else LAYER_TOKENS)
    at_once = max(1, len(full) // SHALLOW)
    left = list(range(len(full)))
    removed: list[int] = []
    with progress("importance of layers", len(full) - 1, "layers") as bar:
        while len(left) > 1:
            spec = tuple(LayerSpec(0, 0) if i in removed else layer for i, layer in enumerate(full))
            costs = losses_without(model, spec, some, loss, runner)
            for layer in sorted(left, key=costs.__getitem__)[: min(at_once, len(left) - 1)]:
                removed.append(layer)
                left.remove(layer)
                bar.advance()
    return (*left, *reversed(removed))


def take_tokens(batches: list[Any], tokens: int) -> list[Any]:
    """The first batches that have so many tokens together, at least one."""
    ends = np.cumsum([batch.inputs["input_ids"].numel() for batch in batches])
    return batches[: int(np.searchsorted(ends, tokens)) + 1]


@torch.no_grad()
def losses_without(
    model: PrunedNetwork, spec: SubnetSpec, batches: Iterable[Any], loss: Loss, runner: BatchRunner = HERE
) -> dict[int, float]:
    """For every layer of the sub-network the loss without it, by its place.

    What the layers before it compute is the same with and without: it is computed once per batch and put in behind the
    layer, so that only the layers after it run again.
    """
    places = pruned_places(spec)
    (totals,) = runner.total(LayerLosses(spec, loss), model, list(batches), lambda: None)
    texts, *sums = totals.tolist()
    return {place: total / texts for place, total in zip(places, sums, strict=True)}


def pruned_places(spec: SubnetSpec) -> list[int]:
    """Places of the layers that are left."""
    return [place for place, part in enumerate(spec) if count(part.heads) or count(part.units)]


@dataclass(frozen=True)
class LayerLosses:
    """The number of texts, and for every layer of the sub-network their summed loss without it."""

    spec: SubnetSpec
    loss: Loss

    @torch.no_grad()
    def __call__(self, model: PrunedNetwork, batch: Any) -> list[torch.Tensor]:
        places, texts = pruned_places(self.spec), len(batch.targets)
        sums: list[float] = [texts]
        with evaluating(model):
            layers = [placed.layer for placed in model.placed_layers()]
            with subnetwork(model, self.spec), ExitStack() as undo:
                states: dict[int, torch.Tensor] = {}
                for place in places:
                    save = partial(save_input, states, place)
                    undo.callback(layers[place].register_forward_pre_hook(save).remove)
                model(**batch.inputs)
            for place in places:
                after = tuple(LayerSpec(0, 0) if i < place else part for i, part in enumerate(self.spec))
                with subnetwork(model, after), ExitStack() as undo:
                    skip = partial(give_instead, states[place])
                    undo.callback(layers[place].register_forward_hook(skip).remove)
                    sums.append(float(self.loss(model(**batch.inputs).logits, batch.targets)) * texts)
        return [torch.tensor(sums, dtype=torch.float64)]


def save_input(states: dict[int, torch.Tensor], place: int, layer: nn.Module, args: tuple[Any, ...]) -> None:
    states[place] = args[0]


def give_instead(states: torch.Tensor, layer: nn.Module, args: tuple[Any, ...], out: Any) -> Any:
    """These hidden states in place of what the layer computed."""
    return (states, *out[1:]) if isinstance(out, tuple) else states


@torch.no_grad()
def reorder(model: PrunedNetwork, order: ImportanceOrder) -> None:
    """Put the best heads and units first, in place; the network computes the same up to the order of summation."""
    rows = zip(model.placed_layers(), order.heads, order.units, strict=True)
    for placed, heads, units in {row[0].layer: row for row in rows}.values():  # a shared layer once
        cut = slice_layer(model.config, placed, LayerSpec(heads, units))
        for path, features in cut.outputs.items():
            if not isinstance(features, int):  # a number: all of them, in the order they have
                linear = placed.layer.get_submodule(path)
                for tensor in (t for t in (linear.weight, linear.bias) if t is not None):
                    tensor.copy_(tensor[torch.tensor(features)])
        for path, features in cut.inputs.items():
            if not isinstance(features, int):
                weight = placed.layer.get_submodule(path).weight
                weight.copy_(weight[:, torch.tensor(features)])
        if placed.parts.head_places and placed.heads:
            owner, name = find_path(placed.layer, placed.parts.head_places)
            getattr(owner, name).copy_(getattr(owner, name)[torch.tensor(heads)])
