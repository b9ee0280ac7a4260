"""Multiple choice: what labels mean, how rows become rows x choices x time, and one clear line for what is wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.data.batching import batches, encode, evaluation_batches
from archwright.data.tasks.task import Task, load_task
from archwright.errors import BadInput
from tests.data.generated import COLUMNS, choice_rows, write_choices

Row = dict[str, object]


def own(folder: Path, rows: list[Row], **options: object) -> Task:
    path = folder / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return load_task(train=path, **{"choice_columns": COLUMNS, **options})


def right_texts(task: Task) -> list[str]:
    """The choice that each row's target points to."""
    rows = task.splits["train"]
    return [rows.choices[target][row] for row, target in enumerate(rows.targets)]


def test_a_generated_file(tmp_path: Path) -> None:
    task = load_task(train=write_choices(tmp_path / "c.csv", 40), choice_columns=COLUMNS)
    assert (task.kind, task.metric, task.labels, task.regression) == ("choice", "accuracy", (), False)
    assert [len(rows) for rows in task.splits.values()] == [28, 6, 6]
    for rows in task.splits.values():
        for row, text in enumerate(rows.texts):
            thing = text.split()[-1]
            assert [thing in column[row] for column in rows.choices] == [n == rows.targets[row] for n in range(4)]


def relabelled(label: Any) -> list[Row]:
    return [{**row, "label": label(row)} for row in choice_rows(30)]


@pytest.mark.parametrize(
    "label",
    [
        lambda row: int(row["label"]),
        lambda row: COLUMNS[int(row["label"])],
        lambda row: row[COLUMNS[int(row["label"])]],
        lambda row: f"  {row[COLUMNS[int(row['label'])]]} ",
    ],
    ids=["position", "column", "text", "text with blanks"],
)
def test_all_ways_to_write_a_label_mean_the_same(tmp_path: Path, label: Any) -> None:
    expected = right_texts(own(tmp_path, choice_rows(30)))
    assert right_texts(own(tmp_path, relabelled(label))) == expected


def test_columns_named_by_numbers_count_as_names(tmp_path: Path) -> None:
    rows = [
        {"text": row["text"], "label": str(int(row["label"]) + 1)} | {str(n + 1): row[c] for n, c in enumerate(COLUMNS)}
        for row in choice_rows(40)
    ]
    assert {row["label"] for row in rows} == {"1", "2", "3", "4"}
    task = own(tmp_path, rows, choice_columns=("1", "2", "3", "4"))
    assert right_texts(task) == right_texts(own(tmp_path, choice_rows(40)))


def test_labels_that_could_mean_two_things_are_refused(tmp_path: Path) -> None:
    rows = [{"text": f"{n} + 0", "a": "1", "b": "0", "c": "5", "d": "7", "label": str(n % 2)} for n in range(20)]
    with pytest.raises(BadInput, match="could be positions, column names or texts of choices, with different answers"):
        own(tmp_path, rows)


def test_a_position_is_fine_when_two_choices_read_the_same(tmp_path: Path) -> None:
    rows = [{"text": "t", "a": "same", "b": "same", "c": "x", "d": "y", "label": n % 4} for n in range(20)]
    assert own(tmp_path, rows).kind == "choice"


def wrong(**changes: object) -> list[Row]:
    """Twenty good rows, the third with these changes; a value of None removes the column."""
    rows: list[Row] = [*choice_rows(20)]
    rows[2] = {key: value for key, value in {**rows[2], **changes}.items() if value is not None}
    return rows


RULE = r"row 3 of .*: a label must be 0 to 3, a column \('a', 'b', 'c', 'd'\) or the text of one of the row's choices"


