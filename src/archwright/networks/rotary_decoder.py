"""Decoders with rotary positions whose heads and FFN widths are chosen per layer: those of two public benchmarks.

HW-GPT-Bench (Sukthanker et al. 2024) has attention and FFN side by side on the same input and heads of fixed size;
open_lm (Gururangan et al. 2023), which trained the width-depth-heads grid, has one after the other, gated FFNs and
normalised queries and keys.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from archwright.errors import BadInput
from archwright.networks.roles import Counts, LayerRoles, LayerSize, Roles

LEFT_OUT = -100
"""A label that is none, as everywhere in transformers."""
TOKENS = 64
"""Length of a row for which FLOPs are counted."""
ROTARY_BASE = 10_000


class RotaryDecoderConfig(PreTrainedConfig):
    """`heads`, `head_sizes` and `inner` have one entry per layer."""

    model_type = "archwright_rotary_decoder"

    def __init__(
        self,
        heads: list[int] | None = None,
        head_sizes: list[int] | None = None,
        inner: list[int] | None = None,
        hidden_size: int = 64,
        vocab_size: int = 50254,
        max_position_embeddings: int = 1024,
        parallel: bool = True,
        gated: bool = False,
        bias: bool = True,
        norm_bias: bool = True,
        norm_queries: bool = False,
        rotary_share: float = 0.5,
        tie_word_embeddings: bool = True,
        initial: str = "normal",
        layer_norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ):
        """`parallel`: attention and FFN read the same input; `gated`: SwiGLU instead of GELU; `initial`: N(0, 0.02), or
        `scaled` by the width and the place of the layer, as open_lm does it."""
        self.heads = heads or [1]
        self.head_sizes = head_sizes or [hidden_size // count for count in self.heads]
        self.inner = inner or [4 * hidden_size] * len(self.heads)
        self.hidden_size, self.vocab_size = hidden_size, vocab_size
        self.max_position_embeddings = max_position_embeddings
        self.parallel, self.gated, self.bias, self.norm_bias = parallel, gated, bias, norm_bias
        self.norm_queries, self.rotary_share, self.initial = norm_queries, rotary_share, initial
        self.layer_norm_epsilon = layer_norm_epsilon
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)

    @property
    def num_hidden_layers(self) -> int:
        return len(self.heads)


def turn_pairs(x: torch.Tensor, size: int) -> torch.Tensor:
    """Rotary positions (Su et al. 2021) on the first `size` features of every head; batch x heads x time x features."""
    half = size // 2
    rates = ROTARY_BASE ** (-torch.arange(half, device=x.device, dtype=torch.float32) * 2 / size)
    angles = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)[:, None] * rates  # time x half
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second, rest = x[..., :half], x[..., half:size], x[..., size:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine, rest], dim=-1)


class RotaryAttention(nn.Module):
    """Causal self-attention; `softmax` and `context` are modules so that a probe can listen to them."""

    def __init__(self, config: RotaryDecoderConfig, place: int):
        super().__init__()
        width, bias = config.hidden_size, config.bias
        self.heads, self.size = config.heads[place], config.head_sizes[place]
        inner = self.heads * self.size
        self.turned = 2 * int(config.rotary_share * self.size / 2)
        self.query, self.key, self.value = (nn.Linear(width, inner, bias=bias) for _ in range(3))
        # without gains: the published counts of the grid have none
        norms = (nn.LayerNorm(inner, elementwise_affine=False) if config.norm_queries else nn.Identity() for _ in "qk")
        self.query_norm, self.key_norm = norms
        self.softmax, self.context = nn.Softmax(-1), nn.Identity()
        self.mix = nn.Linear(inner, width, bias=bias)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        projected = (self.query_norm(self.query(hidden)), self.key_norm(self.key(hidden)), self.value(hidden))
        query, key, value = (x.unflatten(-1, (self.heads, self.size)).transpose(1, 2) for x in projected)
        query, key = (turn_pairs(x, self.turned) for x in (query, key))
        scores = query @ key.mT * self.size**-0.5  # batch x heads x time x time
        probabilities = self.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min))
        return self.mix(self.context((probabilities @ value).transpose(1, 2).flatten(2)))

    @property
    def linears(self) -> tuple[nn.Linear, ...]:
        return self.query, self.key, self.value, self.mix


class RotaryFfn(nn.Module):
    """GELU, or SwiGLU where the config says `gated`."""

    def __init__(self, config: RotaryDecoderConfig, place: int):
        super().__init__()
        width, inner, bias = config.hidden_size, config.inner[place], config.bias
        self.up = nn.Linear(width, inner, bias=bias)
        self.gate = nn.Linear(width, inner, bias=bias) if config.gated else None
        self.activation = nn.SiLU() if config.gated else nn.GELU()
        self.down = nn.Linear(inner, width, bias=bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.gate is None:
            return self.down(self.activation(self.up(hidden)))
        return self.down(self.activation(self.gate(hidden)) * self.up(hidden))

    @property
    def first(self) -> nn.Linear:
        """What the activation reads."""
        return self.up if self.gate is None else self.gate

    @property
    def linears(self) -> tuple[nn.Linear, ...]:
        return (self.up, self.down) if self.gate is None else (self.gate, self.up, self.down)


class RotaryLayer(nn.Module):
    """Norms come first; attention and FFN side by side, or one after the other."""

    def __init__(self, config: RotaryDecoderConfig, place: int):
        super().__init__()
        self.parallel = config.parallel
        self.attention_norm, self.ffn_norm = (layer_norm(config) for _ in range(2))
        self.attention, self.ffn = RotaryAttention(config, place), RotaryFfn(config, place)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        mixed = hidden + self.attention(self.attention_norm(hidden), mask)
        return mixed + self.ffn(self.ffn_norm(hidden if self.parallel else mixed))

    def roles(self) -> LayerRoles:
        attention, ffn = self.attention, self.ffn
        return LayerRoles(
            output=self,
            attention=attention.linears,
            ffn=ffn.linears,
            pre_activation=ffn.first,
            activations=(ffn.activation,),
            projections=(attention.query, attention.key, attention.value),
            context=attention.context,
            probabilities=attention.softmax,
            heads=attention.heads,
        )


def layer_norm(config: RotaryDecoderConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon, bias=config.norm_bias)


@dataclass
class RotaryDecoderOutput(ModelOutput):
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    last_hidden_state: torch.Tensor | None = None


class RotaryDecoderForCausalLM(PreTrainedModel):
    """The whole decoder."""

    config_class = RotaryDecoderConfig
    base_model_prefix = ""
    main_input_name = "input_ids"

    def __init__(self, config: RotaryDecoderConfig):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(RotaryLayer(config, place) for place in range(config.num_hidden_layers))
        self.norm = layer_norm(config)
        tied = config.tie_word_embeddings
        self.head = None if tied else nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None, **_: Any) -> RotaryDecoderOutput:
        """`labels` are the inputs themselves, shifted here; -100 is left out."""
        time = input_ids.shape[1]
        if time > self.config.max_position_embeddings:
            most = self.config.max_position_embeddings
            raise BadInput(f"a row has at most {most} tokens, got {time}; cut the rows shorter.")
        steps = torch.arange(time, device=input_ids.device)
        mask = steps[:, None] >= steps  # time x keys
        hidden = self.embeddings(input_ids)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        hidden = self.norm(hidden)
        answer = RotaryDecoderOutput(last_hidden_state=hidden)
        answer.logits = functional.linear(hidden, self.embeddings.weight) if self.head is None else self.head(hidden)
        if labels is not None:
            logits = answer.logits[:, :-1].flatten(0, 1)
            answer.loss = functional.cross_entropy(logits, labels[:, 1:].flatten(), ignore_index=LEFT_OUT)
        return answer

    def roles(self) -> Roles:
        return Roles(self.embeddings, tuple(layer.roles() for layer in self.layers))

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: `build_rotary_decoder` draws every first weight once."""


