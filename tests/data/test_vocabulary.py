"""Fewer tokens: texts whose tokens all stay are cut as before, every other text still can be written."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from archwright.data.encoding import Encoded
from archwright.data.text.tokenizer import train_bpe
from archwright.data.text.vocabulary import (
    Vocabulary,
    choose_vocabulary,
    merge_path,
    prune_tokenizer,
    required_tokens,
    special_tokens,
)
from archwright.data.text.vocabulary import read_document as document_of
from archwright.errors import BadInput

LINES = [
    "the film is lovely and the music is old",
    "a new actor sings in the old film",
    "nobody understands the underlying story",
    "the underlying music is understandably lovely",
] * 5
TEXT = "the actor understands nobody"


def encode(tokenizer: Any, texts: list[str]) -> Encoded:
    rows = [tokenizer(text)["input_ids"] for text in texts]
    offsets = np.cumsum([0, *map(len, rows)])
    return Encoded(np.concatenate(rows).astype(np.int32), offsets, None, np.zeros(len(rows)))


@pytest.fixture(scope="module")
def roberta() -> Any:
    """Byte pairs with special tokens around a text, numbered as RoBERTa's are."""
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    inner = train_bpe([*LINES, *("extraordinary zebras gallop quickly",) * 5], 420)
    inner.add_special_tokens(list(special.values()))
    ends = (("</s>", inner.token_to_id("</s>")), ("<s>", inner.token_to_id("<s>")))
    inner.post_processor = processors.RobertaProcessing(*ends)
    return PreTrainedTokenizerFast(tokenizer_object=inner, **special, cls_token="<s>", sep_token="</s>")


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "roberta"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def pruned(tokenizer: Any) -> tuple[Vocabulary, Any]:
    vocabulary = choose_vocabulary(None, tokenizer, encode(tokenizer, LINES))
    return vocabulary, prune_tokenizer(tokenizer, vocabulary)


def test_texts_whose_tokens_stay_are_cut_as_before(tokenizer: Any, pruned: tuple[Vocabulary, Any]) -> None:
    vocabulary, small = pruned
    assert len(small) == len(vocabulary) < len(tokenizer)
    for text in LINES[:4]:
        assert [int(vocabulary.kept[i]) for i in small(text)["input_ids"]] == tokenizer(text)["input_ids"]
        assert small.tokenize(text) == tokenizer.tokenize(text)


@settings(deadline=None, max_examples=60)
@given(words=st.lists(st.sampled_from(" ".join(LINES[:4]).split()), min_size=1, max_size=12), odd=st.text(max_size=6))
def test_no_text_is_cut_otherwise_unless_a_token_is_gone(
    words: list[str], odd: str, tokenizer: Any, pruned: tuple[Vocabulary, Any]
) -> None:
    vocabulary, small = pruned
    text = " ".join([*words, odd])
    before, after = tokenizer(text)["input_ids"], small(text)["input_ids"]
    if all(vocabulary.renumber(i) is not None for i in before):
        assert after == [vocabulary.renumber(i) for i in before]
    unknown = (tokenizer.unk_token_id, small.unk_token_id)
    if unknown[0] is not None:
        assert (unknown[0] in before) == (unknown[1] in after)  # removed tokens are spelled, not unknown


def test_special_tokens_stay_what_they_are(tokenizer: Any, pruned: tuple[Vocabulary, Any]) -> None:
    vocabulary, small = pruned
    assert small.special_tokens_map == tokenizer.special_tokens_map
    for name, token in tokenizer.special_tokens_map.items():
        old, new = getattr(tokenizer, f"{name}_id"), getattr(small, f"{name}_id")
        assert new == vocabulary.renumber(old) and small.convert_ids_to_tokens(new) == token
    pair = tokenizer(" film", " music")["input_ids"]
    assert [int(vocabulary.kept[i]) for i in small(" film", " music")["input_ids"]] == pair
    assert small.decode(small(TEXT)["input_ids"]) == tokenizer.decode(tokenizer(TEXT)["input_ids"])


