"""Standard NAS on a Ray cluster: networks are trained and judged at its nodes, everything else stays in this process.

A node needs archwright, and model and data at the same paths; the weights come back as bytes, so no file system is
shared. Threads of this process ask, wait for a node, and tell; a network whose node dies is trained again elsewhere.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch

from archwright.compression.context import load_context
from archwright.compression.finetuning import TimeUp
from archwright.compression.methods import METHODS
from archwright.compression.methods.standard import forget
from archwright.compression.search import ERROR, SubnetEvaluator, limits, objectives, open_run_study
from archwright.errors import Failed
from archwright.objectives.table import LatencyTable
from archwright.parallel.ray_cluster import RETRIES, connect
from archwright.progress import quiet
from archwright.search import Candidate, Config, Objective, search
from archwright.store import RunFolder, whole_folder, write_whole

POLL_SECONDS = 0.5
NOTES = ("order", "designs")
"""What a node must know of the run folder beside the options."""


class Stopped(Exception):
    """Another thread failed, or the user pressed Ctrl-C."""


@dataclass(frozen=True)
class Trained:
    """A network as it comes back from a node."""

    error: float
    """On the validation rows."""
    files: dict[str, bytes]
    checkpoint: bytes | None
    """Where a later rung goes on; None after the last one."""


@contextmanager
def search_on_ray(evaluator: SubnetEvaluator, table: LatencyTable | None) -> Iterator[Callable[..., None]]:
    """As `search`, given trials, deadline and told, with as many trials at once as the cluster has CPUs."""
    with connect(str(evaluator.search.ray)) as ray:
        nodes, told_one_by_one = Nodes(ray, evaluator), threading.Lock()
        _, *costs = objectives(evaluator, table)
        measures, bounds = [Objective(ERROR, nodes.error), *costs], limits(evaluator, table)

        def seek(*, trials: int, deadline: float | None, told: Callable[[Any], None]) -> None:
            def tell(trial: Any) -> None:
                with told_one_by_one:
                    told(trial)

            def work() -> None:
                with suppress(TimeUp, Stopped):
                    study = open_run_study(evaluator)  # one per thread, as if it were a process
                    search(study, evaluator.space, measures, limits=bounds, trials=trials, deadline=deadline, told=tell)

            in_threads(min(nodes.cpus, trials), work, stop=nodes.stop)

        yield seek


def in_threads(count: int, work: Callable[[], None], *, stop: Callable[[], None]) -> None:
    """Does the same work in so many threads; the first error, or Ctrl-C, stops all of them."""
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work) for _ in range(count)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop()
            raise


class Nodes:
    """The cluster as a measure: trains a design somewhere, brings its network home, gives its validation error."""

    def __init__(self, ray: Any, evaluator: SubnetEvaluator) -> None:
        self._ray = ray
        self._ground = evaluator
        self._home: Any = evaluator.home
        self._kit = ray.put(kit_of(evaluator.run))
        self._train = ray.remote(num_cpus=1, max_retries=RETRIES)(train_at_node)
        self._stopped = threading.Event()

    @property
    def cpus(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def stop(self) -> None:
        self._stopped.set()

    def error(self, candidate: Candidate) -> float:
        config, folder = candidate.config, self._home.folder(candidate.config)
        if folder.exists():  # trained before an interruption, but not told
            return self._ground.error(config, self._ground.task_data.validation)
        state, deadline = self._home.checkpoints(config).path, self._ground.run.note("deadline")
        begun = state.read_bytes() if state.exists() else None
        trained = self._result(self._train.remote(self._kit, config, begun, deadline))
        self._bring_home(config, trained)
        return trained.error

    def _result(self, reference: Any) -> Trained:
        while not self._ray.wait([reference], timeout=POLL_SECONDS)[0]:
            if self._stopped.is_set():
                self._ray.cancel(reference, force=True)
                raise Stopped
        try:
            trained: Trained | None = self._ray.get(reference)
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

    def _bring_home(self, config: Config, trained: Trained) -> None:
        with whole_folder(self._home.folder(config)) as beside:
            for name, content in trained.files.items():
                write_whole(beside / name, content)
        state = self._home.checkpoints(config)
        if trained.checkpoint is None:
            state.remove()
        else:
            write_whole(state.path, trained.checkpoint)
        forget(self._ground.run)


def kit_of(run: RunFolder) -> str:
    """What a node needs to know of a run, as JSON; not the address of the store, which may hold a password."""
    notes = {name: noted for name in NOTES if (noted := run.note(name)) is not None}
    return json.dumps(
        {"run": {"id": run.identity, "options": {**run.settings, "store": None}}, **notes}, sort_keys=True
    )


def train_at_node(
    kit: str, config: Config, checkpoint: bytes | None, deadline: dict[str, Any] | None
) -> Trained | None:
    """At a node: the design trained to its epochs, on one thread; None when the run's time is over."""
    evaluator = ground_at_node(kit)
    home: Any = evaluator.home
    folder, state = home.folder(config), home.checkpoints(config)
    evaluator.run.note("deadline", deadline)
    if checkpoint is not None:
        write_whole(state.path, checkpoint)
    try:
        with quiet():
            error = evaluator.error(config, evaluator.task_data.validation)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        return Trained(error, files, state.path.read_bytes() if state.path.exists() else None)
    except TimeUp:
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        state.remove()


@lru_cache(maxsize=1)
def ground_at_node(kit: str) -> SubnetEvaluator:
    """The run as far as a training needs it, in a folder of this process; model and data are read once."""
    torch.set_num_threads(1)
    run = RunFolder(Path(mkdtemp(prefix="archwright-")))
    for name, noted in json.loads(kit).items():
        run.note(name, noted)
    context = load_context(run, device="cpu")
    return METHODS[context.supernet.method].ground_of(context)
