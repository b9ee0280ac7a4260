"""Recurrent cells of NAS-Bench-NLP (Klyuchnikov et al. 2022), three layers of one cell each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from archwright.errors import BadInput
from archwright.networks.cells.canonical import canonical_recipe
from archwright.networks.cells.model import CellConfig, CellForCausalLM, build_cells
from archwright.networks.cells.recipe import OPS, Recipe, check_recipe, effective_nodes, longest_path, states_of
from archwright.networks.roles import Counts, LayerSize
from archwright.search import Config, sample
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary
from archwright.spaces.cell_encoding import CHOICES, MOST_NODES, SIZE, SLOTS, decode, encode, missing_effects, read_cell

RECIPE = "recipe"
LINEAR_SHARE = 0.85
"""How many of the nodes that are no activation are linears, and how many of these an activation follows: as in the
published recipes, where 695 of 810 such nodes are linears and an activation reads nine in ten of them."""
ACTIVATED_SHARE = 0.9
_LINEARS = [name for name, slot in SLOTS.items() if OPS[slot.op].weighted]
_ACTIVATIONS = [name for name, slot in SLOTS.items() if OPS[slot.op].activation]
_OTHERS = [name for name in SLOTS if name not in (*_LINEARS, *_ACTIVATIONS)]


@dataclass(frozen=True)
class CellSpace(ArchitectureSpace):
    """Cells as lists of fixed length (see `cell_encoding`), or `{"recipe": {...}}` as somebody published it.

    A published recipe is built as it stands, nodes without effect included, because their weights were counted.
    """

    variant: str = "random"

    name = "rnn"
    text = "words"
    losses = ("lm",)
    variants = ("random",)
    classes = (CellForCausalLM,)
    batch = (20, 70)
    """As the benchmark was trained: a covariance between 600 units needs more tokens than units."""

    @property
    def choices(self) -> Mapping[str, Sequence[int | str]]:
        return CHOICES

    def sample(self, rng: np.random.Generator) -> Config:
        """A random cell as in the benchmark: nodes mostly linears followed by an activation, drawn again until the
        input and every state have an effect. `search.sample(space.choices, rng)` draws evenly and mends instead."""
        while True:
            config = self._shape(sample(self.choices, rng), rng)
            if not missing_effects(read_cell(config)):
                return self.canonical(config)

    def recipe(self, config: Config) -> Recipe:
        """The graph of this config."""
        self.check(config)
        found: Recipe = config[RECIPE] if RECIPE in config else decode(config)
        return found

    def canonical(self, config: Config) -> Config:
        """The list of the canonical recipe, or that recipe where no list means it."""
        recipe = canonical_recipe(self.recipe(config))
        return encode(recipe) or {RECIPE: recipe}

    def check(self, config: Config) -> None:
        if RECIPE in config:
            if len(config) > 1:
                others = ", ".join(name for name in config if name != RECIPE)
                raise BadInput(f"a cell is a recipe or a list of choices, got a recipe and {others}; take one.")
            return check_recipe(config[RECIPE])
        for name in sorted(set(config) ^ set(self.choices)):
            lack = "lacks" if name in self.choices else "does not know"
            raise BadInput(f"a cell {lack} the choice {name}; give all of {len(self.choices)}, or a recipe.")
        for name, values in self.choices.items():
            if isinstance(config[name], bool) or config[name] not in values:
                raise BadInput(f"{name} must be one of {values[0]} to {values[-1]}, got {config[name]!r}.")
        return None

    def plan(self, config: Config) -> CellConfig:
        return CellConfig(recipe=self.recipe(config))

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> CellForCausalLM:
        self.check_loss(loss)
        plan = self.plan(config)
        plan.vocab_size = plan.vocab_size if vocabulary is None else vocabulary
        return build_cells(plan, generator)

    def plan_counts(self, plan: CellConfig) -> Counts:
        """Depth is the longest path of nodes through one step, for all designs have three layers of 600 units.

        FLOPs are those of the linears that have an effect; cells have no attention and no FFN.
        """
        with torch.device("meta"):
            network = CellForCausalLM(plan)
        parameters = network.num_parameters()
        head = network.decoder.weight.numel() + network.decoder.bias.numel()
        return Counts(
            parameters=parameters,
            nonembedding=parameters - head,
            attention=0,
            ffn=0,
            flops=2 * sum(layer.multiply_adds() for layer in network.layers),
            depth=longest_path(plan.recipe),
            width=network.config.hidden_size,
            layers=tuple(
                LayerSize(1, mixing=sum(linear.weight.numel() for linear in roles.recurrent), ffn=0)
                for roles in network.roles().layers
            ),
        )

    def plan_network(self, plan: CellConfig, *, generator: torch.Generator) -> CellForCausalLM:
        return build_cells(plan, generator)

    def layers(self, config: Config) -> list[LayerSummary]:
        """Nodes of the one cell, in the order in which they are computed."""
        return [
            LayerSummary(kind=str(node["op"]), width=len(node["input"]), label=f"{name}: {node['op']}")
            for name, node in self.recipe(config).items()
        ]

    def traits(self, config: Config) -> Config:
        """How many nodes of every operation have an effect, and how many states there are."""
        recipe = self.recipe(config)
        ops = [recipe[name]["op"] for name in effective_nodes(recipe)]
        return {"states": states_of(recipe), **{op: ops.count(op) for op in OPS}}

    def size(self) -> dict[str, int]:
        """Raw: all lists. How many different cells they mean is not known: there are too many to look at them all."""
        return {"raw": SIZE}

    def _shape(self, config: Config, rng: np.random.Generator) -> Config:
        """The same list with the benchmark's mix of operations, most linears read by the activation behind them."""
        ops: list[str] = []
        reads: Config = {}
        while len(ops) < MOST_NODES:
            linear = rng.random() < LINEAR_SHARE
            ops.append(str(rng.choice(_LINEARS if linear else _OTHERS)))
            if linear and rng.random() < ACTIVATED_SHARE:
                reads[f"input_{len(ops)}_0"] = min(config["states"], config["nodes"]) + len(ops) - 1
                ops.append(str(rng.choice(_ACTIVATIONS)))
        shaped = {f"op_{number}": op for number, op in enumerate(ops[:MOST_NODES])}
        return config | shaped | {name: value for name, value in reads.items() if name in config}


CELLS = CellSpace()
