"""What single pieces of a search cost: the numbers behind "beyond one cluster" in docs/scale.md.

    python experiments/unit_costs/run.py      (about five minutes on one core)

- evaluation: half of MiniLM on 426 movie reviews, as a search evaluates a sub-network (processor seconds, one thread)
- step: a step of the super-network of MiniLM with 32 reviews: the whole network, the smallest and two random ones
- study: what one more trial costs in a study that has so many already, without its evaluation, in a journal
- scores: one more line in the file of scores
- ray: a task that does nothing, through the pool that scores, on a cluster of one node with one processor

Writes results.csv beside this file: processor seconds of this process, which other jobs on the machine change less than
wall-clock, and wall-clock seconds.
"""

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import optuna
import torch

from archwright.compression.supernet import supernet_step
from archwright.configs import compress as o
from archwright.data.batching import batches, encode, evaluation_batches
from archwright.data.public_data import resolve_model
from archwright.data.tasks.task import load_task
from archwright.data.text.tokenizer import load_tokenizer
from archwright.environment import environment
from archwright.networks.load import load_supernet
from archwright.objectives.error import measure_error
from archwright.search import SAMPLERS, Objective, search
from archwright.spaces.subnetwork import subnet_space
from archwright.store.scores import ScoreStore
from archwright.store.study import storage
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import LayerSpec
from archwright.tasks.kind import EVALUATION_TOKENS
from archwright.training.losses import task_loss
from experiments.store_scale.run import CHOICES, Designs

HERE = Path(__file__).parent
ROWS, REPEATS, STEPS, BATCH = 426, 3, 6, 32
STUDY_SIZES, MORE_TRIALS = (300, 3000, 10000), 20
LINES, TASKS = 200, 400


class Clock:
    """Processor and wall-clock seconds of a block, per piece of it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    @contextmanager
    def time(self, name: str, pieces: int, **facts: Any) -> Iterator[None]:
        cpu, wall = process_time(), perf_counter()
        yield
        seconds = {"cpu_seconds": process_time() - cpu, "seconds": perf_counter() - wall}
        self.rows.append({"piece": name, **facts, **{key: round(s / pieces, 6) for key, s in seconds.items()}})
        print(self.rows[-1], flush=True)


def measure_networks(clock: Clock) -> None:
    """Evaluation of a sub-network, and a step of a super-network."""
    torch.set_num_threads(1)
    source = resolve_model("minilm")
    task, tokenizer = load_task("movie-reviews"), load_tokenizer(source)
    encoded = encode(task.splits["validation"], tokenizer, max_length=128)
    few = encoded.take(torch.arange(ROWS).numpy())
    network = load_supernet(source, kind=task.kind, labels=task.labels, seed=0)
    anatomy = read_anatomy(network.config)
    half = tuple(LayerSpec(layer.heads // 2, layer.units // 2) for layer in anatomy.full)
    rows = evaluation_batches(few, tokens=EVALUATION_TOKENS)
    measure_error(network, rows[:1], half, metric=task.metric)
    with clock.time("evaluation", REPEATS, size=ROWS):
        for _ in range(REPEATS):
            measure_error(network, rows, half, metric=task.metric)
    space, options = subnet_space("small", anatomy), o.SupernetOptions(strategy="full")
    update = supernet_step(network, space, options, None, loss=task_loss)
    rng = np.random.default_rng(0)
    train = list(batches(encoded, batch_size=BATCH, rng=rng))[: STEPS + 1]
    network.train()
    update(train[0], rng, 0.5)
    with clock.time("step", STEPS, size=BATCH):
        for batch in train[1:]:
            update(batch, rng, 0.5)


def measure_study(clock: Clock, folder: Path) -> None:
    """One more trial of a study with many."""
    distributions = {"layers": optuna.distributions.IntDistribution(0, 11)}
    for size in STUDY_SIZES:
        store = storage(None, folder / f"{size}.journal")
        sampler = SAMPLERS["random"](CHOICES, seed=0, repeats=True)
        study = optuna.create_study(storage=store, sampler=sampler, directions=["minimize"] * 2)
        earlier = [
            optuna.create_trial(params={"layers": n % 12}, distributions=distributions, values=[0.0, 0.0])
            for n in range(size)
        ]
        study.add_trials(earlier)
        objectives = [Objective(name, lambda candidate: 0.0) for name in ("error", "size")]
        search(study, Designs(CHOICES), objectives, trials=size + 1)  # reads what was there
        with clock.time("study", MORE_TRIALS, size=size):
            search(study, Designs(CHOICES), objectives, trials=size + 1 + MORE_TRIALS)


def measure_scores(clock: Clock, folder: Path) -> None:
    scores = ScoreStore(folder)
    with clock.time("scores", LINES, size=LINES):
        for number in range(LINES):
            scores.add(f"{number:032d}", {"0": {"w_pca": 1.0, "parameters": 2.0}})


def nothing() -> int:
    return 0


def measure_ray(clock: Clock) -> None:
    from archwright.parallel.pool import RayPool
    from archwright.parallel.ray_cluster import connect

    with connect("local") as ray:
        pool = RayPool(ray)
        list(pool.map_unordered([nothing] * 20))  # starts processes
        with clock.time("ray", TASKS, size=TASKS):
            list(pool.map_unordered([nothing] * TASKS))


def main() -> None:
    parts: dict[str, Callable[[Clock, Path], None]] = {
        "networks": lambda clock, folder: measure_networks(clock),
        "study": measure_study,
        "scores": measure_scores,
        "ray": lambda clock, folder: measure_ray(clock),
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        for name in given.parts:
            parts[name](clock, Path(folder))
    about = environment()
    known = {"commit": about.get("commit"), "cpu": about.get("cpu"), "threads": 1}
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, [*clock.rows[0], *known])
        writer.writeheader()
        writer.writerows({**row, **known} for row in clock.rows)


if __name__ == "__main__":
    main()
