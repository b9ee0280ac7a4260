"""Corrupting tokens that a network then has to guess or find: pure functions of token ids and randomness."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import NO_TARGET

SHARE = 0.15
"""Of the tokens that may be chosen."""
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class MaskingRule:
    """What becomes of the chosen tokens; the rest of them stay as they are."""

    hidden: float
    """Share that becomes the mask token."""
    random: float
    """Share that becomes any other token of the vocabulary."""


BERT = MaskingRule(hidden=0.8, random=0.1)
"""Devlin et al. 2019."""
ELECTRA = MaskingRule(hidden=1.0, random=0.0)
"""Clark et al. 2020: what the generator guesses takes the place of the mask anyway."""
REPLACED = MaskingRule(hidden=0.0, random=1.0)
"""ELECTRA with a uniform generator, for networks that are not trained."""


def mask_tokens(
    ids: Ids,
    rng: np.random.Generator,
    *,
    mask_id: int,
    vocabulary: int,
    special: Collection[int] = (),
    attention: NDArray[np.int64] | None = None,
    share: float = SHARE,
    rule: MaskingRule = BERT,
) -> tuple[Ids, Ids]:
    """Rows x time ids with some tokens changed, and the tokens that stood there as labels, -100 elsewhere.

    With `attention` the share is rounded to whole tokens in every row, at least one where there is any, and padding
    (attention 0) is not chosen; without it every token is chosen with this probability, and one more where a row would
    have none, as the gradient of a row without a label is zero. Special tokens are neither chosen nor put in.
    """
    draws = rng.random(ids.shape)
    if attention is None:
        chosen = draws <= np.maximum(share, draws.min(axis=1, keepdims=True))
    else:
        free = (attention != 0) & ~np.isin(ids, list(special))
        ranks, count = np.where(free, draws, 2.0).argsort(axis=1).argsort(axis=1), free.sum(axis=1, keepdims=True)
        chosen = ranks < np.clip(np.rint(share * count), np.minimum(count, 1), count)
    if rule.hidden + rule.random < 1:
        fate = rng.random(ids.shape)
        hidden, random = fate < rule.hidden, fate < rule.hidden + rule.random
    else:  # one fate for all
        hidden, random = np.full(ids.shape, rule.hidden == 1), np.full(ids.shape, True)
    others = rng.integers(vocabulary - len(set(special)), size=ids.shape)
    for taken in sorted(set(special)):  # numbers of ordinary tokens, counted without the special ones
        others = others + (others >= taken)
    changed = np.where(hidden, mask_id, np.where(random, others, ids))
    return np.where(chosen, changed, ids), np.where(chosen, ids, NO_TARGET)
