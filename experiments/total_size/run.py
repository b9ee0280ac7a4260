"""A MiniLM classifier of at most 6M parameters in all: what does it lose, and how large is its int8 ONNX file?

    python experiments/total_size/run.py --data GLUE               (SST-2, three seeds; resumable)
    python experiments/total_size/run.py --data GLUE --runs RUNS   (with rows and originals of experiments/peers there)
    python experiments/total_size/run.py --tasks movie-reviews --seeds 0
    python experiments/total_size/run.py --data GLUE --recover-epochs 3   (the chosen one is trained by itself as well)
    python experiments/total_size/run.py --summary                 (only summary.md from results.csv)

Rows and fine-tuned originals are those of experiments/peers. Per task and seed: `compress --total-params 6M` with the
defaults, `select --total-params 6M`, with --recover-epochs if asked, `export --to onnx --int8`. Losses are test errors
against the untouched original on the same rows. Writes results.csv and summary.md beside this file.
"""

import argparse
import csv
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from experiments.peers.clock import use_clock
from experiments.peers.job import CLOCKS, Job
from experiments.peers.original import compress_words, load_compress_config
from experiments.peers.rows import write_rows
from experiments.peers.run import run_job

HERE = Path(__file__).resolve().parent
MOST, MOST_BYTES, MOST_LOST = "6M", 7e6, 1.0
ENVIRONMENT = ("commit", "cpu", "threads")