def test_every_merge_leads_somewhere(tokenizer: Any, pruned: tuple[Vocabulary, Any]) -> None:
    """Parts and result of each merge are there, and each token that merges made can still be made."""
    model = document_of(pruned[1])["model"]
    if model["type"] != "BPE":
        return
    ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
    assert all({a, b, a + b} <= model["vocab"].keys() for a, b in ranks)
    old = {tuple(pair): rank for rank, pair in enumerate(document_of(tokenizer)["model"]["merges"])}
    for token in model["vocab"]:
        assert merge_path(token, ranks) == merge_path(token, old)


def test_a_number_of_tokens(tokenizer: Any) -> None:
    encoded = encode(tokenizer, LINES)
    least = len(required_tokens(document_of(tokenizer), tokenizer))
    vocabulary = choose_vocabulary(least + 9, tokenizer, encoded)
    assert len(vocabulary) == least + 9
    counts = np.bincount(encoded.ids, minlength=vocabulary.size)
    assert counts[vocabulary.kept].sum() > counts.sum() / 4  # the most frequent ones
    assert len(choose_vocabulary(vocabulary.size, tokenizer, encoded)) == vocabulary.size
    for number in (least - 1, vocabulary.size + 1):
        with pytest.raises(BadInput, match=f"--vocabulary must be {least:,} .* got {number:,}"):
            choose_vocabulary(number, tokenizer, encoded)


def test_a_file_of_tokens(tokenizer: Any, tmp_path: Path) -> None:
    encoded, file = encode(tokenizer, LINES), tmp_path / "tokens.txt"
    listed = sorted({*special_tokens(document_of(tokenizer), tokenizer), *tokenizer.tokenize("the lovely film")})
    file.write_text("\n".join(listed) + "\n", encoding="utf-8")
    vocabulary = choose_vocabulary(file, tokenizer, encoded)
    small = prune_tokenizer(tokenizer, vocabulary)
    assert small.tokenize("the lovely film") == tokenizer.tokenize("the lovely film")
    assert "single characters" in vocabulary.note and len(small.tokenize("understands")) > 1
    file.write_text("\n".join([*listed, "notoken"]), encoding="utf-8")
    with pytest.raises(BadInput, match=r"got 1 others .* 'notoken'"):
        choose_vocabulary(file, tokenizer, encoded)
    file.write_text("\n".join(t for t in listed if t != tokenizer.pad_token), encoding="utf-8")
    with pytest.raises(BadInput, match="must keep all special tokens"):
        choose_vocabulary(file, tokenizer, encoded)
    with pytest.raises(BadInput, match="task, a number of tokens or a file"):
        choose_vocabulary(tmp_path / "none.txt", tokenizer, encoded)


def test_the_share_of_texts_that_lose_a_token(wordpiece: Any) -> None:
    vocabulary = choose_vocabulary(None, wordpiece, encode(wordpiece, LINES))
    texts = [LINES[0], "zebra film", "film", "an extraordinary zebra"]
    assert vocabulary.share_touched(encode(wordpiece, texts)) == 0.5
    two_choices = encode(wordpiece, texts)
    object.__setattr__(two_choices, "choices", 2)
    assert vocabulary.share_touched(two_choices) == 1.0


def test_other_kinds_are_refused() -> None:
    unigram = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.Unigram([("a", -1.0), ("b", -2.0)])))
    with pytest.raises(BadInput, match="got one of the kind Unigram"):
        choose_vocabulary(None, unigram, encode(unigram, ["a"]))


def test_it_loads_where_archwright_is_not(pruned: tuple[Vocabulary, Any], tmp_path: Path) -> None:
    """Saved by transformers, loaded by AutoTokenizer, also in a process without the project."""
    small = pruned[1]
    small.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)(TEXT)["input_ids"] == small(TEXT)["input_ids"]
    code = (
        "import json, sys\nfrom transformers import AutoTokenizer\n"
        f"print(json.dumps(AutoTokenizer.from_pretrained({str(tmp_path)!r})({TEXT!r})['input_ids']))\n"
        "assert 'archwright' not in sys.modules"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": ""}, check=True)
    assert json.loads(answer.stdout) == small(TEXT)["input_ids"]
