"""What `train` says in the terminal and on its page."""

from pathlib import Path
from typing import Any

from archwright.reports.numbers import DASH
from archwright.reports.train import render_train_page, train_lines
from tests.reports.pages import page_text

TRAINED: dict[str, Any] = {
    "schema": "archwright/train/1", "lesson": "finetune", "parameters": 1234567, "steps": 20, "tokens": 4000,
    "tokens_per_second": 812.3, "seconds": {"training": 4.9}, "teacher": "minilm",
    "losses": {"first": 0.7, "last": 0.31, "curve": [{"step": 10, "loss": 0.7}, {"step": 20, "loss": 0.31}]},
    "teacher_metrics": {"accuracy": 0.91},
    "validation": {"before": None, "after": {
        "accuracy": 0.75, "rows": 40, "splits": {"test": {"accuracy": 0.75}, "MNLI-mm": {"accuracy": 0.5}}}},
    "environment": {"commit": "abc"}, "schedule": {"steps": 20},
}  # fmt: skip
GLUE: dict[str, Any] = {
    "lesson": "finetune", "columns": {"RTE": {"accuracy": 0.512}, "MRPC": {"accuracy": 0.7, "f1": 0.816}},
    "averages": {"dev_columns": {"mean": None, "mean_of_present": 0.5432, "missing": ["CoLA"]}},
    "tasks": {"RTE": {}, "MRPC": {}},
}  # fmt: skip
MOMENTS = [{"steps": 0, "mean": 1.0, "spearman": None}, {"steps": 9, "mean": 2.0, "spearman": 1.0}]
ABLATED: dict[str, Any] = {
    "lesson": "mlm", "published": {"moments": MOMENTS, "settled_at": None},
    "ablation": {
        "moments": MOMENTS, "settled_at": 9, "score": "minus the validation loss",
        "architectures": [{"config": {}, "scores": {"0": 1.0, "9": 2.0 + place}} for place in range(3)],
    },
}  # fmt: skip


def test_a_training_in_lines() -> None:
    lines = list(train_lines(TRAINED, Path("runs/x")))
    assert lines == [
        "finetune: 1,234,567 parameters, 20 steps, 4,000 tokens in 5 s (812.3 per second)",
        "training loss 0.7 -> 0.31",
        "teacher minilm: accuracy 0.91",
        "accuracy 0.75",
        "rows 40",
        "MNLI-mm: accuracy 0.5",
        "folder: runs/x",
    ]


def test_what_was_before_stands_beside() -> None:
    lines = list(train_lines({"validation": {"before": {"loss": 3.0}, "after": {"loss": 2.5}}}, None))
    assert lines == ["loss 3 -> 2.5"]


def test_averages_say_what_is_missing() -> None:
    averages = {"dev_columns": {"mean": None, "mean_of_present": 0.5, "missing": ["CoLA"]}}
    lines = list(train_lines({"columns": {"RTE": {"accuracy": 0.5}}, "averages": averages}, None))
    assert lines == ["RTE      accuracy 50", "dev_columns: 50, without CoLA"]


def test_when_a_ranking_settles() -> None:
    moments = [{"steps": 0, "mean": 1.0, "spearman": None}, {"steps": 9, "mean": 2.0, "spearman": 1.0}]
    found = {"moments": moments, "settled_at": None}
    lines = list(train_lines({"ablation": found, "published": {**found, "copies": {"5": 50}}}, None))
    assert lines[0] == "here: the ranking is settled only at the end (Spearman >= 0.9 with the end)"
    assert lines[1] == f"          0 steps: mean 1, Spearman with the end {DASH}"
    assert lines[-1] == "          5 steps: left out, a copy of the scores after 50 steps"


def test_the_page_is_whole_and_escapes() -> None:
    page = render_train_page({**TRAINED, "lesson": "<b>x"})
    assert "Loss over the steps" in page
    assert "<b>x" not in page.split("<title>")[1].split("</title>")[0]


def test_the_page_of_glue_has_every_column_and_average() -> None:
    page = render_train_page(GLUE)
    assert "GLUE: 2 tasks" in page and "Loss over the steps" not in page
    for words in ("51.2", "81.6", "70.0", "54.3", "CoLA"):
        assert words in page_text(page)


def test_the_page_of_an_ablation_has_a_line_per_architecture() -> None:
    page = render_train_page(ABLATED)
    assert "mlm: 3 architectures over the steps" in page and "architecture 2" in page
    assert "here: settled from 9 steps on" in page and "published: settled only at the end" in page
    assert "published: settled" not in render_train_page({**ABLATED, "published": None})


def test_what_a_teacher_a_clock_and_a_collapse_add() -> None:
    cache = {
        "rows": 1000,
        "share": 0.5,
        "bytes": 2_500_000_000,
        "tokens_per_second": {"first_epoch": 800.0, "later": 1200.0},
    }
    more = {
        "teacher_cache": cache,
        "forecast": {"seconds": 6.2},
        "collapse": {"step": 30, "reason": "one class", "learning_rate": 3e-5},
        "collapsed": "one number",
    }
    added = [line for line in train_lines({**TRAINED, **more}, None) if line not in train_lines(TRAINED, None)]
    assert added == [
        "collapsed at step 30 (one class), begun again at a learning rate of 3e-05",
        "the trained network has learnt nothing: one number; try --start teacher, --layer-weight 0 or a lower "
        "--learning-rate",
        "training took 5 s, 6 s were forecast",
        "teacher's answers to 1,000 rows (50%) kept in 2.50 GB: "
        "800 tokens per second in the first epoch, 1200 from then on",
    ]


def test_a_student_that_has_started_from_its_teacher_or_has_none_is_told_to_learn_slower() -> None:
    for others in ({"start": {"rows": 1, "parts": []}}, {"teacher": None, "teacher_metrics": {}}):
        lines = train_lines({**TRAINED, "collapsed": "one class", **others}, None)
        assert "the trained network has learnt nothing: one class; try a lower --learning-rate" in lines


def test_published_scores_are_marked_as_such() -> None:
    row = {"model": "W-PCA-Tiny", "parameters": 9_600_000, "table": 3, "scores": {"SST-2": 92.0}}
    document = {**TRAINED, "published_scores": {"source": "W-PCA", "split": "dev", "models": [row]}}
    lines = list(train_lines(document, None))
    assert lines[-2:] == [
        "published by W-PCA, dev rows, in per cent, not measured here:",
        "  W-PCA-Tiny (9.6M, Table 3): SST-2 92",
    ]
    page = page_text(render_train_page(document))
    assert "Published scores" in page and "W-PCA-Tiny" in page and "not measured here" in page
    assert "Published scores" not in page_text(render_train_page(TRAINED))
