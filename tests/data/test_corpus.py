"""Text as rows of tokens, packed or by line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.data.batching import batches
from archwright.data.text.corpus import encode_corpus, frame_lines, pack_lines, read_corpus
from archwright.data.text.tokenizer import TOKENIZER_TRAINERS, gpt2_tokenizer, read_tokenizer, train_tokenizer
from archwright.errors import BadInput

LINES = [np.array(line, dtype=np.int32) for line in ([1, 2, 3], [4], [5, 6, 7, 8])]


def test_packed_rows_are_full_and_lose_nothing_but_the_rest() -> None:
    rows = pack_lines(LINES, [90], [91], 5)
    assert [row.tolist() for row in rows] == [[90, 1, 2, 3, 91], [90, 91, 4, 91, 91], [90, 5, 6, 7, 91]]
    rows = pack_lines(LINES, [], [91], 4)
    assert [row.tolist() for row in rows] == [[1, 2, 3, 91], [4, 91, 5, 6]]
    assert not len(pack_lines([], [], [], 4))


def test_lines_are_cut_and_framed() -> None:
    rows = frame_lines(LINES, [90], [91], 5)
    assert [row.tolist() for row in rows] == [[90, 1, 2, 3, 91], [90, 4, 91], [90, 5, 6, 7, 91]]


def test_packed_real_text_has_no_padding_and_keeps_the_words(tmp_path: Path, wordpiece: Any) -> None:
    file = tmp_path / "text.txt"
    file.write_text("\n\n".join(f"line {n} of the <unk> text" for n in range(100)))
    learnt, judged = read_corpus(file, None)
    assert (len(learnt.lines), len(judged.lines)) == (95, 5)
    found = encode_corpus(learnt, wordpiece, layout="packed", max_length=32)
    assert set(found.lengths) == {32}
    assert (found.ids.reshape(-1, 32)[:, 0] == wordpiece.cls_token_id).all()
    assert (found.ids.reshape(-1, 32)[:, -1] == wordpiece.sep_token_id).all()
    assert (found.ids == wordpiece.unk_token_id).sum() >= 80  # <unk> is the tokenizer's own unknown word
    words = wordpiece.decode(found.ids[:32], skip_special_tokens=True)
    assert words.startswith("line 0 of the text line 1 of the text")
    lines = encode_corpus(learnt, wordpiece, layout="lines", max_length=32)
    assert len(lines) == 95
    batch = next(iter(batches(lines, batch_size=8, rng=np.random.default_rng(0))))
    assert batch.inputs["input_ids"].shape[1] < 12


def test_too_short_a_text_is_refused(tmp_path: Path, wordpiece: Any) -> None:
    file = tmp_path / "text.txt"
    file.write_text("only\nfew words")
    learnt, _ = read_corpus(file, None)
    with pytest.raises(BadInput, match="shorter than one row of --max-length 128"):
        encode_corpus(learnt, wordpiece, layout="packed", max_length=128)
    file.write_text("one line")
    with pytest.raises(BadInput, match="one line; give more text"):
        read_corpus(file, None)
    with pytest.raises(BadInput, match="plain text"):
        read_corpus(tmp_path / "text.csv", None)


@pytest.mark.parametrize("name", TOKENIZER_TRAINERS)
def test_made_tokenizers_read_their_text_and_survive_saving(name: str, tmp_path: Path) -> None:
    lines = ["the cat sat on the mat .", "a dog was there <unk> too"] * 20
    made = train_tokenizer(name, lines, 400)
    ids = made("the cat was there", add_special_tokens=False)["input_ids"]
    assert made.unk_token_id not in ids
    assert "".join(made.decode(ids).split()) == "thecatwasthere"
    made.save_pretrained(tmp_path)
    assert made.get_vocab() == read_tokenizer(str(tmp_path)).get_vocab()
    assert made.get_vocab() != train_tokenizer(name, ["other words here"] * 20, 400).get_vocab()
    assert None not in (made.cls_token_id, made.sep_token_id)
    with pytest.raises(BadInput, match="--vocabulary must be at least"):
        train_tokenizer(name, lines, 10)


def test_the_most_frequent_words_stay() -> None:
    lines = [f"common word{n}" for n in range(400)]
    made = train_tokenizer("words", lines, 300)
    assert len(made) == 300
    assert made.convert_tokens_to_ids("common") != made.unk_token_id


def test_gpt2_files_of_the_first_release(data_dir: Path, bpe: Any) -> None:
    ours = gpt2_tokenizer(data_dir / "gpt2-bpe")
    assert ours("Hello world, it's 2024.")["input_ids"] == bpe("Hello world, it's 2024.")["input_ids"]
    assert ours.pad_token_id == ours.eos_token_id == 50256
    assert ours.get_vocab() == read_tokenizer(str(data_dir / "gpt2-bpe")).get_vocab()
    with pytest.raises(BadInput, match="there is no file"):
        gpt2_tokenizer(data_dir / "glue")
