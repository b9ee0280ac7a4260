"""Peers beside archwright: the same rows, the same original, the same time, one table and one picture.

    python experiments/peers/run.py --data GLUE           (SST-2 and movie reviews, three seeds, all methods)
    python experiments/peers/run.py --tasks lm --text WIKITEXT --minutes 12
    python experiments/peers/run.py --data GLUE --methods first-layers archwright --seeds 0
    python experiments/peers/run.py --data GLUE --tasks glue/SST-2 --methods in-place-teacher space-small ...
        (ablation: archwright without one of its parts)
    python experiments/peers/run.py --summary             (only tables and picture from what is there)

For every task and seed: rows.py writes the row files, original.py fine-tunes the original, and every method gets the
same minutes for all of its sizes, those that start from the original less the time its training took. Each part runs in
a process of its own (peers in their own environments) and is skipped when it is done, so the command can be repeated.
Everything goes to --runs; summary.py writes results.csv and summary.md into --results, and docs/figures/peers.png.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from experiments.peers.blocks import write_blocks
from experiments.peers.decoder_summary import SIZES as DECODER_SIZES
from experiments.peers.decoder_summary import write_decoder_summary
from experiments.peers.environments import PACKAGES, peer_python
from experiments.peers.job import ABLATION, CLOCKS, SIZES, Job
from experiments.peers.rows import write_rows

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TASKS = ("glue/SST-2", "movie-reviews")
MODULES = {
    "first-3-layers": "first_layers",
    "torch-pruning": "torch_pruning_peer",
    "first-layers": "first_layers",
    "drop-top": "first_layers",
    "paraphrase": "paraphrase",
    "archwright": "ours",
    "archwright-defaults": "ours",
    "archwright-recovered": "ours",
    "archwright-latency": "ours",
    "layer-dropping": "ours",
    "retraining-free": "ours",
    "in-place-teacher": "ours",
    "space-small": "ours",
    "smallest-empty": "ours",
    "repair-none": "ours",
    "no-candidates": "ours",
    "no-distillation": "ours",
    "retraining-free-mask": "ours",
    "retraining-free-unrepaired": "ours",
}
"""Method -> the module that runs it; the last eight are methods of ours without one of their parts."""
DECODER_MODULES = {
    "optipfair-width": "optipfair_peer",
    "optipfair-depth": "optipfair_peer",
    "archwright": "ours",
    "retraining-free": "ours",
}
"""The same for the task `lm`: SmolLM2 on WikiText-2."""
METHODS = [method for method in MODULES | DECODER_MODULES if method not in ABLATION]
"""What is run when no --methods are given."""


def run_task(task: str, seed: int, options: argparse.Namespace) -> None:
    """All methods on one task and seed; those that are not for this kind of model are left out."""
    place = options.runs / task.replace("/", "-").lower() / f"seed-{seed}"
    if task == "lm":
        rows, modules, sizes = write_blocks(seed, place / "rows", data=options.text), DECODER_MODULES, DECODER_SIZES
    else:
        rows = write_rows(task, seed, place / "rows", data=options.data, train_rows=options.train_rows)
        modules, sizes = {"original": "original", **MODULES}, tuple(options.sizes)
    for method, module in modules.items():
        if method != "original" and method not in options.methods:
            continue
        job = Job(
            method=method,
            task=task,
            seed=seed,
            rows=rows,
            original=place / "original",
            out=place / method,
            minutes=options.minutes,
            clock=options.clock,
            threads=options.threads,
            sizes=sizes,
            commit=options.commit,
            cpu=options.cpu,
        )
        if not run_job(job, module, options.runs) and method == "original":
            return  # nothing else can begin


def run_job(job: Job, module: str, runs: Path) -> bool:
    """Whether it is done: in a process of its own, whose output goes to log.txt in the job's folder."""
    if job.is_done:
        return True
    python = peer_python(job.method, runs / "environments") if job.method in PACKAGES else Path(sys.executable)
    path = job.write()
    threads = {"OMP_NUM_THREADS": str(job.threads), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with open(job.out / "log.txt", "w") as log:
        done = subprocess.run(
            [str(python), "-m", f"experiments.peers.{module}", str(path)],
            env=os.environ | threads,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    last = (job.out / "log.txt").read_text().strip().splitlines()[-1:]
    print("done" if not done.returncode else f"FAILED {last}", job.task, job.seed, job.method, flush=True)
    return not done.returncode


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), help="movie-reviews, glue/SST-2, glue/CoLA, ..., lm")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=6.0, help="per method, task and seed, for all sizes together")
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *ABLATION], default=METHODS)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="percent, largest first")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--train-rows", type=int, default=4000)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu: for a machine that others use too")
    parser.add_argument("--data", type=Path, help="folder with SST-2/train.tsv and so on")
    parser.add_argument("--text", type=Path, help="task lm: folder with train.txt, valid.txt and test.txt")
    parser.add_argument("--runs", type=Path, default=Path("runs/peers"))
    parser.add_argument("--results", type=Path, default=HERE, help="folder for results.csv and summary.md")
    parser.add_argument("--summary", action="store_true", help="train nothing")
    options = parser.parse_args()
    if options.minutes <= 0 or options.threads < 1 or options.train_rows < 1:
        parser.error("--minutes, --threads and --train-rows must be above zero")
    if any(not 5 <= size < 100 for size in options.sizes):
        parser.error("--sizes must be percentages from 5 to 99")
    if not options.summary and "lm" in options.tasks and options.text is None:
        parser.error("the task lm needs --text FOLDER with train.txt, valid.txt and test.txt")
    if not options.summary and options.data is None and any(task.startswith("glue/") for task in options.tasks):
        parser.error("GLUE tasks need --data FOLDER with SST-2/train.tsv and so on")
    options.runs = options.runs.resolve()
    return options


def main() -> None:
    options = parse_options()
    if not options.summary:
        from archwright.environment import commit, cpu

        options.commit, options.cpu = commit(), cpu()
        for seed in options.seeds:
            for task in options.tasks:
                run_task(task, seed, options)
    from experiments.peers.summary import write_summary

    write_summary(options.runs, options.results.resolve())
    write_decoder_summary(options.runs, options.results)


if __name__ == "__main__":
    main()
