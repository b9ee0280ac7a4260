"""Whatever is in a file of multiple choice, questions or plain text: batches, or one line of BadInput."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.data.batching import encode, evaluation_batches
from archwright.data.tasks.task import Task, load_task
from archwright.errors import BadInput

TEXT = st.text(max_size=12)
SMALL = st.sampled_from(["a", "b", "0", "1", "2", "-1", "x y", " ", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | SMALL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def tried(files: dict[str, bytes], load: Callable[[Path], Task], tokenizer: Any, length: int = 24) -> Task | None:
    """The task of these files, after its batches were checked; None when it was refused with one clear line."""
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        try:
            task = load(Path(folder))
            encoded = [encode(rows, tokenizer, max_length=length) for rows in task.splits.values()]
        except BadInput as error:
            assert "\n" not in str(error) and "\r" not in str(error) and len(str(error)) < 2000
            return None
    for part in encoded:
        made = evaluation_batches(part, tokens=200)
        assert sorted(np.concatenate([batch.rows for batch in made])) == list(range(len(part)))
        assert all(batch.inputs["input_ids"].shape[-1] <= length for batch in made)
    return task


def bytes_of(value: object) -> bytes:
    return json.dumps(value).encode()


CHOICE = st.fixed_dictionaries({}, optional={"text": JSON, "label": JSON, "a": JSON, "b": JSON})
GOOD_CHOICE = st.fixed_dictionaries({"text": st.just("t"), "label": SMALL, "a": SMALL, "b": SMALL})


@settings(deadline=None)
@given(st.lists(CHOICE, max_size=15) | st.lists(GOOD_CHOICE, min_size=10, max_size=15))
def test_any_choices(wordpiece: Any, rows: list[object]) -> None:
    files = {"t.jsonl": b"\n".join(map(bytes_of, rows))}
    task = tried(files, lambda folder: load_task(train=folder / "t.jsonl", choice_columns=("a", "b")), wordpiece)
    if task is not None:
        assert task.kind == "choice"
        assert all(set(rows.targets) <= {0, 1} for rows in task.splits.values())


ANSWER = st.fixed_dictionaries({"text": TEXT | SMALL, "answer_start": st.integers(-3, 20)})
QUESTION = st.fixed_dictionaries(
    {"question": TEXT | st.just("who"), "answers": st.lists(ANSWER, max_size=2)}, optional={"is_impossible": JSON}
)
PARAGRAPH = st.fixed_dictionaries({"context": st.text(max_size=40), "qas": st.lists(QUESTION, max_size=4)})
DOCUMENT = st.fixed_dictionaries(
    {"data": st.lists(st.fixed_dictionaries({"paragraphs": st.lists(PARAGRAPH, max_size=3)}), max_size=3)}
)
GOOD = {
    "data": [
        {"paragraphs": [{"context": f"red {n} blue", "qas": [{"question": "who", "answers": []}] * 6}]}
        for n in range(2)
    ]
}
GOOD["data"][0]["paragraphs"][0]["qas"] = [{"question": "?", "answers": [{"text": "blue", "answer_start": 6}]}] * 6


@settings(deadline=None)
@given(DOCUMENT | JSON | st.just(GOOD), st.lists(PARAGRAPH, min_size=1, max_size=4))
def test_any_questions(wordpiece: Any, train: Any, more: list[Any]) -> None:
    dev = {"data": [*GOOD["data"], {"paragraphs": more}]}
    files = {"train.json": bytes_of(train), "dev.json": bytes_of(dev)}
    task = tried(files, lambda folder: load_task("squad", data=folder), wordpiece)
    if task is not None:
        assert task.kind == "qa" and task.metric == "squad_v2_f1"  # dev has questions without answer


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["question", "answers", "context", "qas", "paragraphs", "data"]), JSON, st.data())
def test_one_wrong_value_in_a_good_file(wordpiece: Any, key: str, value: object, data: st.DataObject) -> None:
    text = json.dumps(GOOD).replace(f'"{key}": ', f'"{key}": {json.dumps(value)}, "was": ', 1)
    files = {"train.json": text.encode(), "dev.json": bytes_of(GOOD)}
    tried(files, lambda folder: load_task("squad", data=folder), wordpiece)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.text(max_size=30), st.integers(0, 300))
def test_any_text(wordpiece: Any, start: bytes, word: str, times: int) -> None:
    content = start + word.encode("utf-8", "ignore") * times
    task = tried({"t.txt": content}, lambda folder: load_task("lm", train=folder / "t.txt"), wordpiece, length=4)
    if task is not None:
        whole = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        assert "".join(part.text for part in task.splits.values()) == whole


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=60), st.integers(0, 60))
def test_answers_in_any_text_come_back_whole(bpe: Any, wordpiece: Any, context: str, start: int) -> None:
    """Also where characters are several tokens, or none: the target marks all of the answer that the tokens hold."""
    context = "one " + context.encode("utf-8", "ignore").decode() + " two"
    answer = context[start:].split(" ")[0].strip() or "one"
    where = context.find(answer)
    qas = [{"question": "what", "answers": [{"text": answer, "answer_start": where}]}] * 5
    content = bytes_of({"data": [{"paragraphs": [{"context": context, "qas": qas}] * 2}]})
    for tokenizer in (bpe, wordpiece):
        task = tried(
            {"train.json": content, "dev.json": content},
            lambda folder: load_task("squad", data=folder),
            tokenizer,
            length=400,
        )
        assert task is not None
        encoded = encode(task.splits["test"], tokenizer, max_length=400)
        characters, (first, last) = encoded.windows.characters[: encoded.offsets[1]], encoded.targets[0]
        inside = encoded.windows.open[: encoded.offsets[1]] == 1
        read = {place for a, b in characters[inside] for place in range(a, b) if where <= place < where + len(answer)}
        assert last > 0 or read != set(range(where, where + len(answer)))
        assert last == 0 or read <= set(range(characters[first, 0], characters[last, 1]))
