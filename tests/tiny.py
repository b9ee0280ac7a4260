"""Tiny random super-networks of every family, and batches for them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AlbertConfig,
    AutoModelForSequenceClassification,
    BertConfig,
    CamembertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    ModernBertConfig,
    MPNetConfig,
    Phi3Config,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
    RobertaConfig,
    XLMRobertaConfig,
)
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm, Gemma2RotaryEmbedding
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm, Gemma3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding
from transformers.models.mistral.modeling_mistral import MistralRMSNorm, MistralRotaryEmbedding
from transformers.models.modernbert import modeling_modernbert
from transformers.models.modernbert.modeling_modernbert import ModernBertRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RMSNorm, Phi3RotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm, Qwen2RotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm, Qwen3RotaryEmbedding

from archwright.networks.load import network_class, supernet_config
from archwright.networks.pruned import PrunedNetwork

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch.set_num_threads(1)

LABELS = ("bad", "fair", "good")
SIZE = {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 10, "num_hidden_layers": 3}
DISTIL_SIZE = {"vocab_size": 40, "dim": 16, "n_heads": 4, "hidden_dim": 10, "n_layers": 3}
GPT2_SIZE = {"vocab_size": 40, "n_embd": 16, "n_head": 4, "n_inner": 10, "n_layer": 3, "n_positions": 24}
ROOM = {"max_position_embeddings": 24}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TURNS = {"rope_parameters": {"rope_type": "default", "rope_theta": 16.0}}
"""Rotations by powers of two, which float32 holds exactly."""
ROTARY = {**SIZE, **ROOM, **SPECIAL, **TURNS}
GROUPS = {**ROTARY, "num_attention_heads": 8, "num_key_value_heads": 4}
"""Four groups of two query heads: four heads to remove by groups."""
SHARED = {**ROTARY, "num_attention_heads": 8, "num_key_value_heads": 2}
"""Two groups of four query heads: four heads to remove by queries."""
WINDOW = {"use_sliding_window": True, "sliding_window": 3}

TYPED_TURNS = {
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 256.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 16.0},
    }
}
"""Another speed by kind of layer."""
DEBERTA = {**SIZE, **ROOM, "relative_attention": True, "position_biased_input": False, "layer_norm_eps": 1e-12}
MODERN = {**SIZE, **ROOM, **SPECIAL, **TYPED_TURNS, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 4}
GEMMA = {**GROUPS, "head_dim": 8, "sliding_window": 3}

ENCODERS: Mapping[str, PreTrainedConfig] = {
    "bert": BertConfig(**SIZE, **ROOM),
    "roberta": RobertaConfig(**SIZE, **ROOM),
    "xlm-roberta": XLMRobertaConfig(**SIZE, **ROOM),
    "camembert": CamembertConfig(**SIZE, **ROOM),
    "mpnet": MPNetConfig(**SIZE, **ROOM),
    "modernbert": ModernBertConfig(**MODERN),
    "deberta-v2": DebertaV2Config(
        **DEBERTA, pos_att_type=["p2c", "c2p"], position_buckets=4, max_relative_positions=8, norm_rel_ebd="layer_norm"
    ),
    "deberta-v2-shared": DebertaV2Config(**DEBERTA, pos_att_type="c2p|p2c", share_att_key=True, type_vocab_size=2),
    "distilbert": DistilBertConfig(**DISTIL_SIZE, **ROOM),
    "electra": ElectraConfig(**SIZE, **ROOM, embedding_size=16),
    "electra-narrow": ElectraConfig(**SIZE, **ROOM, embedding_size=6),
}
"""One tiny stock config per family; ELECTRA twice, because its embeddings may be narrower than its encoder, and DeBERTa
too, because positions may share the projections of tokens."""
DECODERS: Mapping[str, PreTrainedConfig] = {
    "gpt2": GPT2Config(**GPT2_SIZE, **SPECIAL, scale_attn_by_inverse_layer_idx=True),
    "llama": LlamaConfig(**ROTARY, attention_bias=True, mlp_bias=True),
    "llama-groups": LlamaConfig(**GROUPS, tie_word_embeddings=True, head_dim=4),
    "llama-queries": LlamaConfig(**SHARED, head_dim=4),
    "qwen2": Qwen2Config(**{**GROUPS, "hidden_size": 32}, **WINDOW, max_window_layers=1, tie_word_embeddings=True),
    "qwen2-queries": Qwen2Config(**{**SHARED, "hidden_size": 32}, **WINDOW, max_window_layers=2),
    "qwen3": Qwen3Config(
        **{**GROUPS, **WINDOW},
        head_dim=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        attention_bias=True,
    ),
    "qwen3-queries": Qwen3Config(**SHARED, head_dim=8),
    "mistral": MistralConfig(**GROUPS, head_dim=8, sliding_window=3, tie_word_embeddings=True),
    "mistral-queries": MistralConfig(**SHARED, head_dim=8, sliding_window=None),
    "phi3": Phi3Config(**GROUPS, head_dim=8, rms_norm_eps=1e-6),
    "phi3-queries": Phi3Config(**SHARED, head_dim=8, rms_norm_eps=1e-6, sliding_window=3, tie_word_embeddings=True),
    "gemma2": Gemma2Config(
        **GEMMA, attn_logit_softcapping=3.0, final_logit_softcapping=4.0, query_pre_attn_scalar=16, attention_bias=True
    ),
    "gemma2-queries": Gemma2Config(
        **{**SHARED, "head_dim": 8, "sliding_window": 3}, attn_logit_softcapping=None, query_pre_attn_scalar=16
    ),
    "gemma3_text": Gemma3TextConfig(
        **{**GEMMA, **TYPED_TURNS},
        query_pre_attn_scalar=16,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
}
"""Every family; with and without grouped queries, sliding windows, tied embeddings, biases and a free head size."""
STOCK: Mapping[str, PreTrainedConfig] = {**ENCODERS, **DECODERS}
SHARED_LAYER: Mapping[str, PreTrainedConfig] = {"albert": AlbertConfig(**SIZE, **ROOM, embedding_size=6)}
"""One layer that is run at every place, and from which the same goes everywhere: for tests of its own."""
CONFIGS: Mapping[str, PreTrainedConfig] = {**STOCK, **SHARED_LAYER}
BY_QUERIES = {name for name in DECODERS if name.endswith("-queries")}
LM = "lm"


def in_own_precision(norm: torch.nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    variance = hidden.pow(2).mean(-1, keepdim=True)
    return norm.weight * (hidden * torch.rsqrt(variance + norm.variance_epsilon))


def around_one(norm: torch.nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    """Gemma's weights are what a norm scales by, less one."""
    return hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + norm.eps) * (1.0 + norm.weight)


