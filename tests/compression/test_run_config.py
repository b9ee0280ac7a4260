"""The options of a run lie in its folder as YAML, with which the same command can be given again."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from archwright.cli.main import main
from archwright.compression.context import load_context
from archwright.compression.methods import METHODS, load_evaluator
from archwright.compression.pipeline import choose_batch_size, choose_run_precision, resolve_space
from archwright.compression.supernet import SHORT_SMALLEST, lower_end
from archwright.compression.validation import validate_method
from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_values, make_config
from archwright.configs.yaml_file import read_config
from archwright.errors import BadInput
from archwright.search import config_of
from archwright.subnet.chain import SMALLEST
from archwright.training import precision
from tests.compression.runs import QUICK, compressed, refusal


def test_a_run_has_its_options_as_a_file(run: Any, capfd: Any) -> None:
    file = run.folder.path / "config.yaml"
    values = config_values(make_config(CompressConfig, read_config(file, CompressConfig)))
    assert values["trials"] == 14 and values["epochs"] == 6.0 and values["out"] == run.folder.path.resolve()
    noted = run.folder.settings
    assert {name: values[name] for name in noted if isinstance(noted[name], int | float)} == {
        name: value for name, value in noted.items() if isinstance(value, int | float)
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # the address of a store may hold a password
    code, line = refusal(capfd, ["compress", "--config", str(file), "--batch-size", "9"])
    assert code == 2 and "was begun with batch_size=16, got 9" in line


def test_texts_per_step_suit_the_task_and_stay_as_a_run_began(run: Any, tmp_path: Path) -> None:
    config = make_config(CompressConfig, {})
    task_data = load_context(run.folder).task_data
    written = replace(task_data, task=replace(task_data.task, kind="lm"))
    new = tmp_path / "new"
    assert choose_batch_size(config, new, task_data).supernet.batch_size == 32
    assert choose_batch_size(config, new, written).supernet.batch_size == 4
    assert choose_batch_size(config, run.folder.path, written).supernet.batch_size == 16
    given = make_config(CompressConfig, {"batch_size": 8})
    assert choose_batch_size(given, run.folder.path, written) == given


def test_the_precision_is_the_devices_and_stays_as_a_run_began(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The runs of these tests are narrow, so theirs is float32 on every machine."""
    config, new = make_config(CompressConfig, {"model": run.folder.settings["model"]}), tmp_path / "new"
    task_data = load_context(run.folder).task_data
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)
    assert choose_run_precision(config, new, task_data).supernet.precision == "float32"
    monkeypatch.setattr(precision, "NARROW", 1)
    assert "bfloat16" not in caplog.text
    assert choose_run_precision(config, new, task_data).supernet.precision == "bfloat16"
    assert "trainings multiply in bfloat16" in caplog.text
    assert choose_run_precision(config, run.folder.path, task_data).supernet.precision == "float32"


def test_a_run_in_bfloat16_goes_on_where_it_was(given: dict[str, Any], tmp_path: Path) -> None:
    options = {**given, "trials": 3, "epochs": 1.0, "original_epochs": 1.0}
    few = compressed(tmp_path / "run", **options, precision="bfloat16")
    assert few.folder.settings["precision"] == "bfloat16"
    more = compressed(tmp_path / "run", **{**options, "trials": 5})
    assert len(more.result["trials"]) == 5 and more.folder.settings["precision"] == "bfloat16"
    assert more.result["trials"][:3] == few.result["trials"]


def test_the_search_evaluates_in_the_precision_of_the_trainings_and_the_rest_in_float32(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = compressed(tmp_path / "run", **{**given, "trials": 3}, precision="bfloat16")
    evaluator, dtypes = load_evaluator(finished.folder), []
    network = type(evaluator.network)
    forward = network.forward

    def watch(*args: Any, **inputs: Any) -> Any:
        answer = forward(*args, **inputs)
        dtypes.append(answer.logits.dtype)
        return answer

    monkeypatch.setattr(network, "forward", watch)
    trial = evaluator.open_study().get_trials(deepcopy=False)[0]
    config = config_of(evaluator.space.choices, trial)
    assert evaluator.search_error(config) == evaluator.trial_error(trial)
    assert set(dtypes) == {torch.bfloat16}
    dtypes.clear()
    evaluator.error(config, evaluator.context.holdout_rows)
    assert set(dtypes) == {torch.float32}
    dtypes.clear()
    (finished.folder.path / "search_precision.json").unlink()  # as in a run of an earlier version
    evaluator.search_error(config)
    assert set(dtypes) == {torch.float32}


def test_few_steps_of_a_language_model_train_the_upper_part_of_the_chain(run: Any) -> None:
    context = load_context(run.folder)
    task_data = replace(context.task_data, task=replace(context.task_data.task, kind="lm"))
    assert lower_end(context, 20) == SMALLEST
    assert lower_end(replace(context, task_data=task_data), 20) == SHORT_SMALLEST > SMALLEST
    assert lower_end(replace(context, task_data=task_data), 200) == SMALLEST


def test_the_file_resumes_the_run(run: Any, capsys: Any) -> None:
    before = (run.folder.path / "result.json").read_bytes()
    assert main(["compress", "--config", str(run.folder.path / "config.yaml"), "--quiet"]) == 0
    assert (run.folder.path / "result.json").read_bytes() == before


def test_threads_are_the_environments_and_noted(tmp_path: Path, given: dict[str, Any], monkeypatch: Any) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    options = {name: value for name, value in QUICK.items() if name != "threads"}
    found = compressed(tmp_path / "run", **{**options, **given, "threads": 0, "trials": 2})
    assert found.result["environment"]["threads"] == 1 and found.folder.note("threads") == {"threads": 1}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("method", METHODS)
def test_the_preset_of_the_paper_serves_every_method(method: str) -> None:
    """Weight-sharing by EHVI in the space small; retraining-free pruning as published."""
    config = resolve_space(make_config(CompressConfig, {"preset": "paper", "method": method}))
    assert config.supernet.space in METHODS[method].spaces
    assert config.search.sampler == ("random" if config.supernet.space == "large" else "ehvi")
    assert config.supernet.fisher_trust == 1
    validate_method(config.supernet, config.search)


def test_the_preset_of_the_paper_says_that_ehvi_cannot_serve_the_space_large(caplog: pytest.LogCaptureFixture) -> None:
    config = resolve_space(make_config(CompressConfig, {"preset": "paper", "space": "large"}))
    assert (config.search.sampler, config.supernet.space) == ("random", "large")
    assert "ehvi cannot serve the space large; --sampler random instead" in caplog.text


def test_fisher_trust_is_for_retraining_free_pruning_alone() -> None:
    for method in METHODS:
        config = make_config(CompressConfig, {"method": method, "fisher_trust": 0.7})
        if method == "retraining-free":
            validate_method(config.supernet, config.search)
        else:
            with pytest.raises(BadInput, match="--fisher-trust means nothing"):
                validate_method(config.supernet, config.search)
    with pytest.raises(BadInput, match="--fisher-trust must be between 0 and 1"):
        make_config(CompressConfig, {"fisher_trust": 1.5})
