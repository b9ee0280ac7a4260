"""MO-ASHA with four processes on a real PostgreSQL, one of them killed: no rung of no design is lost or done twice."""

import signal
from pathlib import Path
from typing import Any

import pytest

from archwright.compression.methods import load_evaluator
from archwright.compression.weights import design_name
from archwright.networks.load import load_saved_network
from archwright.search import EPOCHS, config_of
from archwright.search.encoding import config_key
from archwright.search.history import RETRY_OF
from archwright.store import RunFolder
from tests.compression.runs import (
    compressed,
    errors_of,
    left_over,
    process,
    stopped,
    study_of,
    table_file,
    tried,
    wait_for,
    workers_of,
)

TRIALS = 16
OPTIONS: dict[str, Any] = {
    "method": "standard",
    "sampler": "mo-asha",
    "order": "none",
    "epochs": 3.0,
    "learning_rate": 2e-3,
    "batch_size": 8,
}


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(900)
def test_four_workers_on_postgresql_one_killed(postgres: str, tmp_path: Path, bert: Path) -> None:
    out, given = tmp_path / "run", {"model": str(bert), "train": table_file(tmp_path / "rows.csv", 90)}
    compressed(out, **given, **OPTIONS, store=postgres, trials=2)
    study, evaluator = study_of(out, postgres), load_evaluator(RunFolder(out))
    choices = evaluator.space.choices
    RunFolder(out).renew({"trials": TRIALS})
    victim, *others = (process(["worker", str(out), "--quiet"], stdout=None, stderr=None) for _ in range(4))
    wait_for(stopped(study, choices, victim, *others))  # or one might do everything before the rest have begun
    victim.kill()
    for other in others:
        other.send_signal(signal.SIGCONT)
    assert victim.wait() == -signal.SIGKILL
    assert [other.wait(timeout=400) for other in others] == [0, 0, 0]

    study = study_of(out, postgres)
    configs = tried(study, choices)
    assert len(configs) == TRIALS and len({config_key(config) for config in configs}) == TRIALS
    check_rungs(configs, list(choices[EPOCHS]))
    lost = [trial for trial in study.trials if "lost" in trial.user_attrs]
    retries = [trial for trial in study.trials if RETRY_OF in trial.user_attrs]
    again = [trial for trial in retries if trial.state.name == "COMPLETE"]  # several may notice, one does it
    assert len(lost) == 1 and [trial.user_attrs[RETRY_OF] for trial in again] == [lost[0].number]
    assert config_of(choices, again[0]) == config_of(choices, lost[0])
    assert workers_of(study).keys() >= {other.pid for other in others}

    errors = errors_of(out, choices, postgres)
    for config in (config_of(choices, again[0]), max(configs, key=lambda config: config[EPOCHS])):
        assert undisturbed(evaluator, config, tmp_path / design_name(config)) == errors[config_key(config)]
    result = compressed(out, **given, **OPTIONS, store=postgres, trials=TRIALS).result
    assert len({row["trial"] for row in result["trials"]}) == len(result["trials"]) == TRIALS
    assert not [name for name in left_over(out) if name.startswith(".")]


def check_rungs(configs: list[dict[str, Any]], rungs: list[float]) -> None:
    """Whoever is at a rung was at all rungs below, and some went on."""
    reached: dict[str, list[float]] = {}
    for config in configs:
        reached.setdefault(design_name(config), []).append(config[EPOCHS])
    assert all(sorted(epochs) == rungs[: len(epochs)] for epochs in reached.values())
    assert {len(epochs) for epochs in reached.values()} >= {1, 2}


def undisturbed(evaluator: Any, config: dict[str, Any], folder: Path) -> float:
    """The error of this design trained from the start, here and at once."""
    evaluator.weights.checkpoints(config).remove()
    evaluator.weights.train(config, folder)
    error: float = evaluator.context.task_data.error(load_saved_network(folder), evaluator.context.task_data.validation)
    return error
