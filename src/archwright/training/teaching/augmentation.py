"""Other words in place of some of a row's, for a teacher to answer (data augmentation of TinyBERT, Jiao et al. 2020).

Words are exchanged token by token, so that rows keep their length: only whole words that are one token, against other
such words. A teacher with a head for masked words fills them in; without one, the nearest neighbours of a word in the
teacher's token table take its place, as TinyBERT does with GloVe vectors for words of several pieces.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import AutoModelForMaskedLM

from archwright.data.batching import evaluation_batches
from archwright.data.encoding import Encoded
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.networks.embeddings import LowRankEmbedding
from archwright.networks.load import UNREADABLE
from archwright.progress import progress
from archwright.training.inheritance.states import body_of
from archwright.training.teaching.rows import WordReplacer

REPLACED = 0.4
"""Share of the words for which a neighbour is put in: p of TinyBERT's Algorithm 1."""
FILLED_IN = 0.15
"""Share of the words that are masked at once, as when the head was trained."""
CANDIDATES = 15
"""Words that one of is drawn from: K of TinyBERT's Algorithm 1."""
TOKENS = 3072
"""Of a batch of masked rows."""
SPACE_MARKS = ("Ġ", "▁")
"""With which byte pairs and sentence pieces begin a word."""
MASKED, NEIGHBOURS = "masked-words", "neighbours"


def build_replacer(way: str, source: str, teacher: Any, tokenizer: Any) -> WordReplacer:
    """How words are exchanged: as asked for, or with the teacher's head where it has one."""
    begins, whole = whole_words(tokenizer)
    head = None if way == NEIGHBOURS else load_masked_head(source)
    if head is not None:
        return FilledWords(head, tokenizer, begins, whole)
    rule = f"{source} has no head that fills in masked words"
    if way == MASKED:
        raise BadInput(f"--augment-with {MASKED}: {rule}; take --augment-with {NEIGHBOURS}, or another --teacher.")
    if way != NEIGHBOURS:
        logger.warning("%s: words are exchanged for their nearest neighbours in its token table", rule)
    table = body_of(teacher).get_input_embeddings()
    vectors = table.multiplied_out() if isinstance(table, LowRankEmbedding) else table.weight.detach()
    return NeighbourWords(vectors.cpu(), begins, whole)


def whole_words(tokenizer: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """By token: whether it begins something, and whether it may be a word by itself: letters, no special token."""
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    marked = any(token is not None and token.startswith(SPACE_MARKS) for token in tokens)
    goes_on = [t is not None and (t.startswith("##") or (marked and not t.startswith(SPACE_MARKS))) for t in tokens]
    begins = ~np.array(goes_on)
    letters = np.array([t is not None and t.lstrip("".join(SPACE_MARKS)).isalpha() for t in tokens])
    letters[list(tokenizer.all_special_ids)] = False
    begins[list(tokenizer.all_special_ids)] = True
    return begins, begins & letters


def replaceable(encoded: Encoded, begins: NDArray[np.bool_], whole: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Positions of tokens that are a word by themselves: what follows begins another one."""
    last = np.zeros(len(encoded.ids), dtype=bool)
    last[encoded.offsets[1:] - 1] = True
    follows = np.append(begins[encoded.ids[1:]], True) | last
    return np.flatnonzero(whole[encoded.ids] & follows)


class NeighbourWords:
    """Words near by cosine in a table of word vectors."""

    def __init__(self, table: torch.Tensor, begins: NDArray[np.bool_], whole: NDArray[np.bool_]):
        self.table, self.begins, self.whole = table, begins, whole

    def __call__(self, encoded: Encoded, rng: np.random.Generator) -> NDArray[np.int32]:
        places = replaceable(encoded, self.begins, self.whole)
        places = places[rng.random(len(places)) < REPLACED]
        words, inverse = np.unique(encoded.ids[places], return_inverse=True)
        ids = encoded.ids.copy()
        if len(places):
            draws = rng.integers(CANDIDATES, size=len(places))
            ids[places] = self.neighbours(words)[inverse, draws]
        return ids

    def neighbours(self, words: NDArray[np.int32]) -> NDArray[np.int32]:
        """Words x CANDIDATES: the nearest first, the word itself not among them."""
        others = torch.from_numpy(np.flatnonzero(self.whole[: len(self.table)]))
        directions = nn.functional.normalize(self.table[others].float(), dim=-1)
        found = []
        for some in torch.from_numpy(words).long().split(1024):
            near = nn.functional.normalize(self.table[some].float(), dim=-1) @ directions.T
            near[some[:, None] == others] = -2.0
            best = near.topk(min(CANDIDATES, near.shape[1] - 1), dim=-1).indices
            best = best[:, torch.arange(CANDIDATES) % best.shape[1]]  # few words: some several times
            found.append(others[best])
        return torch.cat(found).numpy().astype(np.int32)


class FilledWords:
    """Words that a masked-language-model head puts in the place of masked ones."""

    def __init__(self, network: Any, tokenizer: Any, begins: NDArray[np.bool_], whole: NDArray[np.bool_]):
        self.network, self.mask, self.begins, self.whole = network.eval(), tokenizer.mask_token_id, begins, whole

    @torch.no_grad()
    def __call__(self, encoded: Encoded, rng: np.random.Generator) -> NDArray[np.int32]:
        places = replaceable(encoded, self.begins, self.whole)
        hidden = np.zeros(len(encoded.ids), dtype=bool)
        hidden[places[rng.random(len(places)) < FILLED_IN]] = True
        chosen, ids = encoded.ids.copy(), encoded.ids.copy()
        chosen[hidden] = self.mask
        allowed = torch.from_numpy(self.whole)
        batches = evaluation_batches(masked_rows(encoded, chosen), tokens=TOKENS)
        with progress("words that the teacher fills in", len(batches), "batches") as bar:
            for batch in batches:
                real = batch.inputs["attention_mask"].bool()
                masked = (batch.inputs["input_ids"] == self.mask) & real
                if masked.any():
                    logits = self.network(**batch.inputs).logits[masked][:, : len(allowed)]
                    best = logits.masked_fill(~allowed, -torch.inf).topk(CANDIDATES, dim=-1).indices.numpy()
                    rows, columns = (part.numpy() for part in masked.nonzero(as_tuple=True))
                    drawn = best[np.arange(len(best)), rng.integers(CANDIDATES, size=len(best))]
                    ids[encoded.offsets[batch.rows[rows]] + columns] = drawn
                bar.advance(1)
        return ids


def masked_rows(encoded: Encoded, ids: NDArray[np.int32]) -> Encoded:
    return Encoded(ids, encoded.offsets, encoded.types, encoded.targets, encoded.pad_id)


def load_masked_head(source: str) -> Any:
    """The checkpoint with its head for masked words; None where its head would be a new one, or it knows none."""
    try:
        network, found = AutoModelForMaskedLM.from_pretrained(
            source, dtype=torch.float32, trust_remote_code=False, output_loading_info=True
        )
    except UNREADABLE:
        return None
    if any("token_type" not in name for name in found["missing_keys"]):
        return None
    return network
