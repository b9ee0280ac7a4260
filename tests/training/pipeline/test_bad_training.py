"""Everything that can be wrong about a training is one line, before anything is written."""

from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from archwright.data.text.tokenizer import train_tokenizer
from archwright.errors import BadInput
from tests.training.pipeline.runs import QUICK, trained
from tests.training.pipeline.tables import glue_folder

MLM = {"lesson": "mlm", "corpus": "text"}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no network": ({**MLM, "config": None, "space": None}, "give one of --design, --config, --model, got none"),
    "two networks": ({**MLM, "model": "minilm"}, "got --config, --model"),
    "space beside a model": (
        {**MLM, "config": None, "model": "bert", "space": "flexibert"},
        "--space, --tokenizer have no effect beside --model; leave them out",
    ),
    "tokenizer beside a model": (
        {**MLM, "config": None, "space": None, "model": "bert", "tokenizer": "words"},
        "--tokenizer has no effect beside --model; leave it out",
    ),
    "config without space": ({**MLM, "space": None}, "--config needs --space"),
    "lesson left open": ({"corpus": "text"}, "choose one with --lesson: mlm, electra, lm, distil"),
    "no corpus": ({"lesson": "mlm"}, "--lesson mlm needs --corpus"),
    "no such corpus": ({"lesson": "mlm", "corpus": Path("nothing.txt")}, "there is no file 'nothing.txt'"),
    "teacher missing": ({"lesson": "distil", "corpus": "text"}, "--lesson distil needs --teacher"),
    "teacher in vain": ({**MLM, "teacher": "minilm"}, "--lesson mlm learns without a teacher"),
    "unknown teacher": (
        {"lesson": "distil", "corpus": "text", "teacher": "no/such-teacher", "tokenizer": "words"},
        "--teacher must be a folder or hub id of an encoder, got 'no/such-teacher'",
    ),
    "other tokens": (
        {"lesson": "distil", "corpus": "text", "teacher": "bert", "tokenizer": "words"},
        "teacher and student must read the same tokens",
    ),
    "start without a teacher": ({**MLM, "start": "teacher"}, "--start teacher fills a new network"),
    "start of trained weights": (
        {"lesson": "distil", "corpus": "text", "teacher": "bert", "config": None, "space": None, "tokenizer": None}
        | {"model": "bert", "start": "teacher"},
        "--start teacher fills a new network from a teacher; give --design or --config",
    ),
    "start of another space": (
        {"lesson": "distil", "corpus": "text", "teacher": "bert", "tokenizer": None, "start": "teacher"},
        "--start teacher fills networks of the nlu spaces, got 'archwright_flexibert'",
    ),
    "lesson of another space": ({**MLM, "lesson": "lm"}, "networks of flexibert learn by electra, mlm"),
    "lines for next words": ({"lesson": "lm", "corpus": "text", "layout": "lines"}, "needs --layout packed"),
    "batch too large": ({**MLM, "batch_size": 5000}, "rows, fewer than the 5000 of one update"),
    "row too long": ({**MLM, "max_length": 100_000}, "shorter than one row of --max-length 100000"),
    "more than positions": (
        {**MLM, "max_length": 600, "batch_size": 1, "corpus_validation": "text"},
        "--max-length must be at most 512",
    ),
    "steps and epochs": ({**MLM, "epochs": 1.0}, "give --steps or --epochs, not both"),
    "no steps": ({**MLM, "steps": 0}, "--steps must be at least 1, got 0"),
    "learning rate": ({**MLM, "learning_rate": 3.0}, "--learning-rate must be above 0 and below 1, got 3.0"),
    "warm-up": ({**MLM, "warmup": 1.0}, "--warmup must be at least 0 and below 1, got 1.0"),
    "layer decay": ({**MLM, "layer_decay": 0.0}, "--layer-decay must be at most 1 and above 0, got 0.0"),
    "minutes": ({**MLM, "minutes": 0.0}, "--minutes must be above 0, got 0.0"),
    "validation rows": ({**MLM, "validation_rows": -1}, "--validation-rows must not be negative, got -1"),
    "larger without design": ({**MLM, "scaled_up": True}, "--scaled-up needs --design"),
    "accumulate": ({**MLM, "accumulate": 0}, "--accumulate must be at least 1, got 0"),
    "unknown lesson": ({**MLM, "lesson": "reading"}, "lesson must be one of mlm, electra"),
    "unknown preset": ({**MLM, "preset": "gpt5"}, "preset must be one of default, wpca"),
    "preset without the stage": ({**MLM, "preset": "plm-pruning"}, "the preset plm-pruning has no pretraining"),
    "corpus for a task": ({"lesson": "finetune", "corpus": "text"}, "--lesson finetune learns a task, not --corpus"),
    "words for a task": ({"task": "movie-reviews"}, "--tokenizer words is made of a --corpus"),
    "tokenizer of other texts": (
        {"task": "movie-reviews", "tokenizer": "other-words"},
        "the tokenizer of 'other-words' must know the texts",
    ),
    "judge nothing": ({**MLM, "evaluate_only": True}, "--evaluate-only judges trained weights; give --model"),
    "judge a lesson without end": (
        {"lesson": "distil", "corpus": "text", "teacher": "bert", "evaluate_only": True},
        "--lesson distil keeps no way back to its teacher",
    ),
    "glue and task": ({"glue": Path("glue"), "task": "glue/RTE"}, "--glue names all tasks of a folder"),
    "no glue": ({"glue": Path("nothing")}, "--glue must be a folder with a folder per task"),
    "task beside text": ({**MLM, "task": "glue/RTE"}, "--task has no effect without a lesson on a task"),
    "columns beside text": ({**MLM, "text_column": "a", "test_rows": 3}, "--test-rows, --text-column have no effect"),
    "pooling of no task": ({**MLM, "pooling": "mean"}, "--pooling has no effect without a lesson on a task"),
    "layout of a task": (
        {"task": "glue/RTE", "layout": "lines"},
        "--layout has no effect without a lesson on --corpus",
    ),
    "pace of no teacher": ({"task": "glue/RTE", "teacher_epochs": 1.0}, "--teacher-epochs has no effect without"),
    "number of one": ({**MLM, "random": 9}, "--random has no effect without --ablate-steps"),
    "one mark": ({**MLM, "ablate_steps": (5,)}, "--ablate-steps needs two different numbers"),
    "marks for one": ({**MLM, "ablate_steps": (1, 2)}, "--ablate-steps draws architectures of --space; leave out"),
}


