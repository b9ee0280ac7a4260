"""select and export of a finished run: the budget is kept, the answer is complete, what is written works elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import archwright as aw
from archwright.cli.main import main
from archwright.compression.budgets.within_limits import BudgetChoice
from archwright.errors import BadInput
from archwright.exporting.formats import FORMATS
from archwright.reports.compress.summary import keep_words, size_words, writing_words
from tests.cli.test_early_checks import RUN, SOURCE
from tests.compression.runs import compressed, refusal, words_of

TELLS_LABELS = """
import json, sys
from transformers import pipeline
tell = pipeline("text-classification", model=sys.argv[1], trust_remote_code=True)
assert "archwright" not in sys.modules
print(json.dumps(tell(["the film is very good", "a dull story"], top_k=None)))
"""


def answered(tmp_path: Path, command: str, *positional: Any, **options: Any) -> dict[str, Any]:
    file = tmp_path / "answer.json"
    assert main(words_of(command, *positional, **options, json=file, quiet=True)) == 0
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_language_model_is_told_with_the_time_of_a_written_token() -> None:
    entry, original = ({"generation_ms": {"median": median}} for median in (12.5, 50.0))
    assert writing_words(entry, original) == "12.50 ms per written token (25% of the original), "
    assert writing_words({"generation_ms": None}, original) == writing_words({}, {}) == ""


def test_what_was_measured_for_a_budget_is_told() -> None:
    memory = {"disk": 64_700_000, "peak": 73_000_000, "runtime": 389_000_000, "length": 24}
    assert size_words({"memory": memory}) == "64.7 MB on disk and 73.0 MB of peak memory (24 tokens), "
    assert size_words({"int8_file_bytes": 15_200_000}) == "15.2 MB as int8 ONNX, "
    tested = {"int8_file_bytes": 15_200_000, "int8_test_error": 0.275}
    assert size_words(tested) == "15.2 MB as int8 ONNX with a test error of 27.50%, "
    assert size_words({"memory": None, "int8_file_bytes": None}) == ""


@pytest.fixture
def copied(tmp_path: Path, run: Any) -> Path:
    return Path(shutil.copytree(run.folder.path, tmp_path / "run"))


def within(run: Any, test: Any) -> list[dict[str, Any]]:
    return [entry for entry in run.front if test(entry)]


def test_by_parameters_the_most_accurate(tmp_path: Path, run: Any) -> None:
    for share in (0.3, 0.45, 1.0):
        found = answered(tmp_path, "select", run.folder.path, params=f"{100 * share:g}%")
        fitting = within(run, lambda e, most=share: e["nonembedding_share"] <= most)
        assert found["selected"] in fitting
        assert found["selected"]["validation_error"] == min(e["validation_error"] for e in fitting)


def test_by_a_number_of_all_parameters(tmp_path: Path, run: Any) -> None:
    most = sorted(entry["parameters"] for entry in run.front)[1]
    found = answered(tmp_path, "select", run.folder.path, params=most, total_params=True)["selected"]
    assert found["parameters"] <= most


def tried_networks(run: Any) -> list[dict[str, float]]:
    """Search error and counted costs of every trial, counted again here."""
    from archwright.compression.methods import load_evaluator
    from archwright.search import config_of

    evaluator = load_evaluator(run.folder)
    found = []
    for trial in evaluator.open_study().get_trials(deepcopy=False):
        spec = evaluator.space.build(config_of(evaluator.space.choices, trial))
        costs = {name: evaluator.cost(name, spec) for name in ("flops", "int8_bytes", "parameters")}
        found.append({"error": evaluator.trial_error(trial), "trial": trial.number, **costs})
    return found


def test_by_latency_among_all_that_was_tried(tmp_path: Path, copied: Path, run: Any) -> None:
    most = sorted(entry["latency_ms"]["median"] for entry in run.front)[1]
    found = answered(tmp_path, "select", copied, latency_ms=most)["selected"]
    fitting = within(run, lambda e: e["latency_ms"]["median"] <= most)
    assert found["latency_ms"]["median"] <= most
    assert found["validation_error"] <= min(e["validation_error"] for e in fitting)


def test_by_flops_the_lowest_error_of_all_trials(tmp_path: Path, copied: Path, run: Any) -> None:
    tried = tried_networks(run)
    for share in (0.35, 0.7):
        most = share * run.result["original"]["flops"]
        found = answered(tmp_path, "select", copied, flops=f"{100 * share}%")["selected"]
        assert found["flops"] <= most
        assert found["validation_error"] == min(t["error"] for t in tried if t["flops"] <= most)


def test_a_pick_beside_the_front_is_as_complete_as_a_member(copied: Path, run: Any, tmp_path: Path, capfd: Any) -> None:
    stored = aw.open_run(copied).select(flops=0.6).entry
    others = [entry for entry in run.front if entry["trial"] != stored["trial"]]
    (copied / "picked.json").unlink()
    (copied / "result.json").write_text(json.dumps({**run.result, "front": others}))  # as if the front had missed it
    again = aw.open_run(copied)
    pick = again.select(flops=0.6, max_loss="100%")
    assert pick.entry["trial"] == stored["trial"]
    assert set(pick.entry) >= set(run.front[0]) and pick.entry["test_rows"] == run.front[0]["test_rows"]
    for name in ("validation_error", "test_error", "test_loss", "flops", "parameters", "config", "keep"):
        assert pick.entry[name] == stored[name]
    assert again.member(pick.entry["trial"]).entry == pick.entry  # noted: `export --trial` finds it
    answered(tmp_path, "export", copied, trial=pick.entry["trial"], to="compact", out=tmp_path / "out")
    assert (tmp_path / "out" / "README.md").read_text().count("test rows")
    assert main(words_of("select", copied, flops="60%", params="60%")) == 0
    shown = capfd.readouterr().out
    assert "considered: " in shown and "FLOPs; " in shown and "validation rows" in shown


@pytest.mark.parametrize(
    ("refused", "ending"), [(0, "rows"), (1, "1 better one takes more"), (2, "2 better ones take more")]
)
def test_networks_that_cost_more_when_measured_are_told(refused: int, ending: str) -> None:
    context = SimpleNamespace(holdout_rows=[], halves=None)
    choice = BudgetChoice(SimpleNamespace(context=context), {}, SimpleNamespace(words="16 MB with 8-bit weights"))
    choice.__dict__.update(fitting=[1, 2, 3], tried=range(9))
    words = choice.words(3, refused=refused)
    assert words.startswith("considered: 3 of 9 networks are within 16 MB with 8-bit weights; ") and words.endswith(
        ending
    )


def test_memory_is_measured_in_a_fresh_process(copied: Path, run: Any) -> None:
    again = aw.open_run(copied)
    pick = again.select(memory="500MB").entry
    assert pick["memory"]["disk"] >= 4 * pick["parameters"]
    assert pick["memory"]["peak"] > 0.9 * 4 * pick["parameters"] and pick["memory"]["runtime"] > pick["memory"]["peak"]
    assert pick["memory"]["length"] == run.result["latency"]["length"]
    with pytest.raises(BadInput, match=r"no sub-network that was tried is within .* of memory"):
        again.select(memory="10KB")


@pytest.mark.slow
def test_int8_size_is_that_of_the_file(copied: Path, run: Any) -> None:
    again = aw.open_run(copied)
    counted = sorted(t["int8_bytes"] for t in tried_networks(run))
    pick = again.select(int8_size=f"{1.3 * counted[len(counted) // 2] / 1e6}MB").entry
    assert pick["int8_bytes"] < pick["int8_file_bytes"] <= 1.3 * counted[len(counted) // 2]


def test_by_loss_the_smallest(tmp_path: Path, run: Any) -> None:
    worst = sorted(entry["validation_error"] for entry in run.front)[1]
    points = 100 * max(0.0, worst - run.result["original"]["validation_error"]) + 0.01
    found = answered(tmp_path, "select", run.folder.path, max_loss=f"{points}%")["selected"]
    fitting = within(run, lambda e: e["validation_error"] <= run.result["original"]["validation_error"] + points / 100)
    assert found["nonembedding_parameters"] == min(e["nonembedding_parameters"] for e in fitting)


def test_surely_asks_for_the_upper_end_of_the_loss(run: Any) -> None:
    ends = sorted(entry["loss"]["high"] for entry in run.front)
    picked = run.select(max_loss=f"{100 * max(ends[0], 0) + 0.01}%", surely=True).entry
    assert picked["loss"]["high"] <= max(ends[0], 0) + 1e-4
    if ends[0] > 0:
        with pytest.raises(BadInput, match="no sub-network on the front is within the budget"):
            run.select(max_loss=f"{99 * ends[0]}%", surely=True)
    with pytest.raises(BadInput, match="--surely is about --max-loss"):
        run.select(params="50%", surely=True)


def test_a_combination_keeps_every_budget(tmp_path: Path, run: Any) -> None:
    slowest = max(entry["latency_ms"]["median"] for entry in run.front)
    found = answered(tmp_path, "select", run.folder.path, params="60%", latency_ms=slowest, max_loss="100%")["selected"]
    assert found["nonembedding_share"] <= 0.6


def test_the_answer(tmp_path: Path, run: Any, capfd: Any) -> None:
    found = answered(tmp_path, "select", run.folder.path, params="45%")
    assert set(found) == {"schema", "original", "latency", "selected", "neighbours", "recovery", "export"}
    length = run.result["latency"]["length"]
    assert found["latency"] == {"batch": 1, "length": length, "runtime": "torch", "threads": 1}
    assert found["schema"] == "archwright/select/1" and found["export"] is None and found["recovery"] is None
    assert found["original"] == run.result["original"]
    place = run.front.index(found["selected"])
    assert found["neighbours"] == [run.front[i] for i in (place - 1, place + 1) if 0 <= i < len(run.front)]
    capfd.readouterr()
    assert main(["select", str(run.folder.path), "--params", "45%", "--threads", "1"]) == 0
    shown = capfd.readouterr().out
    assert shown.startswith(f"selected: trial {found['selected']['trial']}, ")
    assert f" ms ({length} tokens, torch, 1 thread; " in shown
    assert f"archwright export {run.folder.path} --trial {found['selected']['trial']} --to compact" in shown


IMPOSSIBLE = {
    "too small": (["--params", "0.1%"], "the smallest has"),
    "too fast": (["--latency-ms", "0.0001"], "the least any of them takes is"),
    "too few operations": (["--flops", "0.01%"], "the least any of them takes is"),
    "no size": (["--memory", "lots"], "--memory must be a share such as 60% or a size such as 12MB"),
    "size below zero": (["--int8-size", "-3MB"], "--int8-size"),
    "no budget": ([], "a budget is needed"),
    "no number": (["--params", "lots"], "--params"),
    "negative": (["--params", "-3"], "--params"),
    "latency of zero": (["--latency-ms", "0"], "--latency-ms"),
    "loss without end": (["--max-loss", "300%"], "--max-loss"),
    "negative threads": (["--params", "50%", "--threads", "-2"], "--threads"),
    "negative recovery": (["--params", "50%", "--recover-epochs", "-2"], "--recover-epochs"),
    "unknown format": (["--params", "50%", "--to", "tflite"], "--to"),
    "repair of nothing": (["--params", "50%", "--repair", "mask"], "--recover-epochs"),
    "unknown repair": (["--params", "50%", "--recover-epochs", "1", "--repair", "glue"], "--repair"),
}


@pytest.mark.parametrize(("words", "rule"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_selected(words: list[str], rule: str, run: Any, capfd: Any) -> None:
    code, line = refusal(capfd, ["select", str(run.folder.path), *words])
    assert code == 2 and rule in line


def test_what_cannot_be_exported(run: Any, tmp_path: Path, capfd: Any) -> None:
    trial, out = run.front[0]["trial"], tmp_path / "out"
    wrong = {
        "--to": ["--trial", str(trial)],
        "front": ["--trial", "999", "--to", "compact"],
        "recover": ["--trial", str(trial), "--recovered", "--to", "compact"],
        "int8": ["--trial", str(trial), "--to", "compact", "--int8"],
    }
    for rule, words in wrong.items():
        code, line = refusal(capfd, ["export", str(run.folder.path), *words, "--out", str(out)])
        assert code == 2 and rule in line, line
    assert not out.exists()


@pytest.mark.parametrize("to", [name for name in FORMATS if name != "hf"])
def test_every_format(to: str, run: Any, tmp_path: Path) -> None:
    entry = min(run.front, key=lambda e: abs(e["nonembedding_share"] - 0.4))
    found = answered(tmp_path, "export", run.folder.path, trial=entry["trial"], to=to, out=tmp_path / "out")
    assert found["format"] == to
    assert Path(found["folder"]) == tmp_path / "out"
    assert (tmp_path / "out" / "parity.json").exists() and (tmp_path / "out" / "tokenizer.json").exists()
    if to == "compact":
        assert found["parameters"] == entry["parameters"]


def test_stock_classes_where_the_sizes_allow_it(tmp_path: Path, given: dict[str, Any]) -> None:
    whole = compressed(tmp_path / "run", **given, corners=("largest",), trials=1)
    found = answered(tmp_path, "export", tmp_path / "run", trial=whole.front[0]["trial"], to="hf", out=tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "bert"
    assert found["format"] == "hf"


def test_the_original_can_be_exported(run: Any, tmp_path: Path) -> None:
    found = answered(tmp_path, "export", run.folder.path, trial=-1, to="compact", out=tmp_path / "out")
    assert found["parameters"] == run.result["original"]["parameters"]


def test_recovery_trains_the_chosen_one_and_export_finds_it(copied: Path, tmp_path: Path, capfd: Any) -> None:
    found = answered(
        tmp_path,
        "select",
        copied,
        params="60%",
        recover_epochs=8,
        recover_learning_rate=3e-3,
        threads=1,
        to="compact",
        out=tmp_path / "better",
    )
    trial = found["selected"]["trial"]
    assert {"epochs", "before", "after"} <= set(found["recovery"])
    assert found["recovery"]["before"]["validation_error"] == found["selected"]["validation_error"]
    assert found["recovery"]["before"]["test_error"] == found["selected"]["test_error"]
    assert found["recovery"]["after"]["validation_error"] <= found["recovery"]["before"]["validation_error"]
    plain = answered(tmp_path, "export", copied, trial=trial, to="compact", out=tmp_path / "plain")
    again = answered(tmp_path, "export", copied, trial=trial, to="compact", recovered=True, out=tmp_path / "again")
    assert plain["parameters"] == again["parameters"]
    weights = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("better", "again", "plain")]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize("repair", [None, "none", "least-squares"])
def test_recovery_says_what_it_started_from(repair: str | None, copied: Path, tmp_path: Path, capfd: Any) -> None:
    asked = {"recover_epochs": 0.1, "threads": 1, "json": tmp_path / "answer.json"} | (
        {"repair": repair} if repair else {}
    )
    assert main(words_of("select", copied, params="60%", **asked)) == 0
    found = json.loads((tmp_path / "answer.json").read_text())["recovery"]
    assert found["repair"] == repair or (repair is None and found["repair"] in ("none", "least-squares"))
    assert (found["repaired"] is None) == (found["repair"] == "none")
    said = "the weights it was searched with" if found["repair"] == "none" else "weights after least-squares repair"
    assert f"recovered in 0.1 epochs from {said}" in capfd.readouterr().out


def test_selected_and_exported_it_works_without_archwright(run: Any, tmp_path: Path) -> None:
    """In another process, which could not import archwright if it tried."""
    for to in ("compact", "hf-padded"):
        answered(tmp_path, "select", run.folder.path, params="60%", to=to, out=tmp_path / to)
    (tmp_path / "archwright.py").write_text("raise ImportError('not here')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    answers = []
    for to in ("compact", "hf-padded"):
        command = [sys.executable, "-c", TELLS_LABELS, str(tmp_path / to)]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert told.returncode == 0, told.stderr
        answers.append(
            {(i, row["label"]): row["score"] for i, rows in enumerate(json.loads(told.stdout)) for row in rows}
        )
    assert {label for _, label in answers[0]} == {"good", "bad"}
    assert answers[0] == pytest.approx(answers[1], abs=1e-4)


def test_what_is_kept_is_told_in_words_and_never_as_a_config(run: Any, capfd: Any) -> None:
    member = {
        "keep": [[12, 1536], [4, 100], [4, 100], [0, 0], [0, 7]],
        "source": "original-80",
        "config": {"x": "HA=="},
    }
    told = "keeps 4 of 5 layers (heads/units 12/1536, 2 x 4/100, -, 0/7), made as the candidate original-80"
    assert keep_words(member) == told
    assert keep_words({"keep": [[1, 2]], "source": "supernet"}) == "keeps 1 of 1 layers (heads/units 1/2)"
    assert main(["select", str(run.folder.path), "--params", "100%", "--threads", "1"]) == 0
    shown = capfd.readouterr().out
    assert "layers (heads/units " in shown and "config" not in shown and "{" not in shown


def test_a_budget_that_nothing_meets_is_found_without_torch(run: Any) -> None:
    words = json.dumps([["select", str(run.folder.path), "--params", "0.1%"]])
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", RUN, words], capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout) == [[2], []] and "the smallest has" in done.stderr
