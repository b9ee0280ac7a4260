"""Tiny checkpoints with a tokenizer of their own, labelled rows, plain text: the same bytes every time."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
GOOD, BAD = ("good", "great", "fine", "lovely", "bright"), ("bad", "awful", "poor", "dull", "weak")
PLAIN = ("the", "film", "is", "very", "story", "and", "with", "music", "old", "a", "new", "actor", ".")
VOCABULARY = (*SPECIAL, *PLAIN, *GOOD, *BAD)
POSITIONS = 40
ENCODER = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
}
DECODER = {**ENCODER, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": True}
GPT2 = {
    "n_embd": 32,
    "n_head": 4,
    "n_inner": 40,
    "n_layer": 3,
    "n_positions": POSITIONS,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
SIZES: dict[str, dict[str, Any]] = {"bert": ENCODER, "llama": DECODER, "gpt2": GPT2}


def make_tokenizer(*, encoder: bool) -> PreTrainedTokenizerFast:
    """Whole words; encoders have marks around a text."""
    core = Tokenizer(WordLevel({word: place for place, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    core.pre_tokenizer = Whitespace()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    if encoder:
        marks = [("[CLS]", 1), ("[SEP]", 2)]
        pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
        core.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", pair=pair, special_tokens=marks)
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    else:
        names |= {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if encoder else [])]
    return PreTrainedTokenizerFast(tokenizer_object=core, model_input_names=inputs, model_max_length=POSITIONS, **names)


def fill_weights(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """Weights that depend on numpy alone, not on how transformers initialises."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            noise = torch.tensor(rng.normal(scale=0.12, size=tuple(tensor.shape)), dtype=tensor.dtype)
            is_norm = tensor.dim() == 1 and name.endswith("weight")
            tensor.copy_(1 + noise if is_norm else noise)
    return model


def tell_apart(model: PreTrainedModel) -> None:
    """Words of praise and blame lie apart, as in a pre-trained network: little training is enough."""
    table = model.get_input_embeddings().weight
    way = torch.where(torch.arange(table.shape[1]) % 3 == 0, 0.3, -0.15)
    with torch.no_grad():
        table[[VOCABULARY.index(word) for word in GOOD]] += way
        table[[VOCABULARY.index(word) for word in BAD]] -= way


def save_model(folder: Path, family: str, *, seed: int = 0, **sizes: Any) -> Path:
    """A random checkpoint of the family with its tokenizer."""
    encoder = family == "bert"
    config = AutoConfig.for_model(family, vocab_size=len(VOCABULARY), **{**SIZES[family], **sizes})
    auto = AutoModel if encoder else AutoModelForCausalLM
    model = fill_weights(auto.from_config(config), seed)
    if encoder:
        tell_apart(model)
    model.save_pretrained(folder)
    make_tokenizer(encoder=encoder).save_pretrained(folder)
    return folder


def write_sentence(rng: np.random.Generator) -> tuple[str, float]:
    """Plain words with one to five that praise or blame, each in its own strength; and how much they praise."""
    words, praise = [str(word) for word in rng.choice(PLAIN[:-1], size=int(rng.integers(2, 8)))], 0.0
    for _ in range(int(rng.integers(1, 6))):
        kind, strength = int(rng.integers(2)), int(rng.integers(5))
        words.insert(int(rng.integers(len(words))), (BAD, GOOD)[kind][strength])
        praise += (2 * kind - 1) * (1 + strength)
    return " ".join(words), praise


def write_rows(path: Path, rows: int = 120, *, seed: int = 0) -> Path:
    """Sentences, good where they praise more than they blame; a number beside the label."""
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["text", "label", "number"])
        for _ in range(rows):
            text, praise = write_sentence(rng)
            noisy = praise + rng.normal()
            table.writerow([text, "good" if noisy > 0 else "bad", f"{noisy:.3f}"])
    return path


def write_text(path: Path, lines: int = 120, *, seed: int = 0) -> Path:
    """Lines of words, some of them far more frequent."""
    rng = np.random.default_rng(seed)
    words = (*PLAIN[:-1], *GOOD, *BAD)
    shares = 1 / np.arange(1, len(words) + 1)
    lengths = rng.integers(4, 18, size=lines)
    made = [" ".join(rng.choice(words, size=size, p=shares / shares.sum())) + " ." for size in lengths]
    path.write_text("\n".join(made) + "\n")
    return path


DESIGNS: dict[str, dict[str, Any]] = {
    "flexibert": {"layers": 2, "hidden": 128}
    | {"operation.0": "SA/SDP", "heads.0": 2, "feed_forward.0": 512, "stack.0": 1}
    | {"operation.1": "DSC/5", "heads.1": 2, "feed_forward.1": 512, "stack.1": 1},
    "nlu-tiny": {f"block.{at}": "mobile-132" for at in range(6)} | {"block.3": "base-132"},
    "gpt2": {"n_layer": 2, "d_model": 128, "d_embed": 128, "div_val": 1}
    | {f"n_head{at}": 2 for at in range(2)}
    | {f"d_inner{at}": 256 for at in range(2)},
    "rnn": {
        "recipe": {
            "node_0": {"op": "linear", "input": ["x", "h_prev_0"]},
            "h_new_0": {"op": "activation_tanh", "input": ["node_0"]},
        }
    },
}
"""One small architecture per space that can be trained."""


def write_design(path: Path, space: str) -> Path:
    path.write_text(json.dumps(DESIGNS[space]))
    return path
