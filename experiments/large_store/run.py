"""What share of a search does the store take when a configuration is 9,288 bits?

    python experiments/large_store/run.py --rows 30      (a minute or two on one core)

500 random trials of the LARGE space of MiniLM on the default store (a journal file), each evaluated on movie reviews.
Everything but the objective counts as store: asking, drawing, packing, writing. Writes results.csv beside this file.
"""

import argparse
import csv
import tempfile
from pathlib import Path
from time import perf_counter

import torch

from archwright.data.batching import encode, evaluation_batches
from archwright.data.public_data import resolve_model
from archwright.data.tasks.task import load_task
from archwright.data.text.tokenizer import load_tokenizer
from archwright.environment import environment
from archwright.networks.load import load_supernet
from archwright.objectives.error import measure_error
from archwright.search import SAMPLERS, Candidate, Objective, search
from archwright.spaces.subnetwork import subnet_space
from archwright.store import begin_run, open_study
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import nonembedding_parameters
from archwright.tasks.kind import EVALUATION_TOKENS

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    task = load_task(validation_rows=given.rows)
    source = resolve_model("minilm")
    network = load_supernet(source, labels=task.labels)
    encoded = encode(task.splits["validation"], load_tokenizer(source), max_length=128)
    batches = evaluation_batches(encoded, tokens=EVALUATION_TOKENS)
    space = subnet_space("large", read_anatomy(network.config))
    spent = 0.0

    def measured(candidate: Candidate) -> float:
        nonlocal spent
        begun = perf_counter()
        found = measure_error(network, batches, candidate.built, metric=task.metric)
        spent += perf_counter() - begun
        return found

    objectives = [
        Objective("validation_error", measured),
        Objective("nonembedding_parameters", lambda c: nonembedding_parameters(space.anatomy, c.built)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = begin_run(Path(folder) / "run", {})
        sampler = SAMPLERS["random"](space.choices, seed=given.seed)
        study = open_study(run, None, sampler=sampler, directions=["minimize"] * 2)
        begun = perf_counter()
        search(study, space, objectives, trials=given.trials)
        total = perf_counter() - begun
        size = (run.path / "study.journal").stat().st_size
    facts = environment()
    row = {
        "trials": given.trials,
        "bits": space.choices["bits"].length,
        "rows": given.rows,
        "seconds": round(total, 1),
        "store_seconds": round(total - spent, 1),
        "store_share": round(1 - spent / total, 4),
        "store_ms_per_trial": round(1000 * (total - spent) / given.trials, 2),
        "journal_bytes_per_trial": round(size / given.trials),
        "seed": given.seed,
        **{name: facts[name] for name in ("commit", "cpu", "threads")},
    }
    with open(HERE / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(row))
        writer.writeheader()
        writer.writerow(row)
    print(row)


if __name__ == "__main__":
    main()
