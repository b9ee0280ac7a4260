"""Which class is which in a checkpoint's own head, whether it is kept, and tokenizers that are not the model's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoConfig, AutoTokenizer, BertConfig, BertForTokenClassification

from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.training.task_data import TaskData, load_task_data
from tests.compression.runs import saved_model, table_file

UNNAMED = {0: "LABEL_0", 1: "LABEL_1"}


def load(model: Path, train: Path, *, tokenizer: Path | None = None, **data: Any) -> TaskData:
    words = None if tokenizer is None else str(tokenizer)
    return load_task_data(o.ModelOptions(model=str(model), tokenizer=words), o.DataOptions(train=train, **data), seed=0)


@pytest.fixture
def unnamed(tmp_path: Path, minilm: Path) -> Path:
    return saved_model(tmp_path / "unnamed", minilm, head=UNNAMED)


def targets(data: TaskData) -> list[int]:
    rows = data.task.splits["train"]
    return list(rows.targets.tolist())  # type: ignore[attr-defined]


def test_classes_without_names_are_never_guessed(tmp_path: Path, unnamed: Path) -> None:
    with pytest.raises(BadInput, match="LABEL_0, LABEL_1 and the rows theirs 'bad', 'good'; say with --labels"):
        load(unnamed, table_file(tmp_path / "rows.csv"))


def test_labels_says_which_is_which(tmp_path: Path, unnamed: Path) -> None:
    rows = table_file(tmp_path / "rows.csv")
    first, second = (load(unnamed, rows, labels=order) for order in (("good", "bad"), ("bad", "good")))
    assert first.task.labels == ("good", "bad") and first.head.trained
    assert first.head.note == "head recognised (good = 0, bad = 1)"
    assert [1 - target for target in targets(first)] == targets(second)


def test_numbers_are_those_of_the_outputs(tmp_path: Path, unnamed: Path) -> None:
    data = load(unnamed, table_file(tmp_path / "rows.csv", labels=("0", "1")))
    assert data.head.trained and data.task.labels == ("0", "1")


def test_a_new_head_on_request(tmp_path: Path, unnamed: Path) -> None:
    data = load(unnamed, table_file(tmp_path / "rows.csv"), head="new")
    assert not data.head.kept and not data.head.trained and "--head new" in data.head.note


def test_names_keep_the_spelling_of_the_checkpoint(tmp_path: Path, minilm: Path) -> None:
    model = saved_model(tmp_path / "model", minilm, head={0: "GOOD", 1: "BAD"})
    data = load(model, table_file(tmp_path / "rows.csv"))
    assert data.task.labels == ("GOOD", "BAD") and data.head.trained


def test_labels_that_contradict_the_checkpoint_are_refused(tmp_path: Path, minilm: Path) -> None:
    model = saved_model(tmp_path / "model", minilm, head={0: "GOOD", 1: "BAD"})
    with pytest.raises(BadInput, match="--labels must be in the order of the checkpoint's own classes, 'GOOD', 'BAD'"):
        load(model, table_file(tmp_path / "rows.csv"), labels=("bad", "good"))


def test_labels_that_the_rows_do_not_have_are_refused(tmp_path: Path, unnamed: Path) -> None:
    with pytest.raises(BadInput, match="'happy'"):
        load(unnamed, table_file(tmp_path / "rows.csv"), labels=("happy", "sad"))


@pytest.mark.parametrize(
    ("head", "change", "note"),
    [
        ({0: "spam", 1: "ham"}, {}, "the checkpoint's head is for 'spam', 'ham', not for 'bad', 'good'"),
        ({0: "a", 1: "b", 2: "c"}, {}, "is for classification with 3 outputs, not for classification with 2 classes"),
        (UNNAMED, {"problem_type": "multi_label_classification"}, "is for multi-label classification (--task"),
    ],
    ids=["names", "number", "multi-label"],
)
def test_a_foreign_head_is_named_before_it_is_replaced(
    tmp_path: Path, minilm: Path, head: dict[int, str], change: dict[str, Any], note: str
) -> None:
    model = saved_model(tmp_path / "model", minilm, head=head)
    config = AutoConfig.from_pretrained(model)
    config.update(change)
    config.save_pretrained(model)
    data = load(model, table_file(tmp_path / "rows.csv"))
    assert note in data.head.note and data.head.note.endswith("a new one is trained") and not data.head.kept


def test_token_classification_is_named(tmp_path: Path, minilm: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    small = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
    config = BertConfig(vocab_size=len(tokenizer), num_labels=9, **small)
    BertForTokenClassification(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    data = load(tmp_path / "model", table_file(tmp_path / "rows.csv"))
    assert "token classification (--task tokens) with 9 outputs" in data.head.note and not data.head.kept


def test_a_head_for_several_labels_is_recognised(tmp_path: Path, minilm: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    sets = (["bad"], ["good", "long"], [], ["bad", "long"])
    rows.write_text("".join(json.dumps({"text": f"film {n}", "labels": sets[n % 4]}) + "\n" for n in range(80)))
    model = saved_model(tmp_path / "model", minilm, head={0: "LONG", 1: "good", 2: "bad", 3: "never"})
    foreign = load(model, rows)
    assert not foreign.head.kept and "is for classification with 4 outputs" in foreign.head.note
    config = AutoConfig.from_pretrained(model)
    config.update({"problem_type": "multi_label_classification"})
    config.save_pretrained(model)
    data = load(model, rows)
    assert data.head.trained and data.task.labels == ("LONG", "good", "bad", "never")


TAGS = ("O", "B-x", "I-x", "B-y")


def tagged(folder: Path, minilm: Path, names: tuple[str, ...] | None) -> Path:
    """A random checkpoint with a head for these tags, or for four without names."""
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    small = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
    ids = dict(enumerate(names or ()))
    labels = {"id2label": ids, "label2id": {name: i for i, name in ids.items()}} if names else {"num_labels": 4}
    BertForTokenClassification(BertConfig(vocab_size=len(tokenizer), **small, **labels)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def sentences(path: Path, tags: tuple[str, ...]) -> Path:
    path.write_text("".join(f"a {tags[0]}\nword{n} {tags[1 + n % (len(tags) - 1)]}\n\n" for n in range(40)))
    return path


def test_a_head_for_the_same_tags_is_recognised_in_any_order(tmp_path: Path, minilm: Path) -> None:
    names = ("i-x", "O", "B-y", "B-x")
    data = load(tagged(tmp_path / "model", minilm, names), sentences(tmp_path / "rows.conll", TAGS))
    assert data.head.trained and data.task.labels == names and data.task.metric == "entity_f1"
    row = data.task.splits["train"].take(np.array([0]))  # type: ignore[attr-defined]
    assert row.tags[0][0] == names.index("O")


def test_rows_may_lack_tags_that_the_head_has(tmp_path: Path, minilm: Path) -> None:
    data = load(tagged(tmp_path / "model", minilm, (*TAGS, "I-y")), sentences(tmp_path / "rows.conll", TAGS[:3]))
    assert data.head.trained and data.task.labels == (*TAGS, "I-y") and data.task.metric == "entity_f1"


def test_a_head_for_other_tags_is_replaced(tmp_path: Path, minilm: Path) -> None:
    data = load(tagged(tmp_path / "model", minilm, ("O", "B-z", "I-z", "B-q")), sentences(tmp_path / "r.conll", TAGS))
    assert not data.head.kept and "is for 'O', 'B-z'" in data.head.note


def test_tags_without_names_are_never_guessed(tmp_path: Path, minilm: Path) -> None:
    model, rows = tagged(tmp_path / "model", minilm, None), sentences(tmp_path / "rows.conll", TAGS)
    with pytest.raises(BadInput, match="say with --labels which is which"):
        load(model, rows)
    data = load(model, rows, labels=TAGS)
    assert data.head.trained and data.task.labels == TAGS
    with pytest.raises(BadInput, match="must be among 'O', 'B-x'"):
        load(model, rows, labels=("O", "B-x"))
    fewer = sentences(tmp_path / "few.conll", TAGS[:2])
    with pytest.raises(BadInput, match="--labels must name all 4 outputs"):
        load(model, fewer, labels=("O", "B-x"))


def test_a_folder_without_tokenizer_is_refused_and_another_one_helps(tmp_path: Path, minilm: Path) -> None:
    model, rows = saved_model(tmp_path / "model", minilm), table_file(tmp_path / "rows.csv")
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        (model / file).unlink(missing_ok=True)
    with pytest.raises(BadInput, match="tokenizer"):
        load(model, rows)
    assert len(load(model, rows, tokenizer=minilm).tokenizer) > 30_000


def test_a_tokenizer_that_knows_no_word_of_the_texts_is_refused(tmp_path: Path, minilm: Path) -> None:
    model, rows = saved_model(tmp_path / "model", minilm), tmp_path / "rows.csv"
    lines = [f"{'ꙮ ' * 6},{('bad', 'good')[i % 2]}" for i in range(90)]
    rows.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    with pytest.raises(BadInput, match="must know the texts: 100% of the training tokens are unknown"):
        load(model, rows)


def test_a_tokenizer_of_a_larger_model_is_refused(tmp_path: Path, minilm: Path) -> None:
    model, rows = saved_model(tmp_path / "model", minilm), table_file(tmp_path / "rows.csv")
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    tokenizer.add_tokens(["zorblax"])
    tokenizer.save_pretrained(tmp_path / "larger")
    rows.write_text("text,label\n" + "\n".join(f"a zorblax film {i},{('bad', 'good')[i % 2]}" for i in range(90)))
    with pytest.raises(BadInput, match="it writes the token 30,522, the model has 30,522 word vectors"):
        load(model, rows, tokenizer=tmp_path / "larger")
