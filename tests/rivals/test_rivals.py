"""A trained network among other networks of its size: each is really trained, within the size, and only once."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import archwright as aw
from archwright.cli.main import main
from archwright.configs import training as to
from archwright.configs.options import make_config
from archwright.designing import limits
from archwright.errors import BadInput
from archwright.reports.rivals import rivals_table, verdict
from archwright.rivals import RIVALS, NoRival, RivalRequest, compressed, first_layers, random_design
from archwright.rivals import pipeline as rivals_pipeline
from archwright.rivals.checkpoint import find_pretrained
from archwright.rivals.random_design import choose_random_design
from archwright.spaces import ARCHITECTURES
from archwright.store import begin_run
from archwright.training.students import StudentDesign
from tests.compression.runs import saved_model
from tests.training.pipeline.runs import DESIGNS

SPACE = ARCHITECTURES["nlu-tiny"]
STUDENT: dict[str, Any] = {
    "space": "nlu-tiny", "max_length": 24, "threads": 1, "batch_size": 16, "steps": 4, "learning_rate": 1e-3,
    "teacher_epochs": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Path:
    """Wide enough that its token table alone is larger than the student."""
    return saved_model(tmp_path_factory.mktemp("teacher") / "wide", minilm, hidden_size=288, intermediate_size=300)


@pytest.fixture
def student(rows: Path, tmp_path: Path) -> dict[str, Any]:
    design = tmp_path / "config.json"
    design.write_text(json.dumps(DESIGNS["nlu-tiny"]))
    return {**STUDENT, "config": design, "train": rows}


def test_a_teacher_that_was_fine_tuned_here_leads_back_to_its_checkpoint(
    rows: Path, bert: Path, tmp_path: Path
) -> None:
    aw.train(model=str(bert), train=rows, steps=2, batch_size=8, max_length=16, threads=1, out=tmp_path / "tuned")
    for name in (tmp_path / "tuned", tmp_path / "tuned" / "model"):
        assert find_pretrained(str(name)) == str(bert.resolve())
    assert find_pretrained("minilm") == "minilm"
    (tmp_path / "tuned" / "model").rename(tmp_path / "alone")
    with pytest.raises(NoRival, match="fine-tuned already, and no run beside it"):
        find_pretrained(str(tmp_path / "alone"))


@pytest.mark.parametrize("model", [None, "another-bert"])
def test_the_teacher_in_a_run_leads_back_to_the_teacher_of_the_run(model: str | None, tmp_path: Path) -> None:
    begin_run(tmp_path, {"command": "train", "model": model, "teacher": "minilm"})
    (tmp_path / "teacher").mkdir()
    (tmp_path / "teacher" / "config.json").write_text(json.dumps({"model_type": "archwright_pruned"}))
    assert find_pretrained(str(tmp_path / "teacher")) == "minilm"


def test_all_rivals_of_a_student(
    student: dict[str, Any], teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    words = {**student, "teacher": str(teacher), "start": "teacher", "out": tmp_path / "run"}
    plain = aw.train(**words).as_json()
    assert "rivals" not in plain
    found = aw.train(**words, rivals=("first-layers", "compress", "random-design"))  # goes on with the same folder
    document = found.as_json()["rivals"]
    own, first, small, drawn = document["networks"]
    assert [row["rival"] for row in document["networks"]] == ["this network", *RIVALS]
    assert own["metrics"] == plain["validation"]["after"]["splits"]["test"] and own["parameters"] == plain["parameters"]
    for row in (first, small, drawn):
        assert row["missing"] is None and 0 < row["parameters"] <= own["parameters"], row
        assert set(row["metrics"]) == set(own["metrics"]) and row["seconds"] > 0
    assert "first 3 layers of wide" in first["what"] and "30,522" not in first["what"]  # tokens had to go
    assert drawn["steps"] == own["steps"] and drawn["parameters"] > 0.9 * own["parameters"]
    settings = json.loads((tmp_path / "run/rivals/random-design/training/run.json").read_text())["options"]
    assert settings["teacher"] == str(tmp_path / "run" / "teacher")  # which has learnt the task already

    with monkeypatch.context() as patch:
        patch.setattr(rivals_pipeline, "RIVALS", {})  # nothing is trained again
        again = aw.train(**words, rivals=("first-layers", "compress", "random-design")).as_json()["rivals"]
    assert again == document == json.loads((tmp_path / "run" / "result.json").read_text())["rivals"]
    assert "Rivals of the same size and time" in (tmp_path / "run" / "report.html").read_text()
    lines = rivals_table(document)
    assert lines.columns[0].texts[1] == "first-layers" and len(lines.rows) == 4


def test_a_new_head_is_one_that_compress_has_trained(
    student: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picked = SimpleNamespace(entry={"trial": 0}, config={})
    folder = SimpleNamespace(seconds={"search": 1.0})
    run = SimpleNamespace(select=lambda **_: picked, folder=folder, result={})
    judged: list[to.TrainConfig] = []

    def evaluate(config: to.TrainConfig) -> dict[str, Any]:
        judged.append(config)
        return {"parameters": 1, "validation": {"after": {}}}

    monkeypatch.setattr(compressed, "run_compression", lambda _: run)
    monkeypatch.setattr(compressed, "evaluate_only", evaluate)
    (tmp_path / "network").mkdir()
    config = make_config(to.TrainConfig, {**student, "head": "new"})
    RIVALS["compress"](RivalRequest(config, tmp_path, tmp_path, 1, 1.0, steps=1))
    assert judged[0].task.head == "auto" and judged[0].student.model == str(tmp_path / "network")


def test_only_a_reason_of_size_is_lasting(
    student: dict[str, Any], bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compress(_: Any) -> Any:
        raise BadInput("another command works in it; wait for it.")

    monkeypatch.setattr(compressed, "run_compression", compress)
    config = make_config(to.TrainConfig, {**student, "teacher": str(bert)})
    request = RivalRequest(config, tmp_path, tmp_path / "compress", 5_000, 1.0, steps=1)
    row = rivals_pipeline.run_rival("compress", request, "accuracy")
    assert row["missing"] == "another command works in it; wait for it" and row["metrics"] is None
    monkeypatch.undo()
    row = rivals_pipeline.run_rival("compress", request, "accuracy")  # tried again
    assert "--total-params must be at least" in row["missing"]
    monkeypatch.setattr(rivals_pipeline, "RIVALS", {})
    assert rivals_pipeline.run_rival("compress", request, "accuracy") == row


def test_reasons_take_the_place_of_rivals_that_there_are_not(bert: Path, rows: Path, tmp_path: Path) -> None:
    words = {"model": str(bert), "train": rows, "max_length": 24, "threads": 1, "steps": 2, "batch_size": 8}
    found = aw.train(**words, rivals=("random-design",), out=tmp_path / "run").as_json()["rivals"]
    row = found["networks"][1]
    assert row["metrics"] is None and "went on from trained weights" in row["missing"]
    assert verdict(found) == ["There is no rival of this size to compare with."]
    config = make_config(to.TrainConfig, words)
    request = RivalRequest(config, tmp_path / "run", tmp_path / "small", 50_000, 0.1, steps=2)
    request = replace(request, config=replace(config, objective=replace(config.objective, teacher=str(bert))))
    reasons = {
        ("first-layers", 50_000): "one layer of bert has .* parameters with the task's tokens alone",
        ("compress", 5_000): "--total-params must be",
    }
    for (name, parameters), reason in reasons.items():
        with pytest.raises(NoRival, match=reason):
            RIVALS[name](replace(request, parameters=parameters, folder=tmp_path / "small" / name))
        assert not (tmp_path / "small" / name / "run").exists()


def test_a_random_design_is_of_the_student_s_size_and_follows_from_the_seed() -> None:
    design = StudentDesign(SPACE, DESIGNS["nlu-tiny"] | {"block.0": "base-528", "block.1": "base-528"})
    most = SPACE.counts(design.config).parameters
    drawn = [choose_random_design(design, seed) for seed in range(5)]
    assert drawn == [choose_random_design(design, seed) for seed in range(5)] and drawn[0] != drawn[1]
    assert all(0.95 * most <= SPACE.counts(config).parameters <= most for config in drawn)
    smallest = StudentDesign(SPACE, {f"block.{place}": "mobile-132" for place in range(6)})
    with pytest.raises(NoRival, match="none of 1,000 random designs"):
        choose_random_design(smallest, 0)


def trainings_of_rivals(
    monkeypatch: pytest.MonkeyPatch, folder: Path, result: dict[str, Any], **options: Any
) -> tuple[list[to.TrainConfig], dict[str, Any]]:
    """What the rivals of this student would be trained with, and the table; nothing is trained."""
    configs: list[to.TrainConfig] = []

    def train(config: to.TrainConfig, _: Path) -> dict[str, Any]:
        configs.append(config)
        return {**STUDENT_RESULT, "parameters": 1}

    monkeypatch.setattr(first_layers, "run_training", train)
    monkeypatch.setattr(random_design, "run_training", train)
    monkeypatch.setattr(first_layers, "cut_checkpoint", lambda *_: None)
    monkeypatch.setattr(first_layers.PrunedConfig, "from_pretrained", lambda _: None)
    monkeypatch.setattr(first_layers, "describe_cut", lambda *_: "layers")
    design = folder / "config.json"
    design.write_text(json.dumps(DESIGNS["nlu-tiny"]))
    words = {"space": "nlu-tiny", "config": design, "rivals": ("first-layers", "random-design"), **options}
    return configs, rivals_pipeline.run_rivals(make_config(to.TrainConfig, words), folder, result)


STUDENT_RESULT: dict[str, Any] = {
    "task": "movie-reviews", "metric": "accuracy", "parameters": 8_000_000, "steps": 40, "collapse": None,
    "seconds": {"prepared": 50.0, "training": 90.0, "validation": 10.0, "total": 155.0},
    "validation": {"before": None, "after": {"rows": 10, "splits": {"test": {"accuracy": 0.7}}}},
}  # fmt: skip


@pytest.mark.parametrize(("minutes", "given"), [(None, 155.0), (30.0, 155.0), (2.0, 120.0)])
def test_first_layers_are_trained_until_the_student_s_time_is_up(
    minutes: float | None, given: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs, table = trainings_of_rivals(monkeypatch, tmp_path, STUDENT_RESULT, minutes=minutes, accumulate=3)
    schedule = configs[0].schedule
    assert table["minutes"] == schedule.minutes == pytest.approx(given / 60)
    assert schedule.epochs is not None and schedule.epochs > 1e5  # the preset would end it after 3
    assert schedule.accumulate == 3


@pytest.mark.parametrize(
    ("minutes", "total", "given", "steps"),
    [(30.0, 155.0, 155.0, 100), (30.0, 12.0, 145.0, 100), (None, 155.0, 155.0, 40)],
    ids=["undisturbed", "resumed", "without minutes"],
)
def test_what_came_before_a_collapse_counts_once(
    minutes: float | None, total: float, given: float, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"prepared": 50.0, "training": 40.0, "validation": 10.0, "total": total}
    result = {**STUDENT_RESULT, "seconds": seconds, "collapse": {"step": 60, "seconds": 45.0}}
    configs, table = trainings_of_rivals(monkeypatch, tmp_path, result, minutes=minutes)
    own = table["networks"][0]
    assert own["seconds"] == pytest.approx(given) == 60 * configs[0].schedule.minutes
    assert configs[1].schedule.steps == steps and own["steps"] == 40


def test_the_table_says_which_way_is_better() -> None:
    own = {"rival": "this network", "what": "a design", "parameters": 9_000_000, "seconds": 60.0, "missing": None}
    other = {**own, "rival": "compress", "metrics": {"accuracy": 0.9}}
    rivals = {"task": "glue/SST-2", "metric": "accuracy", "rows": 872, "minutes": 1.0}
    published = {"models": [{"model": "TinyBERT-4", "parameters": 14_500_000, "table": 3, "scores": {"SST-2": 92.7}}]}
    rivals["networks"] = [{**own, "metrics": {"accuracy": 0.8}}, other]
    better = rivals_table({**rivals, "published_scores": published})
    assert better.captions[0].startswith("compress is better: accuracy 0.9 against 0.8.")
    assert "standard error of about 1.9 points" in better.captions[0]
    assert better.styles == {1: "bold", 2: "dim"}
    assert better.rows[2][-1].text == "published (Table 3), not measured here: SST-2 92.7"
    rivals["networks"] = [{**own, "metrics": {"accuracy": 0.95}}, other]
    assert rivals_table(rivals).captions[0].startswith("None of the rivals is better in accuracy.")


def test_a_found_design_among_rivals(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, minilm: Path) -> None:
    monkeypatch.setattr(limits, "CAREFUL", 1)
    text = tmp_path / "some.txt"
    text.write_text("The river rose and the old bridge was closed .\n" * 60)
    asked: list[to.TrainConfig] = []

    def quick_training(config: to.TrainConfig, folder: Path) -> dict[str, Any]:
        asked.append(config)
        after = {"accuracy": 0.7, "rows": 10, "splits": {"test": {"accuracy": 0.7}}}
        seconds = {"prepared": 1.0, "training": 2.0, "validation": 1.0, "total": 4.0}
        facts = {"task": "movie-reviews", "metric": "accuracy", "validation": {"before": None, "after": after}}
        return {**facts, "parameters": 8_000_000, "steps": 3, "seconds": seconds}

    monkeypatch.setattr(rivals_pipeline, "run_training", quick_training)
    monkeypatch.setattr("archwright.rivals.random_design.run_training", quick_training)
    words = {"space": "nlu-tiny", "text": text, "out": tmp_path / "out", "batch_rows": 2, "length": 8, "workers": 1}
    words |= {"population": 2, "generations": 1, "rivals": ("random-design",), "rivals_minutes": 0.5}
    found = aw.design(**words)
    student, drawn = asked
    assert student.student.start == "teacher" and student.schedule.minutes == 0.5
    assert json.loads(Path(str(student.student.config)).read_text()) == found.config
    assert (
        drawn.schedule.steps == 3 and drawn.schedule.minutes is None and drawn.student.config != student.student.config
    )
    assert [row["rival"] for row in found.document["rivals"]["networks"]] == ["this network", "random-design"]
    assert json.loads((tmp_path / "out" / "design.json").read_text())["rivals"] == found.document["rivals"]
    assert "Rivals of the same size and time" in found.page.read_text()


WRONG: dict[str, tuple[list[str], str]] = {
    "twice": (["train", "--model", "minilm", "--rivals", "compress,compress"], "must name each rival once"),
    "text": (["train", "--lesson", "mlm", "--corpus", "x", "--rivals", "compress"], "got --lesson mlm"),
    "judging": (["train", "--model", "minilm", "--evaluate-only", "--rivals", "compress"], "got --evaluate-only"),
    "unknown": (["train", "--model", "minilm", "--rivals", "compres"], "did you mean compress?"),
    "a space of decoders": (["design", "--space", "gpt2", "--rivals", "compress"], "needs a space of encoders"),
    "minutes alone": (["design", "--rivals-minutes", "3"], "--rivals-minutes has no effect without --rivals"),
    "no such task": (["design", "--rivals", "compress", "--rivals-task", "glue/SST-2"], "needs --data"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_uses_are_refused_in_one_line(
    line: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*line, "--out", str(out)]) == 2
    complaint = capsys.readouterr().err.strip()
    assert reason in complaint and "\n" not in complaint and not out.exists()


def test_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals_pipeline, "launched_processes", lambda: 2)
    with pytest.raises(BadInput, match="the work of one process"):
        rivals_pipeline.check_train_rivals(make_config(to.TrainConfig, {"model": "minilm", "rivals": ("compress",)}))
