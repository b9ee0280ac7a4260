"""Sentence embeddings made smaller: MiniLM on 2,000 pairs of STS-B, and members of the chain on its dev rows.

    python experiments/embeddings/run.py --data GLUE/STS-B [--minutes 6] [--out runs/embeddings]

The pairs' scores are not trained on: the original's vectors are the teacher. Minutes are CPU minutes of one thread.
Writes results.csv beside this file: Spearman's correlation of cosine similarities with the scores, of the original, of
the front, and of the members of the chain at 50, 30 and 20 %, which no search has chosen; all on all dev rows.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

time.monotonic = time.perf_counter = time.process_time  # before archwright is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

SHARES = (0.5, 0.3, 0.2)
COLUMNS = ["--text-column", "sentence1", "--text-pair-column", "sentence2", "--label-column", "score"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.tsv and dev.tsv of STS-B")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/embeddings"))
    options = parser.parse_args()

    from archwright.compression.methods import load_evaluator
    from archwright.compression.pipeline import run_compression
    from archwright.environment import commit, cpu
    from archwright.networks.load import load_saved_network
    from experiments.peers.original import load_compress_config

    words = [
        "--task",
        "embeddings",
        "--train",
        str(options.data / "train.tsv"),
        "--test",
        str(options.data / "dev.tsv"),
    ]
    words += [*COLUMNS, "--train-rows", "2000", "--threads", "1", "--seed", str(options.seed)]
    run = run_compression(load_compress_config([*words, "--minutes", str(options.minutes), "--out", str(options.out)]))
    evaluator = load_evaluator(run.folder)
    data = evaluator.context.task_data
    networks = [("original", 1.0, load_saved_network(run.folder.original), None)]
    for entry in run.front:
        networks.append(("front", entry["nonembedding_share"], *evaluator.weights.locate(entry["config"])))
    for share in SHARES:
        networks.append(("chain", share, evaluator.network, evaluator.space.chain.spec(share)))
    found = [(name, share, 1 - data.error(network, data.test, spec)) for name, share, network, spec in networks]
    rows = len(data.encoded["test"])
    with open(Path(__file__).parent / "results.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["network", "share", "spearman", "test_rows", "minutes", "seed", "commit", "cpu"])
        for name, share, value in found:
            facts = (rows, options.minutes, options.seed, commit(), cpu())
            writer.writerow([name, round(share, 3), round(value, 4), *facts])
            print(f"{name:9s} {share:6.1%}  {value:.4f}")


if __name__ == "__main__":
    main()
