"""SQuAD: offsets that give back the answers, windows that cover every context, and one clear line for damage."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from archwright.data.batching import Encoded, batches, encode, evaluation_batches
from archwright.data.tasks.questions import QuestionRows
from archwright.data.tasks.task import Task, load_task
from archwright.errors import BadInput

CONTEXT = "The cat sat on the mat. The dog ran to the old red barn in Ohio."
Json = dict[str, Any]


def question(text: str = "Who sat?", answer: str = "cat", start: int | None = None, **more: Any) -> Json:
    place = CONTEXT.find(answer) if start is None else start
    return {"id": "q", "question": text, "answers": [{"text": answer, "answer_start": place}], **more}


def nothing(text: str = "Who flew?") -> Json:
    return {"id": "n", "question": text, "answers": [], "is_impossible": True}


def document(*questions: Json, contexts: tuple[str, ...] = (CONTEXT, CONTEXT)) -> Json:
    return {
        "version": "1",
        "data": [{"title": "t", "paragraphs": [{"context": c, "qas": [*questions]} for c in contexts]}],
    }


GOOD = document(*[question() for _ in range(10)])


def squad(folder: Path, train: Any, dev: Any = None, **options: Any) -> Task:
    for name, content in (("train-v1.1.json", train), ("dev-v1.1.json", GOOD if dev is None else dev)):
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return load_task("squad", data=folder, **options)


def given_back(encoded: Encoded, rows: QuestionRows) -> tuple[int, int, int]:
    """Windows whose target is the answer's text, windows where it is a longer text, and questions in no window."""
    windows, found = encoded.windows, np.flatnonzero(encoded.targets[:, 1])
    assert windows is not None
    texts = [windows.text(window, *encoded.targets[window]) for window in found]
    golds = [rows.contexts[owner][slice(*rows.spans[owner])] for owner in windows.owners[found]]
    same = sum(text == gold for text, gold in zip(texts, golds, strict=True))
    assert all(gold in text for text, gold in zip(texts, golds, strict=True))
    return same, len(found) - same, len(rows) - len(set(windows.owners[found].tolist()))


@pytest.fixture(scope="session")
def official(data_dir: Path) -> Task:
    return load_task("squad", data=data_dir / "squad")


def test_the_official_files(official: Task) -> None:
    assert (official.name, official.kind, official.metric, official.labels) == ("squad", "qa", "squad_f1", ())
    assert [len(rows) for rows in official.splits.values()][2] == 10570
    train, validation = (official.splits[split] for split in ("train", "validation"))
    assert len(train) + len(validation) == 8152 and 0.65 < len(train) / 8152 < 0.75
    assert not set(train.contexts) & set(validation.contexts)
    assert official.note.startswith(
        "train split 70/30 into train, validation by paragraphs with seed 0; dev-v1.1.json is"
    )
    assert "train_subset-v1.1.json: part of the official data" in official.note
    rows = official.splits["test"]
    assert rows.questions[0] == "Which NFL team represented the AFC at Super Bowl 50?"
    assert rows.answers[0] == ("Denver Broncos",) * 3
    assert all(rows.contexts[i][slice(*rows.spans[i])] == rows.answers[i][0].strip() for i in range(len(rows)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "length", "longer", "uncovered"),
    [("wordpiece", 384, 32, 0), ("wordpiece", 128, 35, 2), ("bpe", 384, 108, 0)],
)
def test_tokens_give_back_every_answer_of_the_official_dev_set(
    official: Task, name: str, length: int, longer: int, uncovered: int, request: pytest.FixtureRequest
) -> None:
    """Longer: the answer ends inside a token ("8" of "18", "gold" of "golden"). Uncovered: in no window as a whole."""
    rows = official.splits["test"]
    encoded = encode(rows, request.getfixturevalue(name), max_length=length)
    same, wider, missing = given_back(encoded, rows)
    assert (wider, missing) == (longer, uncovered)
    assert same >= len(rows) - wider - missing and encoded.lengths.max() == length and encoded.rows == len(rows)
    assert (encoded.targets[:, 0] <= encoded.targets[:, 1]).all()
    assert (encoded.targets[:, 1] < encoded.lengths).all()


