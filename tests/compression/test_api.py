"""The Python API, the list of commands and its presets, fine-tuned checkpoints, and the budget of minutes."""

import typing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForSequenceClassification

import archwright as aw
from archwright.commands import COMMANDS, call
from archwright.configs import compress as o
from archwright.configs.options import config_options, group_options, option_groups
from archwright.errors import BadInput
from tests.compression.runs import QUICK, compressed, saved_model, table_file


def test_a_run_in_python(run: Any, tmp_path: Path) -> None:
    pick = run.select(params=0.5)
    assert pick.entry in run.front and pick.entry["nonembedding_share"] <= 0.5
    report = pick.save_pretrained(tmp_path / "small")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "small", trust_remote_code=True)
    assert sum(p.numel() for p in loaded.parameters()) == pick.entry["parameters"] == report["parameters"]
    assert sum(p.numel() for p in pick.network.parameters()) == pick.entry["parameters"]
    assert loaded.config.id2label == {0: "bad", 1: "good"}


def test_an_opened_run_is_the_one_that_was_returned(run: Any, capsys: Any) -> None:
    for folder in (run.folder.path, str(run.folder.path)):
        again = aw.open_run(folder)
        assert again.front == run.front and again.as_json() == run.as_json()
    with pytest.raises(BadInput, match=r"run\.json"):
        aw.open_run(run.folder.path / "original")
    assert again.select(params="50%").entry == run.select(params=0.5).entry
    assert again.member(run.front[0]["trial"]).config == run.front[0]["config"]


def test_paths_may_be_text_and_names_lists(tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(str(tmp_path / "run"), model=given["model"], train=str(given["train"]), objectives=["flops"])  # type: ignore[arg-type]
    assert found.result["objectives"] == ["validation_error", "flops"]
    picked = aw.select(run=str(tmp_path / "run"), params="100%", threads=1)
    written = aw.export(run=str(tmp_path / "run"), trial=picked.pick.entry["trial"], to="compact")
    assert written.folder == tmp_path / "run" / "export" / f"trial-{picked.pick.entry['trial']}-compact"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_groups_are_what_the_job_takes(name: str) -> None:
    module, _, job = COMMANDS[name].target.partition(":")
    signature = typing.get_type_hints(getattr(import_module(module), job))
    signature.pop("return")
    assert tuple(signature.values()) == (COMMANDS[name].config,)
    groups = option_groups(COMMANDS[name].config).values()
    options = [option for group in groups for option in group_options(group)]
    assert len(options) == len(set(options))
    assert set(COMMANDS[name].positional) <= set(options)


@pytest.mark.parametrize("preset", o.PRESETS)
def test_presets_set_options_that_exist_and_could_be_given(preset: str) -> None:
    known = config_options(o.CompressConfig)
    assert set(o.PRESETS) == set(o.PRESET_HELP)
    for name, value in o.PRESETS[preset].items():
        assert known[name].parse(value) == value


def groups_of(monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, Any]:
    """What the job would get."""
    seen: dict[str, Any] = {}
    monkeypatch.setattr("archwright.commands.compress.compress", lambda config: seen.update(vars(config)))
    call(COMMANDS["compress"], options)
    return seen


def test_the_preset_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = groups_of(monkeypatch, preset="paper", trials=7)
    supernet, search = seen["supernet"], seen["search"]
    assert (supernet.learning_rate, supernet.batch_size, supernet.epochs) == (2e-5, 4, 5.0)
    assert (supernet.temperature, supernet.order, supernet.strategy) == (10.0, "none", "full")
    assert search.corners == ("largest", "smallest", "middle")
    assert search.trials == 7  # what is given wins
    assert groups_of(monkeypatch, preset="paper")["search"].trials == 100
    assert groups_of(monkeypatch)["supernet"] == o.SupernetOptions()


def test_a_fine_tuned_checkpoint_is_the_original(tmp_path: Path, minilm: Path) -> None:
    """Its head and the order of its labels are taken over, and it is not trained before it is compared with."""
    model = saved_model(tmp_path / "model", minilm, head={0: "Good", 1: "Bad"})
    rows = table_file(tmp_path / "rows.csv")
    options = {name: value for name, value in QUICK.items() if name != "original_epochs"}
    run = aw.compress(**options, model=str(model), train=rows, out=tmp_path / "run")
    assert run.folder.note("plan")["original"] == 0
    assert run.result["pooling"] == "cls"
    stock = AutoModelForSequenceClassification.from_pretrained(model).state_dict()
    ours = AutoModelForSequenceClassification.from_pretrained(
        run.select(params=1.0).save_pretrained(tmp_path / "x")["folder"], trust_remote_code=True
    )
    assert [ours.config.id2label[i].casefold() for i in (0, 1)] == ["good", "bad"]
    from safetensors.torch import load_file

    kept = load_file(run.folder.original / "model.safetensors")
    assert any(tensor.equal(stock["classifier.weight"]) for tensor in kept.values() if tensor.shape == (2, 48))


def test_a_head_for_other_labels_is_replaced(tmp_path: Path, minilm: Path, rows: Path) -> None:
    model = saved_model(tmp_path / "model", minilm, head={0: "spam", 1: "ham"})
    options = {name: value for name, value in QUICK.items() if name != "original_epochs"}
    run = aw.compress(**options, model=str(model), train=rows, out=tmp_path / "run")
    assert run.folder.note("plan")["original"] > 0


def test_minutes_shorten_both_trainings_alike(tmp_path: Path, given: dict[str, Any]) -> None:
    wanted = {"epochs": 4000.0, "original_epochs": 2000.0}
    run = compressed(tmp_path / "run", **given, **{**wanted, "minutes": 0.08, "trials": 10_000})
    plan = run.folder.note("plan")
    assert 1 <= plan["original"] < 2000 * 4 and 1 <= plan["supernet"] < 4000 * 4
    assert 1 <= len(run.result["trials"]) < 10_000
    again = compressed(tmp_path / "run", **given, **{**wanted, "minutes": 0.08, "trials": 10_000})
    assert again.result == run.result


def test_a_search_without_time_says_that_sizes_are_missing(tmp_path: Path, given: dict[str, Any], caplog: Any) -> None:
    run = compressed(tmp_path / "run", **given, space="chain", order="fisher", minutes=0.0001, trials=40)
    tried = len(run.result["trials"])
    assert tried < 10 and f"time was up after {tried} of the " in caplog.text and "raise --minutes" in caplog.text


def test_minutes_that_suffice_change_nothing(tmp_path: Path, given: dict[str, Any]) -> None:
    plans = [compressed(tmp_path / str(m), **given, **m).folder.note("plan") for m in ({}, {"minutes": 60.0})]
    assert plans[0] == plans[1]


def test_preview_trains_nothing_and_writes_one_page(tmp_path: Path, bert: Path) -> None:
    found = aw.compress(preview=str(bert), out=tmp_path / "look").as_json()
    assert found["schema"] == "archwright/preview/1" and set(found["spaces"]) == {
        "chain",
        "small",
        "stock",
        "layer",
        "medium",
        "large",
    }
    assert [path.name for path in (tmp_path / "look").iterdir()] == ["preview.html"]
