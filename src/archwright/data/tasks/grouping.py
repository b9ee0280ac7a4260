"""Rows that share text, so that a split can keep them together.

A text belongs to a longer one when at least half of its word 4-grams stand there; one of fewer than four words when
all of it does. A text that belongs to none is the root of a group. A text whose longer ones are all of one group
joins it. A text that belongs to several groups (a phrase that many sentences have) would glue them together: it joins
none and is for training alone, so that nothing in another part stands inside a training row.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Edges = tuple[Numbers, Numbers]
"""Documents, and for each a longer one that it belongs to."""

WORD = re.compile(r"\w+")
GRAM = 4
"""Words in a row that texts may share."""
LEAST_SHARE = 0.5
"""Of the 4-grams of the shorter text: what makes it belong to the longer one."""
FREQUENT = 200
"""An n-gram in more texts than these is a phrase of the language and links nothing."""
CHUNK = 4096
"""Texts that are compared with all others at once."""
LONGEST = 200_000
"""Characters of a text that are looked at."""
NO_GROUP = -1


def group_rows(columns: Sequence[Sequence[str]]) -> Numbers:
    """The group of each row, NO_GROUP for rows that must train; rows with several texts link the groups of all."""
    names: dict[str, int] = {}
    documents = np.array([[names.setdefault(words(text), len(names)) for text in texts] for texts in columns])
    groups = group_documents(list(names))[documents]  # columns x rows
    if len(columns) == 1:
        return groups[0]
    total, known = groups.shape[1], groups >= 0
    rows, texts = np.broadcast_to(np.arange(total), groups.shape)[known], groups[known] + total
    size = total + len(names)
    _, linked = connected_components(csr_array((np.ones(len(rows), np.int8), (rows, texts)), shape=(size, size)))
    return np.where(known.any(0), linked[:total], NO_GROUP)


def words(text: str) -> str:
    """What counts of a text: its words in lower case, with one blank between; the text itself where it has none."""
    text = text[:LONGEST]
    return " ".join(WORD.findall(text.lower())) or text.strip()


def group_documents(texts: list[str]) -> Numbers:
    """The group of each of these different texts of `words`, or NO_GROUP."""
    ids, lengths = word_ids(texts)
    long, frequent = link_long(ids, lengths)
    short, more = link_short(ids, lengths)
    below, above = (np.concatenate(parts) for parts in zip(long, short, strict=True))
    size = len(texts)
    # The groups that a text belongs to, through all longer ones: the first and the last of them.
    first = np.arange(size)
    first[below] = size
    last = np.where(first == size, -1, first)
    common = np.concatenate([frequent, more])
    first[common], last[common] = -1, size
    while len(below):
        low, high = first.copy(), last.copy()
        np.minimum.at(low, below, first[above])
        np.maximum.at(high, below, last[above])
        if (low == first).all() and (high == last).all():
            break
        first, last = low, high
    return np.where(first == last, first, NO_GROUP)


def word_ids(texts: Sequence[str]) -> tuple[Numbers, Numbers]:
    """The words of all texts one after another as numbers, and how many each text has."""
    known: dict[str, int] = defaultdict(count().__next__)
    lengths = np.array([text.count(" ") + 1 for text in texts], dtype=np.int64)
    every = chain.from_iterable(text.split(" ") for text in texts)
    return np.fromiter(map(known.__getitem__, every), dtype=np.int64, count=int(lengths.sum())), lengths


def hash_grams(ids: Numbers, lengths: Numbers, n: int) -> tuple[Hashes, Numbers]:
    """All runs of n words inside a text as 64-bit numbers, and the text of each.

    Every word has a random number per place in the run; the sum stands for the run. Of ten million different runs
    two are the same once in a million times.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    runs = max(0, len(ids) - n + 1)
    codes = np.random.default_rng(0).integers(2**64, size=(n, int(ids.max(initial=0)) + 1), dtype=np.uint64)
    hashes = np.zeros(runs, dtype=np.uint64)
    for place in range(n):
        hashes += codes[place][ids[place : place + runs]]
    inside = owner[:runs] == owner[n - 1 : n - 1 + runs]
    return hashes[inside], owner[:runs][inside]