@pytest.mark.parametrize("name", ["wordpiece", "bpe"])
def test_tokens_give_back_the_answers_of_some_questions(
    official: Task, name: str, request: pytest.FixtureRequest
) -> None:
    rows = official.splits["test"].sample(500, (0,))
    same, wider, missing = given_back(encode(rows, request.getfixturevalue(name), max_length=384), rows)
    assert missing == 0 and same + wider >= 500 and wider <= 8


def test_version_2(data_dir: Path, tmp_path: Path, wordpiece: Any) -> None:
    content = (data_dir / "squad" / "cs224n_dev-v2.0.json").read_text(encoding="utf-8")
    task = squad(tmp_path, content, content, train_rows=300)
    assert task.metric == "squad_v2_f1" and len(task.splits["test"]) == 6078
    rows = task.splits["test"]
    none = rows.spans[:, 0] < 0
    assert none.sum() == 3168 and all((not rows.answers[i]) == none[i] for i in range(len(rows)))
    train = task.splits["train"]
    encoded = encode(train, wordpiece, max_length=384)
    assert (encoded.targets[train.spans[encoded.windows.owners, 0] < 0] == 0).all()


def small_rows(contexts: list[str], questions: list[str], spans: list[tuple[int, int]]) -> QuestionRows:
    answers = [
        (context[start:end],) if start >= 0 else () for context, (start, end) in zip(contexts, spans, strict=True)
    ]
    return QuestionRows(questions, contexts, np.arange(len(contexts)), np.array(spans), answers, unanswerable=False)


def test_one_file_is_cut_by_articles(data_dir: Path) -> None:
    path = data_dir / "squad" / "cs224n_dev-v2.0.json"
    task = load_task("squad", data=path, seed=3)
    contexts = {name: set(split.contexts) for name, split in task.splits.items()}
    titles = {
        paragraph["context"]: number
        for number, article in enumerate(json.loads(path.read_text())["data"])
        for paragraph in article["paragraphs"]
    }
    articles = {name: {titles[context] for context in found} for name, found in contexts.items()}
    assert sum(map(len, articles.values())) == len(set(titles.values()))  # none in two splits, all somewhere
    assert task.metric == "squad_v2_f1" and "by articles with seed 3" in task.note
    assert sum(map(len, task.splits.values())) == 6078


def test_windows_by_hand(wordpiece: Any) -> None:
    """21 tokens are 3 special ones, 2 of the question and 16 of the context, of which (18 - 9) // 2 = 4 come again."""
    context = "a b c d e f g h i j k l m n o p q r s t"
    rows = small_rows([context, "x y z"], ["who what"] * 2, [(32, 33), (2, 3)])  # q and y
    encoded = encode(rows, wordpiece, max_length=21)
    words = [
        wordpiece.convert_ids_to_tokens(encoded.ids[a:b])
        for a, b in zip(encoded.offsets, encoded.offsets[1:], strict=False)
    ]
    start = ["[CLS]", "who", "what", "[SEP]"]
    assert words == [
        [*start, *"abcdefghijklmnop", "[SEP]"],
        [*start, *"mnopqrst", "[SEP]"],
        [*start, *"xyz", "[SEP]"],
    ]
    assert encoded.windows.owners.tolist() == [0, 0, 1] and (len(encoded), encoded.rows) == (3, 2)
    assert encoded.targets.tolist() == [[0, 0], [8, 8], [5, 5]]
    (batch,) = evaluation_batches(encoded, tokens=1000)
    assert batch.rows.tolist() == [2, 1, 0]
    mask = batch.inputs["context_mask"]
    assert mask.dtype == torch.int64
    assert mask[0].tolist() == [1, 0, 0, 0, 1, 1, 1, 0] + [0] * 13
    assert mask[1].tolist() == [1, 0, 0, 0, *[1] * 8, 0] + [0] * 8
    assert mask[2].tolist() == [1, 0, 0, 0, *[1] * 16, 0]
    assert batch.targets.tolist() == [[5, 5], [8, 8], [0, 0]]


