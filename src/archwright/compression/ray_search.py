"""Standard NAS on a Ray cluster: networks are trained and judged at its nodes, everything else stays in this process.

A node needs archwright, and model and data at the same paths; the weights come back as bytes, so no file system is
shared. Threads of this process ask, wait for a node, and tell; a network whose node dies is trained again elsewhere.
"""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
from optuna.trial import FrozenTrial

from archwright.compression.context import read_deadline, write_deadline
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.finetuning import TimeUp
from archwright.compression.methods import load_evaluator
from archwright.compression.space import ERROR
from archwright.compression.weights import StandaloneWeights, delete_old_checkpoints
from archwright.errors import Failed
from archwright.objectives.table import LatencyTable
from archwright.parallel.ray_cluster import RETRIES, connect
from archwright.progress import quiet
from archwright.search import Candidate, Config, Objective, search
from archwright.store import RunFolder, atomic_folder, write_atomic

POLL_SECONDS = 0.5
NOTES = ("order", "designs")
"""What a node must know of the run folder beside the options."""


class Stopped(Exception):
    """Another thread failed, or the user pressed Ctrl-C."""


@contextmanager
def search_on_ray(evaluator: SubnetEvaluator, table: LatencyTable | None) -> Iterator[Callable[..., None]]:
    """As `search`, given trials, deadline and on_trial, as many trials at once as the cluster has GPUs, or CPUs."""
    with connect(str(evaluator.context.config.search.ray)) as ray:
        nodes, lock = RayNodes(ray, evaluator), threading.Lock()
        _, *costs = evaluator.objectives(table)
        error = Objective(ERROR, lambda candidate: evaluator.objective_value(nodes.error(candidate)))
        objectives, constraints = [error, *costs], evaluator.constraints(table)

        def search_trials(*, trials: int, deadline: float | None, on_trial: Callable[[FrozenTrial], None]) -> None:
            def after_trial(trial: FrozenTrial) -> None:
                with lock:
                    on_trial(trial)

            def work() -> None:
                study = evaluator.open_study()  # one per thread, as if it were a process
                with suppress(TimeUp, Stopped):
                    search(
                        *(study, evaluator.space, objectives),
                        constraints=constraints,
                        trials=trials,
                        deadline=deadline,
                        on_trial=after_trial,
                    )

            threads = min(nodes.places, trials)
            with ThreadPoolExecutor(threads) as pool:
                futures = [pool.submit(work) for _ in range(threads)]
                try:
                    for future in as_completed(futures):
                        future.result()
                except BaseException:  # the first error, or Ctrl-C, stops all threads
                    nodes.stop()
                    raise

        yield search_trials


class RayNodes:
    """The nodes of a cluster: train the network of a config, send it back, give its validation error."""

    def __init__(self, ray: Any, evaluator: SubnetEvaluator) -> None:
        assert isinstance(evaluator.weights, StandaloneWeights)  # --ray is refused for other methods
        self._ray = ray
        self._evaluator = evaluator
        self._weights = evaluator.weights
        self._run_state = ray.put(run_state(evaluator.context.run))
        self._gpus = (
            int(ray.cluster_resources().get("GPU", 0)) if evaluator.context.config.output.device != "cpu" else 0
        )
        wanted = {"num_cpus": 1, "num_gpus": 1 if self._gpus else 0}  # Ray shows a task the GPU it has given it
        self._train = ray.remote(**wanted, max_retries=RETRIES)(train_at_node)
        self._stopped = threading.Event()

    @property
    def places(self) -> int:
        """Networks that can be trained at once: one per GPU, or per CPU where there are none."""
        return self._gpus or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def stop(self) -> None:
        self._stopped.set()

    def error(self, candidate: Candidate) -> float:
        config, context = candidate.config, self._evaluator.context
        if self._weights.folder(config).exists():  # trained before an interruption, but not told
            return self._evaluator.error(config, context.search_rows)
        path, deadline = self._weights.checkpoints(config).path, read_deadline(context.run)
        checkpoint = path.read_bytes() if path.exists() else None
        seconds = None if deadline is None else deadline - time.monotonic()
        trained = self._wait_for(self._train.remote(self._run_state, config, checkpoint, seconds))
        self._save(config, trained)
        return trained.error

    def _wait_for(self, reference: Any) -> "TrainedFiles":
        while not self._ray.wait([reference], timeout=POLL_SECONDS)[0]:
            if self._stopped.is_set():
                self._ray.cancel(reference, force=True)
                raise Stopped
        try:
            trained: TrainedFiles | None = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise Failed(f"a node of the Ray cluster could not train: {error.cause}") from error
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise Failed(
                f"the Ray cluster lost a training {RETRIES + 1} times ({reason}); run the command again."
            ) from error
        if trained is None:
            raise TimeUp
        return trained

    def _save(self, config: Config, trained: "TrainedFiles") -> None:
        with atomic_folder(self._weights.folder(config)) as beside:
            for name, content in trained.files.items():
                write_atomic(beside / name, content)
        checkpoints = self._weights.checkpoints(config)
        if trained.checkpoint is None:
            checkpoints.remove()
        else:
            write_atomic(checkpoints.path, trained.checkpoint)
        delete_old_checkpoints(self._evaluator.context.run)


@dataclass(frozen=True)
class TrainedFiles:
    """A network as it comes back from a node."""

    error: float
    """On the validation rows."""
    files: dict[str, bytes]
    checkpoint: bytes | None
    """Where a later rung goes on; None after the last one."""


def run_state(run: RunFolder) -> str:
    """What a node needs to know of a run, as JSON; not the address of the store, which may hold a password."""
    notes = {name: noted for name in NOTES if (noted := run.note(name)) is not None}
    return json.dumps(
        {"run": {"id": run.identity, "options": {**run.settings, "store": None}}, **notes}, sort_keys=True
    )


def train_at_node(state: str, config: Config, checkpoint: bytes | None, seconds: float | None) -> TrainedFiles | None:
    """At a node: the network of the config, trained on one thread; None when these seconds are over."""
    evaluator = load_at_node(state)
    assert isinstance(evaluator.weights, StandaloneWeights)
    folder, checkpoints = evaluator.weights.folder(config), evaluator.weights.checkpoints(config)
    write_deadline(evaluator.context.run, None if seconds is None else time.monotonic() + seconds)
    if checkpoint is not None:
        write_atomic(checkpoints.path, checkpoint)
    try:
        with quiet():
            error = evaluator.error(config, evaluator.context.search_rows)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        return TrainedFiles(error, files, checkpoints.path.read_bytes() if checkpoints.path.exists() else None)
    except TimeUp:
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        checkpoints.remove()


@lru_cache(maxsize=1)
def load_at_node(state: str) -> SubnetEvaluator:
    """The run as far as a training needs it, in a folder of this process; model and data are read once."""
    torch.set_num_threads(1)
    run = RunFolder(Path(mkdtemp(prefix="archwright-")))
    for name, noted in json.loads(state).items():
        run.note(name, noted)
    return load_evaluator(run, device=run.settings["device"])
