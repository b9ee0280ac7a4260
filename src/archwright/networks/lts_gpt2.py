"""GPT-2 of LiteTransformerSearch (Javaheripi et al. 2022): heads and FFN width of every layer are its own."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import ModelOutput

from archwright.errors import BadInput
from archwright.networks.lts_adaptive import AdaptiveEmbedding, AdaptiveSoftmax, Linear
from archwright.networks.roles import LayerRoles, Roles

LEFT_OUT = -100
"""A label that is none, as everywhere in transformers."""


class LtsGpt2Config(PreTrainedConfig):
    """Defaults are what all published architectures share; `n_head` and `d_inner` have one entry per layer."""

    model_type = "archwright_lts_gpt2"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]
    attribute_map: ClassVar[dict[str, str]] = {
        "num_hidden_layers": "n_layer",
        "hidden_size": "d_model",
        "vocab_size": "n_token",
        "max_position_embeddings": "n_positions",
    }

    def __init__(
        self,
        n_head: list[int] | None = None,
        d_inner: list[int] | None = None,
        d_model: int = 128,
        d_embed: int = 128,
        div_val: int = 1,
        n_token: int = 50264,
        n_positions: int = 192,
        cutoffs: list[int] | None = None,
        tie_weight: bool = True,
        tie_projs: list[bool] | None = None,
        dropout: float = 0.1,
        dropatt: float = 0.0,
        weight_init_std: float = 0.02,
        proj_init_std: float = 0.01,
        layer_norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ):
        self.n_head = n_head or [2, 2]
        self.d_inner = d_inner or [2 * d_model] * len(self.n_head)
        self.n_layer = len(self.n_head)
        self.d_model, self.d_embed, self.div_val = d_model, d_embed, div_val
        self.n_token, self.n_positions = n_token, n_positions
        self.cutoffs = [19997, 39997, 199997] if cutoffs is None else cutoffs
        self.tie_weight = tie_weight
        self.tie_projs = [False, True, True, True] if tie_projs is None else tie_projs
        self.dropout, self.dropatt = dropout, dropatt
        self.weight_init_std, self.proj_init_std = weight_init_std, proj_init_std
        self.layer_norm_epsilon = layer_norm_epsilon
        kwargs = {"tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None} | kwargs
        super().__init__(**{key: value for key, value in kwargs.items() if key != "n_layer"})


class LtsGpt2Embeddings(nn.Module):
    """Tokens and learned positions; the published recipe drops nothing here but what `dropatt` says."""

    def __init__(self, config: LtsGpt2Config):
        super().__init__()
        self.tokens = AdaptiveEmbedding(config)
        self.positions = nn.Embedding(config.n_positions, config.d_model)
        self.dropout = nn.Dropout(config.dropatt)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.tokens(tokens) + self.positions(positions))


class LtsGpt2Attention(nn.Module):
    """Causal self-attention; `softmax` and `context` are modules so that a probe can listen to them."""

    def __init__(self, config: LtsGpt2Config, place: int):
        super().__init__()
        width, std = config.d_model, config.weight_init_std
        self.heads, self.place = config.n_head[place], place
        self.query, self.key, self.value = (Linear(width, width, std=std) for _ in range(3))
        self.softmax, self.drop = nn.Softmax(-1), nn.Dropout(config.dropatt)
        self.context = nn.Identity()
        self.mix = Linear(width, width, std=std / (2 * config.n_layer) ** 0.5)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor, cache: DynamicCache | None) -> torch.Tensor:
        projected = (linear(hidden) for linear in (self.query, self.key, self.value))
        query, key, value = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in projected)
        if cache is not None:
            key, value = cache.update(key, value, self.place)
        scores = query @ key.mT * query.shape[-1] ** -0.5  # batch x heads x time x keys
        probabilities = self.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min))
        context = self.context((self.drop(probabilities) @ value).transpose(1, 2).flatten(2))
        return self.mix(context)


class LtsGpt2Ffn(nn.Module):
    def __init__(self, config: LtsGpt2Config, place: int):
        super().__init__()
        width, inner, std = config.d_model, config.d_inner[place], config.weight_init_std
        self.up = Linear(width, inner, std=std)
        self.activation = nn.GELU(approximate="tanh")
        self.down = Linear(inner, width, std=std / (2 * config.n_layer) ** 0.5)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.down(self.activation(self.up(hidden)))


class LtsGpt2Layer(nn.Module):
    """Norms come first in each half, as in GPT-2 (the key `pre_lnorm` of the published files has no effect)."""

    def __init__(self, config: LtsGpt2Config, place: int):
        super().__init__()
        self.attention_norm, self.ffn_norm = (
            nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon) for _ in range(2)
        )
        self.attention = LtsGpt2Attention(config, place)
        self.ffn = LtsGpt2Ffn(config, place)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor, cache: DynamicCache | None) -> torch.Tensor:
        hidden = hidden + self.dropout(self.attention(self.attention_norm(hidden), mask, cache))
        return hidden + self.dropout(self.ffn(self.ffn_norm(hidden)))

    def roles(self) -> LayerRoles:
        of, ffn = self.attention, self.ffn
        return LayerRoles(
            output=self,
            attention=(of.query, of.key, of.value, of.mix),
            ffn=(ffn.up, ffn.down),
            pre_activation=ffn.up,
            activations=(ffn.activation,),
            projections=(of.query, of.key, of.value),
            context=of.context,
            probabilities=of.softmax,
            heads=of.heads,
        )


@dataclass
class LtsGpt2Output(ModelOutput):
    """`logits` are log-probabilities of all tokens: their softmax is themselves."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    past_key_values: Any = None
    last_hidden_state: torch.Tensor | None = None


