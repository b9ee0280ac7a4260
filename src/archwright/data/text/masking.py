"""Hiding tokens that a network then has to guess: pure functions of token ids and randomness."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

SHARE = 0.15
"""Of the tokens that may be chosen."""
NO_TARGET = -100


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


def masked(
    ids: torch.Tensor,
    attention: torch.Tensor,
    rng: np.random.Generator,
    mask_id: int,
    vocabulary: int,
    special: Collection[int],
    share: float = SHARE,
    fates: MaskingRule = BERT,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows x time ids with some tokens changed, and the tokens that stood there as labels, -100 elsewhere.

    In every row the share is rounded to whole tokens, at least one where there is any. Padding (attention 0) and
    special tokens are neither chosen nor put in.
    """
    before = ids.cpu().numpy()
    free = (attention.cpu().numpy() != 0) & ~np.isin(before, list(special))
    chosen, fate = chosen_tokens(free, share, rng), rng.random(before.shape)
    others = ordinary(rng.integers(vocabulary - len(set(special)), size=before.shape), special)
    changed = np.where(fate < fates.hidden, mask_id, np.where(fate < fates.hidden + fates.random, others, before))
    labels = np.where(chosen, before, NO_TARGET)
    return placed(np.where(chosen, changed, before), ids), placed(labels, ids)


def chosen_tokens(free: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """This share of the free places of every row, at least one of them, at random."""
    keys = np.where(free, rng.random(free.shape), 2.0)
    ranks = keys.argsort(axis=1).argsort(axis=1)
    free_tokens = free.sum(axis=1, keepdims=True)
    wanted = np.clip(np.rint(share * free_tokens), np.minimum(free_tokens, 1), free_tokens)
    return ranks < wanted


def ordinary(numbers: NDArray[np.int64], special: Collection[int]) -> NDArray[np.int64]:
    """The tokens of these numbers, counted without the special ones."""
    for taken in sorted(set(special)):
        numbers = numbers + (numbers >= taken)
    return numbers


def placed(values: NDArray[np.int64], like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(values).to(like.device, like.dtype)
