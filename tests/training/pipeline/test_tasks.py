"""Fine-tuning: with labels, with a teacher, on all of GLUE, on questions; and judging alone."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import archwright as aw
from archwright.networks.load import load_saved_network
from archwright.training.students import load_student
from tests.compression.runs import saved_model
from tests.training.pipeline.runs import trained
from tests.training.pipeline.tables import glue_folder, squad_folder

TASK: dict[str, Any] = {
    "epochs": 3.0, "batch_size": 16, "max_length": 48, "threads": 1, "learning_rate": 3e-3, "pooling": "mean"
}  # fmt: skip


@pytest.fixture(scope="module")
def glue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return glue_folder(tmp_path_factory.mktemp("data") / "glue")


def test_labels_are_learnt_and_the_kept_network_is_the_one_judged(bert: Path, rows: Path, tmp_path: Path) -> None:
    found = trained(tmp_path / "run", model=str(bert), train=rows, **{**TASK, "epochs": 12.0})
    document = found.as_json()
    assert document["lesson"] == "finetune"
    assert found.metrics["accuracy"] >= 0.75
    assert document["losses"]["last"] < document["losses"]["first"] - 0.2
    assert set(found.metrics) == {"accuracy", "f1", "matthews", "rows", "splits"}
    judged = aw.train(model=str(tmp_path / "run"), train=rows, evaluate_only=True, max_length=48, threads=1)
    assert judged.metrics == found.metrics
    assert judged.folder is None


def test_another_head_on_the_same_body(bert: Path, rows: Path, glue: Path, tmp_path: Path) -> None:
    first = trained(tmp_path / "one", model=str(bert), train=rows, **{**TASK, "epochs": 0.1}).folder
    second = trained(
        tmp_path / "two", model=str(first), task="glue/MNLI", data=glue,
        **{**TASK, "learning_rate": 1e-9, "epochs": 0.1, "pooling": None},
    ).folder  # fmt: skip
    one, two = (load_saved_network(folder / "model") for folder in (first, second))
    assert two.config.num_labels == 3
    assert two.config.pooling == "mean"
    for name, weight in one.backbone.state_dict().items():
        assert torch.allclose(weight, two.backbone.state_dict()[name], atol=1e-6), name


def test_from_scratch_and_from_pretraining(
    pretrained: Any, encoder: dict[str, Any], rows: Path, bert: Path, tmp_path: Path
) -> None:
    words = {**TASK, "epochs": 0.1}
    from_text = trained(tmp_path / "on", model=str(pretrained.folder), train=rows, **words).folder
    start = load_student(str(pretrained.folder / "model"), "mlm", seed=0)
    kept = load_saved_network(from_text / "model").backbone.state_dict()
    name = "embeddings.positions.weight"
    assert torch.allclose(start.encoder.state_dict()[name], kept[name], atol=0.02)
    scratch = trained(tmp_path / "scratch", **{**encoder, "tokenizer": str(bert)}, train=rows, **words)
    assert scratch.as_json()["parameters"] > 1000


def test_a_teacher_is_taught_first_and_then_teaches_without_labels(
    bert: Path, rows: Path, minilm: Path, encoder: dict[str, Any], tmp_path: Path
) -> None:
    words = {**TASK, "epochs": 1.0, "teacher": str(bert), "teacher_epochs": 12.0, "teacher_learning_rate": 3e-3}
    found = trained(tmp_path / "run", **{**encoder, "tokenizer": None}, train=rows, **words)
    document = found.as_json()
    assert document["teacher_metrics"]["accuracy"] >= 0.75
    assert (tmp_path / "run" / "teacher" / "config.json").exists()
    assert not list((tmp_path / "run").glob("checkpoint*"))
    tuned = saved_model(tmp_path / "tuned", minilm, head={0: "bad", 1: "good"})
    ready = trained(
        tmp_path / "ready", **{**encoder, "tokenizer": None}, train=rows, **{**words, "teacher": str(tuned)}
    )
    assert not (tmp_path / "ready" / "teacher").exists()  # its labels say that it was taught already
    assert ready.as_json()["steps"] == document["steps"]
    words["teacher"] = str(tmp_path / "run" / "teacher")  # one that was fine-tuned here
    ours = trained(tmp_path / "ours", **{**encoder, "tokenizer": None}, train=rows, **words)
    assert not (tmp_path / "ours" / "teacher").exists()
    assert ours.as_json()["teacher_metrics"] == document["teacher_metrics"]


def test_a_teacher_of_questions_is_not_taught_again(
    bert: Path, encoder: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = {**TASK, "task": "squad", "data": squad_folder(tmp_path / "squad", version=1), "max_length": 32}
    words |= {"epochs": 0.3, "batch_size": 8, "pooling": None}
    caplog.set_level("INFO", logger="archwright")
    teacher = trained(tmp_path / "one", model=str(bert), **words)
    student = trained(
        tmp_path / "two", **{**encoder, "tokenizer": None}, **words, teacher=str(tmp_path / "one" / "model")
    )
    assert "the teacher's own head answers squad" in caplog.text
    assert not (tmp_path / "two" / "teacher").exists()
    told = student.as_json()["teacher_metrics"]
    assert {name: told[name] for name in ("exact", "f1")} == {name: teacher.metrics[name] for name in ("exact", "f1")}


def test_all_of_glue(bert: Path, glue: Path, tmp_path: Path) -> None:
    words = {**TASK, "epochs": 0.3, "max_length": 32}
    found = trained(tmp_path / "run", model=str(bert), glue=glue, **words).as_json()
    assert set(found["columns"]) == {"CoLA", "RTE", "MNLI-m", "MNLI-mm"}
    assert set(found["columns"]["CoLA"]) == {"matthews"}
    assert "GLUE: 3 tasks" in (tmp_path / "run" / "report.html").read_text()
    assert found["columns"]["MNLI-m"] == found["columns"]["MNLI-mm"]  # the same rows here
    average = found["averages"]["test_columns"]
    mean = sum(next(iter(scores.values())) for scores in found["columns"].values()) / 4
    assert average["mean"] is None
    assert average["mean_of_present"] == pytest.approx(mean)
    assert "QQP" in average["missing"]
    with zipfile.ZipFile(tmp_path / "run" / "submission.zip") as archive:
        assert sorted(archive.namelist()) == ["CoLA.tsv", "MNLI-mm.tsv"]
        head, first, second, _ = archive.read("CoLA.tsv").decode().split("\n")
        assert head == "index\tprediction"
        assert first[:2] == "0\t"
        assert second.split("\t")[1] in ("0", "1")
        assert archive.read("MNLI-mm.tsv").decode().split("\n")[1].startswith("7\t")
    stamp = (tmp_path / "run" / "RTE" / "result.json").stat().st_mtime_ns
    again = trained(tmp_path / "run", model=str(bert), glue=glue, **words).as_json()
    assert again["columns"] == found["columns"]
    assert (tmp_path / "run" / "RTE" / "result.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize("version", [1, 2])
def test_questions(version: int, bert: Path, tmp_path: Path) -> None:
    data = squad_folder(tmp_path / "squad", version=version)
    words = {**TASK, "epochs": {1: 1.0, 2: 25.0}[version], "batch_size": 8, "max_length": 32, "pooling": None}
    found = trained(tmp_path / "run", model=str(bert), task="squad", data=data, **words).metrics
    assert found["f1"] >= found["exact"]
    assert ("best_f1" in found) == (version == 2)
    if version == 2:
        assert found["f1"] >= 0.2  # it has seen these very questions
        assert found["best_exact"] >= found["exact"] - 1e-9
        assert found["best_f1"] >= found["f1"] - 1e-9


def test_tags(bert: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.conll"
    sentences = (f"the O\nold O\n{name} B-name\n{name} I-name\nleft O\n\n" for name in ("ann", "bob", "eve") * 20)
    rows.write_text("".join(sentences))
    words = {**TASK, "epochs": 12.0, "pooling": None, "split": "random"}
    found = trained(tmp_path / "run", model=str(bert), train=rows, **words).metrics
    assert set(found) == {"entity_f1", "precision", "recall", "token_accuracy", "rows", "splits"}
    assert found["entity_f1"] > 0.9 and found["precision"] > 0.9 and found["recall"] > 0.9
    judged = aw.train(model=str(tmp_path / "run"), train=rows, evaluate_only=True, max_length=48, split="random")
    assert judged.metrics == found


@pytest.mark.slow
def test_several_labels_per_text(bert: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    sets = (["good"], ["bad", "long"], [], ["long", "good"])
    lines = [{"text": f"a {' '.join(sets[n % 4])} film {n}", "label": sets[n % 4]} for n in range(120)]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = trained(tmp_path / "run", model=str(bert), train=rows, **{**TASK, "epochs": 15.0, "split": "random"})
    assert set(found.metrics) == {"micro_f1", "macro_f1", "accuracy", "rows", "splits"}
    assert found.metrics["micro_f1"] > 0.9
    again = {"train": rows, "evaluate_only": True, "max_length": 48, "split": "random"}
    assert aw.train(model=str(tmp_path / "run"), **again).metrics == found.metrics
    words = {**TASK, "epochs": 1.0, "teacher": str(tmp_path / "run"), "split": "random"}
    taught = trained(tmp_path / "taught", **{**encoder, "tokenizer": None}, train=rows, **words).as_json()
    assert taught["teacher_metrics"]["micro_f1"] == found.metrics["micro_f1"]


def test_held_out_rows_of_a_preset(bert: Path, glue: Path, tmp_path: Path) -> None:
    words = {"max_length": 32, "threads": 1, "steps": 1, "task": "glue/RTE", "data": glue, "batch_size": 4}
    found = trained(tmp_path / "run", model=str(bert), preset="plm-pruning", **words).as_json()
    assert found["rows"] == 34  # 70 % of 48
    assert found["schedule"]["learning_rate"] == 2e-5
    assert set(found["validation"]["after"]["splits"]) == {"test", "validation"}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["options"]["preset"] == "plm-pruning"
