"""The search on a Ray cluster: networks are trained or evaluated at its nodes, everything else stays in this process.

Where every network is trained by itself a node needs archwright, and model and data at the same paths; the weights come
back as bytes. Where networks are evaluated it needs archwright alone: super-network, candidates and validation rows are
sent to it. No file system is shared. Threads of this process ask, wait for a node, and tell: it alone talks to the
store. What a node had in hand when it died is done again elsewhere.
"""

import atexit
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
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import torch
from optuna.trial import FrozenTrial

from archwright.compression.context import RunContext, from_settings, read_deadline, teach, write_deadline
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.finetuning import TimeUp
from archwright.compression.kept import FOLDER as KEPT
from archwright.compression.kept import load_kept_inputs
from archwright.compression.methods import METHODS, load_evaluator
from archwright.compression.space import ERROR
from archwright.compression.vectors import FILE as VECTORS
from archwright.compression.weights import StandaloneWeights, delete_old_checkpoints
from archwright.errors import Failed
from archwright.objectives.table import LatencyTable
from archwright.parallel.ray_cluster import RETRIES, SharedValue, connect, share_value
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
        trains = isinstance(evaluator.weights, StandaloneWeights)
        nodes: RayNodes = TrainingNodes(ray, evaluator) if trains else EvaluatingNodes(ray, evaluator)
        lock = threading.Lock()
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
                        describe=evaluator.describe,
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
    """The nodes of a cluster, which tell the validation error of the network of a config."""

    def __init__(self, ray: Any, evaluator: SubnetEvaluator, work: Callable[..., Any]) -> None:
        self._ray = ray
        self._evaluator = evaluator
        self._gpus = (
            int(ray.cluster_resources().get("GPU", 0)) if evaluator.context.config.output.device != "cpu" else 0
        )
        wanted = {"num_cpus": 1, "num_gpus": 1 if self._gpus else 0}  # Ray shows a task the GPU it has given it
        self._work = ray.remote(**wanted, max_retries=RETRIES)(work)
        self._stopped = threading.Event()

    @property
    def places(self) -> int:
        """Networks that can be worked on at once: one per GPU, or per CPU where there are none."""
        return self._gpus or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def stop(self) -> None:
        self._stopped.set()

    def error(self, candidate: Candidate) -> float:
        raise NotImplementedError

    def _do(self, *arguments: Any) -> Any:
        """What a node makes of these; tried again where nodes die."""
        reference = self._work.remote(*arguments)
        while not self._ray.wait([reference], timeout=POLL_SECONDS)[0]:
            if self._stopped.is_set():
                self._ray.cancel(reference, force=True)
                raise Stopped
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise Failed(f"a node of the Ray cluster could not do its work: {error.cause}") from error
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise Failed(
                f"the Ray cluster lost a network {RETRIES + 1} times ({reason}); run the command again."
            ) from error


class EvaluatingNodes(RayNodes):
    """Evaluate sub-networks; the networks that these are parts of are sent once."""

    def __init__(self, ray: Any, evaluator: SubnetEvaluator) -> None:
        super().__init__(ray, evaluator, evaluate_at_node)
        self._state = share_value(ray, state_files(evaluator))
        self._networks: dict[Path, SharedValue] = {}
        self._lock = threading.Lock()

    def error(self, candidate: Candidate) -> float:
        folder = self._evaluator.weights.own_folder(candidate.config)
        return float(self._do(self._state, candidate.config, None if folder is None else self._share(folder)))

    def _share(self, folder: Path) -> SharedValue:
        with self._lock:
            if folder not in self._networks:
                files = read_files(self._evaluator.context.run.path, folder)
                self._networks[folder] = share_value(self._ray, files)
            return self._networks[folder]


class TrainingNodes(RayNodes):
    """Train the network of a config and send it back."""

    def __init__(self, ray: Any, evaluator: SubnetEvaluator) -> None:
        super().__init__(ray, evaluator, train_at_node)
        assert isinstance(evaluator.weights, StandaloneWeights)
        self._weights = evaluator.weights
        self._run_state = ray.put(run_state(evaluator.context.run))

    def error(self, candidate: Candidate) -> float:
        config, context = candidate.config, self._evaluator.context
        if self._weights.folder(config).exists():  # trained before an interruption, but not told
            return self._evaluator.search_error(config)
        path, deadline = self._weights.checkpoints(config).path, read_deadline(context.run)
        checkpoint = path.read_bytes() if path.exists() else None
        seconds = None if deadline is None else deadline - time.monotonic()
        trained: TrainedFiles | None = self._do(self._run_state, config, checkpoint, seconds)
        if trained is None:
            raise TimeUp
        self._save(config, trained)
        return trained.error

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
            error = evaluator.search_error(config)
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


Files = dict[str, bytes]
"""Path inside a run folder -> content."""


def state_files(evaluator: SubnetEvaluator) -> Files:
    """What a node needs of a run to evaluate its sub-networks, but for networks with weights of their own.

    Not the address of the store, which may hold a password.
    """
    context = evaluator.context
    run, shared = context.run, METHODS[context.config.supernet.method].shared
    network = run.supernet if shared else context.start
    files = read_files(run.path, run.path / KEPT) | read_files(run.path, network)
    for path in (*run.path.glob("*.json"), run.path / VECTORS):
        if path.exists() and path != run.progress:
            files[path.name] = path.read_bytes()
    noted = {"id": run.identity, "options": {**run.settings, "store": None}}
    return {**files, "run.json": json.dumps(noted).encode()}


def read_files(run: Path, folder: Path) -> Files:
    return {str(path.relative_to(run)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_files(run: Path, files: Files) -> None:
    for name, content in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(run / name, content)


def evaluate_at_node(state: SharedValue, config: Config, own: SharedValue | None) -> float:
    """At a node: the validation error of a sub-network, on one thread; `own` are weights of its own."""
    evaluator = open_at_node(state)
    run = evaluator.context.run.path
    folder = evaluator.weights.own_folder(config)
    if own is not None and folder is not None and not folder.exists():
        write_files(run, own.load())
    try:
        with quiet():
            return evaluator.search_error(config)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def open_at_node(state: SharedValue) -> SubnetEvaluator:
    """The evaluator of a run in a folder of this process, which ends with it."""
    torch.set_num_threads(1)
    folder = TemporaryDirectory(prefix="archwright-")
    atexit.register(folder.cleanup)
    run = RunFolder(Path(folder.name))
    write_files(run.path, state.load())
    config = from_settings(run.settings)
    context = teach(RunContext(run, config, load_kept_inputs(run, device=config.output.device)))
    return METHODS[config.supernet.method].build_evaluator(context)
