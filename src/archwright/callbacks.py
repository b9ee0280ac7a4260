"""What a run tells while it works: `aw.compress(..., callbacks=[...])`.

A callback sees the phases, every step of every training, every trial of the search and the result. Ready ones write to
TensorBoard, MLflow or Weights & Biases, whose packages are imported when a callback is made and not before.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from archwright.errors import BadInput

FINAL = ("validation_error", "test_error", "nonembedding_share", "parameters")
"""What is told of every member of the front at the end, where it is a number."""


class Callback(Protocol):
    """Subclass it and write the methods that are wanted; the others do nothing. An error raised here ends the run,
    which the same call resumes. Worker processes tell nothing, but their trials are told by the run's own process."""

    def on_phase(self, phase: str) -> None:
        """A phase begins: original, order, supernet, candidates, search, rescore, measure, ..."""
        return None

    def on_step(self, training: str, step: int, numbers: Mapping[str, float]) -> None:
        """A step of a training is done: its loss, learning_rate and tokens_per_second."""
        return None

    def on_trial(self, trial: int, numbers: Mapping[str, float]) -> None:
        """A sub-network was evaluated: its objectives by name."""
        return None

    def on_end(self, result: Mapping[str, Any]) -> None:
        """The run is finished: the document that `--json` writes."""
        return None


_callbacks: ContextVar[tuple[Callback, ...]] = ContextVar("callbacks", default=())


@contextmanager
def use_callbacks(callbacks: Sequence[Callback]) -> Iterator[None]:
    """Runs inside the block tell these callbacks; those of a block around it wait."""
    for callback in callbacks:
        lacking = [name for name in ("on_phase", "on_step", "on_trial", "on_end") if not hasattr(callback, name)]
        if lacking:
            raise BadInput(
                f"a callback needs the methods of archwright.Callback, got {callback!r} without {', '.join(lacking)}; "
                "make its class a subclass."
            )
    token = _callbacks.set(tuple(callbacks))
    try:
        yield
    finally:
        _callbacks.reset(token)


def tell_phase(phase: str) -> None:
    for callback in _callbacks.get():
        callback.on_phase(phase)


def tell_step(training: str, step: int, numbers: Mapping[str, float]) -> None:
    for callback in _callbacks.get():
        callback.on_step(training, step, numbers)


def tell_trial(trial: int, numbers: Mapping[str, float]) -> None:
    for callback in _callbacks.get():
        callback.on_trial(trial, numbers)


def tell_end(result: Mapping[str, Any]) -> None:
    for callback in _callbacks.get():
        callback.on_end(result)


def require(module: str, package: str, callback: str) -> Any:
    """The module, or one line on how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise BadInput(
            f"the callback {callback} needs the package {package}, which is not installed; pip install {package}."
        ) from None


def final_numbers(result: Mapping[str, Any]) -> dict[str, float]:
    """`original/test_error`, `trial-17/parameters` and so on of the original and the front."""
    networks = {"original": result["original"], **{f"trial-{member['trial']}": member for member in result["front"]}}
    return {
        f"{name}/{key}": float(network[key])
        for name, network in networks.items()
        for key in FINAL
        if isinstance(network.get(key), int | float)
    }


def tag(training: str, name: str) -> str:
    """`training the super-network`, `loss` as `training_the_super-network/loss`."""
    return f"{training.replace(' ', '_')}/{name}"


class TensorBoard(Callback):
    """Scalars in a folder that `tensorboard --logdir` shows."""

    def __init__(self, folder: str | Path) -> None:
        require("tensorboard", "tensorboard", "TensorBoard")
        self.writer = require("torch.utils.tensorboard", "tensorboard", "TensorBoard").SummaryWriter(str(folder))

    def on_step(self, training: str, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(tag(training, name), value, step)

    def on_trial(self, trial: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(tag("search", name), value, trial)

    def on_end(self, result: Mapping[str, Any]) -> None:
        for name, value in final_numbers(result).items():
            self.writer.add_scalar(name, value, 0)
        self.writer.flush()


class MLflow(Callback):
    """Metrics of the active MLflow run; if there is none, of a new one, which ends with ours."""

    def __init__(self, **run: Any) -> None:
        self.mlflow = require("mlflow", "mlflow", "MLflow")
        self.own = self.mlflow.active_run() is None
        if self.own:
            self.mlflow.start_run(**run)

    def on_step(self, training: str, step: int, numbers: Mapping[str, float]) -> None:
        self.mlflow.log_metrics({tag(training, name): value for name, value in numbers.items()}, step=step)

    def on_trial(self, trial: int, numbers: Mapping[str, float]) -> None:
        self.mlflow.log_metrics({tag("search", name): value for name, value in numbers.items()}, step=trial)

    def on_end(self, result: Mapping[str, Any]) -> None:
        self.mlflow.log_params({name: result[name] for name in ("model", "task", "method", "seed") if name in result})
        self.mlflow.log_metrics(final_numbers(result))
        if self.own:
            self.mlflow.end_run()


class WandB(Callback):
    """Metrics of the active Weights & Biases run; if there is none, of a new one (`project=...`), which ends with ours.

    Each training and the search have a step of their own, because W&B counts one step for everything otherwise.
    """

    def __init__(self, **run: Any) -> None:
        wandb = require("wandb", "wandb", "WandB")
        self.own = wandb.run is None
        self.run = wandb.init(**run) if self.own else wandb.run
        self.defined: set[str] = set()

    def log(self, group: str, step: int, numbers: Mapping[str, float]) -> None:
        counter = tag(group, "step")
        if group not in self.defined:
            self.defined.add(group)
            self.run.define_metric(counter)
            self.run.define_metric(tag(group, "*"), step_metric=counter)
        self.run.log({counter: step, **{tag(group, name): value for name, value in numbers.items()}})

    def on_step(self, training: str, step: int, numbers: Mapping[str, float]) -> None:
        self.log(training, step, numbers)

    def on_trial(self, trial: int, numbers: Mapping[str, float]) -> None:
        self.log("search", trial, numbers)

    def on_end(self, result: Mapping[str, Any]) -> None:
        self.run.summary.update(final_numbers(result))
        if self.own:
            self.run.finish()
