"""Sentences with tags: files of words and tags, tables with lists, and which token has the tag of a word."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from archwright.data.batching import batch_of, evaluation_batches
from archwright.data.encoding import NO_TARGET
from archwright.data.tasks.sentences import Sentences
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

SENTENCES = [
    (["Ann", "lives", "in", "New", "York", "."], ["B-PER", "O", "O", "B-LOC", "I-LOC", "O"]),
    (["unbelievably", ",", "Bob", "left"], ["O", "O", "B-PER", "O"]),
] * 8
TAGS = ("B-LOC", "B-PER", "I-LOC", "O")


def conll(path: Path, separator: str = "\t", *, middle: bool = False, extra: str = "") -> Path:
    lines = [extra]
    for words, tags in SENTENCES:
        columns = [[word, *(["NN", "x"] if middle else []), tag] for word, tag in zip(words, tags, strict=True)]
        lines += ["\n".join(separator.join(row) for row in columns) + "\n\n"]
    path.write_text("".join(lines))
    return path


def jsonl(path: Path, names: tuple[str, str] = ("tokens", "ner_tags")) -> Path:
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in SENTENCES))
    return path


def gzipped(path: Path) -> Path:
    path.write_bytes(gzip.compress(conll(path.with_suffix("")).read_bytes()))
    return path


def saved_dataset(path: Path, *, parquet: bool = False) -> Path:
    import datasets

    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=["O", *TAGS[:3]])),
        }
    )
    rows = {"tokens": [words for words, _ in SENTENCES], "ner_tags": [tags for _, tags in SENTENCES]}
    data = datasets.Dataset.from_dict(rows, features=features)
    if parquet:
        data.to_parquet(path)
    else:
        data.save_to_disk(path)
    return path


FILES: dict[str, Any] = {
    "rows.conll": conll,
    "rows.bio": lambda path: conll(path, " "),
    "four.iob2": lambda path: conll(path, " ", middle=True),
    "documents.conll": lambda path: conll(path, " ", middle=True, extra="-DOCSTART- -X- -X- O\n\n"),
    "comments.conll": lambda path: conll(path, extra="# id = 1\n"),
    "rows.jsonl": jsonl,
    "named.jsonl": lambda path: jsonl(path, ("words", "tags")),
    "rows.conll.gz": gzipped,
}


def words_of(task: Any) -> list[tuple[list[str], list[str]]]:
    """All sentences of the task as the file had them, in any order."""
    rows = [rows for rows in task.splits.values() if isinstance(rows, Sentences)]
    pairs = [
        (words, [task.labels[tag] for tag in tags]) for r in rows for words, tags in zip(r.words, r.tags, strict=True)
    ]
    return sorted(pairs)


@pytest.mark.parametrize("name", FILES)
def test_files_are_recognised(name: str, tmp_path: Path) -> None:
    task = load_task(train=FILES[name](tmp_path / name))
    assert (task.kind, task.metric, task.labels) == ("tokens", "entity_f1", TAGS)
    assert "entity F1" in task.note
    assert words_of(task) == sorted(SENTENCES)
    assert not task.numbered


@pytest.mark.parametrize("name", ["folder", "rows.parquet"])
def test_classes_that_the_data_declares_keep_their_order(name: str, tmp_path: Path) -> None:
    task = load_task(train=saved_dataset(tmp_path / name, parquet="." in name))
    assert task.labels == ("O", *TAGS[:3]) and task.numbered
    assert words_of(task) == sorted(SENTENCES)


def test_plain_text_files_when_asked_for_by_name(tmp_path: Path) -> None:
    for name in ("rows.txt", "rows.tsv"):
        assert words_of(load_task("tokens", train=conll(tmp_path / name))) == sorted(SENTENCES)


def test_tags_without_prefixes_are_judged_word_by_word(tmp_path: Path) -> None:
    path = tmp_path / "pos.conll"
    path.write_text("the DET\ncat NOUN\nsleeps VERB\n\n" * 20)
    task = load_task(train=path)
    assert task.metric == "token_accuracy" and "mark no spans" in task.note


def test_repeated_sentences_stay_together(tmp_path: Path) -> None:
    task = load_task(train=conll(tmp_path / "rows.conll"), split="random")
    assert {len(rows) for rows in task.splits.values()} == {12, 2}
    lines = [f"word{n} other{n} more{n} again{n} {n}".split() for n in range(40)]
    path = tmp_path / "distinct.jsonl"
    path.write_text("".join(json.dumps({"tokens": x, "tags": ["B-x", *["O"] * 4]}) + "\n" for x in lines + lines))
    parts = [set(rows.texts) for rows in load_task(train=path).splits.values() if isinstance(rows, Sentences)]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_a_checkpoint_may_know_more_tags(tmp_path: Path) -> None:
    names = ("O", "B-MISC", "I-MISC", "b-per", "B-LOC", "I-LOC")
    task = load_task(train=conll(tmp_path / "rows.conll"), labels=names)
    assert task.labels == names
    assert {tag.upper() for _, tags in words_of(task) for tag in tags} == set(TAGS)
    with pytest.raises(BadInput, match="must be among 'O', 'B-PER', got 'B-LOC', 'I-LOC'"):
        load_task(train=conll(tmp_path / "rows.conll"), labels=("O", "B-PER"))


BAD = {
    "one column": ("rows.conll", "Ann\nlives\n\n", "line 1 of .* must hold a word and its tag in 2 columns"),
    "more columns": ("rows.conll", "Ann O\nin New O\n\n", "line 2 of .* in 2 columns, got 'in New O'"),
    "one tag": ("rows.conll", "Ann O\n\n" * 12, "only the tag 'O'; two are needed"),
    "few": ("rows.conll", "Ann B-PER\nis O\n\n", "1 sentences; at least 10 are needed"),
    "lengths": ("rows.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n', "got 2 words and 1 tags"),
    "empty": ("rows.jsonl", '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": [], "tags": []}\n', "line 2 .* --skip-empty"),
    "number": ("rows.jsonl", '{"tokens": [1], "tags": ["O"]}\n', "must hold words, got 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    file, content, message = BAD[name]
    (tmp_path / file).write_text(content)
    with pytest.raises(BadInput, match=message):
        load_task(train=tmp_path / file)


def test_options_of_other_tasks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="leave out --text-pair-column"):
        load_task(train=conll(tmp_path / "rows.conll"), text_pair_column="other")
    with pytest.raises(BadInput, match="--train"):
        load_task("tokens")


def byte_pairs(*, trim: bool) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer that knows single characters, with or without the blank before a word in its offsets."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({letter: n for n, letter in enumerate(["<pad>", *letters])}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=trim)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", model_max_length=64)


def tagged_tokens(sentences: Sentences, tokenizer: Any, max_length: int = 32) -> list[list[tuple[str, int]]]:
    encoded = sentences.encode(tokenizer, max_length)
    rows = []
    for row in range(len(encoded)):
        ids = encoded.ids[encoded.offsets[row] : encoded.offsets[row + 1]]
        targets = encoded.targets[row][: len(ids)]
        assert (encoded.targets[row][len(ids) :] == NO_TARGET).all()
        pairs = zip(tokenizer.convert_ids_to_tokens(ids), targets.tolist(), strict=True)
        rows.append([(token, tag) for token, tag in pairs if tag != NO_TARGET])
    return rows


def test_the_first_piece_has_the_tag(minilm: Path) -> None:
    words = [["Bob", "antidisestablishes", "U.S.", "x"], ["don't", "go"]]
    sentences = Sentences(words, [np.array([3, 1, 2, 0]), np.array([1, 2])])
    found = tagged_tokens(sentences, AutoTokenizer.from_pretrained(minilm))
    assert found == [[("bob", 3), ("anti", 1), ("u", 2), ("x", 0)], [("don", 1), ("go", 2)]]


@pytest.mark.parametrize("trim", [True, False])
def test_byte_level_tokens_that_begin_with_a_blank(trim: bool) -> None:
    sentences = Sentences([["ab", "c", "é", "d"]], [np.array([4, 3, 2, 1])])
    found = tagged_tokens(sentences, byte_pairs(trim=trim))
    assert [tag for _, tag in found[0]] == [4, 3, 2, 1]
    assert found[0][0][0] == "a" and len(found[0]) == 4


def test_blank_words_and_words_behind_the_end_have_no_target(minilm: Path, caplog: pytest.LogCaptureFixture) -> None:
    sentences = Sentences([["one", " ", "two", *["three"] * 10]], [np.arange(13)])
    found = tagged_tokens(sentences, AutoTokenizer.from_pretrained(minilm), max_length=6)
    assert [tag for _, tag in found[0]] == [0, 2, 3, 4]
    assert "9 of 13 words have no token" in caplog.text


def test_batches_are_cut_to_their_longest_row(minilm: Path) -> None:
    sentences = Sentences([["a"], ["b", "c", "d"]], [np.array([1]), np.array([0, 1, 2])])
    encoded = sentences.encode(AutoTokenizer.from_pretrained(minilm), 16)
    one, both = batch_of(encoded, np.array([0])), batch_of(encoded, np.array([1, 0]))
    assert one.targets.tolist() == [[-100, 1, -100]]
    assert both.targets.tolist() == [[-100, 0, 1, 2, -100], [-100, 1, -100, -100, -100]]
    assert both.asked is not None and both.asked.sum() == 4
    assert sum(len(batch.rows) for batch in evaluation_batches(encoded.take(np.array([1, 0])), tokens=4)) == 2