def turns_in_own_precision(
    rotary: torch.nn.Module, x: torch.Tensor, position_ids: torch.Tensor, kind: str | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    name = f"{kind}_" if kind else ""
    angles = position_ids[..., None].to(x.dtype) * getattr(rotary, f"{name}inv_freq").to(x.dtype)
    both, scaling = torch.cat((angles, angles), dim=-1), getattr(rotary, f"{name}attention_scaling")
    return both.cos() * scaling, both.sin() * scaling


def capped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gemma 2's attention, which has no other implementation and rounds probabilities to float32."""
    key, value = (modeling_gemma2.repeat_kv(each, module.num_key_value_groups) for each in (key, value))
    scores = query @ key.mT * scaling
    scores = scores if softcap is None else torch.tanh(scores / softcap) * softcap
    weights = (scores if mask is None else scores + mask).softmax(-1)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def rotate_in_own_precision(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    cos, sin, half = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim), modeling_modernbert.rotate_half
    return q * cos + half(q) * sin, k * cos + half(k) * sin


ROUNDED = {
    **dict.fromkeys((LlamaRMSNorm, Qwen2RMSNorm, Qwen3RMSNorm, MistralRMSNorm, Phi3RMSNorm), in_own_precision),
    **dict.fromkeys((Gemma2RMSNorm, Gemma3RMSNorm), around_one),
    **dict.fromkeys(
        (LlamaRotaryEmbedding, Qwen2RotaryEmbedding, Qwen3RotaryEmbedding, MistralRotaryEmbedding, Phi3RotaryEmbedding),
        turns_in_own_precision,
    ),
    **dict.fromkeys((Gemma2RotaryEmbedding, Gemma3RotaryEmbedding, ModernBertRotaryEmbedding), turns_in_own_precision),
}
"""Stock modules compute these in float32 whatever they are given; an equality to 1e-9 needs them in float64."""
ORIGINAL = {kind: kind.forward for kind in ROUNDED}
for kind, forward in ROUNDED.items():
    kind.forward = forward
modeling_gemma2.eager_attention_forward = capped_attention
modeling_modernbert.apply_rotary_pos_emb = rotate_in_own_precision


@dataclass(frozen=True)
class TinyBatch:
    """What a batch has to offer to the training loop and to importance."""

    inputs: dict[str, torch.Tensor]
    targets: torch.Tensor

    def to(self, device: torch.device) -> "TinyBatch":
        return TinyBatch({name: tensor.to(device) for name, tensor in self.inputs.items()}, self.targets.to(device))


def randomise(model: torch.nn.Module, seed: int) -> None:
    """Every weight, bias and norm its own size, so that nothing is equal by being zero or one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4
            is_norm = any(word in name.lower() for word in ("norm", "ln_"))
            parameter.copy_(noise + (1.0 if is_norm and name.endswith("weight") else 0.0))


def tiny(
    name: str = "bert",
    *,
    kind: str = "classification",
    pooling: str | None = None,
    labels: tuple[str, ...] = LABELS,
    seed: int = 0,
) -> PrunedNetwork:
    """A new tiny super-network in float64 and evaluation mode; without a pooling its family's own."""
    grouping = "queries" if name in BY_QUERIES else "groups"
    config = supernet_config(CONFIGS[name], kind=kind, labels=labels, pooling=pooling, grouping=grouping)
    with torch.random.fork_rng(devices=[]):
        model = network_class(config.kind)(config)
    randomise(model, seed)
    return model.double().eval()


@cache
def shared_tiny(name: str, pooling: str | None = None, kind: str = "classification") -> PrunedNetwork:
    """The same for tests that leave the network as it was."""
    return tiny(name, pooling=pooling, kind=kind)


def tiny_batch(name: str = "bert", *, seed: int = 0, texts: int = 3, length: int = 7, labels: int = 3) -> TinyBatch:
    """Random tokens of different lengths, padded, with token types where the family knows them."""
    rng = np.random.default_rng((seed, texts, length))
    config = CONFIGS[name]
    lengths = np.append(rng.integers(2, length + 1, size=texts - 1), length)
    mask = torch.tensor(np.arange(length) < lengths[:, None]).long()
    ids = torch.tensor(rng.integers(3, config.vocab_size, size=(texts, length)))
    inputs = {"input_ids": torch.where(mask > 0, ids, config.pad_token_id), "attention_mask": mask}
    if getattr(config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.tensor(rng.integers(0, 2, size=(texts, length))) * mask
    targets = torch.tensor(rng.integers(0, labels, size=texts) if labels > 1 else rng.normal(size=texts))
    return TinyBatch(inputs, targets)


def text_batch(name: str, *, seed: int = 0, texts: int = 3, length: int = 7) -> TinyBatch:
    """Random tokens without padding; the targets are the next tokens, and the last token has none."""
    rng = np.random.default_rng((seed, texts, length, 1))
    ids = torch.tensor(rng.integers(3, CONFIGS[name].vocab_size, size=(texts, length)))
    nothing = torch.full((texts, 1), -100)
    return TinyBatch(
        {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, torch.cat([ids[:, 1:], nothing], dim=1)
    )


def choice_batch(name: str, *, seed: int = 0, texts: int = 3, choices: int = 3, length: int = 7) -> TinyBatch:
    """Texts of several choices each, padded."""
    flat = tiny_batch(name, seed=seed, texts=texts * choices, length=length)
    inputs = {key: value.unflatten(0, (texts, choices)) for key, value in flat.inputs.items()}
    return TinyBatch(inputs, flat.targets[:texts] % choices)


def span_batch(name: str, *, seed: int = 0, texts: int = 3, length: int = 7) -> TinyBatch:
    """Texts whose first two tokens are a question; the targets are the answer's first and last token."""
    batch = tiny_batch(name, seed=seed, texts=texts, length=length)
    context = torch.ones_like(batch.inputs["input_ids"])
    context[:, :2] = 0
    last = batch.inputs["attention_mask"].sum(1) - 1
    targets = torch.stack([last.clamp(max=2), last], dim=1)
    return TinyBatch({**batch.inputs, "context_mask": context}, targets)


def tag_batch(name: str, *, seed: int = 0, texts: int = 3, length: int = 7, labels: int = 3) -> TinyBatch:
    """Padded texts with a tag at two of three tokens."""
    batch = tiny_batch(name, seed=seed, texts=texts, length=length)
    tags = torch.tensor(np.random.default_rng((seed, 5)).integers(0, labels, size=(texts, length)))
    asked = (torch.arange(length) % 3 > 0) & (batch.inputs["attention_mask"] > 0)
    return TinyBatch(batch.inputs, torch.where(asked, tags, -100))


def label_set_batch(name: str, *, seed: int = 0, texts: int = 3, length: int = 7, labels: int = 3) -> TinyBatch:
    """Padded texts with any number of labels."""
    batch = tiny_batch(name, seed=seed, texts=texts, length=length)
    drawn = np.random.default_rng((seed, 6)).integers(0, 2, size=(texts, labels))
    return TinyBatch(batch.inputs, torch.tensor(drawn, dtype=torch.float32))


def pair_batch(name: str, *, seed: int = 0, texts: int = 3, length: int = 7) -> TinyBatch:
    """Pairs of texts, padded; the targets are vectors of both."""
    batch = choice_batch(name, seed=seed, texts=texts, choices=2, length=length)
    width = getattr(CONFIGS[name], "hidden_size", None) or CONFIGS[name].dim
    rng = np.random.default_rng((seed, texts, length, 2))
    return TinyBatch(batch.inputs, torch.tensor(rng.normal(size=(texts, 2, width))))


BATCHES = {
    "classification": tiny_batch,
    "choice": choice_batch,
    "qa": span_batch,
    "lm": text_batch,
    "tokens": tag_batch,
    "multi-label": label_set_batch,
    "embeddings": pair_batch,
}
"""For every kind of task."""


def stock_classifier(
    name: str,
    *,
    labels: tuple[str, ...] = LABELS,
    seed: int = 1,
    auto: type = AutoModelForSequenceClassification,
    **changes: object,
) -> PreTrainedModel:
    """A randomly trained stock classifier of the family, or another stock network with a head, in evaluation mode."""
    names = dict(enumerate(labels)) or {0: "score"}
    values = {**CONFIGS[name].to_dict(), **changes, "id2label": names, "label2id": {v: k for k, v in names.items()}}
    with torch.random.fork_rng(devices=[]):
        model = auto.from_config(type(CONFIGS[name]).from_dict(values))
    randomise(model, seed)
    return model.eval()


def saved_classifier(folder: Path, name: str, **options: object) -> PreTrainedModel:
    """The same, saved into `folder` as an ordinary checkpoint."""
    model = stock_classifier(name, **options)
    model.save_pretrained(folder)
    return model
