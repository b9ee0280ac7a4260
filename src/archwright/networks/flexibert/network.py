"""A FlexiBERT encoder: embeddings, FFN stacks and residuals around the operators, its heads, and its sizes."""

from collections.abc import Callable, Iterable

import torch
from torch import nn
from transformers.initialization import no_init_weights

from archwright.networks.encoders import EncoderModel, EncoderNetwork
from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.mixers import MIXERS
from archwright.networks.pretraining import MaskedTokens, ReplacedTokens, fill
from archwright.networks.roles import Counts, LayerRoles, LayerSize


class FlexiBertEmbeddings(nn.Module):
    """Tokens, positions and segments, normed, then projected to the layers' width where that differs."""

    def __init__(self, config: FlexiBertConfig):
        super().__init__()
        narrow, wide = config.embedding_size, config.hidden_size
        self.tokens = nn.Embedding(config.vocab_size, narrow)
        self.positions = nn.Embedding(config.max_position_embeddings, narrow)
        self.segments = nn.Embedding(config.type_vocab_size, narrow)
        self.norm = nn.LayerNorm(narrow, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(narrow, wide) if narrow != wide else nn.Identity()

    def forward(
        self, input_ids: torch.Tensor, _: torch.Tensor | None = None, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        segment = self.segments.weight[0] if segments is None else self.segments(segments)
        summed = self.tokens(input_ids) + self.positions.weight[: input_ids.shape[1]] + segment
        return self.projection(self.dropout(self.norm(summed)))


class Residual(nn.Module):
    """A linear whose output is added to the residual and normed."""

    def __init__(self, config: FlexiBertConfig, inner: int):
        super().__init__()
        self.linear = nn.Linear(inner, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    @property
    def linears(self) -> list[nn.Linear]:
        return [self.linear]

    def forward(self, inner: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dropout(self.linear(inner)) + residual)


class NoResidual(nn.Module):
    """What was mixed goes on alone."""

    linears: tuple[nn.Linear, ...] = ()

    def forward(self, inner: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return inner


class FlexiBertFfn(nn.Module):
    """A stack of linears, an activation after each, and the linear back."""

    def __init__(self, config: FlexiBertConfig, widths: tuple[int, ...]):
        super().__init__()
        sizes = (config.hidden_size, *widths)
        self.stack = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes[:-1], widths, strict=True))
        self.activations = nn.ModuleList(nn.GELU() for _ in widths)
        self.output = Residual(config, widths[-1])

    @property
    def linears(self) -> list[nn.Linear]:
        return [*self.stack, *self.output.linears]

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        inner = hidden
        for linear, activation in zip(self.stack, self.activations, strict=True):
            inner = activation(linear(inner))
        return self.output(inner, hidden)


class FlexiBertLayer(nn.Module):
    """An operator and an FFN stack."""

    def __init__(self, config: FlexiBertConfig, plan: LayerPlan):
        super().__init__()
        self.heads = plan.heads
        self.mixer = MIXERS[plan.operation](config, plan.heads)
        self.mixed = NoResidual() if plan.bare else Residual(config, config.hidden_size)
        self.ffn = FlexiBertFfn(config, plan.widths)

    @property
    def attention(self) -> list[nn.Linear]:
        return [*self.mixer.linears, *self.mixed.linears]

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return self.ffn(self.mixed(self.mixer(hidden, mask), hidden))

    def roles(self) -> LayerRoles:
        return LayerRoles(
            output=self,
            attention=self.attention,
            ffn=self.ffn.linears,
            pre_activation=self.ffn.stack[0],
            activations=list(self.ffn.activations),
            projections=self.mixer.projections,
            context=self.mixer.context,
            probabilities=self.mixer.probabilities,
            mixed=self.mixed,
            heads=self.heads,
        )


class SummedState(nn.Module):
    """No loss, but what the public scoring script back-propagates: the sum of the last hidden state.

    At initialisation that state comes out of a LayerNorm and its sum is a constant, so the true gradient is zero.
    """

    def __init__(self, _: FlexiBertConfig):
        super().__init__()

    def forward(self, hidden: torch.Tensor, _: FlexiBertEmbeddings) -> torch.Tensor:
        return hidden

    def loss(self, logits: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return logits.sum()


HEADS: dict[str, Callable[[FlexiBertConfig], nn.Module]] = {
    "electra": ReplacedTokens,
    "mlm": MaskedTokens,
    "published": SummedState,
}


class FlexiBertModel(EncoderModel):
    """Embeddings and layers."""

    config_class = FlexiBertConfig

    def __init__(self, config: FlexiBertConfig):
        super().__init__(
            config, FlexiBertEmbeddings(config), nn.ModuleList(FlexiBertLayer(config, plan) for plan in config.plans)
        )


class FlexiBertNetwork(EncoderNetwork):
    """With the head of `config.loss`; padding has a part in the sum of `published`."""

    config_class = FlexiBertConfig
    body, heads = FlexiBertModel, HEADS


def build_flexibert(config: FlexiBertConfig, *, generator: torch.Generator) -> FlexiBertNetwork:
    """A network in evaluation mode, every weight drawn once.

    The lookup tables are drawn last: one seed gives the same layers whatever the vocabulary.
    """
    with torch.device(generator.device), no_init_weights():
        network = FlexiBertNetwork(config)
    for module in sorted(network.modules(), key=lambda module: isinstance(module, nn.Embedding)):
        fill(module, std=config.initializer_range, generator=generator)
    return network.eval()


TOKENS = 64
"""Length of a row for which operations are counted."""


def flexibert_counts(config: FlexiBertConfig) -> Counts:
    """Sizes without the head of the loss; the lookup tables are what does not count as non-embedding.

    A convolution's depthwise kernel counts as attention, norms count as neither attention nor FFN.
    """
    with torch.device("meta"), no_init_weights():
        encoder = FlexiBertModel(config)
    tables = [module for module in encoder.embeddings.modules() if isinstance(module, nn.Embedding)]
    total, layers = numbers([encoder]), list(encoder.layers)
    return Counts(
        parameters=total,
        nonembedding=total - numbers(tables),
        attention=sum(numbers([layer.mixer]) + numbers(layer.mixed.linears) for layer in layers),
        ffn=sum(numbers(layer.ffn.linears) for layer in layers),
        flops=sum(operations(layer) for layer in layers),
        depth=len(layers),
        width=config.hidden_size,
        layers=tuple(
            LayerSize(layer.heads, weights_of(layer.attention), weights_of(layer.ffn.linears)) for layer in layers
        ),
    )


def weights_of(linears: Iterable[nn.Linear]) -> int:
    return sum(linear.weight.numel() for linear in linears)


def numbers(modules: Iterable[nn.Module]) -> int:
    return sum(weight.numel() for module in modules for weight in module.parameters())


def operations(layer: FlexiBertLayer) -> int:
    """Per token: two for each number of a linear or convolution but its bias, and those of the operator itself."""
    kernels = [module for module in layer.modules() if isinstance(module, nn.Linear | nn.Conv1d)]
    return round(2 * (sum(module.weight.numel() for module in kernels) + layer.mixer.products(TOKENS)))
