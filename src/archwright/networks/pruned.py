"""A pruned encoder with its task head, as a Hugging Face model.

The file imports nothing of the project on purpose: a compact checkpoint carries a copy of it, so that it loads with
`trust_remote_code=True` where the project is not installed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


class PassOn(nn.Module):
    """Stands in for BERT's attention block: the hidden states go on unchanged, LayerNorm included."""

    def forward(self, hidden: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, None]:
        return hidden, None


class PassResidual(nn.Module):
    """Stands in for BERT's FFN output block: only the residual goes on."""

    def forward(self, _: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return residual


class NoAttention(nn.Module):
    """Stands in for DistilBERT's attention, whose residual and norm lie outside of it."""

    def forward(self, *_: Any, **__: Any) -> tuple[float, None]:
        return 0.0, None


class NoFfn(nn.Module):
    """Stands in for DistilBERT's FFN, whose residual and norm lie outside of it."""

    def forward(self, _: torch.Tensor) -> float:
        return 0.0


@dataclass(frozen=True)
class Family:
    """Where an encoder family keeps its parts: attribute paths, those of a layer relative to the layer."""

    layers: str
    query: str
    key: str
    value: str
    mix: str
    up: str
    down: str
    attention_norm: str
    ffn_norm: str
    embedding_norm: str
    without_attention: Mapping[str, type[nn.Module]]
    """What to put where when no head is left."""
    without_ffn: Mapping[str, type[nn.Module]]
    """What to put where when no unit is left."""
    head_dense: str
    """The first linear of the stock classification head, from the stock classifier."""
    head_out: str
    head_activation: str
    pooler: bool = False
    """Whether the stock backbone builds a pooler that we replace by our own head."""
    width: str = "hidden_size"
    heads: str = "num_attention_heads"
    units: str = "intermediate_size"
    depth: str = "num_hidden_layers"
    norm_eps: str = "layer_norm_eps"
    dropout: str = "hidden_dropout_prob"
    head_dropout: str = "classifier_dropout"


BERT = Family(
    layers="encoder.layer",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    mix="attention.output.dense",
    up="intermediate.dense",
    down="output.dense",
    attention_norm="attention.output.LayerNorm",
    ffn_norm="output.LayerNorm",
    embedding_norm="embeddings.LayerNorm",
    without_attention={"attention": PassOn},
    without_ffn={"intermediate": nn.Identity, "output": PassResidual},
    head_dense="bert.pooler.dense",
    head_out="classifier",
    head_activation="tanh",
    pooler=True,
)
FAMILIES: dict[str, Family] = {
    "bert": BERT,
    "roberta": Family(
        **{**vars(BERT), "head_dense": "classifier.dense", "head_out": "classifier.out_proj"},
    ),
    "electra": Family(
        **{
            **vars(BERT),
            "head_dense": "classifier.dense",
            "head_out": "classifier.out_proj",
            "head_activation": "gelu",
            "pooler": False,
        },
    ),
    "distilbert": Family(
        layers="transformer.layer",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        mix="attention.out_lin",
        up="ffn.lin1",
        down="ffn.lin2",
        attention_norm="sa_layer_norm",
        ffn_norm="output_layer_norm",
        embedding_norm="embeddings.LayerNorm",
        without_attention={"attention": NoAttention, "sa_layer_norm": nn.Identity},
        without_ffn={"ffn": NoFfn, "output_layer_norm": nn.Identity},
        head_dense="pre_classifier",
        head_out="classifier",
        head_activation="relu",
        width="dim",
        heads="n_heads",
        units="hidden_dim",
        depth="n_layers",
        norm_eps="",
        dropout="dropout",
        head_dropout="seq_classif_dropout",
    ),
}


def first_token(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The state of the first token: BERT's own way."""
    return hidden[:, 0]


def normed_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the tokens that are not padding, normalised: what sentence encoders such as MiniLM were trained for."""
    weight = mask.to(hidden.dtype).unsqueeze(-1)  # batch x time x 1
    mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
    return nn.functional.layer_norm(mean, mean.shape[-1:], eps=1e-12)


POOLINGS = {"cls": first_token, "mean": normed_mean}


class PrunedConfig(PreTrainedConfig):
    """A stock encoder's config, what is left of each of its layers, and how the head pools."""

    model_type = "archwright_pruned"

    def __init__(
        self,
        backbone: dict[str, Any] | None = None,
        layers: list[list[int]] | None = None,
        pooling: str = "cls",
        **kwargs: Any,
    ):
        self.backbone = backbone or {"model_type": "bert"}
        self.layers = layers or []
        self.pooling = pooling
        super().__init__(**kwargs)

    @property
    def family(self) -> Family:
        return FAMILIES[self.backbone["model_type"]]

    def stock(self) -> PreTrainedConfig:
        """The config of the stock encoder with as many layers as are left."""
        values = {k: v for k, v in self.backbone.items() if k != "model_type"}
        values[self.family.depth] = len(self.layers)
        return CONFIG_MAPPING[self.backbone["model_type"]](**values)


class Head(nn.Module):
    """Dense, activation, dropout, output: the shape that all stock sequence classification heads share."""

    def __init__(self, width: int, labels: int, *, activation: str, dropout: float):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.activation = ACT2FN[activation]
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, labels)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.dropout(self.activation(self.dense(pooled))))
        return logits


class PrunedNetwork(PreTrainedModel):
    """A stock network of which every layer may have its own number of heads and units; subclasses add the task head."""

    config_class = PrunedConfig
    base_model_prefix = "backbone"
    _supports_sdpa = True

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        family, stock = config.family, config.stock()
        width = getattr(stock, family.width)
        head_size = width // getattr(stock, family.heads)
        self.backbone = AutoModel.from_config(stock, attn_implementation="sdpa")
        if family.pooler:
            self.backbone.pooler = None
        for layer, (heads, units) in zip(self.backbone.get_submodule(family.layers), config.layers, strict=True):
            shrink(layer, family, width=width, inner=heads * head_size, units=units)


class PrunedForSequenceClassification(PrunedNetwork):
    """With a classification head."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        family, stock = config.family, config.stock()
        dropout = getattr(stock, family.head_dropout, None)
        self.head = Head(
            getattr(stock, family.width),
            config.num_labels,
            activation=family.head_activation,
            dropout=getattr(stock, family.dropout) if dropout is None else dropout,
        )
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hidden = self.backbone(input_ids=input_ids, attention_mask=mask, **types).last_hidden_state
        logits = self.head(POOLINGS[self.config.pooling](hidden, mask))  # batch x labels
        loss = None
        if labels is not None:
            squared = self.config.num_labels == 1
            loss = (
                nn.functional.mse_loss(logits.squeeze(-1), labels.to(logits.dtype))
                if squared
                else nn.functional.cross_entropy(logits, labels)
            )
        return SequenceClassifierOutput(loss=loss, logits=logits)


def shrink(layer: nn.Module, family: Family, *, width: int, inner: int, units: int) -> None:
    """Give a stock layer linears of these sizes, or none where nothing is left."""
    if inner:
        for path in (family.query, family.key, family.value):
            layer.set_submodule(path, nn.Linear(width, inner))
        layer.set_submodule(family.mix, nn.Linear(inner, width))
    else:
        stand_in(layer, family.without_attention)
    if units:
        layer.set_submodule(family.up, nn.Linear(width, units))
        layer.set_submodule(family.down, nn.Linear(units, width))
    else:
        stand_in(layer, family.without_ffn)


def stand_in(layer: nn.Module, replacements: Mapping[str, type[nn.Module]]) -> None:
    for path, module in replacements.items():
        layer.set_submodule(path, module())