def test_without_special_tokens_a_line_break_parts_question_and_context(bpe: Any) -> None:
    rows = small_rows([CONTEXT], ["Where is the barn?"], [(CONTEXT.index("Ohio"), CONTEXT.index("Ohio") + 4)])
    encoded = encode(rows, bpe, max_length=64)
    assert bpe.decode(encoded.ids) == f"Where is the barn?\n{CONTEXT}"
    assert given_back(encoded, rows) == (1, 0, 0)
    places = np.flatnonzero(encoded.windows.open)
    assert places[0] == 0 and bpe.decode(encoded.ids[places[1:]]) == CONTEXT


def test_a_long_question_leaves_half_of_the_room(wordpiece: Any) -> None:
    rows = small_rows([CONTEXT], ["why " * 500], [(4, 7)])
    for length, question_tokens in ((40, 18), (384, 64)):
        encoded = encode(rows, wordpiece, max_length=length)
        assert (encoded.ids[: encoded.offsets[1]] == wordpiece.convert_tokens_to_ids("why")).sum() == question_tokens
        assert given_back(encoded, rows)[2] == 0


def test_all_windows_of_a_long_context_cover_it(wordpiece: Any) -> None:
    context = " ".join(f"word{n}" for n in range(400))
    encoded = encode(small_rows([context], ["which"], [(-1, -1)]), wordpiece, max_length=100)
    windows = encoded.windows
    covered = np.zeros(len(context), dtype=bool)
    for start, end in windows.characters[windows.open == 1]:
        covered[start:end] = True
    assert all(covered[i] for i, letter in enumerate(context) if letter != " ")
    assert (encoded.targets == 0).all()


def test_training_batches_hold_every_window_once(official: Task, wordpiece: Any) -> None:
    rows = official.splits["train"].sample(150, (0,))
    encoded = encode(rows, wordpiece, max_length=64)
    made = list(batches(encoded, batch_size=8, rng=np.random.default_rng(0)))
    assert sorted(np.concatenate([batch.rows for batch in made])) == list(range(len(encoded))) and len(encoded) > 300
    for batch in made:
        assert batch.targets.dtype == torch.int64 and batch.targets.shape == (len(batch.rows), 2)
        assert (batch.inputs["context_mask"].gather(1, batch.targets) == 1).all()  # never a target that may not be
        assert batch.windows is encoded.windows


def test_answers_elsewhere_are_found_and_told(tmp_path: Path) -> None:
    moved = question(answer="The", start=20)  # at 0 and at 24: the nearer one
    task = squad(tmp_path, document(*[question() for _ in range(9)], moved))
    rows = task.splits["train"]
    assert rows.spans[-1].tolist() == [24, 27]
    assert "2 answers of train-v1.1.json were not at their answer_start and were found elsewhere" in task.note


def test_a_few_lost_answers_are_left_out_and_told(tmp_path: Path) -> None:
    questions = [question() for _ in range(100)]
    train = document(*questions)
    train["data"][0]["paragraphs"][0]["qas"][7] = question(answer="elephant", start=3)
    task = squad(tmp_path, train)
    assert len(task.splits["train"]) + len(task.splits["validation"]) == 199
    assert "1 questions of train-v1.1.json left out, their answers are not in the context" in task.note
    with pytest.raises(
        BadInput, match=r"train-v1.1.json is damaged: 2 of 20 questions have no answer that is in their"
    ):
        squad(tmp_path, document(*[question() for _ in range(9)], question(answer="elephant", start=3)))


def test_one_usable_answer_is_enough_and_all_count(tmp_path: Path) -> None:
    two = question()
    two["answers"] = [{"text": "feline", "answer_start": 4}, {"text": " cat ", "answer_start": 3}]
    rows = squad(tmp_path, GOOD, document(*[two] * 10)).splits["test"]
    assert rows.answers[0] == ("feline", " cat ") and rows.spans[0].tolist() == [4, 7]


def changed(path: str, value: Any) -> Json:
    """The good document with another value at a path such as data.0.paragraphs; a value of ... removes it."""
    whole = json.loads(json.dumps(GOOD))
    holder: Any = whole
    *before, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in before:
        holder = holder[part]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return whole


