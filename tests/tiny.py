"""Tiny random super-networks of every family, and batches for them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    PreTrainedConfig,
    PreTrainedModel,
    RobertaConfig,
)

from archwright.networks.load import supernet_config
from archwright.networks.pruned import PrunedForSequenceClassification

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch.set_num_threads(1)

LABELS = ("bad", "fair", "good")
SIZE = {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 10, "num_hidden_layers": 3}
DISTIL_SIZE = {"vocab_size": 40, "dim": 16, "n_heads": 4, "hidden_dim": 10, "n_layers": 3}
ROOM = {"max_position_embeddings": 24}

STOCK: Mapping[str, PreTrainedConfig] = {
    "bert": BertConfig(**SIZE, **ROOM),
    "roberta": RobertaConfig(**SIZE, **ROOM),
    "distilbert": DistilBertConfig(**DISTIL_SIZE, **ROOM),
    "electra": ElectraConfig(**SIZE, **ROOM, embedding_size=16),
    "electra-narrow": ElectraConfig(**SIZE, **ROOM, embedding_size=6),
}
"""One tiny stock config per family; ELECTRA twice, because its embeddings may be narrower than its encoder."""


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
            centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.copy_(noise + centre)


def tiny(
    name: str = "bert", *, pooling: str = "cls", labels: tuple[str, ...] = LABELS, seed: int = 0
) -> PrunedForSequenceClassification:
    """A new tiny super-network in float64 and evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        model = PrunedForSequenceClassification(supernet_config(STOCK[name], labels=labels, pooling=pooling))
    randomise(model, seed)
    return model.double().eval()


@cache
def shared_tiny(name: str, pooling: str) -> PrunedForSequenceClassification:
    """The same for tests that leave the network as it was."""
    return tiny(name, pooling=pooling)


def tiny_batch(name: str = "bert", *, seed: int = 0, texts: int = 3, length: int = 7, labels: int = 3) -> TinyBatch:
    """Random tokens of different lengths, padded, with token types where the family knows them."""
    rng = np.random.default_rng((seed, texts, length))
    config = STOCK[name]
    lengths = np.append(rng.integers(2, length + 1, size=texts - 1), length)
    mask = torch.tensor(np.arange(length) < lengths[:, None]).long()
    ids = torch.tensor(rng.integers(3, config.vocab_size, size=(texts, length)))
    inputs = {"input_ids": torch.where(mask > 0, ids, config.pad_token_id), "attention_mask": mask}
    if getattr(config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.tensor(rng.integers(0, 2, size=(texts, length))) * mask
    targets = torch.tensor(rng.integers(0, labels, size=texts) if labels > 1 else rng.normal(size=texts))
    return TinyBatch(inputs, targets)


def stock_classifier(
    name: str, *, labels: tuple[str, ...] = LABELS, seed: int = 1, **changes: object
) -> PreTrainedModel:
    """A randomly trained stock classifier of the family, in evaluation mode."""
    names = dict(enumerate(labels)) or {0: "score"}
    values = {**STOCK[name].to_dict(), **changes, "id2label": names, "label2id": {v: k for k, v in names.items()}}
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForSequenceClassification.from_config(type(STOCK[name]).from_dict(values))
    randomise(model, seed)
    return model.eval()


def saved_classifier(folder: Path, name: str, **options: object) -> PreTrainedModel:
    """The same, saved into `folder` as an ordinary checkpoint."""
    model = stock_classifier(name, **options)
    model.save_pretrained(folder)
    return model
