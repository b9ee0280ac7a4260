"""A language model of recurrent cells, as a Hugging Face model: AWD-LSTM with another cell (Merity et al. 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import ModelOutput

from archwright.networks.cells.layer import CellLayer, State
from archwright.networks.cells.recipe import Recipe, check_recipe
from archwright.networks.pretraining import padding
from archwright.networks.roles import LayerRoles, Roles

PLAIN: Recipe = {
    "node_0": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "activation_tanh", "input": ["node_0"]},
}
"""Elman's cell."""
EMBEDDING_RANGE = 0.1


class CellConfig(PreTrainedConfig):
    """The recipe and the sizes; the defaults are those of every log of NAS-Bench-NLP on WikiText-2."""

    model_type = "archwright-cells"

    def __init__(
        self,
        recipe: Recipe | None = None,
        vocab_size: int = 33278,
        embedding_size: int = 400,
        hidden_size: int = 600,
        num_hidden_layers: int = 3,
        embedding_dropout: float = 0.0,
        input_dropout: float = 0.4,
        hidden_dropout: float = 0.25,
        output_dropout: float = 0.1,
        weight_dropout: float = 0.1,
        tie_word_embeddings: bool = True,
        **kwargs: Any,
    ):
        """Dropouts, all while training only: of whole words; of units, the same at all steps, before the first layer,
        between layers and after the last; of the weights that read anything but the layer's input."""
        self.recipe = {name: dict(node) for name, node in (PLAIN if recipe is None else recipe).items()}
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.embedding_dropout = embedding_dropout
        self.input_dropout = input_dropout
        self.hidden_dropout = hidden_dropout
        self.output_dropout = output_dropout
        self.weight_dropout = weight_dropout
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)

    def sizes(self) -> list[tuple[int, int]]:
        """Inputs and units of each layer; with tied embeddings the last one is as wide as they are."""
        last = self.embedding_size if self.tie_word_embeddings else self.hidden_size
        units = [self.hidden_size] * (self.num_hidden_layers - 1) + [last]
        return list(zip([self.embedding_size, *units], units, strict=False))


@dataclass
class CellAnswer(ModelOutput):
    """Answer of the language model."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None  # batch x time x vocabulary
    last_hidden_state: torch.Tensor | None = None  # batch x time x width
    state: tuple[State, ...] | None = None
    """States of all layers after the last step, without their history: give them to the next call to go on reading."""


class CellForCausalLM(PreTrainedModel, GenerationMixin):
    """Embeddings, layers of one recipe, and a decoder that shares the embeddings' weights and adds a bias."""

    config_class = CellConfig
    config: CellConfig
    base_model_prefix = ""
    _tied_weights_keys: ClassVar = {"decoder.weight": "embeddings.weight"}

    def __init__(self, config: CellConfig):
        super().__init__(config)
        check_recipe(config.recipe)
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        self.embedded = nn.Identity()
        self.layers = nn.ModuleList(
            CellLayer(config.recipe, inputs, units, weight_dropout=config.weight_dropout)
            for inputs, units in config.sizes()
        )
        self.decoder = nn.Linear(config.sizes()[-1][1], config.vocab_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def roles(self) -> Roles:
        """Roles of every layer: `recurrent` are all linears of the cell, also those of x (never called, see CellLayer).

        `output` gives the main state after every step. The main state *entering* every step, which the published hidden
        covariance looks at, is that output one step later, with zero at the first step (or the given state).
        """
        return Roles(self.embedded, [_roles(cast(CellLayer, layer)) for layer in self.layers])

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        state: Sequence[State] | None = None,
        inputs_embeds: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        **_: Any,
    ) -> CellAnswer:
        """`labels` are the inputs themselves, shifted here; `state` of the answer before goes on where it ended.

        Padding, where `attention_mask` is 0, is no step, so it may stand before a text as well as behind it.
        """
        mask = padding(attention_mask)
        hidden = self._embed(input_ids) if inputs_embeds is None else inputs_embeds
        hidden = self._locked_dropout(self.embedded(hidden), self.config.input_dropout)
        after = []
        for place, layer in enumerate(self.layers):
            share = self.config.hidden_dropout if place + 1 < len(self.layers) else self.config.output_dropout
            hidden, last = layer(hidden, state[place] if state else None, mask)
            hidden = self._locked_dropout(hidden, share)
            after.append(tuple(each.detach() for each in last))
        logits = self.decoder(hidden)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CellAnswer(loss=loss, logits=logits, last_hidden_state=hidden, state=tuple(after))

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        state: Sequence[State] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The prompt, then one token after another with the state that the one before has left."""
        if state is None:
            return {"input_ids": input_ids, "attention_mask": attention_mask}
        return {"input_ids": input_ids[:, -1:], "state": state}

    def _reorder_cache(self, state: Sequence[State], beam_idx: torch.Tensor) -> tuple[State, ...]:
        return tuple(tuple(each.index_select(0, beam_idx.to(each.device)) for each in layer) for layer in state)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def _embed(self, input_ids: torch.Tensor | None) -> torch.Tensor:
        """Embeddings; while training some words are zero wherever they stand."""
        if input_ids is None:
            raise TypeError("give input_ids or inputs_embeds")
        found: torch.Tensor = self.embeddings(input_ids)
        words = found.new_ones(self.config.vocab_size, 1)
        kept = nn.functional.dropout(words, self.config.embedding_dropout, self.training)
        return found * kept[input_ids] if self.training else found

    def _locked_dropout(self, hidden: torch.Tensor, share: float) -> torch.Tensor:
        """Dropout that is the same at all steps (Gal and Ghahramani 2016)."""
        mask = nn.functional.dropout(torch.ones_like(hidden[:, :1]), share, self.training)
        return hidden * mask if self.training else hidden

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        fill(module)


def _roles(layer: CellLayer) -> LayerRoles:
    linears = [module for module in layer.linears.modules() if isinstance(module, nn.Linear)]
    activations = [layer.activations[key] for key in layer.activations]
    return LayerRoles(output=layer.output, recurrent=linears, activations=activations)


def fill(module: nn.Module, generator: torch.Generator | None = None) -> None:
    """Initial weights of the benchmark: uniform within 0.1 (embeddings), 1 / sqrt(units) (cells), no decoder bias."""
    match module:
        case nn.Embedding():
            init.uniform_(module.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE, generator=generator)
        case CellLayer():
            for weight in module.linears.parameters():
                init.uniform_(weight, -(module.units**-0.5), module.units**-0.5, generator=generator)
        case CellForCausalLM():
            init.zeros_(module.decoder.bias)
            if not module.config.tie_word_embeddings:
                init.uniform_(module.decoder.weight, -EMBEDDING_RANGE, EMBEDDING_RANGE, generator=generator)


def build_cells(config: CellConfig, generator: torch.Generator) -> CellForCausalLM:
    """A network with initial weights of this generator, in evaluation mode."""
    with torch.device("meta"):
        network = CellForCausalLM(config)
    network.to_empty(device="cpu")
    network.tie_weights()
    with torch.no_grad():
        for module in network.modules():
            fill(module, generator)
    return network.eval()
