"""Data sets by name, with a stand-in for the `datasets` library."""

from types import SimpleNamespace
from typing import Any

import pytest

from archwright.data.tasks.task import load_task
from archwright.errors import BadInput


class Split(list[dict[str, Any]]):
    """What of a `datasets` split the room uses."""

    def __init__(self, rows: list[dict[str, Any]], names: list[str] | None) -> None:
        super().__init__(rows)
        self.features = {"text": object(), "label": SimpleNamespace(names=names) if names else object()}

    def __getitem__(self, column: Any) -> Any:
        return [row[column] for row in self]


def split(rows: int, *, names: list[str] | None = None, label: int | None = None) -> Split:
    return Split([{"text": f"text {i}", "label": i % 2 if label is None else label} for i in range(rows)], names)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `load_dataset` answers (an exception is raised), and what it was asked."""
    memory: dict[str, Any] = {}

    def load_dataset(name: str, config: str | None) -> Any:
        memory["call"] = (name, config)
        if isinstance(memory["answer"], Exception):
            raise memory["answer"]
        return memory["answer"]

    monkeypatch.setattr(
        "archwright.data.tasks.hub.import_module", lambda name: SimpleNamespace(load_dataset=load_dataset)
    )
    return memory


NAMES = ["wrong", "right"]


def test_names_configs_and_hidden_test_labels(asked: dict[str, Any]) -> None:
    hidden = split(8, names=NAMES, label=-1)
    asked["answer"] = {"train": split(40, names=NAMES), "validation": split(20, names=NAMES), "test": hidden}
    task = load_task("hf:someone/some-set:part")
    assert asked["call"] == ("someone/some-set", "part")
    assert task.name == "hf:someone/some-set:part" and task.labels == ("wrong", "right")
    assert [len(rows) for rows in task.splits.values()] == [28, 12, 20]
    assert task.splits["test"].targets.tolist() == [0, 1] * 10
    assert "the split 'validation' is the test set" in task.note


def test_three_splits_are_taken_as_they_are(asked: dict[str, Any]) -> None:
    asked["answer"] = {"train": split(40), "test": split(8), "validation": split(6)}
    task = load_task("hf:set")
    assert asked["call"] == ("set", None)
    assert [len(rows) for rows in task.splits.values()] == [40, 6, 8]
    assert task.labels == ("0", "1") and "split" not in task.note


def test_train_alone(asked: dict[str, Any]) -> None:
    asked["answer"] = {"train": split(40)}
    assert [len(rows) for rows in load_task("hf:set").splits.values()] == [28, 6, 6]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (FileNotFoundError("no such set\nsecond line"), "cannot load hf:set: 'no such set'; check the name"),
        (ValueError(""), "cannot load hf:set: 'ValueError'"),
        ({"test": split(10)}, "needs a split 'train', it has 'test'"),
        ({"train": split(0)}, "hf:set split 'train' has no rows"),
        ({"train": split(20, names=NAMES, label=-1)}, "has rows without a label; its classes are 'wrong', 'right'"),
        ({"train": Split([{"sentence": "a", "label": 1}], None)}, "has no column 'text'; it has 'sentence', 'label'"),
        ({"train": Split([{"text": None, "label": 1}], None)}, "'text' must be a text, got None"),
        ({"train": Split([{"text": "a", "label": None}], None)}, "line 1 of hf:set split 'train' has no label"),
        ({"train": Split([{"text": "a", "label": [1]}], None)}, "must have two labels or more, got '1'"),
    ],
)
def test_bad_sets(asked: dict[str, Any], answer: Any, line: str) -> None:
    asked["answer"] = answer
    with pytest.raises(BadInput, match=line) as caught:
        load_task("hf:set")
    assert "\n" not in str(caught.value)


def test_lists_of_words_and_lists_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    names = datasets.Sequence(datasets.ClassLabel(names=["O", "B-x"]))
    words = datasets.Sequence(datasets.Value("string"))
    tagged = datasets.Dataset.from_dict(
        {"tokens": [["a", f"b{n}"] for n in range(20)], "ner_tags": [[0, 1]] * 20},
        features=datasets.Features({"tokens": words, "ner_tags": names}),
    )
    sets = datasets.Dataset.from_dict({"text": [f"text {n}" for n in range(20)], "labels": [["u"], ["u", "v"]] * 10})
    splits = {"train": tagged, "dev": tagged}
    monkeypatch.setattr("archwright.data.tasks.hub.load_splits", lambda name: splits)
    task = load_task("hf:names")
    assert (task.kind, task.labels, len(task.splits["test"])) == ("tokens", ("O", "B-x"), 20)
    assert "the split 'dev' is the test set" in task.note
    splits = {"train": sets, "validation": sets, "test": sets}
    task = load_task("hf:sets")
    assert (task.kind, task.labels, len(task.splits["train"])) == ("multi-label", ("u", "v"), 20)
