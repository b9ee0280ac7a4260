"""Masked tokens: how many, which, and what becomes of them."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from archwright.data.encoding import NO_TARGET
from archwright.data.text.masking import BERT, ELECTRA, REPLACED, MaskingRule, mask_tokens

SPECIAL = (0, 101, 102, 103)
MASK, VOCABULARY = 103, 200


def mask(
    ids: torch.Tensor, attention: torch.Tensor, seed: int, rule: MaskingRule = BERT
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of padded rows with special tokens."""
    after, labels = mask_tokens(
        ids.numpy(),
        np.random.default_rng(seed),
        mask_id=MASK,
        vocabulary=VOCABULARY,
        special=SPECIAL,
        attention=attention.numpy(),
        rule=rule,
    )
    return torch.from_numpy(after), torch.from_numpy(labels)


def rows(seed: int, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """[CLS] words [SEP] and padding."""
    rng = np.random.default_rng(seed)
    ids, attention = torch.zeros(len(lengths), max(lengths) + 2, dtype=torch.long), None
    attention = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        words = rng.integers(104, VOCABULARY, size=length)
        ids[row, : length + 2] = torch.tensor([101, *words, 102])
        attention[row, : length + 2] = 1
    return ids, attention


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 10**6), st.sampled_from([BERT, ELECTRA]))
def test_what_may_change_and_what_the_labels_say(lengths: list[int], seed: int, rule: MaskingRule) -> None:
    ids, attention = rows(seed, lengths)
    before = ids.clone()
    after, labels = mask(ids, attention, seed, rule)
    assert torch.equal(ids, before)  # pure
    chosen = labels != NO_TARGET
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(after[~chosen], ids[~chosen])
    special = torch.isin(ids, torch.tensor(SPECIAL)) | (attention == 0)
    assert not (chosen & special).any()
    put_in = after[chosen & (after != ids) & (after != MASK)]
    assert not torch.isin(put_in, torch.tensor(SPECIAL)).any()
    wanted = [min(n, max(1, round(0.15 * n))) for n in lengths]
    assert chosen.sum(1).tolist() == wanted


@given(st.integers(0, 10**6))
def test_the_same_rng_repeats_and_another_does_not(seed: int) -> None:
    ids, attention = rows(seed, [50, 50])
    first, again, other = (mask(ids, attention, s)[1] for s in (seed, seed, seed + 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_fates_have_their_shares() -> None:
    ids, attention = rows(0, [400] * 200)
    after, labels = mask(ids, attention, 0)
    chosen = labels != NO_TARGET
    hidden = (after[chosen] == MASK).float().mean()
    stayed = (after[chosen] == ids[chosen]).float().mean()
    assert abs(float(chosen.sum()) / (400 * 200) - 0.15) < 1e-9
    assert abs(float(hidden) - 0.8) < 0.01
    assert abs(float(stayed) - 0.1) < 0.01 + 0.1 / 96  # a random token may be the same
    after, labels = mask(ids, attention, 0, ELECTRA)
    assert (after[labels != NO_TARGET] == MASK).all()


def test_every_place_has_the_same_chance() -> None:
    ids, attention = rows(1, [20] * 4000)
    _, labels = mask(ids, attention, 3)
    shares = (labels[:, 1:-1] != NO_TARGET).float().mean(0)
    assert float((shares - 0.15).abs().max()) < 0.025  # 4 standard deviations


def test_without_attention_tokens_are_chosen_one_by_one_and_replaced() -> None:
    windows = np.arange(40_000).reshape(4, -1) % 1000
    inputs, labels = mask_tokens(windows, np.random.default_rng(0), mask_id=0, vocabulary=1000, rule=REPLACED)
    assert (inputs[labels == NO_TARGET] == windows[labels == NO_TARGET]).all()
    assert (inputs != windows).mean() == np.clip((inputs != windows).mean(), 0.14, 0.16)


def test_without_attention_masked_tokens_are_the_targets() -> None:
    windows = np.arange(40_000).reshape(4, -1) % 1000 + 1
    inputs, labels = mask_tokens(windows, np.random.default_rng(0), mask_id=0, vocabulary=1001, rule=BERT)
    chosen = labels != NO_TARGET
    assert abs(chosen.mean() - 0.15) < 0.01
    assert (labels[chosen] == windows[chosen]).all() and (inputs[~chosen] == windows[~chosen]).all()
    assert abs((inputs[chosen] == 0).mean() - 0.8) < 0.02
    assert abs((inputs[chosen] == windows[chosen]).mean() - 0.1) < 0.02


def test_without_attention_short_rows_have_a_target_as_well() -> None:
    windows = np.arange(4_000).reshape(-1, 4) + 1
    _, labels = mask_tokens(windows, np.random.default_rng(0), mask_id=0, vocabulary=5000, rule=BERT)
    amounts = (labels != NO_TARGET).sum(axis=1)
    assert amounts.min() == 1 and (amounts == 1).mean() > 0.8  # 0.85 ** 4 of them would have none
