"""Language modelling: the tokens of the whole text, in blocks, each token's target the next one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.data.batching import batches, encode, evaluation_batches
from archwright.data.tasks.passages import Passage
from archwright.data.tasks.task import Task, load_task
from archwright.data.text.corpus import tokenize_text
from archwright.errors import BadInput

LINES = [f"line {n} of a text that goes on and on" for n in range(100)]


def lm(folder: Path, content: str = "\n".join(LINES), name: str = "t.txt", **options: Any) -> Task:
    (folder / name).write_bytes(content.encode())
    return load_task("lm", train=folder / name, **options)


def one_call(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return ids


@pytest.fixture(scope="session", params=["wordpiece", "bpe"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_the_pieces_of_a_real_text_are_its_tokens(
    tokenizer: Any, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (data_dir / "wikitext-2" / "test.txt").read_text(encoding="utf-8")[:300_000]
    monkeypatch.setattr("archwright.data.text.corpus.PIECE", 10_007)
    assert tokenize_text(text, tokenizer).tolist() == one_call(tokenizer, text)


@settings(deadline=None, max_examples=40)
@given(st.text(alphabet=st.sampled_from("ab .,\n\t'é日🙂\u0301-7"), min_size=1, max_size=400), st.integers(20, 60))
def test_the_pieces_of_any_text_are_its_tokens(tokenizer: Any, text: str, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("archwright.data.text.corpus.PIECE", piece)
        assert tokenize_text(text, tokenizer).tolist() == one_call(tokenizer, text)


def test_blocks_of_real_text(tokenizer: Any, data_dir: Path, tmp_path: Path) -> None:
    files = {"train": tmp_path / "valid.txt", "validation": tmp_path / "test.txt", "test": tmp_path / "test.txt"}
    for path in files.values():
        path.write_bytes((data_dir / "wikitext-2" / path.name).read_bytes()[:100_000])
    task = load_task("lm", **files, train_rows=50, validation_rows=20)
    assert (task.kind, task.metric, task.labels, task.note) == ("lm", "perplexity", (), "")
    encoded = encode(task.splits["test"], tokenizer, max_length=64)
    tokens = one_call(tokenizer, files["test"].read_text(encoding="utf-8"))
    assert len(encoded) == encoded.rows == len(tokens) // 64 and set(encoded.lengths) == {64}
    assert encoded.ids.tolist() == tokens[: len(tokens) // 64 * 64]
    assert encoded.median_length == 64
    seen = []
    for batch in evaluation_batches(encoded, tokens=1024):
        ids = batch.inputs["input_ids"]
        assert set(batch.inputs) == {"input_ids", "attention_mask"} and bool(
            (batch.inputs["attention_mask"] == 1).all()
        )
        assert ids.shape == batch.targets.shape == (len(ids), 64) and len(ids) <= 16
        assert (batch.targets[:, :-1] == ids[:, 1:]).all() and (batch.targets[:, -1] == -100).all()
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(len(encoded)))
    assert len(encode(task.splits["train"], tokenizer, max_length=64)) == 50
    assert len(encode(task.splits["validation"], tokenizer, max_length=64)) == 20


def test_limits_take_random_blocks_and_a_larger_part_contains_the_smaller(tmp_path: Path, wordpiece: Any) -> None:
    def blocks(**options: Any) -> list[tuple[int, ...]]:
        encoded = encode(lm(tmp_path, **options).splits["train"], wordpiece, max_length=10)
        return [tuple(row) for row in encoded.ids.reshape(-1, 10).tolist()]

    whole, small, again, larger, other = (
        blocks(),
        blocks(train_rows=5),
        blocks(train_rows=5),
        blocks(train_rows=9),
        blocks(train_rows=5, seed=1),
    )
    assert len(small) == 5 and small == again and set(small) < set(larger) < set(whole)
    assert small != whole[:5] and small != other
    assert blocks(train_rows=10**6) == whole


def test_training_batches_are_shuffled_blocks(tmp_path: Path, wordpiece: Any) -> None:
    encoded = encode(lm(tmp_path).splits["train"], wordpiece, max_length=16)
    made = list(batches(encoded, batch_size=4, rng=np.random.default_rng(0)))
    order = [row for batch in made for row in batch.rows.tolist()]
    assert order != sorted(order) == list(range(len(encoded)))


def test_one_file_is_cut_in_order_at_line_ends(tmp_path: Path) -> None:
    task = lm(tmp_path, seed=3)
    texts = [task.splits[split].text for split in ("train", "validation", "test")]
    assert "".join(texts) == "\n".join(LINES)
    assert all(text.startswith("line ") for text in texts) and texts[0].endswith("\n")
    shares = [len(text) / sum(map(len, texts)) for text in texts]
    assert np.allclose(shares, [0.7, 0.15, 0.15], atol=0.02)
    assert task.note == "train split 70/15/15 into train, validation, test in the order of the text"


def test_a_validation_file_alone_chooses(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("held out\n" * 50)
    task = lm(tmp_path, validation=tmp_path / "v.txt")
    assert task.splits["validation"].text.startswith("held out") and "85/15 into train, test" in task.note


def test_one_held_out_file_is_the_test_set_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("held out\n" * 50)
    by_validation = lm(tmp_path, validation=tmp_path / "v.txt", validation_role="test")
    by_test = lm(tmp_path, test=tmp_path / "v.txt")
    for task in (by_validation, by_test):
        assert task.splits["test"].text.startswith("held out")
        assert "70/30 into train, validation" in task.note
    assert "the validation file is the test set" in by_validation.note
    assert "test set" not in by_test.note


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "w.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(LINES).encode())
    task = load_task("lm", train=tmp_path / "w.txt")
    assert "".join(part.text for part in task.splits.values()) == "\n".join(LINES)


def test_the_errors_scale_is_a_share_of_guessing(tmp_path: Path) -> None:
    from dataclasses import replace

    task = replace(lm(tmp_path), vocabulary=1000)
    assert task.scale_error(1000.0) == pytest.approx(1.0)
    assert task.scale_error(10.0) == pytest.approx(1 / 3)
    assert task.scale_error(1.0) == 0.0
    assert task.unscale_error(task.scale_error(1e43)) == pytest.approx(1e43)


@pytest.mark.parametrize(
    ("content", "name", "options", "line"),
    [
        ("", "t.txt", {}, "t.txt is empty; language modelling needs text"),
        (" \n \n", "t.txt", {}, "t.txt is empty"),
        ("text,label\na,b", "t.csv", {}, "lm reads plain text, a file that ends in .txt, .text, .raw, .tokens; got"),
        ("text", "t.txt", {"label_column": "class"}, "lm has no columns of texts and labels; leave out"),
        ("text", "t.txt", {"text_column": "x"}, "lm has no columns"),
        ("text", "t.txt", {"choice_columns": ("a", "b")}, "lm has no columns"),
        ("text", "t.txt", {"regression": False}, "lm has no columns"),
        ("text", "t.txt", {"data": Path("x")}, "takes no --data"),
        ("text", "t.txt", {"validation": Path("nowhere.txt")}, "there is no file 'nowhere.txt'"),
    ],
)
def test_bad_input_is_one_clear_line(
    tmp_path: Path, content: str, name: str, options: dict[str, Any], line: str
) -> None:
    with pytest.raises(BadInput, match=line) as caught:
        lm(tmp_path, content, name, **options)
    assert "\n" not in str(caught.value)


def test_without_a_file() -> None:
    with pytest.raises(BadInput, match="lm needs a text file with --train"):
        load_task("lm")
    with pytest.raises(BadInput, match="lm needs a text file with --train"):
        load_task("lm", validation=Path("v.txt"))


def test_latin_1(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("caf\xe9".encode("latin-1"))
    with pytest.raises(BadInput, match="must be UTF-8"):
        load_task("lm", train=tmp_path / "t.txt")


def test_plain_text_without_lm_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("text")
    with pytest.raises(BadInput, match="plain text is for --task lm"):
        load_task(train=tmp_path / "t.txt")


def test_a_text_shorter_than_a_block(tmp_path: Path, wordpiece: Any) -> None:
    task = lm(tmp_path, "one two three four five six seven eight nine ten\n" * 3)
    with pytest.raises(BadInput, match=r"t.txt \(test part\) has 0 tokens, less than one block of --max-length 16"):
        encode(task.splits["test"], wordpiece, max_length=16)
    assert len(encode(Passage("x", "one two three four"), wordpiece, max_length=4)) == 1
    with pytest.raises(BadInput, match="x has 4 tokens, less than one block of --max-length 5; give more text"):
        encode(Passage("x", "one two three four"), wordpiece, max_length=5)


@pytest.mark.parametrize("length", [-1, 0, 1, 513])
def test_lengths_that_are_no_block(wordpiece: Any, length: int) -> None:
    with pytest.raises(BadInput, match=f"--max-length must be 2 to 512 for this tokenizer, got {length}"):
        encode(Passage("x", "one two three"), wordpiece, max_length=length)


def test_a_tokenizer_without_a_longest_length(bpe: Any) -> None:
    assert len(encode(Passage("x", "one two " * 2000), bpe, max_length=2000)) == 2
    with pytest.raises(BadInput, match="--max-length must be at least 2 for this tokenizer, got 1"):
        encode(Passage("x", "one two three"), bpe, max_length=1)