PARAGRAPH = "data.0.paragraphs.0"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "train-v1.1.json is not JSON: Expecting value at line 1, column 1"),
        ("{", "is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must have a list 'data' as SQuAD's files do, got none"),
        ("{}", "must have a list 'data' as SQuAD's files do, got none; see https://"),
        ({"data": {}}, r"must have a list 'data' as SQuAD's files do, got \{\}"),
        ({"data": []}, "has 0 questions; at least 10 are needed"),
        (changed("data.0.paragraphs", ...), r"data\[0\] of .* must have a list 'paragraphs'"),
        (changed("data.0", "x"), r"data\[0\] of .* must have a list 'paragraphs'"),
        (changed(f"{PARAGRAPH}.context", 5), r"data\[0\].paragraphs\[0\] of .* must have a text 'context'.*got 5"),
        (changed(f"{PARAGRAPH}.context", " "), "has an empty or broken context"),
        (changed(f"{PARAGRAPH}.context", "\ud800"), "has an empty or broken context"),
        (changed(f"{PARAGRAPH}.qas", None), r"must have a list 'qas'.*got None"),
        (changed(f"{PARAGRAPH}.qas.3.question", ...), r"qas\[3\] of data\[0\].paragraphs\[0\] of .* a text 'question'"),
        (changed(f"{PARAGRAPH}.qas.3.answers", ...), r"qas\[3\] of .* must have a list 'answers'.*got none"),
        (changed(f"{PARAGRAPH}.qas.3.answers.0", "cat"), r"answers\[0\] of qas\[3\] of .* a text 'text'"),
        (changed(f"{PARAGRAPH}.qas.3.answers.0.answer_start", "4"), "must have a whole number 'answer_start'.*got '4'"),
        (changed(f"{PARAGRAPH}.qas.3.answers.0.answer_start", True), "must have a whole number 'answer_start'"),
        (
            changed(f"{PARAGRAPH}.qas.3.answers.0.text", " "),
            "1 of 20 questions have no answer that is in their context",
        ),
        (document(*[question(answer="cow", start=n) for n in range(10)]), "20 of 20 questions have no answer"),
        (document(*[nothing() for _ in range(10)]), "has no answers, only questions"),
        (document(question()), "has 2 questions; at least 10 are needed"),
        (document(*[question() for _ in range(20)], contexts=(CONTEXT,)), "is about one paragraph; two are needed"),
    ],
)
def test_damaged_files(tmp_path: Path, content: Any, line: str) -> None:
    with pytest.raises(BadInput, match=line) as caught:
        squad(tmp_path, content)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_folders(tmp_path: Path) -> None:
    for data, line in (
        (None, "squad needs --data, .*got nothing"),
        (tmp_path / "no", "squad needs --data, the folder"),
    ):
        with pytest.raises(BadInput, match=line):
            load_task("squad", data=data)
    with pytest.raises(
        BadInput, match=r"must have exactly one file train\*.json, it has none; the original is at https"
    ):
        load_task("squad", data=tmp_path)
    squad(tmp_path, GOOD)
    (tmp_path / "dev-v2.0.json").write_text("{}")
    with pytest.raises(BadInput, match=r"exactly one file dev\*.json, it has dev-v1.1.json, dev-v2.0.json"):
        load_task("squad", data=tmp_path)


@pytest.mark.parametrize("options", [{"label_column": "answer"}, {"regression": True}, {"choice_columns": ("a", "b")}])
def test_options_of_labelled_texts(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="squad has no columns of texts and labels; leave out --text-column"):
        squad(tmp_path, GOOD, **options)


def test_files_instead_of_a_folder(tmp_path: Path) -> None:
    line = r"squad reads train\*.json and dev\*.json of the folder --data; leave out --train"
    with pytest.raises(BadInput, match=line):
        load_task("squad", train=tmp_path / "t.json")


def test_lengths_without_room(wordpiece: Any) -> None:
    rows = small_rows([CONTEXT], ["who"], [(4, 7)])
    with pytest.raises(BadInput, match="--max-length must be 19 to 512 for this tokenizer, got 18"):
        encode(rows, wordpiece, max_length=18)
    assert given_back(encode(rows, wordpiece, max_length=19), rows) == (1, 0, 0)


def test_a_tokenizer_that_knows_no_positions() -> None:
    class Slow:
        is_fast, model_max_length = False, 512

        def num_special_tokens_to_add(self, pair: bool) -> int:
            return 3

    with pytest.raises(BadInput, match="needs a tokenizer that knows positions"):
        encode(small_rows([CONTEXT], ["who"], [(4, 7)]), Slow(), max_length=40)
