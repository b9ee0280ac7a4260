"""The classifier that peers and baselines train, in plain torch and transformers; nothing here imports archwright.

It is what `archwright compress` makes of MiniLM: BERT layers, the normalised mean over tokens, dense, tanh, output. So
the fine-tuned original can be handed over, and tokens, batches, learning rate and optimizer are the same for all.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoTokenizer, BertModel

from experiments.peers.job import Job, TimeBudget
from experiments.peers.rows import read_csv

LEARNING_RATE = 2e-4
BATCH_SIZE = 32
EPOCHS = 4
MAX_LENGTH = 128
WINDOW = 50
"""Batches whose rows are sorted by length together."""
EVALUATION_TOKENS = 4096


class Classifier(nn.Module):
    """Logits of a text, batch x outputs."""

    def __init__(self, body: BertModel, outputs: int):
        super().__init__()
        width = body.config.hidden_size
        self.body = body
        self.dense = nn.Linear(width, width)
        self.dropout = nn.Dropout(body.config.hidden_dropout_prob)
        self.out = nn.Linear(width, outputs)

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        states = self.body(**inputs).last_hidden_state  # batch x time x width
        weight = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
        mean = (states * weight).sum(1) / weight.sum(1)
        pooled = nn.functional.layer_norm(mean, mean.shape[-1:], eps=1e-12)
        logits: torch.Tensor = self.out(self.dropout(torch.tanh(self.dense(pooled))))
        return logits

    @property
    def layers(self) -> nn.ModuleList:
        layers: nn.ModuleList = self.body.encoder.layer
        return layers

    def keep_layers(self, number: int) -> "Classifier":
        """Without the layers above the first `number`."""
        self.body.encoder.layer = self.layers[:number]
        return self

    def shape(self) -> list[list[int]]:
        """Heads and units of every layer."""
        size = self.body.config.hidden_size // self.body.config.num_attention_heads
        return [
            [layer.attention.self.query.out_features // size, layer.intermediate.dense.out_features]
            for layer in self.layers
        ]

    def prunable_parameters(self) -> int:
        """All but the embeddings."""
        return sum(p.numel() for name, p in self.named_parameters() if not name.startswith("body.embeddings."))


def load_body(folder: str | Path) -> BertModel:
    return BertModel.from_pretrained(folder, add_pooling_layer=False, dtype=torch.float32)


def load_pretrained(job: Job) -> Classifier:
    """The pre-trained checkpoint with a new head."""
    facts = job.facts()
    torch.manual_seed(job.seed)
    return Classifier(load_body(facts["pretrained"]), outputs_of(facts))


def load_original(job: Job) -> Classifier:
    """The fine-tuned original that all methods share."""
    network = Classifier(load_body(job.original / "body"), outputs_of(job.facts()))
    head = torch.load(job.original / "head.pt", weights_only=True)
    network.load_state_dict(head, strict=False)
    return network


def outputs_of(facts: dict[str, Any]) -> int:
    return len(facts["labels"] or [0])


@dataclass(frozen=True)
class TokenizedRows:
    """Rows as token lists."""

    encoded: list[dict[str, list[int]]]
    targets: torch.Tensor
    """Class ids in the order of the labels, or numbers."""
    pad: Callable[[list[dict[str, list[int]]]], dict[str, torch.Tensor]]

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(row["input_ids"]) for row in self.encoded])

    def batch(self, rows: np.ndarray) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return self.pad([self.encoded[i] for i in rows]), self.targets[torch.from_numpy(rows)]

    def epoch(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """All rows once in random batches of near-equal length."""
        order, lengths, batches = rng.permutation(len(self.encoded)), self.lengths, []
        for start in range(0, len(order), BATCH_SIZE * WINDOW):
            window = order[start : start + BATCH_SIZE * WINDOW]
            window = window[np.argsort(lengths[window], kind="stable")]
            batches += [window[first : first + BATCH_SIZE] for first in range(0, len(window), BATCH_SIZE)]
        return (batches[i] for i in rng.permutation(len(batches)))


def load_rows(job: Job, name: str) -> TokenizedRows:
    facts = job.facts()
    tokenizer = AutoTokenizer.from_pretrained(facts["pretrained"])
    rows, labels = read_csv(job.rows / f"{name}.csv"), facts["labels"]
    pairs = [row.pair for row in rows] if facts["pairs"] else None
    tokens = tokenizer([row.text for row in rows], pairs, truncation=True, max_length=MAX_LENGTH)
    encoded = [{key: tokens[key][i] for key in tokens} for i in range(len(rows))]
    targets = [labels.index(row.label) if labels else float(row.label) for row in rows]
    return TokenizedRows(encoded, torch.tensor(targets), lambda some: dict(tokenizer.pad(some, return_tensors="pt")))


def task_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits.squeeze(-1), targets.to(logits.dtype))
    return nn.functional.cross_entropy(logits, targets)


def finetune(
    network: Classifier, rows: TokenizedRows, budget: TimeBudget, *, seconds: float, seed: int, epochs: float = EPOCHS
) -> dict[str, float]:
    """Trains until the epochs or the seconds are over, whichever comes first; the learning rate falls to zero then.

    Word and position vectors stay as they are, as in `archwright compress`.
    """
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        network.body.embeddings.get_submodule(name).requires_grad_(False)
    trained = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if (p.dim() > 1) is matrices], "weight_decay": decay}
        for matrices, decay in ((True, 0.01), (False, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, fused=True)
    most = max(1, round(epochs * -(-len(rows.encoded) // BATCH_SIZE)))
    rng, step, begun = np.random.default_rng((seed, 4)), 0, budget.spent
    torch.manual_seed(seed)
    network.train()
    batches: Iterator[np.ndarray] = iter(())
    while True:
        with budget.spending():
            progress = max(step / most, (budget.spent - begun) / max(seconds, 1e-9))
            if progress >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min(max(progress, 1 / most) / 0.1, (1 - progress) / 0.9, 1.0)
            chosen = next(batches, None)
            if chosen is None:
                batches = rows.epoch(rng)
                chosen = next(batches)
            inputs, targets = rows.batch(chosen)
            task_loss(network(**inputs), targets).backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
    network.eval()
    return {"steps": step, "epochs": step * epochs / most, "seconds": budget.spent - begun}


def predict(network: Classifier, rows: TokenizedRows) -> np.ndarray:
    """Logits in the order of the rows."""
    order = np.argsort(rows.lengths, kind="stable")
    size = max(1, EVALUATION_TOKENS // int(rows.lengths.max()))
    network.eval()
    with torch.inference_mode():
        parts = [network(**rows.batch(order[start : start + size])[0]) for start in range(0, len(order), size)]
    logits = torch.cat(parts).numpy()
    answers: np.ndarray = logits[np.argsort(order)]
    return answers


def describe(network: Classifier, job: Job, name: str, **more: Any) -> dict[str, Any]:
    """The entry of a network in networks.json."""
    shape, whole = network.shape(), json.loads((job.original / "original.json").read_text())["prunable_parameters"]
    return {"name": name, "share": network.prunable_parameters() / whole, "layers": shape, **more}
