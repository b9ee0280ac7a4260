"""The parts around the operators: embeddings, FFN stacks, residuals."""

import torch
from torch import nn

from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.mixers import MIXERS
from archwright.networks.roles import LayerRoles


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