@pytest.mark.parametrize(
    ("rows", "options", "line"),
    [
        (wrong(label="4"), {}, RULE + r", got '4' \(1 such rows\)"),
        (wrong(label=-1), {}, RULE + ", got '-1'"),
        (wrong(label="1.0"), {}, RULE + ", got '1.0'"),
        (wrong(label="a house"), {}, RULE),
        (wrong(label=None), {}, "line 3 of .* has no column 'label'"),
        (wrong(c=None), {}, "line 3 of .* has no column 'c'; it has"),
        (wrong(c="  "), {}, "line 3 of .* has no text in 'c'"),
        (wrong(c=7), {}, "'c' must be a text, got 7"),
        (choice_rows(9), {}, "has 9 rows; at least 10 are needed"),
        (wrong(), {"choice_columns": ("a",)}, "--choice-columns needs two columns or more, got only 'a'"),
        (wrong(), {"choice_columns": ("a", "b", "a")}, "need a column each, got 'text', 'a', 'b', 'a', 'label'"),
        (wrong(), {"choice_columns": ("a", "text")}, "need a column each"),
        (wrong(), {"choice_columns": ("a", "e")}, "has no column 'e'; it has 'text', 'a', 'b', 'c', 'd', 'label'"),
        (wrong(), {"text_pair_column": "p"}, "leave out --text-pair-column 'p' or --choice-columns"),
        (wrong(), {"regression": True}, "leave out --regression or --choice-columns"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, rows: list[Row], options: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput, match=line) as caught:
        own(tmp_path, rows, **options)
    assert "\n" not in str(caught.value)


def test_choices_are_not_for_other_tasks(data_dir: Path) -> None:
    with pytest.raises(BadInput, match="'glue/RTE' is no multiple choice; leave out --choice-columns a,b"):
        load_task("glue/RTE", data=data_dir / "glue", choice_columns=("a", "b"))


def test_a_reading_holds_for_all_files(tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text("\n".join(json.dumps({**row, "label": "a"}) for row in choice_rows(5)))
    with pytest.raises(BadInput, match=r"row 1 of .*v.jsonl: a label must be .* got 'a' \(5 such rows\)"):
        own(tmp_path, choice_rows(20), validation=tmp_path / "v.jsonl")


def test_rows_by_choices_by_time(tmp_path: Path, wordpiece: Any) -> None:
    rows = load_task(train=write_choices(tmp_path / "c.csv", 40), choice_columns=COLUMNS).splits["train"]
    encoded = encode(rows, wordpiece, max_length=32)
    assert (len(encoded), encoded.rows, encoded.choices) == (28, 28, 4)
    seen = []
    for batch in batches(encoded, batch_size=5, rng=np.random.default_rng(0)):
        ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"]
        assert ids.shape[:2] == (len(batch.rows), 4) and set(batch.inputs) == {
            "input_ids", "attention_mask", "token_type_ids"
        }  # fmt: skip
        assert ids.shape[2] == encoded.lengths[batch.rows].max() == mask.sum(-1).max()
        for position, row in enumerate(batch.rows):
            for choice in range(4):
                alone = wordpiece(rows.texts[row], rows.choices[choice][row])
                real = mask[position, choice] == 1
                assert ids[position, choice, real].tolist() == alone["input_ids"]
                assert batch.inputs["token_type_ids"][position, choice, real].tolist() == alone["token_type_ids"]
        assert batch.targets.tolist() == rows.targets[batch.rows].tolist()
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(28))
    assert encoded.median_length == int(np.median(encoded.lengths))


def test_evaluation_batches_count_all_choices(tmp_path: Path, wordpiece: Any) -> None:
    rows = load_task(train=write_choices(tmp_path / "c.csv", 40), choice_columns=COLUMNS).splits["train"]
    made = evaluation_batches(encode(rows, wordpiece, max_length=32), tokens=200)
    assert len(made) > 5 and all(batch.inputs["input_ids"].numel() <= 200 for batch in made)
    assert sorted(np.concatenate([batch.rows for batch in made])) == list(range(28))


def test_a_line_break_parts_texts_where_the_tokenizer_has_no_mark(tmp_path: Path, bpe: Any) -> None:
    rows = load_task(train=write_choices(tmp_path / "c.csv", 40), choice_columns=COLUMNS).splits["train"]
    encoded = encode(rows, bpe, max_length=64)
    assert encoded.types is None
    assert bpe.decode(encoded.ids[: encoded.offsets[1]]) == f"{rows.texts[0]}\n{rows.choices[0][0]}"
