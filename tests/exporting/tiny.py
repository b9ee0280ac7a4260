"""Small random networks of every family and kind of task, with what an export needs beside them."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from archwright.exporting.kinds import task_export
from archwright.networks.families import FAMILIES
from archwright.networks.load import network_class, supernet_config
from archwright.networks.pruned import PrunedNetwork as Network
from archwright.subnet.extract import extract
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec

LAYERS, HEADS, UNITS, VOCABULARY = 3, 4, 40, 60
QUERIES = 3
"""Query heads of every group of a decoder."""
COMMON = {"vocab_size": VOCABULARY, "max_position_embeddings": 50}
BERT = {
    **COMMON,
    "hidden_size": 32,
    "num_attention_heads": HEADS,
    "intermediate_size": UNITS,
    "num_hidden_layers": LAYERS,
}
DEBERTA = {
    **{**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    **{"position_biased_input": False, "layer_norm_eps": 1e-12},
}
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": BERT,
    "roberta": {**BERT, "max_position_embeddings": 52, "pad_token_id": 1},
    "xlm-roberta": {**BERT, "max_position_embeddings": 52, "pad_token_id": 1},
    "camembert": {**BERT, "max_position_embeddings": 52, "pad_token_id": 1},
    "mpnet": {**BERT, "max_position_embeddings": 52, "pad_token_id": 1},
    "modernbert": {
        **{**BERT, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
        "local_attention": 10,
    },
    "deberta-v2": {**DEBERTA, "position_buckets": 8, "norm_rel_ebd": "layer_norm"},
    "deberta-v2, shared": {**DEBERTA, "share_att_key": True, "type_vocab_size": 2},
    "electra": {**BERT, "embedding_size": 32},
    "electra, projected": {**BERT, "embedding_size": 24},
    "distilbert": {**COMMON, "dim": 32, "n_heads": HEADS, "hidden_dim": UNITS, "n_layers": LAYERS},
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = {
    **{"vocab_size": VOCABULARY, "n_positions": 50, "n_embd": 32},
    **{"n_head": HEADS, "n_inner": UNITS, "n_layer": LAYERS, **SPECIAL},
}
GROUPED = {
    **{**BERT, **SPECIAL, "hidden_size": 48},
    **{"num_attention_heads": HEADS * QUERIES, "num_key_value_heads": HEADS, "rms_norm_eps": 1e-5},
}
DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": GPT2,
    "gpt2, scaled by depth": {**GPT2, "scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False},
    "llama": {**GROUPED, "tie_word_embeddings": True},
    "llama, biased": {**GROUPED, "attention_bias": True, "mlp_bias": True},
    "qwen2": {
        **GROUPED,
        "use_sliding_window": True,
        "sliding_window": 5,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
    "qwen3": {**GROUPED, "head_dim": 6, "tie_word_embeddings": True},
    "mistral": {**GROUPED, "head_dim": 6, "sliding_window": 7},
    "phi3": {**GROUPED, "sliding_window": 7},
    "gemma2": {**GROUPED, "head_dim": 6, "sliding_window": 7, "query_pre_attn_scalar": 9},
    "gemma3_text": {
        **{**GROUPED, "head_dim": 6, "sliding_window": 7, "query_pre_attn_scalar": 9},
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
}
SIZES = ENCODERS | DECODERS
TYPED = ("bert", "electra", "electra, projected", "deberta-v2, shared")
"""Families whose tokenizers tell the first text from the second."""
LABELS = ("no", "perhaps", "yes")
NAMES = {"classification": LABELS, "tokens": ("O", "B-name", "I-name"), "multi-label": LABELS}
"""Labels by kind of task; the others have none."""


def supernet(
    family: str,
    pooling: str | None = None,
    *,
    kind: str = "classification",
    labels: tuple[str, ...] | None = None,
    grouping: str = "groups",
    seed: int = 0,
    **config: Any,
) -> Network:
    """A whole network with weights that make every part count."""
    stock = CONFIG_MAPPING[family.split(",")[0]](**{**SIZES[family], **config})
    names = NAMES.get(kind, ()) if labels is None else labels
    whole = supernet_config(stock, kind=kind, labels=names, pooling=pooling, grouping=grouping)
    model = network_class(whole.kind)(whole)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.2, generator=generator)
            if name.endswith("weight") and tensor.dim() < 2 and "gemma" not in family:  # a norm; Gemma's add one
                tensor.add_(1)
    return model.eval()


def readable(family: str) -> tuple[str, ...]:
    """What stock heads of the family can be made to read."""
    return FAMILIES[family.split(",")[0]].stock_poolings()


def keeps(most: int = HEADS) -> st.SearchStrategy[SubnetSpec]:
    """What to keep of each layer with so many heads, nothing of it and none at all included."""
    heads = st.sampled_from([0, 1, most, (0, 2), (1, 2, 3) if most > 3 else (1,)])
    units = st.sampled_from([0, 1, UNITS, (3, 7, 30), 17])
    return st.tuples(*[st.builds(LayerSpec, heads, units)] * LAYERS)


def batch(family: str, rows: int, length: int, *, kind: str = "classification", seed: int = 0) -> dict[str, Tensor]:
    """Random tokens as this kind of task shapes them, the first text without padding."""
    if kind == "choice":
        flat = batch(family, 2 * rows, length, seed=seed)
        return {name: tensor.unflatten(0, (rows, 2)) for name, tensor in flat.items()}
    pad, rng = SIZES[family].get("pad_token_id", 0), random.Random(seed)
    whole = kind == "lm"
    lengths = [length, *(length if whole else rng.randint(1, length) for _ in range(rows - 1))]
    ids = torch.full((rows, length), pad)
    for row, size in enumerate(lengths):
        ids[row, :size] = torch.tensor([rng.randrange(4, VOCABULARY) for _ in range(size)])
    inputs = {"input_ids": ids, "attention_mask": torch.arange(length) < torch.tensor(lengths)[:, None]}
    inputs["attention_mask"] = inputs["attention_mask"].long()
    second = (torch.arange(length) > length // 2).long().repeat(rows, 1)
    context = {"context_mask": (torch.arange(length) % 3 != 1).long() * inputs["attention_mask"]}
    return inputs | ({"token_type_ids": second} if family in TYPED else {}) | (context if kind == "qa" else {})


def batches(family: str, kind: str = "classification") -> list[dict[str, Tensor]]:
    return [batch(family, rows, length, kind=kind) for rows, length in ((1, 3), (1, 48), (8, 21), (2, 7))]


def inside(model: Network, keep: SubnetSpec) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The sub-network inside the super-network."""

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.no_grad(), subnetwork(model, keep):
            return task_export(model.config.kind).answer(model, inputs)

    return run


def extracted(family: str, pooling: str, keep: SubnetSpec, **config: Any) -> Network:
    return extract(supernet(family, pooling, **config), keep)


def tokenizer(family: str) -> PreTrainedTokenizerBase:
    """Words w4, w5, ... with the numbers 4, 5, ...; decoders have nothing around a text."""
    pad = SIZES[family].get("pad_token_id", 0)
    special = {"[PAD]": pad, "[CLS]": 1 - pad, "[SEP]": 2, "[UNK]": 3}
    core = Tokenizer(WordLevel(special | {f"w{i}": i for i in range(4, VOCABULARY)}, unk_token="[UNK]"))
    core.pre_tokenizer = Whitespace()
    if family in ENCODERS:
        core.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 1 - pad), ("[SEP]", 2)],
        )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if family in TYPED else [])]
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_input_names=names,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=48,
        **({"cls_token": "[CLS]", "sep_token": "[SEP]"} if family in ENCODERS else {"eos_token": "[SEP]"}),
    )
