"""An NLU network: MobileBERT's embeddings, attention, FFN, the two blocks made of them, and its first weights."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers.initialization import no_init_weights

from archwright.networks.encoders import EncoderModel, EncoderNetwork
from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.dropout import Dropout
from archwright.networks.pretraining import MaskedTokens, ReplacedTokens, fill
from archwright.networks.roles import LayerRoles


def norm_of(config: NluConfig, width: int) -> nn.LayerNorm:
    return nn.LayerNorm(width, eps=config.layer_norm_eps)


class NluEmbeddings(nn.Module):
    """Each token beside its left and right neighbour, projected to the layers' width; positions, segments, norm.

    Beyond the ends of a row, and where padding is, a neighbour is zeros.
    """

    def __init__(self, config: NluConfig):
        super().__init__()
        narrow, wide = config.embedding_size, config.hidden_size
        self.projection = nn.Linear(3 * narrow, wide)
        self.positions = nn.Embedding(config.max_position_embeddings, wide)
        self.segments = nn.Embedding(config.type_vocab_size, wide)
        self.tokens = nn.Embedding(config.vocab_size, narrow)  # last, for its size must not change what others draw
        self.norm = norm_of(config, wide)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, input_ids: torch.Tensor, mask: torch.Tensor | None = None, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        tokens = self.tokens(input_ids)
        if mask is not None:
            tokens = tokens * mask[..., None]
        longer = pad(tokens, (0, 0, 1, 1))
        around = torch.cat([longer[:, 2:], tokens, longer[:, :-2]], dim=-1)  # next, itself, the one before
        segment = self.segments.weight[0] if segments is None else self.segments(segments)
        wide = self.projection(around) + self.positions.weight[: input_ids.shape[1]] + segment
        return self.dropout(self.norm(wide))  # batch x time x hidden size


class NluAttention(nn.Module):
    """Scaled dot-product attention, its output linear, and the residual with norm.

    Runs in one kernel when nobody can notice, else step by step. A listener at `probabilities` would notice; so would
    a graph of a network in evaluation, which is a probe's and may go back twice, as the kernel cannot; and so would
    the clock of a CPU while probabilities are dropped, for which its kernel takes twice as long.
    """

    def __init__(self, config: NluConfig, width: int):
        super().__init__()
        self.heads, self.width = config.heads, width
        self.query, self.key, self.value = (nn.Linear(config.hidden_size, width) for _ in range(3))
        self.probabilities, self.context = nn.Softmax(-1), nn.Identity()
        self.output = nn.Linear(width, width)
        self.dropout, self.lost = Dropout(config.dropout), Dropout(config.attention_dropout)
        self.norm = norm_of(config, width)

    def may_fuse(self, hidden: torch.Tensor) -> bool:
        """Whether the way in which the probabilities are made is nobody's business."""
        free = self.training or not torch.is_grad_enabled()
        slow = self.training and self.lost.p > 0 and hidden.is_cpu
        return free and not slow and not self.probabilities._forward_hooks

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        q, k, v = (self.split(linear(hidden)) for linear in (self.query, self.key, self.value))
        seen = None if mask is None else mask[:, None, None]
        mixed = self.at_once(q, k, v, seen) if self.may_fuse(hidden) else self.step_by_step(q, k, v, seen)
        context = self.context(mixed.transpose(1, 2).flatten(2))  # batch x time x width
        return self.norm(self.dropout(self.output(context)) + residual)

    def split(self, flat: torch.Tensor) -> torch.Tensor:
        return flat.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # batch x heads x time x size

    def at_once(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, seen, self.lost.p if self.training else 0.0)

    def step_by_step(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor | None
    ) -> torch.Tensor:
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # batch x heads x time x time
        if seen is not None:
            scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
        return self.lost(self.probabilities(scores)) @ v


class NluFfn(nn.Module):
    """Two linears, GELU between them, residual and norm."""

    def __init__(self, config: NluConfig, width: int, units: int):
        super().__init__()
        self.up, self.activation, self.down = nn.Linear(width, units), nn.GELU(), nn.Linear(units, width)
        self.dropout = Dropout(config.dropout)
        self.norm = norm_of(config, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dropout(self.down(self.activation(self.up(hidden)))) + hidden)


class NluLayer(nn.Module):
    """A BERT block: attention and FFN, both as wide as the hidden state."""

    def __init__(self, config: NluConfig, units: int):
        super().__init__()
        width = self.width(config)
        self.attention = NluAttention(config, width)
        self.ffn = NluFfn(config, width, units)

    @staticmethod
    def width(config: NluConfig) -> int:
        """Of the residual stream inside the block."""
        return config.hidden_size

    @property
    def outer(self) -> tuple[Sequence[nn.Linear], Sequence[nn.Linear]]:
        """Linears beside attention and FFN: what leads into the block's stream, and what leads out."""
        return (), ()

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.ffn(self.attention(hidden, hidden, mask))

    def roles(self) -> LayerRoles:
        """What narrows counts with attention, to whose output it is added; what widens counts with the FFN."""
        attention, ffn, (into, out) = self.attention, self.ffn, self.outer
        projections = [attention.query, attention.key, attention.value]
        return LayerRoles(
            output=self,
            attention=[*projections, attention.output, *into],
            ffn=[ffn.up, ffn.down, *out],
            pre_activation=ffn.up,
            activations=[ffn.activation],
            projections=projections,
            context=attention.context,
            probabilities=attention.probabilities,
            mixed=attention.norm,
            heads=attention.heads,
        )