def link_long(ids: Numbers, lengths: Numbers) -> tuple[Edges, Numbers]:
    """Texts of four words or more below those that have half of their 4-grams; and those of frequent ones alone."""
    size = len(lengths)
    total = np.maximum(lengths - GRAM + 1, 0)
    grams, owner, repeats = shared_grams(*hash_grams(ids, lengths, GRAM))
    total -= np.bincount(repeats, minlength=size)
    texts = np.bincount(grams)[grams] if len(grams) else grams
    total -= np.bincount(owner[texts > FREQUENT], minlength=size)
    least, shared = np.ceil(LEAST_SHARE * total), texts <= FREQUENT
    able = np.flatnonzero((np.bincount(owner[shared], minlength=size) >= least) & (total > 0))
    shape = (size, int(grams.max(initial=0)) + 1)
    table = csr_array((np.ones(int(shared.sum()), np.int32), (owner[shared], grams[shared])), shape=shape)
    columns = table.T.tocsr()
    below, above = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(able), CHUNK):
        some = able[start : start + CHUNK]
        common = (table[some] @ columns).tocoo()  # 4-grams that two texts share
        i, j = some[common.coords[0]], common.coords[1].astype(np.int64)
        longer = (lengths[j] > lengths[i]) | ((lengths[j] == lengths[i]) & (j > i))
        found = longer & (common.data >= least[i])
        below.append(i[found])
        above.append(j[found])
    return (np.concatenate(below), np.concatenate(above)), np.flatnonzero((lengths >= GRAM) & (total == 0))


def shared_grams(hashes: Hashes, owner: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The n-grams that several texts have, numbered, with the text of each, and the texts that repeat one of theirs.

    Most n-grams of long texts stand nowhere else. They are dropped before the sort: alone in their bucket of 24 bits.
    """
    buckets = (hashes >> np.uint64(40)).astype(np.int64)
    several = np.bincount(buckets)[buckets] > 1 if len(buckets) else np.zeros(0, dtype=bool)
    hashes, owner = hashes[several], owner[several]
    order = np.lexsort((owner, hashes))
    hashes, owner = hashes[order], owner[order]
    new = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]  # the first of every n-gram
    again = ~new & np.append(False, owner[1:] == owner[:-1])[: len(owner)]  # in the same text once more
    numbers = np.cumsum(new) - 1
    texts = np.bincount(numbers[~again], minlength=1)
    kept = ~again & (texts[numbers] > 1)
    return numbers[kept], owner[kept], owner[again]


def link_short(ids: Numbers, lengths: Numbers) -> tuple[Edges, Numbers]:
    """Texts of fewer than four words below those that they stand in; and those that stand in too many."""
    below, above, common = ([np.empty(0, np.int64)] for _ in range(3))
    for n in range(1, GRAM):
        short = np.flatnonzero(lengths == n)
        if not len(short):
            continue
        hashes, owner = hash_grams(ids, lengths, n)
        own = np.isin(owner, short)
        keys, texts = hashes[own], owner[own]  # of a short text its only run
        order = np.argsort(keys)
        place = np.minimum(np.searchsorted(keys[order], hashes), len(keys) - 1)
        found = (keys[order][place] == hashes) & ~own
        i, j = texts[order][place[found]], owner[found]
        frequent = np.bincount(i, minlength=len(lengths)) > FREQUENT
        below.append(i[~frequent[i]])
        above.append(j[~frequent[i]])
        common.append(np.flatnonzero(frequent))
    return (np.concatenate(below), np.concatenate(above)), np.concatenate(common)


def count_inside(rows: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> int:
    """How many rows (given as columns) have nothing but texts that stand word for word inside a text of the others."""
    names: dict[str, int] = {}
    documents = np.array([[names.setdefault(words(text), len(names)) for text in texts] for texts in rows])
    known = list(dict.fromkeys(words(text) for texts in others for text in texts))
    texts, whole = list(names), f" {' | '.join(known)} "
    ids, lengths = word_ids([*known, *texts])
    own = lengths[len(known) :]
    inside = np.zeros(len(texts), dtype=bool)
    for n in range(1, GRAM + 1):
        hashes, owner = hash_grams(ids, lengths, n)
        mine = owner >= len(known)
        new = owner[mine][~np.isin(hashes[mine], hashes[~mine])] - len(known)  # texts with a run that is nowhere else
        inside |= ((own == n) if n < GRAM else (own >= n)) & (np.bincount(new, minlength=len(texts)) == 0)
    for text in np.flatnonzero(inside & (own > GRAM)):  # all of its runs are there, but perhaps not in one text
        inside[text] = f" {texts[text]} " in whole
    return int(inside[documents].all(0).sum())
