"""How a layer mixes tokens: five operators, each from the hidden state to the heads' outputs side by side.

Padding counts as absent: attention does not look at it, a transform runs over the other tokens of the row alone, and a
convolution sees zeros there, as beyond the ends. So a row's answer does not depend on how far it is padded.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import nn

from archwright.networks.flexibert.config import FlexiBertConfig


class Mixer(Protocol):
    """What a layer, and whoever looks into it, knows of its operator."""

    heads: int
    projections: Sequence[nn.Linear]
    """Give what the heads work on."""
    linears: Sequence[nn.Linear]
    context: nn.Module
    probabilities: nn.Module | None

    def __call__(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor: ...

    def products(self, tokens: int) -> float:
        """Multiply-adds per token of a row with so many, those of linears and convolutions not counted."""


def split(flat: torch.Tensor, heads: int) -> torch.Tensor:
    return flat.unflatten(-1, (heads, -1)).transpose(1, 2)  # batch x heads x time x size


def side_by_side(parts: torch.Tensor) -> torch.Tensor:
    return parts.transpose(1, 2).flatten(2)  # batch x time x width


class DotProductAttention(nn.Module):
    """Scaled dot-product attention (Vaswani et al. 2017)."""

    def __init__(self, config: FlexiBertConfig, heads: int, inner: int | None = None):
        super().__init__()
        width, self.heads, self.inner = config.hidden_size, heads, inner or config.hidden_size
        self.query, self.key, self.value = (nn.Linear(width, self.inner) for _ in range(3))
        self.probabilities, self.context = nn.Softmax(-1), nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    @property
    def projections(self) -> list[nn.Linear]:
        return [self.query, self.key, self.value]

    @property
    def linears(self) -> list[nn.Linear]:
        return self.projections

    def products(self, tokens: int) -> float:
        return 2 * tokens * self.inner

    def queries(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.query(hidden)

    def attend(self, query: torch.Tensor, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        q, k, v = (split(part, self.heads) for part in (query, self.key(hidden), self.value(hidden)))
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # batch x heads x time x time
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min)
        return side_by_side(self.dropout(self.probabilities(scores)) @ v)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return self.context(self.attend(self.queries(hidden), hidden, mask))


class MultiplicativeAttention(DotProductAttention):
    """Scores are q W k: one more matrix between queries and keys, over all heads (Luong et al. 2015)."""

    def __init__(self, config: FlexiBertConfig, heads: int):
        super().__init__(config, heads)
        self.weight = nn.Linear(self.inner, self.inner, bias=False)

    @property
    def projections(self) -> list[nn.Linear]:
        return [self.query, self.key, self.value, self.weight]

    def queries(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.weight(self.query(hidden))


class SpanConvolution(DotProductAttention):
    """Half of the heads attend, half convolve with a kernel made of the tokens around (ConvBERT, Jiang et al. 2020)."""

    def __init__(self, config: FlexiBertConfig, heads: int, *, kernel: int):
        width = config.hidden_size
        super().__init__(config, heads // 2, width // 2)
        self.near = nn.Conv1d(width, width, kernel, groups=width, padding=kernel // 2, bias=False)
        self.span = nn.Linear(width, self.inner)
        self.kernel = nn.Linear(self.inner, self.heads * kernel)
        self.values = nn.Linear(width, self.inner)

    @property
    def linears(self) -> list[nn.Linear]:
        return [self.query, self.key, self.value, self.kernel, self.values]

    def products(self, tokens: int) -> float:
        return super().products(tokens) + self.inner * (1 + self.near.kernel_size[0])

    def convolve(self, query: torch.Tensor, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        size, values = self.near.kernel_size[0], self.values(hidden)
        values = values if mask is None else values * mask[..., None]
        span = self.span(self.near(hidden.mT).mT)  # batch x time x inner
        kernel = self.kernel(span * query).unflatten(-1, (self.heads, 1, size)).softmax(-1)
        around = nn.functional.pad(values, (0, 0, size // 2, size // 2)).unfold(1, size, 1)
        return (around.unflatten(2, (self.heads, -1)) * kernel).sum(-1).flatten(2)  # batch x time x inner

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        hidden = hidden if mask is None else hidden * mask[..., None]
        query = self.queries(hidden)
        parts = (self.attend(query, hidden, mask), self.convolve(query, hidden, mask))
        return self.context(torch.cat(parts, -1))


class Waves(NamedTuple):
    """A fixed linear transform over time and features, not normalised."""

    at_once: Callable[[torch.Tensor], torch.Tensor]
    """Of rows without padding: ... x time x features."""
    matrices: Callable[[torch.Tensor, torch.Tensor], list[torch.Tensor]]
    """The same as matrices: for places (rows x n) in rows of these lengths (rows x 1 x 1), each rows x n x n."""
    signs: tuple[float, ...]
    """The transform is the sum of matrix over time x row x matrix over features, with these signs."""


def fourier(rows: torch.Tensor) -> torch.Tensor:
    """Real part of the discrete Fourier transform over time and features (Lee-Thorp et al. 2021)."""
    return torch.fft.fft2(rows).real


def fourier_matrices(places: torch.Tensor, length: torch.Tensor) -> list[torch.Tensor]:
    """Real and imaginary part: the real part of a product is that of both minus that of the others."""
    turns = (places[:, :, None] * places[:, None, :] % length) / length  # of a whole turn, exact before it is divided
    return [torch.cos(2 * math.pi * turns), torch.sin(2 * math.pi * turns)]


def cosine(rows: torch.Tensor) -> torch.Tensor:
    """Discrete cosine transform (type II) over time and features, by matrices 2 cos(pi k (2 n + 1) / (2 size))."""
    matrices = []
    for size in rows.shape[-2:]:
        places = torch.arange(size, dtype=torch.float64, device=rows.device)
        matrices.append((2 * torch.cos(math.pi / size * torch.outer(places, places + 0.5))).to(rows.dtype))
    time, features = matrices
    return time @ rows @ features.mT


def cosine_matrices(places: torch.Tensor, length: torch.Tensor) -> list[torch.Tensor]:
    quarters = places[:, :, None] * (2 * places[:, None, :] + 1) % (4 * length) / length  # of a whole turn
    return [2 * torch.cos(math.pi / 2 * quarters)]


FOURIER = Waves(fourier, fourier_matrices, (1.0, -1.0))
COSINE = Waves(cosine, cosine_matrices, (1.0,))


class Transform(nn.Module):
    """A linear, then a fixed transform of each head."""

    probabilities = None

    def __init__(self, config: FlexiBertConfig, heads: int, *, of: Waves):
        super().__init__()
        self.heads, self.of = heads, of
        self.input, self.context = nn.Linear(config.hidden_size, config.hidden_size), nn.Identity()

    @property
    def projections(self) -> list[nn.Linear]:
        return [self.input]

    @property
    def linears(self) -> list[nn.Linear]:
        return [self.input]

    def products(self, tokens: int) -> float:
        """As a fast transform: 5 n log2(n) operations for n numbers."""
        width = self.input.out_features
        return 2.5 * width * math.log2(tokens * width / self.heads)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        rows = split(self.input(hidden), self.heads)
        with torch.autocast(rows.device.type, enabled=False):  # three digits are too few for sums over all tokens
            exact = rows.float() if rows.dtype in (torch.bfloat16, torch.float16) else rows
            mixed = self.of.at_once(exact) if mask is None else self.of_real(exact, mask)
        return self.context(side_by_side(mixed.to(rows.dtype)))

    def of_real(self, rows: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Each row as long as it has real tokens; padding, wherever it stands, becomes zero."""
        places, lengths = mask.cumsum(1) - 1, mask.sum(1)[:, None, None].clamp(min=1)
        features = torch.arange(rows.shape[-1], device=rows.device)[None]
        over_time, over_features = (
            [matrix.to(rows.dtype)[:, None] for matrix in self.of.matrices(*at)]  # row x 1 x n x n
            for at in ((places, lengths.to(rows.dtype)), (features, features.new_tensor(rows.shape[-1]).to(rows.dtype)))
        )
        both = (mask[:, :, None] & mask[:, None, :])[:, None]
        pairs = zip(self.of.signs, over_time, over_features, strict=True)
        mixed = [sign * ((time * both) @ rows @ wave.mT) for sign, time, wave in pairs]
        return torch.stack(mixed).sum(0)


MIXERS: dict[str, Callable[[FlexiBertConfig, int], Mixer]] = {
    "SA/SDP": DotProductAttention,
    "SA/WMA": MultiplicativeAttention,
    "LT/DFT": partial(Transform, of=FOURIER),
    "LT/DCT": partial(Transform, of=COSINE),
    "DSC/5": partial(SpanConvolution, kernel=5),
    "DSC/9": partial(SpanConvolution, kernel=9),
}