class MobileLayer(NluLayer):
    """A MobileBERT block with one FFN: queries, keys and values of the wide state, all else in a narrow stream."""

    def __init__(self, config: NluConfig, units: int):
        super().__init__(config, units)
        wide, narrow = config.hidden_size, self.width(config)
        self.narrow, self.narrow_norm = nn.Linear(wide, narrow), norm_of(config, narrow)
        self.widen, self.widen_norm = nn.Linear(narrow, wide), norm_of(config, wide)
        self.dropout = Dropout(config.dropout)

    @staticmethod
    def width(config: NluConfig) -> int:
        return config.inner_size

    @property
    def outer(self) -> tuple[Sequence[nn.Linear], Sequence[nn.Linear]]:
        return [self.narrow], [self.widen]

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        stream = self.narrow_norm(self.narrow(hidden))
        stream = self.ffn(self.attention(hidden, stream, mask))
        return self.widen_norm(self.dropout(self.widen(stream)) + hidden)


BLOCKS: dict[str, Callable[[NluConfig, int], NluLayer]] = {"mobile": MobileLayer, "base": NluLayer}
"""The one with fewer parameters first."""


def layer_of(config: NluConfig, plan: BlockPlan) -> NluLayer:
    return BLOCKS[plan.block](config, plan.units)


HEADS: dict[str, Callable[[NluConfig], nn.Module]] = {"mlm": MaskedTokens, "electra": ReplacedTokens}


class NluModel(EncoderModel):
    """Embeddings and layers."""

    config_class = NluConfig

    def __init__(self, config: NluConfig):
        super().__init__(config, NluEmbeddings(config), nn.ModuleList(layer_of(config, plan) for plan in config.plans))


class NluNetwork(EncoderNetwork):
    """With the head of `config.loss`."""

    config_class: type[NluConfig] = NluConfig
    body, heads = NluModel, HEADS


EMBEDDINGS, HEAD, LAYER = range(3)
"""What a part is: the word after the seed from which its weights are drawn.

First weights of a part follow from the seed, its place and what it is. So two architectures with a common beginning
have bit-identical layers there, and the hidden states behind the beginning that they share need be computed only once.
"""
Part = TypeVar("Part", bound=nn.Module)


def build_block(plan: NluConfig, place: int, choice: str, *, seed: int) -> NluLayer:
    """The layer that every network of this seed with this choice at this place has, in evaluation mode.

    Of `plan` only the sizes count that all layers share.
    """
    with no_init_weights():
        layer = layer_of(plan, BlockPlan.read(choice))
    return draw_weights(layer, plan, *layer_stream(place, BlockPlan.read(choice)), seed=seed)


def build_embeddings(plan: NluConfig, *, seed: int) -> NluEmbeddings:
    """Those of every network of this seed, in evaluation mode."""
    with no_init_weights():
        embeddings = NluEmbeddings(plan)
    return draw_weights(embeddings, plan, EMBEDDINGS, seed=seed)


def build_nlu(config: NluConfig, *, generator: torch.Generator) -> NluNetwork:
    """A network in evaluation mode, its parts those of the generator's seed.

    Nothing is drawn from the generator itself: given twice it makes the same network twice.
    """
    seed = generator.initial_seed()
    with torch.device(generator.device), no_init_weights():
        network = NluNetwork(config)
    draw_weights(network.encoder.embeddings, config, EMBEDDINGS, seed=seed)
    for place, (plan, layer) in enumerate(zip(config.plans, network.encoder.layers, strict=True)):
        draw_weights(layer, config, *layer_stream(place, plan), seed=seed)
    draw_weights(network.head, config, HEAD, seed=seed)
    return network.eval()


def layer_stream(place: int, plan: BlockPlan) -> tuple[int, ...]:
    return LAYER, place, list(BLOCKS).index(plan.block), plan.units


def draw_weights(part: Part, config: NluConfig, *words: int, seed: int) -> Part:
    """The same module with new weights; lookup tables come last, so that all else is the same for any vocabulary."""
    state = np.random.SeedSequence((seed % 2**64, *words)).generate_state(1, np.uint64)
    generator = torch.Generator(next(part.parameters()).device).manual_seed(int(state[0]) >> 1)
    for module in sorted(part.modules(), key=lambda module: isinstance(module, nn.Embedding)):
        fill(module, std=config.initializer_range, generator=generator)
    return part.eval()
