"""Which channels of an encoder's residual stream stay, and the closed-form repair of a network with fewer of them.

In an encoder every sub-layer ends in a LayerNorm over the stream, so a rotation of the stream changes what the network
computes: channels are chosen as they are, by Fisher information. What read the others is repaired: the norms by a
regression per channel, the linears by least squares from the channels that stay.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from archwright.networks.pruned import POOLINGS, PrunedNetwork
from archwright.networks.width import keep_channels
from archwright.progress import progress
from archwright.subnet.importance import Loss, evaluating
from archwright.subnet.pruning.repair import add_correction
from archwright.subnet.pruning.streams import StreamComparison

REPAIR_TOKENS = 8192
"""Tokens after which no further batch takes part in a repair: all that the network computes on them is in memory."""
Recorded = dict[nn.Module, tuple[torch.Tensor, torch.Tensor]]
"""Module -> what went in and what came out."""
Calls = list[tuple[Any, Recorded]]
"""Batches, and what was recorded in each."""


def stream_norms(network: PrunedNetwork) -> list[tuple[str, str]]:
    """The norms behind which the stream is read, from the first on, and for each the next one: paths in the network."""
    family = network.config.family
    layers = [f"backbone.{family.layers}.{i}" for i in range(len(network.config.layers))]
    paths = [f"backbone.{family.embedding_norm}"]
    for layer in layers:
        paths += [f"{layer}.{family.attention_norm}", f"{layer}.{family.ffn_norm}"]
    return list(zip(paths, [*paths[1:], ""], strict=True))


@contextmanager
def recording(modules: Iterable[nn.Module], recorded: Recorded) -> Iterator[None]:
    """Keeps what goes into these modules and comes out of them; where gradients are wanted, outputs have them.

    That is not so by itself behind frozen embeddings.
    """

    def keep(module: nn.Module, args: tuple[Any, ...], out: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() and not out.requires_grad:
            out = out.detach().requires_grad_()
        recorded[module] = args[0], out
        return out

    with ExitStack() as undo:
        for module in modules:
            undo.callback(module.register_forward_hook(keep).remove)
        yield


def channel_scores(network: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> torch.Tensor:
    """Of every channel: mean over texts of the squared gradient of one mask over all places where it is normed."""
    norms = [network.get_submodule(path) for path, _ in stream_norms(network)]
    total, texts, batches = torch.zeros((), device=network.device), 0, list(batches)
    recorded: Recorded = {}
    shown = progress("importance of channels", len(batches), "batches")
    with evaluating(network), torch.enable_grad(), recording(norms, recorded), shown as bar:
        for batch in batches:
            value = loss(network(**batch.inputs).logits, batch.targets) * len(batch.targets)
            outputs = [out for _, out in recorded.values()]
            gradients = torch.autograd.grad(value, outputs, allow_unused=True)
            effect = torch.stack(
                [(x * g).detach().sum(1) for x, g in zip(outputs, gradients, strict=True) if g is not None]
            )
            effect = effect.sum(0).unflatten(0, (len(batch.targets), -1)).sum(1)  # texts x channels
            total = total + effect.square().sum(0)
            texts += len(batch.targets)
            bar.advance()
    return total / texts


def narrow_network(network: PrunedNetwork, width: int, batches: list[Any], loss: Loss) -> PrunedNetwork:
    """A network with the `width` most important channels, repaired on these batches."""
    scores = channel_scores(network, batches, loss)
    channels = scores.argsort(descending=True, stable=True)[:width].sort().values
    narrow: PrunedNetwork = keep_channels(network, channels)
    repair_width(narrow, network, channels, batches)
    return narrow


@torch.no_grad()
def repair_width(narrow: PrunedNetwork, wide: PrunedNetwork, channels: torch.Tensor, batches: Iterable[Any]) -> None:
    """Fits, in place, every norm and every linear that reads the stream to what the wide network has there.

    A norm sees other means and variances than before: each channel gets the factor and the shift that serve best. What
    a linear read from removed channels it reads, as far as it can, from those that stay.
    """
    calls, norms = record_calls(wide, batches), stream_norms(narrow)
    with progress("repair of the width", len(norms), "norms") as bar:
        for path, following in norms:
            norm: Any = narrow.get_submodule(path)
            streams = fit_norm(norm, wide.get_submodule(path), channels, calls)
            pairs = zip(streams, calls, strict=True)
            reads = [stream.flatten(0, -2)[real_tokens(batch)] for stream, (batch, _) in pairs]
            for reader in stream_readers(narrow, following):
                ours, theirs = narrow.get_submodule(reader), wide.get_submodule(reader)
                wanted = [recorded[theirs][1].flatten(0, -2)[real_tokens(batch)] for batch, recorded in calls]
                fit_linear(ours, reads, wanted)
            bar.advance()
    repair_head(narrow, wide, channels, streams, calls)


def repair_head(
    narrow: PrunedNetwork, wide: PrunedNetwork, channels: torch.Tensor, streams: list[torch.Tensor], calls: Calls
) -> None:
    """The same for the head, which reads one vector per text, or every token where it has a score for each."""
    ours, theirs = narrow.head, wide.head
    outputs = [recorded[theirs.out][1] for _, recorded in calls]
    if not hasattr(ours, "dense"):
        real = [real_tokens(batch) for batch, _ in calls]
        reads = [stream.flatten(0, -2)[mask] for stream, mask in zip(streams, real, strict=True)]
        fit_linear(ours.out, reads, [x.flatten(0, -2)[mask] for x, mask in zip(outputs, real, strict=True)])
        return
    masks = [batch.inputs["attention_mask"].flatten(0, -2) for batch, _ in calls]
    pooled = [POOLINGS[narrow.config.pooling](x, mask) for x, mask in zip(streams, masks, strict=True)]
    fit_linear(ours.dense, pooled, [recorded[theirs.dense][1][..., channels] for _, recorded in calls])
    fit_linear(ours.out, [ours.activation(ours.dense(x)) for x in pooled], outputs)


def fit_linear(linear: Any, reads: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    """Adds to a linear, in place, what its answers to these inputs lack."""
    pairs = zip(reads, wanted, strict=True)
    add_correction(linear, (StreamComparison(x, answers - linear(x), answers) for x, answers in pairs), None)


def record_calls(wide: PrunedNetwork, batches: Iterable[Any]) -> Calls:
    """Of about REPAIR_TOKENS tokens: every batch and what norms and readers had in it."""
    norms = stream_norms(wide)
    paths = [path for path, _ in norms] + [
        reader for _, following in norms for reader in stream_readers(wide, following)
    ]
    paths += [f"head.{name}" for name in ("dense", "out") if hasattr(wide.head, name)]
    calls: Calls = []
    tokens = 0
    with evaluating(wide):
        for batch in batches:
            if tokens >= REPAIR_TOKENS:
                break
            recorded: Recorded = {}
            with recording([wide.get_submodule(path) for path in paths], recorded):
                wide(**batch.inputs)
            calls.append((batch, recorded))
            tokens += int(batch.inputs["attention_mask"].sum())
    return calls


def stream_readers(network: PrunedNetwork, following: str) -> list[str]:
    """Paths of the linears between a norm and the one that follows; none behind the last, where the head stands."""
    family = network.config.family
    if not following:
        return []
    layer = following.removesuffix(f".{family.attention_norm}").removesuffix(f".{family.ffn_norm}")
    ffn = following.endswith(f".{family.ffn_norm}") and not following.endswith(f".{family.attention_norm}")
    return [f"{layer}.{path}" for path in ((family.up,) if ffn else (family.query, family.key, family.value))]


def fit_norm(norm: Any, wide: nn.Module, channels: torch.Tensor, calls: Calls) -> list[torch.Tensor]:
    """Sets weight and bias of a narrow norm; its outputs for every batch, rows x time x channels."""
    pairs = [(recorded[wide][0][..., channels], recorded[wide][1][..., channels]) for _, recorded in calls]
    plain = [nn.functional.layer_norm(x, x.shape[-1:], eps=norm.eps) for x, _ in pairs]
    masks = [real_tokens(batch) for batch, _ in calls]
    ours = torch.cat([x.flatten(0, -2)[mask] for x, mask in zip(plain, masks, strict=True)]).double()
    wanted = torch.cat([y.flatten(0, -2)[mask] for (_, y), mask in zip(pairs, masks, strict=True)]).double()
    spread = (ours - ours.mean(0)).square().mean(0).clamp_min(1e-12)
    weight = ((ours - ours.mean(0)) * (wanted - wanted.mean(0))).mean(0) / spread
    norm.weight.copy_(weight)
    norm.bias.copy_(wanted.mean(0) - weight * ours.mean(0))
    return [x * norm.weight + norm.bias for x in plain]


def real_tokens(batch: Any) -> torch.Tensor:
    mask: torch.Tensor = batch.inputs["attention_mask"].flatten() > 0
    return mask
