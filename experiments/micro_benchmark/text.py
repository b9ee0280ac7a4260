"""WikiText-2 in the 1,024 words of the micro-benchmark: vocabulary, windows, masks, and first vectors of the words."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers

from archwright.data.text.kinds import MICRO_VOCABULARY as VOCABULARY
from archwright.spaces.micro_lm import TOKENS, WORDS

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
MASK = 1
"""The word that hides another one."""
SHARE = 0.3
"""Of the words that are hidden, all by the mask."""


def train_vocabulary(text: Path) -> Tokenizer:
    """Byte pairs of lower-cased text, headings left out."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["[PAD]", "[MASK]", AddedToken("<unk>", lstrip=True, normalized=False)]
    trainer = trainers.BpeTrainer(vocab_size=WORDS, special_tokens=special, limit_alphabet=100, show_progress=False)
    tokenizer.train_from_iterator(lines(text), trainer)
    return tokenizer


def load_vocabulary(text: Path) -> Tokenizer:
    """The one of the package; trained and put there when there is none."""
    if not VOCABULARY.exists():
        VOCABULARY.parent.mkdir(exist_ok=True)
        train_vocabulary(text).save(str(VOCABULARY))
    return Tokenizer.from_file(str(VOCABULARY))


def lines(text: Path) -> list[str]:
    found = (line.strip() for line in text.read_text(encoding="utf-8").splitlines())
    return [line for line in found if line and not line.startswith("=")]


def encode(text: Path, tokenizer: Tokenizer) -> Ids:
    """The whole text as one row of words."""
    return np.concatenate([np.array(row.ids, dtype=np.int64) for row in tokenizer.encode_batch(lines(text))])


def draw_windows(words: Ids, rows: int, rng: np.random.Generator) -> tuple[Ids, NDArray[np.bool_]]:
    """Windows, rows x TOKENS, and which of their words are hidden."""
    starts = rng.integers(0, len(words) - TOKENS, rows)
    windows = words[starts[:, None] + np.arange(TOKENS)]
    return windows, rng.random(windows.shape) < SHARE


def bigrams(words: Ids) -> Floats:
    counts = np.zeros((WORDS, WORDS))
    np.add.at(counts, (words[:-1], words[1:]), 1)
    return counts


def first_vectors(words: Ids, width: int) -> tuple[Floats, Floats]:
    """Vectors of the words, of length 1, and logarithms of their shares: what all networks begin with.

    The leading singular vectors of the pointwise mutual information with the words before and behind, so that layers
    need not spend their few steps on learning which words are alike. The mask begins as nothing.
    """
    counts = bigrams(words)
    share = np.bincount(words, minlength=WORDS) + 1.0
    share /= share.sum()
    sides = [
        np.log((table + 0.5) / ((table.sum(1, keepdims=True) + 0.5 * WORDS) * share)) for table in (counts, counts.T)
    ]
    table = np.maximum(np.concatenate(sides, 1), -2) * np.sqrt(np.concatenate([share, share]))
    left, strength, _ = np.linalg.svd(table - table.mean(0), full_matrices=False)
    vectors = left[:, :width] * np.sqrt(strength[:width])
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    vectors[MASK] = 0
    return vectors, np.log(share)


def bigram_losses(words: Ids, windows: Ids, hidden: NDArray[np.bool_]) -> dict[str, float]:
    """Mean loss on hidden words of models that count: words alone, with the one before, and with those on both sides.

    `both` is exact for a chain of bigrams (absolute discounting): hidden neighbours are summed over by powers of the
    table, so it uses the nearest words that are seen on either side.
    """
    counts, share = bigrams(words), np.bincount(words, minlength=WORDS) + 0.1
    share /= share.sum()
    total, kinds = np.maximum(counts.sum(1, keepdims=True), 1), (counts > 0).sum(1, keepdims=True)
    step = np.maximum(counts - 0.75, 0) / total + 0.75 * kinds / total * share
    step = np.where(counts.sum(1, keepdims=True) > 0, step, share)
    step /= step.sum(1, keepdims=True)
    powers = [np.eye(WORDS)]
    for _ in range(TOKENS):
        powers.append(powers[-1] @ step)
    losses: dict[str, list[float]] = {"unigram": [], "before": [], "both": []}
    for row, hides in zip(windows, hidden, strict=True):
        seen = np.flatnonzero(~hides)
        for place in np.flatnonzero(hides):
            before, behind, word = seen[seen < place], seen[seen > place], row[place]
            left = powers[place - before[-1]][row[before[-1]]] if len(before) else share
            both = left * (powers[behind[0] - place][:, row[behind[0]]] if len(behind) else 1)
            for name, chance in (("unigram", share), ("before", left), ("both", both / both.sum())):
                losses[name].append(-float(np.log(chance[word])))
    return {name: float(np.mean(values)) for name, values in losses.items()}
