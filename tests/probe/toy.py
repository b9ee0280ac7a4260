"""A network of two layers and width 4 with every role, small enough to be worked out by hand beside it."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from archwright.networks.roles import Counts, LayerRoles, LayerSize, Roles

WIDTH, UNITS, HEADS, VOCABULARY = 4, 6, 2, 11
BATCH, TIME = 3, 5
SIZES = {"parameters": 1000, "nonembedding": 700, "attention": 300, "ffn": 400, "flops": 5000, "depth": 2, "width": 4}
COUNTS = Counts(**SIZES, layers=(LayerSize(2, mixing=150, ffn=200), LayerSize(2, mixing=150, ffn=200)))


@dataclass
class Answer:
    last_hidden_state: torch.Tensor
    loss: torch.Tensor | None = None


class ToyLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.mix = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.softmax, self.context = nn.Softmax(-1), nn.Identity()
        self.up, self.activation, self.down = nn.Linear(WIDTH, UNITS), nn.ReLU(), nn.Linear(UNITS, WIDTH)
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        made = (linear(hidden) for linear in (self.query, self.key, self.value))
        query, key, value = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in made)
        probabilities = self.softmax(query @ key.mT * (WIDTH // HEADS) ** -0.5)
        hidden = self.first_norm(hidden + self.mix(self.context((probabilities @ value).transpose(1, 2).flatten(2))))
        return self.second_norm(hidden + self.down(self.activation(self.up(hidden))))

    def roles(self) -> LayerRoles:
        return LayerRoles(
            output=self,
            attention=(self.query, self.key, self.value, self.mix),
            ffn=(self.up, self.down),
            pre_activation=self.up,
            activations=(self.activation,),
            projections=(self.query, self.key, self.value),
            context=self.context,
            probabilities=self.softmax,
            heads=HEADS,
        )


class Toy(nn.Module):
    """Replaced-token detection over two layers; dropout and a buffer are there to be left alone."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.dropout = nn.Dropout(0.5)
        self.layers = nn.ModuleList(ToyLayer() for _ in range(2))
        self.head = nn.Linear(WIDTH, 1)
        self.register_buffer("scale", torch.tensor(1.0))

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None) -> Answer:
        hidden = self.dropout(self.embeddings(input_ids)) * self.scale
        for layer in self.layers:
            hidden = layer(hidden)
        if labels is None:
            return Answer(hidden)
        logits = self.head(hidden).squeeze(-1)
        return Answer(hidden, functional.binary_cross_entropy_with_logits(logits, labels.to(logits)))

    def roles(self) -> Roles:
        return Roles(self.embeddings, [layer.roles() for layer in self.layers])


def toy(seed: int = 0) -> Toy:
    """In double precision, so that golden numbers agree to many digits."""
    network, generator = Toy().double(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.7)
    return network


def toy_batch(seed: int = 1, batch: int = BATCH, time: int = TIME) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCABULARY, (batch, time), generator=generator)
    return {"input_ids": ids, "labels": torch.randint(0, 2, (batch, time), generator=generator)}