class LtsGpt2ForCausalLM(PreTrainedModel, GenerationMixin):
    """The whole decoder; reads at most `n_positions` tokens."""

    config_class = LtsGpt2Config
    base_model_prefix = ""
    main_input_name = "input_ids"
    accepts_loss_kwargs = False

    def __init__(self, config: LtsGpt2Config):
        super().__init__(config)
        self.embeddings = LtsGpt2Embeddings(config)
        self.layers = nn.ModuleList(LtsGpt2Layer(config, place) for place in range(config.n_layer))
        self.norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.head = AdaptiveSoftmax(config)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: DynamicCache | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
        loss_alone: bool = False,
        **_: Any,
    ) -> LtsGpt2Output:
        """`labels` are the inputs themselves, shifted here; -100 is left out. Without `use_cache` nothing is kept.

        With `loss_alone` the same loss comes without logits, for training: rare clusters are skipped where they may be.
        """
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()
        past = 0 if past_key_values is None else past_key_values.get_seq_length()
        steps = self.steps(past, input_ids)
        hidden = self.embeddings(input_ids, steps[past:] if position_ids is None else position_ids)
        mask = steps[past:, None] >= steps  # time x keys
        if attention_mask is not None:
            mask = mask & attention_mask[:, None, None, :].bool()
        for layer in self.layers:
            hidden = layer(hidden, mask, past_key_values)
        hidden = self.norm(hidden)
        answer = LtsGpt2Output(past_key_values=past_key_values, last_hidden_state=hidden)
        if not loss_alone:
            answer.logits = self.head(hidden[:, -logits_to_keep:], self.embeddings.tokens)  # 0 keeps all
        if labels is not None:
            answer.loss = self.loss(hidden, labels, None if loss_alone else answer.logits)
        return answer

    def loss(self, hidden: torch.Tensor, labels: torch.Tensor, logs: torch.Tensor | None = None) -> torch.Tensor:
        """Mean over the tokens that have a label; without `logs` the probabilities of all others are not needed."""
        targets = labels[:, 1:].flatten()
        if logs is not None:
            return functional.nll_loss(logs[:, :-1].flatten(0, 1), targets, ignore_index=LEFT_OUT)
        known = targets != LEFT_OUT
        return -self.head.of_targets(hidden[:, :-1].flatten(0, 1)[known], targets[known], self.embeddings.tokens).mean()

    def surprise(self, inputs: dict[str, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Negative log-likelihood of all targets, summed: next tokens, not shifted here; -100 is left out."""
        hidden = self(**inputs, loss_alone=True).last_hidden_state
        known = targets != LEFT_OUT
        return -self.head.of_targets(hidden[known], targets[known], self.embeddings.tokens).sum()

    def steps(self, past: int, tokens: torch.Tensor) -> torch.Tensor:
        """Positions of all tokens so far."""
        count = past + tokens.shape[1]
        if count > self.config.n_positions:
            raise BadInput(f"a row has at most {self.config.n_positions} tokens, got {count}; cut the rows shorter.")
        return torch.arange(count, device=tokens.device)

    def roles(self) -> Roles:
        return Roles(self.embeddings, tuple(layer.roles() for layer in self.layers))

    def sizes(self) -> dict[str, int]:
        """Parameters, under the names of the published table; tied ones are counted once."""
        return {
            "AdaEmb": count(self.embeddings),
            "Attn": sum(count(layer.attention) for layer in self.layers),
            "FFN": sum(count(layer.ffn) for layer in self.layers),
            "nonembedding": count(self.layers) + count(self.norm),
            "total": count(self),
        }

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.tokens

    def _init_weights(self, module: nn.Module) -> None:
        initialise(module, std=self.config.weight_init_std)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def initialise(module: nn.Module, *, std: float, generator: torch.Generator | None = None) -> None:
    """First weights of one module as GPT-2 has them; what a checkpoint has given is left alone."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        init.normal_(module.weight, std=getattr(module, "std", std), generator=generator)
    if isinstance(module, nn.LayerNorm):
        init.ones_(module.weight)
    if isinstance(bias := getattr(module, "bias", None), nn.Parameter):
        init.zeros_(bias)


def meta_network(config: LtsGpt2Config) -> LtsGpt2ForCausalLM:
    """The network without memory for its weights."""
    with torch.device("meta"):
        return LtsGpt2ForCausalLM(config)


def build_lts_gpt2(config: LtsGpt2Config, generator: torch.Generator) -> LtsGpt2ForCausalLM:
    """A network in evaluation mode whose weights come from the generator, each drawn once."""
    network = meta_network(config).to_empty(device="cpu")
    with torch.no_grad():
        for module in network.modules():
            initialise(module, std=config.weight_init_std, generator=generator)
    return network.eval()
