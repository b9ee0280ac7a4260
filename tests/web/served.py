"""Small folders to serve: finished runs of synthetic results, searches in the middle; and a real server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import optuna

from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_values, make_config
from archwright.store import RunFolder, open_study
from archwright.web.server import PreparedServer, prepare_server

WHOLE = 10_800_000
optuna.logging.set_verbosity(optuna.logging.WARNING)


def write_run(folder: Path, **options: Any) -> RunFolder:
    """A run that has begun."""
    folder.mkdir(parents=True)
    values = {**config_values(make_config(CompressConfig, {})), "out": str(folder), **options}
    (folder / "run.json").write_text(json.dumps({"id": uuid4().hex, "options": values}, default=str))
    return RunFolder(folder)


def write_finished(folder: Path, result: dict[str, Any], **options: Any) -> RunFolder:
    run = write_run(folder, task=result["task"], **options)
    run.note("result", {**result, "run": folder.name, "folder": str(folder)})
    run.note("finished", {"trials": len(result["trials"])})
    return run


def write_search(folder: Path, trials: int = 0, **options: Any) -> RunFolder:
    """A run in the middle of its search."""
    run = write_run(folder, trials=60, task="glue/SST-2", **options)
    run.note("about", {"model": "minilm", "task": "glue/SST-2", "metric": "accuracy", "trials": 60, "layers": 6})
    about = run.note("about") | {
        "nonembedding_parameters": WHOLE,
        "objectives": ["validation_error", "nonembedding_parameters"],
        "heads": 12,
        "units": 1536,
    }
    run.note("about", about)
    tell(run, trials)
    return run


def tell(
    run: RunFolder, trials: int, store: str | None = None, *, cost: float | None = None, kept: bool = False
) -> None:
    """So many more trials in its study; the larger a network the better.

    With `kept` they say what they keep, as `SubnetEvaluator.describe` does; a `cost` stands in place of the size.
    """
    study = open_study(run, store, sampler=optuna.samplers.RandomSampler(), directions=["minimize"] * 2)
    first = len(study.get_trials(deepcopy=False))
    start = datetime(2026, 1, 1)
    for number in range(first, first + trials):
        size = ((7 * number) % 20 + 1) / 20
        study.add_trial(
            optuna.trial.FrozenTrial(
                number=number,
                trial_id=number,
                state=optuna.trial.TrialState.COMPLETE,
                value=None,
                values=[0.5 - 0.3 * size + 0.01 * (number % 3), size * WHOLE if cost is None else cost * size],
                datetime_start=start + timedelta(seconds=2 * number),
                datetime_complete=start + timedelta(seconds=2 * number + 1),
                params={"size": number % 20},
                distributions={"size": optuna.distributions.IntDistribution(0, 19)},
                user_attrs={"kept": {"share": size, "layers": kept_layers(size)}} if kept else {},
                system_attrs={},
                intermediate_values={},
            )
        )


def kept_layers(size: float) -> list[list[int]]:
    """Heads and units of six layers, the fourth of which is gone."""
    return [[0, 0] if layer == 3 else [round(12 * size), round(1536 * size)] for layer in range(6)]


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[PreparedServer]:
    """A real server on a free port; gone when the block ends."""
    prepared = prepare_server(folder, **{"host": "127.0.0.1", "port": 0, "token": None, **options})
    thread = prepared.start()
    try:
        yield prepared
    finally:
        prepared.stop()
        thread.join(timeout=60)
        assert not thread.is_alive(), "the server did not end"