@pytest.mark.parametrize(("changes", "message"), CASES.values(), ids=CASES)
def test_one_line(
    changes: dict[str, Any],
    message: str,
    text: Path,
    bert: Path,
    encoder: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"text": text, "bert": str(bert)}
    wanted = {**QUICK, "steps": 2, **encoder, **changes}
    options = {k: known.get(v, v) if isinstance(v, str) else v for k, v in wanted.items() if v is not None}
    monkeypatch.chdir(tmp_path)
    train_tokenizer("words", ["0 1 2"]).save_pretrained("other-words")
    with pytest.raises(BadInput) as caught:
        trained(tmp_path / "run", **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_folder_of_another_training(pretrained: Any, text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    words = {**QUICK, "steps": 2, **encoder, "lesson": "mlm", "corpus": text}
    with pytest.raises(BadInput, match="was begun with steps=60, got 2"):
        trained(pretrained.folder, **words)
    (tmp_path / "run.json").write_text('{"id": "1", "options": {"trials": 5}}')
    with pytest.raises(BadInput, match="is another command's run"):
        trained(tmp_path, **words)


def test_a_folder_that_is_not_empty(text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(BadInput, match="--out must be a new or empty folder"):
        trained(tmp_path, **{**QUICK, "steps": 2, **encoder, "lesson": "mlm", "corpus": text})


@pytest.mark.parametrize("content", ["", "{", "[]", '{"space": "flexibert"}', '{"space": "moon", "config": {}}'])
def test_a_damaged_design(content: str, text: Path, tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    file.write_text(content)
    with pytest.raises(BadInput, match="--design must"):
        trained(tmp_path / "run", design=file, lesson="mlm", corpus=text, **QUICK)


def test_a_network_of_another_kind(pretrained: Any, text: Path, bert: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot learn by lm"):
        trained(tmp_path / "run", model=str(pretrained.folder), lesson="lm", corpus=text, **QUICK)
    with pytest.raises(BadInput, match="is an encoder, whose tokens see the next ones: it cannot learn by lm"):
        trained(tmp_path / "run", model=str(bert), lesson="lm", corpus=text, **QUICK)
    with pytest.raises(BadInput, match="electra needs a network of the spaces"):
        trained(tmp_path / "run", model=str(bert), lesson="electra", corpus=text, **QUICK)
    with pytest.raises(BadInput, match="--evaluate-only needs a network that was trained for this task"):
        trained(tmp_path / "run", model=str(bert), task="movie-reviews", max_length=48, evaluate_only=True)


def test_a_new_head_is_not_judged(pretrained: Any, text: Path) -> None:
    words = {**QUICK, "model": str(pretrained.folder), "corpus": text, "evaluate_only": True}
    with pytest.raises(BadInput, match="needs a network that was trained for this"):
        aw.train(**words, lesson="electra")
    assert aw.train(**words, lesson="mlm").metrics["loss"] > 0


def test_a_damaged_test_file_is_found_before_training(bert: Path, tmp_path: Path) -> None:
    glue = glue_folder(tmp_path / "glue")
    (glue / "CoLA" / "test.tsv").write_text("index\tsentence\n0\n")
    with pytest.raises(BadInput, match=r"test\.tsv is empty or damaged"):
        trained(tmp_path / "run", model=str(bert), task="glue/CoLA", data=glue / "CoLA", steps=2)
    assert not (tmp_path / "run").exists()
