"""What one network answers to a text that somebody typed: one function per way of answering, named by task kinds.

Each reads the text as the rows of its task are read, and gives JSON: what is answered, and milliseconds of one pass.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from archwright.data.batching import batch_of
from archwright.data.encoding import NO_TARGET, Encoded
from archwright.data.tasks.embedding_texts import SentenceRows
from archwright.data.tasks.questions import QuestionRows
from archwright.data.tasks.rows import Rows
from archwright.data.tasks.sentences import Sentences
from archwright.data.windows import AnswerSpans
from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import best_spans, pair_cosines
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import TaskData

ROUNDS = 5
"""Passes of which the middle one is the time of an answer."""
NEW_TOKENS = 40
MOST_CHOICES = 20
Answer = dict[str, Any]


@dataclass(frozen=True)
class AskedText:
    """What somebody typed."""

    text: str
    second: str
    """Another text: the second of a pair, the context of a question, choices by line."""
    room: int
    """Most tokens that the network reads."""


def time_logits(network: PrunedNetwork, encoded: Encoded) -> tuple[torch.Tensor, float]:
    """The logits of all rows, and the middle of the milliseconds they took."""
    inputs = batch_of(encoded, np.arange(len(encoded))).inputs
    times, logits = [], torch.empty(0)
    with torch.no_grad():
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            logits = network(**inputs).logits
            times.append(1e3 * (time.perf_counter() - begun))
    return logits.float(), float(np.median(times))


def answer_label(network: PrunedNetwork, data: TaskData, asked: AskedText) -> Answer:
    """Probability of every label, whether it is given where labels are independent; or the number of a regression."""
    pairs = [asked.second] if asked.second else None
    encoded = Rows([asked.text], pairs, np.zeros(1, np.int64)).encode(data.tokenizer, asked.room)
    logits, milliseconds = time_logits(network, encoded)
    common = {"milliseconds": milliseconds, "tokens": len(encoded.ids)}
    if not data.task.labels:
        return {"value": float(logits.squeeze()), **common}
    independent = TASK_KINDS[data.task.kind].independent
    shares = torch.sigmoid(logits[0]) if independent else torch.softmax(logits[0], -1)
    labels = dict(zip(data.task.labels, shares.tolist(), strict=True))
    if not independent:
        return {"labels": labels, **common}
    limits = data.named_thresholds(network) or {}
    return {"labels": labels, "given": [name for name in labels if labels[name] > limits[name]], **common}


def answer_choice(network: PrunedNetwork, data: TaskData, asked: AskedText) -> Answer:
    """Probability of every choice."""
    choices = list(dict.fromkeys(line.strip() for line in asked.second.splitlines() if line.strip()))
    if not 2 <= len(choices) <= MOST_CHOICES:
        raise BadInput(f"give 2 to {MOST_CHOICES} choices, one per line, got {len(choices)}.")
    rows = Rows([asked.text], None, np.zeros(1, np.int64), tuple([choice] for choice in choices))
    encoded = rows.encode(data.tokenizer, asked.room)
    logits, milliseconds = time_logits(network, encoded)
    shares = torch.softmax(logits[0], -1).tolist()
    labels = dict(zip(choices, shares, strict=True))
    return {"labels": labels, "milliseconds": milliseconds, "tokens": len(encoded.ids)}


def answer_span(network: PrunedNetwork, data: TaskData, asked: AskedText) -> Answer:
    """The part of the second text that answers the question; empty where it says that none does."""
    if not asked.second.strip():
        raise BadInput("a question needs the text that it is about; give it as the second one.")
    validation = data.encoded["validation"].windows
    unanswerable = validation is not None and validation.unanswerable
    nowhere = np.full((1, 2), -1)
    rows = QuestionRows([asked.text], [asked.second], np.zeros(1, np.int64), nowhere, [()], unanswerable)
    encoded = rows.encode(data.tokenizer, asked.room)
    logits, milliseconds = time_logits(network, encoded)
    mask = batch_of(encoded, np.arange(len(encoded))).inputs["context_mask"]
    score, start, end, none = best_spans(logits, mask).numpy().T
    assert encoded.windows is not None
    spans = AnswerSpans(score, start.astype(np.int64), end.astype(np.int64), none)
    (answer,) = encoded.windows.texts(spans)
    return {"answer": answer, "milliseconds": milliseconds, "tokens": len(encoded.ids)}


def answer_tags(network: PrunedNetwork, data: TaskData, asked: AskedText) -> Answer:
    """A tag and its probability for every word, words being what blanks separate."""
    words = asked.text.split()
    encoded = Sentences([words], [np.arange(len(words))]).encode(data.tokenizer, asked.room)  # a word's tag: its number
    logits, milliseconds = time_logits(network, encoded)
    first = np.flatnonzero(encoded.targets[0] != NO_TARGET)
    shares, tags = torch.softmax(logits[0][first], -1).max(-1)
    numbers = encoded.targets[0][first].tolist()
    tagged = [
        [words[number], data.task.labels[tag], share]
        for number, tag, share in zip(numbers, tags.tolist(), shares.tolist(), strict=True)
    ]
    return {"words": tagged, "cut": len(words) - len(tagged), "milliseconds": milliseconds, "tokens": len(encoded.ids)}


def answer_similarity(network: PrunedNetwork, data: TaskData, asked: AskedText) -> Answer:
    """Cosine similarity of both texts."""
    if not asked.second.strip():
        raise BadInput("embeddings are compared: give a second text.")
    rows = SentenceRows([asked.text], [asked.second], np.zeros(1, np.int64))
    encoded = rows.encode(data.tokenizer, asked.room)
    vectors, milliseconds = time_logits(network, encoded)
    similarity = float(pair_cosines(vectors)[0])
    return {"similarity": similarity, "milliseconds": milliseconds, "tokens": len(encoded.ids)}


def write_text(network: PrunedNetwork, data: TaskData, asked: AskedText) -> Answer:
    """How a language model goes on, always with the likeliest token, and the time of one token."""
    ids = data.tokenizer(asked.text, return_tensors="pt")["input_ids"][:, -max(1, asked.room - NEW_TOKENS) :]
    begun, ended = time.perf_counter(), False
    with torch.no_grad():
        state = network(input_ids=ids, use_cache=True, logits_to_keep=1)
        first = time.perf_counter() - begun
        tokens: list[int] = []
        while len(tokens) < NEW_TOKENS:
            token = state.logits[:, -1].argmax(-1, keepdim=True)
            ended = int(token) == data.tokenizer.eos_token_id
            if ended:
                break
            tokens.append(int(token))
            state = network(input_ids=token, past_key_values=state.past_key_values, use_cache=True, logits_to_keep=1)
    seconds = time.perf_counter() - begun
    return {
        "written": data.tokenizer.decode(tokens),
        "ended": ended,
        "milliseconds": 1e3 * (seconds - first) / max(1, len(tokens)),
        "seconds": seconds,
        "tokens": len(tokens),
    }


Answering = Callable[[PrunedNetwork, TaskData, AskedText], Answer]
"""What `TaskKind.answer` names."""
