"""Small random networks of every family, with what an export needs beside them."""

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

from archwright.networks.load import supernet_config
from archwright.networks.pruned import PrunedForSequenceClassification as Network
from archwright.subnet.extract import extract
from archwright.subnet.keep import Keep, LayerKeep
from archwright.subnet.slicing import subnetwork

LAYERS, HEADS, UNITS, VOCABULARY = 3, 4, 40, 60
COMMON = {"vocab_size": VOCABULARY, "max_position_embeddings": 50}
BERT = {
    **COMMON,
    "hidden_size": 32,
    "num_attention_heads": HEADS,
    "intermediate_size": UNITS,
    "num_hidden_layers": LAYERS,
}
SIZES: dict[str, dict[str, Any]] = {
    "bert": BERT,
    "roberta": {**BERT, "max_position_embeddings": 52, "pad_token_id": 1},
    "electra": {**BERT, "embedding_size": 32},
    "electra, projected": {**BERT, "embedding_size": 24},
    "distilbert": {**COMMON, "dim": 32, "n_heads": HEADS, "hidden_dim": UNITS, "n_layers": LAYERS},
}
TYPED = ("bert", "electra", "electra, projected")
"""Families whose tokenizers tell the first text from the second."""


def supernet(
    kind: str, pooling: str, *, labels: tuple[str, ...] = ("no", "perhaps", "yes"), seed: int = 0, **config: Any
) -> Network:
    """A whole network with weights that make every part count."""
    stock = CONFIG_MAPPING[kind.split(",")[0]](**{**SIZES[kind], **config})
    model = Network(supernet_config(stock, labels=labels, pooling=pooling))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.2, generator=generator)
            if name.endswith("weight") and tensor.dim() < 2:  # a norm
                tensor.add_(1)
    return model.eval()


def keeps() -> st.SearchStrategy[Keep]:
    """What to keep of each layer, nothing of it and none at all included."""
    heads = st.sampled_from([0, 1, HEADS, (0, 2), (1, 2, 3)])
    units = st.sampled_from([0, 1, UNITS, (3, 7, 30), 17])
    return st.tuples(*[st.builds(LayerKeep, heads, units)] * LAYERS)


def batch(kind: str, rows: int, length: int, *, seed: int = 0) -> dict[str, Tensor]:
    """Random tokens, the first row without padding."""
    pad, rng = SIZES[kind].get("pad_token_id", 0), random.Random(seed)
    lengths = [length, *(rng.randint(1, length) for _ in range(rows - 1))]
    ids = torch.full((rows, length), pad)
    for row, size in enumerate(lengths):
        ids[row, :size] = torch.tensor([rng.randrange(4, VOCABULARY) for _ in range(size)])
    inputs = {"input_ids": ids, "attention_mask": torch.arange(length) < torch.tensor(lengths)[:, None]}
    inputs["attention_mask"] = inputs["attention_mask"].long()
    typed = {"token_type_ids": (torch.arange(length) > length // 2).long().expand(rows, -1)}
    return inputs | (typed if kind in TYPED else {})


def batches(kind: str) -> list[dict[str, Tensor]]:
    return [batch(kind, rows, length) for rows, length in ((1, 3), (1, 48), (8, 21), (2, 7))]


def inside(model: Network, keep: Keep) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The sub-network inside the super-network."""

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.no_grad(), subnetwork(model, keep):
            logits: Tensor = model(**inputs).logits
        return logits

    return run


def extracted(kind: str, pooling: str, keep: Keep, **config: Any) -> Network:
    return extract(supernet(kind, pooling, **config), keep)


def tokenizer(kind: str) -> PreTrainedTokenizerBase:
    """Words w4, w5, ... with the numbers 4, 5, ..."""
    pad = SIZES[kind].get("pad_token_id", 0)
    special = {"[PAD]": pad, "[CLS]": 1 - pad, "[SEP]": 2, "[UNK]": 3}
    core = Tokenizer(WordLevel(special | {f"w{i}": i for i in range(4, VOCABULARY)}, unk_token="[UNK]"))
    core.pre_tokenizer = Whitespace()
    core.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1 - pad), ("[SEP]", 2)]
    )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if kind in TYPED else [])]
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_input_names=names,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        model_max_length=48,
    )