def build_rotary_decoder(config: RotaryDecoderConfig, generator: torch.Generator) -> RotaryDecoderForCausalLM:
    """A network in evaluation mode whose weights come from the generator, the lookup table last.

    Under `torch.device("meta")` it has shapes and no numbers.
    """
    shapes_only = torch.get_default_device().type == "meta"
    with torch.device("meta"):
        network = RotaryDecoderForCausalLM(config)
    if shapes_only:
        return network.eval()
    network = network.to_empty(device="cpu")
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.LayerNorm) and module.elementwise_affine:
                module.weight.fill_(1.0)
            if isinstance(bias := getattr(module, "bias", None), nn.Parameter):
                bias.zero_()
        for module, std in initial_deviations(network):
            module.weight.normal_(0.0, std, generator=generator)
    return network.eval()


def initial_deviations(network: RotaryDecoderForCausalLM) -> list[tuple[nn.Linear | nn.Embedding, float]]:
    """Every linear and lookup table with the standard deviation of its first weights."""
    config, width = network.config, network.config.hidden_size
    scaled, plain = config.initial == "scaled", 0.02
    found: list[tuple[nn.Linear | nn.Embedding, float]] = []
    for place, layer in enumerate(network.layers):
        for linear in (*layer.attention.linears, *layer.ffn.linears):
            std = linear.in_features**-0.5 if linear is layer.ffn.down else width**-0.5
            back = linear in (layer.attention.mix, layer.ffn.down)  # into the residual: smaller in later layers
            found.append((linear, std / (2 * (place + 1)) ** 0.5 if back else std) if scaled else (linear, plain))
    ends = [network.embeddings] if network.head is None else [network.head, network.embeddings]
    return found + [(end, width**-0.5 if scaled else plain) for end in ends]