def measure(task: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    import archwright as aw
    from archwright.compression.pipeline import run_compression

    place = options.runs / task.replace("/", "-").lower() / f"seed-{seed}"
    rows = write_rows(task, seed, place / "rows", data=options.data, train_rows=options.train_rows)
    job = Job("original", task, seed, rows, place / "original", place / "original", minutes=6.0, clock=options.clock)
    if not run_job(job, "original", options.runs):
        raise SystemExit(f"the original of {task}, seed {seed}, failed: {job.out / 'log.txt'}")
    folder = options.out / task.replace("/", "-").lower() / f"seed-{seed}"
    words = [*compress_words(job, folder / "run"), "--total-params", MOST, *options.options]
    run = run_compression(load_compress_config(words), lender=job.original / "run")
    pick, result = run.select(total_params=MOST).entry, run.result
    epochs, recovered = options.recover_epochs, bool(options.recover_epochs)
    if recovered:
        aw.select(run=run.folder.path, total_params=MOST, recover_epochs=epochs, threads=1)
    errors = compare_on_test_rows(run.folder, pick, recovered=recovered)
    parity = aw.export(
        run=run.folder.path, trial=pick["trial"], recovered=recovered, to="onnx", int8=True, out=folder / "onnx"
    ).parity
    assert parity.int8 is not None and parity.int8.test_error is not None
    original, searched, final = (errors.error(name) for name in ("original", "searched", "final"))
    loss = errors.loss("final", "original")._asdict()
    return {
        "task": task,
        "seed": seed,
        "options": " ".join(options.options),
        "train_rows": result["rows"]["train"],
        "test_rows": result["rows"]["test"],
        "tokens": result["vocabulary"]["tokens"],
        "texts_touched": round(result["vocabulary"]["texts_touched"]["test"], 4),
        "embedding_rank": result["embedding_rank"],
        "width": result["width"] or result["checkpoint"]["width"],
        "layers_share": round(pick["nonembedding_share"], 3),
        "source": pick["source"],
        "parameters": pick["parameters"],
        "original_test_error": round(original, 4),
        "cut_test_error": round(result["cut"]["test_error"], 4),
        "searched_test_error": round(searched, 4),
        "recover_epochs": epochs,
        "test_error": round(final, 4),
        "lost": round(100 * (final - original), 2),
        "lost_low": round(100 * loss["low"], 2),
        "lost_high": round(100 * loss["high"], 2),
        "int8_bytes": parity.int8.bytes,
        "int8_test_error": round(parity.int8.test_error, 4),
        "int8_lost": round(100 * (parity.int8.test_error - original), 2),
        "seconds": round(result["seconds"]),
        "clock": options.clock,
        **{name: result["environment"][name] for name in ENVIRONMENT},
    }


def compare_on_test_rows(folder: Any, pick: dict[str, Any], *, recovered: bool) -> Any:
    """The untouched original, the pick as the search left it, and what is exported, all on all test rows."""
    from archwright.compression.methods import load_evaluator
    from archwright.networks.load import load_saved_network
    from archwright.statistics.paired import PairedErrors

    evaluator = load_evaluator(folder)
    context, data = evaluator.context, evaluator.context.task_data
    searched = data.outcomes(evaluator.extract(pick["config"]), data.test)
    outcomes = {
        "original": context.original_data.outcomes(load_saved_network(folder.original), context.original_data.test),
        "searched": searched,
        "final": searched,
    }
    if recovered:
        network = load_saved_network(folder.recovered_network(pick["trial"]))
        outcomes["final"] = data.outcomes(network.eval(), data.test)
    return PairedErrors(outcomes, seed=(context.seed, 0))


def plan_of(row: dict[str, Any]) -> tuple[str, ...]:
    """Rows that differ in nothing but the seed have the same."""
    return tuple(str(row[name]) for name in ("task", "tokens", "embedding_rank", "width", "options", "recover_epochs"))


def write_summary(rows: list[dict[str, Any]], path: Path) -> None:
    """One line per run and the mean of every task, with what was to be reached."""
    lines = [
        f"# At most {MOST} parameters in all",
        "",
        "MiniLM has 22.7M parameters, half of them embeddings. Losses in points of test error against the untouched",
        "fine-tuned original; the interval is of the difference row by row.",
        "",
        "| task | seed | tokens | rank | width | share | size | whole | cut | searched | recovered | ours | loss "
        "| int8 MB | int8 lost |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        numbers = ("error", "lost", "share", "bytes", "low", "high")
        value = {name: float(row[name]) for name in row if name.endswith(numbers)}
        lines.append(
            f"| {row['task']} | {row['seed']} | {int(row['tokens']):,} | {row['embedding_rank']} | {row['width']} "
            f"| {value['layers_share']:.0%} | {int(row['parameters']) / 1e6:.2f}M | {value['original_test_error']:.2%} "
            f"| {value['cut_test_error']:.2%} | {value['searched_test_error']:.2%} "
            f"| {float(row['recover_epochs']):g} epochs | {value['test_error']:.2%} "
            f"| {value['lost']:+.2f} ({value['lost_low']:+.2f} to {value['lost_high']:+.2f}) "
            f"| {value['int8_bytes'] / 1e6:.2f} | {value['int8_lost']:+.2f} |"
        )
    lines.append("")
    for plan in dict.fromkeys(map(plan_of, rows)):
        own = [row for row in rows if plan_of(row) == plan]
        lost, int8 = (sum(float(row[name]) for row in own) / len(own) for name in ("lost", "int8_lost"))
        largest = max(int(row["int8_bytes"]) for row in own)
        of_plan = f"rank {plan[2]}, width {plan[3]}{plan[4] and f', `{plan[4]}`'}, {plan[5]} epochs of recovery"
        lines.append(
            f"- {plan[0]}, {of_plan}, seeds {', '.join(str(row['seed']) for row in own)}: "
            f"mean loss {lost:+.2f} points (to reach: {MOST_LOST:.0f}), int8 {int8:+.2f}, "
            f"file at most {largest / 1e6:.2f} MB (to reach: {MOST_BYTES / 1e6:.0f})."
        )
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows))
    lines += ["", f"Commits {commits}; {rows[0]['cpu']}, {rows[0]['threads']} thread."]
    path.write_text("\n".join(lines) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with SST-2/train.tsv and so on")
    parser.add_argument("--tasks", nargs="+", default=["glue/SST-2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--train-rows", type=int, default=4000)
    parser.add_argument("--runs", type=Path, default=Path("runs/peers"), help="rows and originals of experiments/peers")
    parser.add_argument("--out", type=Path, default=Path("runs/total_size"))
    parser.add_argument("--recover-epochs", type=float, default=0.0, help="train the chosen one by itself so long")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="cpu: for a machine that others use too")
    parser.add_argument("--summary", action="store_true", help="train nothing")
    parser.add_argument("options", nargs="*", help="more options of `archwright compress`, after --")
    options = parser.parse_args()
    options.runs, options.out = options.runs.resolve(), options.out.resolve()
    return options


def main() -> None:
    options, table = parse_options(), HERE / "results.csv"
    rows: list[dict[str, Any]] = list(csv.DictReader(table.open())) if table.exists() else []
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if not options.summary:
        use_clock(options.clock)
    for seed in [] if options.summary else options.seeds:
        for task in options.tasks:
            row = measure(task, seed, options)
            print(row, flush=True)
            others = [old for old in rows if plan_of(old) != plan_of(row) or str(old["seed"]) != str(seed)]
            rows = sorted([*others, row], key=lambda each: (plan_of(each), int(each["seed"])))
            with open(table, "w", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=list(row))
                writer.writeheader()
                writer.writerows(rows)
    write_summary(rows, HERE / "summary.md")


if __name__ == "__main__":
    main()
