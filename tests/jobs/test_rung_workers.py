"""MO-ASHA with four processes on a real PostgreSQL, one of them killed: no rung of no design is lost or done twice."""

import signal
from pathlib import Path
from typing import Any

import pytest

from archwright.jobs.methods.standard import design_name
from archwright.jobs.worker import ground_of
from archwright.search import EPOCHS, config_of
from archwright.search.encoding import key_of
from archwright.search.history import RETRY_OF
from archwright.store import RunFolder
from tests.jobs.runs import (
    caught,
    compressed,
    errors_of,
    left_over,
    process,
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


@pytest.mark.server
def test_four_workers_on_postgresql_one_killed(postgres: str, tmp_path: Path, bert: Path) -> None:
    out, given = tmp_path / "run", {"model": str(bert), "train": table_file(tmp_path / "rows.csv", 90)}
    compressed(out, **given, **OPTIONS, store=postgres, trials=2)
    study, ground = study_of(out, postgres), ground_of(RunFolder(out))
    choices = ground.space.choices
    RunFolder(out).renew({"trials": TRIALS})
    victim, *others = (process(["worker", str(out), "--quiet"], stdout=None, stderr=None) for _ in range(4))
    for other in others:
        other.send_signal(signal.SIGSTOP)  # or they might do everything before the victim has begun
    wait_for(caught(study, choices, victim))
    for other in others:
        other.send_signal(signal.SIGCONT)
    assert victim.wait() == -signal.SIGKILL
    assert [other.wait(timeout=250) for other in others] == [0, 0, 0]

    study = study_of(out, postgres)
    configs = tried(study, choices)
    assert len(configs) == TRIALS and len({key_of(config) for config in configs}) == TRIALS
    check_rungs(configs, list(choices[EPOCHS]))
    lost = [trial for trial in study.trials if "lost" in trial.user_attrs]
    retries = [trial for trial in study.trials if RETRY_OF in trial.user_attrs]
    again = [trial for trial in retries if trial.state.name == "COMPLETE"]  # several may notice, one does it
    assert len(lost) == 1 and [trial.user_attrs[RETRY_OF] for trial in again] == [lost[0].number]
    assert config_of(choices, again[0]) == config_of(choices, lost[0])
    assert len(workers_of(study).keys() - {victim.pid}) >= 3

    result = compressed(out, **given, **OPTIONS, store=postgres, trials=TRIALS).result
    assert len({row["trial"] for row in result["trials"]}) == len(result["trials"]) == TRIALS
    assert len(list((out / "networks").iterdir())) == TRIALS
    check_errors(ground, errors_of(out, choices, postgres), configs, again=config_of(choices, again[0]))
    assert not [name for name in left_over(out) if name.startswith(".")]


def check_rungs(configs: list[dict[str, Any]], rungs: list[float]) -> None:
    """Whoever is at a rung was at all rungs below, and some went on."""
    reached: dict[str, list[float]] = {}
    for config in configs:
        reached.setdefault(design_name(config), []).append(config[EPOCHS])
    assert all(sorted(epochs) == rungs[: len(epochs)] for epochs in reached.values())
    assert {len(epochs) for epochs in reached.values()} >= {1, 2}


def check_errors(
    ground: Any, errors: dict[str, float], configs: list[dict[str, Any]], *, again: dict[str, Any]
) -> None:
    """What was told is the error of the network that lies there, and what one undisturbed training gives."""
    told = {key_of(config): ground.error(config, ground.scene.validation) for config in configs}
    assert told == errors
    longest = max(configs, key=lambda config: config[EPOCHS])
    for config in (again, longest):
        folder = ground.run.path.with_name(f"undisturbed-{design_name(config)}")
        ground.home.checkpoints(config).remove()
        ground.home.train(config, folder)
        assert ground.scene.error(network_at(folder), ground.scene.validation) == errors[key_of(config)]


def network_at(folder: Path) -> Any:
    from archwright.networks.load import saved_network

    return saved_network(folder)