@dataclass(frozen=True)
class RotaryDecoderShape:
    """What the sizes of a decoder follow from; thousands are counted in a second, where a Hugging Face config takes
    milliseconds each."""

    heads: tuple[int, ...]
    head_sizes: tuple[int, ...]
    inner: tuple[int, ...]
    width: int
    words: int
    gated: bool
    bias: bool
    norm_bias: bool
    tied: bool

    @classmethod
    def of(cls, config: RotaryDecoderConfig) -> "RotaryDecoderShape":
        per_layer = (tuple(config.heads), tuple(config.head_sizes), tuple(config.inner))
        flags = (config.gated, config.bias, config.norm_bias, config.tie_word_embeddings)
        return cls(*per_layer, config.hidden_size, config.vocab_size, *flags)

    def counts(self) -> Counts:
        """Closed form: nothing is built. Both embeddings are what does not count as non-embedding."""
        width, norm = self.width, self.width * (2 if self.norm_bias else 1)
        bias, ups = int(self.bias), 2 if self.gated else 1
        layers, attention, ffn, products = [], 0, 0, 0
        for heads, size, inner in zip(self.heads, self.head_sizes, self.inner, strict=True):
            mixed = heads * size
            layer = LayerSize(heads, mixing=4 * width * mixed, ffn=(ups + 1) * width * inner)
            attention += layer.mixing + bias * (3 * mixed + width)
            ffn += layer.ffn + bias * (ups * inner + width)
            products += layer.total + 2 * TOKENS * mixed
            layers.append(layer)
        nonembedding = attention + ffn + (2 * len(layers) + 1) * norm
        return Counts(
            parameters=nonembedding + (1 if self.tied else 2) * self.words * width,
            nonembedding=nonembedding,
            attention=attention,
            ffn=ffn,
            flops=2 * products,
            depth=len(layers),
            width=width,
            layers=tuple(layers),
        )
