"""The ready callbacks: with fakes of the packages that they write to, with these themselves, and without them."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archwright.callbacks import Callback, MLflow, TensorBoard, WandB, tell_end, tell_step, tell_trial, use_callbacks
from archwright.errors import BadInput

RESULT = {
    "model": "bert",
    "task": "rows",
    "original": {"test_error": 0.1, "parameters": 100},
    "front": [{"trial": 7, "test_error": 0.2, "nonembedding_share": 0.5, "parameters": 60, "config": {}}],
}
FINAL = {
    "original/test_error": 0.1,
    "original/parameters": 100.0,
    "trial-7/test_error": 0.2,
    "trial-7/nonembedding_share": 0.5,
    "trial-7/parameters": 60.0,
}


class Recorder:
    """Any method of any object: what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: self.calls.append((name, args, named))

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [(*args, *named.values()) for called, args, named in self.calls if called == name]


def tell(callback: Callback) -> None:
    with use_callbacks([callback]):
        tell_step("training the super-network", 3, {"loss": 0.5})
        tell_trial(7, {"validation_error": 0.25})
        tell_end(RESULT)
    tell_trial(8, {"validation_error": 0.5})  # nobody listens any more


def test_tensorboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writer = Recorder()
    folders: list[str] = []
    fake = SimpleNamespace(SummaryWriter=lambda folder: (folders.append(folder), writer)[1])
    monkeypatch.setitem(sys.modules, "tensorboard", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    tell(TensorBoard(tmp_path))
    assert folders == [str(tmp_path)]
    scalars = writer.named("add_scalar")
    assert scalars[:2] == [("training_the_super-network/loss", 0.5, 3), ("search/validation_error", 0.25, 7)]
    assert {name: value for name, value, _ in scalars[2:]} == FINAL and writer.calls[-1][0] == "flush"


@pytest.mark.parametrize("active", [False, True])
def test_mlflow(monkeypatch: pytest.MonkeyPatch, active: bool) -> None:
    mlflow: Any = Recorder()
    mlflow.active_run = lambda: object() if active else None
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    tell(MLflow(run_name="mine"))
    begun = [] if active else [("start_run", (), {"run_name": "mine"})]
    assert mlflow.calls[: len(begun)] == begun
    metrics = mlflow.named("log_metrics")
    assert metrics == [({"training_the_super-network/loss": 0.5}, 3), ({"search/validation_error": 0.25}, 7), (FINAL,)]
    assert mlflow.named("log_params") == [({"model": "bert", "task": "rows"},)]
    assert bool(mlflow.named("end_run")) != active


@pytest.mark.parametrize("active", [False, True])
def test_wandb(monkeypatch: pytest.MonkeyPatch, active: bool) -> None:
    run: Any = Recorder()
    run.summary = {}
    begun: list[dict[str, Any]] = []
    fake = SimpleNamespace(run=run if active else None, init=lambda **named: (begun.append(named), run)[1])
    monkeypatch.setitem(sys.modules, "wandb", fake)
    tell(WandB(project="mine"))
    assert begun == ([] if active else [{"project": "mine"}])
    assert run.named("log") == [
        ({"training_the_super-network/step": 3, "training_the_super-network/loss": 0.5},),
        ({"search/step": 7, "search/validation_error": 0.25},),
    ]
    assert ("search/*", "search/step") in run.named("define_metric")
    assert run.summary == FINAL and bool(run.named("finish")) != active


MISSING = {"tensorboard": lambda: TensorBoard("logs"), "mlflow": MLflow, "wandb": WandB}


@pytest.mark.parametrize("package", MISSING)
def test_a_missing_package_is_one_line(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(BadInput, match=f"needs the package {package}, which is not installed; pip install {package}"):
        MISSING[package]()


def require_real(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"no {package} here")


TOLD = {"training_the_super-network/loss": 0.5, "search/validation_error": 0.25, **FINAL}


def test_a_real_tensorboard(tmp_path: Path) -> None:
    require_real("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tell(TensorBoard(tmp_path))
    events = EventAccumulator(str(tmp_path)).Reload()
    scalars = {name: events.Scalars(name)[-1] for name in events.Tags()["scalars"]}
    assert {name: scalar.value for name, scalar in scalars.items()} == pytest.approx(TOLD)
    assert (scalars["training_the_super-network/loss"].step, scalars["search/validation_error"].step) == (3, 7)


@pytest.mark.parametrize("active", [False, True])
def test_a_real_mlflow(active: bool, tmp_path: Path) -> None:
    require_real("mlflow")
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    if active:
        mlflow.start_run()
    callback = MLflow(run_name="mine")
    run_id = mlflow.active_run().info.run_id
    tell(callback)
    assert (mlflow.active_run() is not None) == active
    mlflow.end_run()
    run = mlflow.get_run(run_id)
    assert run.info.status == "FINISHED" and run.data.metrics == pytest.approx(TOLD)
    assert run.data.params == {"model": "bert", "task": "rows"}


@pytest.mark.parametrize("active", [False, True])
def test_a_real_wandb(active: bool, tmp_path: Path) -> None:
    require_real("wandb")
    import wandb

    options = {"mode": "offline", "dir": str(tmp_path), "settings": wandb.Settings(silent=True)}
    if active:
        wandb.init(**options)
    callback = WandB(project="mine", **options)
    tell(callback)
    assert (wandb.run is not None) == active
    wandb.finish()
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")  # what would be uploaded
    assert all(name.encode() in file.read_bytes() for name in TOLD)


def test_an_error_of_a_callback_ends_the_run() -> None:
    class Stop(Callback):
        def on_trial(self, trial: int, numbers: Any) -> None:
            raise KeyboardInterrupt

    with use_callbacks([Stop()]):
        tell_step("training", 0, {})
        with pytest.raises(KeyboardInterrupt):
            tell_trial(0, {})
