"""What the number of products that oneDNN keeps compiled does to time and memory of super-network training.

    python -m experiments.speed.kernel_cache [--steps 45] [--rounds 2] [--out FILE.csv]

Steps along the chain of MiniLM in bfloat16 on movie reviews, one thread, CPU seconds; every capacity in a process of
its own, in turns. Needs a processor that computes bfloat16 (otherwise float32 is measured, and said).
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

CAPACITIES = (1024, 128, 32)
VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
FIRST = 5
"""Steps that are not timed."""


def measure_steps(steps: int) -> dict[str, object]:
    """Milliseconds per step and the peak memory of this process."""
    import numpy as np
    import torch

    from archwright.cli.parser import load_config, parse
    from archwright.commands import COMMANDS
    from archwright.compression.context import RunContext, to_settings
    from archwright.compression.finetuning import finetune_original, original_teacher
    from archwright.compression.order import measure_order
    from archwright.compression.pipeline import choose_batch_size, choose_run_precision, load_data, resolve_space
    from archwright.compression.space import open_space
    from archwright.compression.supernet import supernet_step
    from archwright.networks.load import freeze_embeddings
    from archwright.store import begin_run
    from archwright.subnet.importance import reorder
    from archwright.training.precision import mixed_precision

    torch.set_num_threads(1)
    with TemporaryDirectory() as place:
        folder = Path(place) / "run"
        words = ["--train-rows", str(32 * steps), "--original-epochs", "0.02", "--threads", "1", "--out", str(folder)]
        config = resolve_space(
            load_config("compress", COMMANDS["compress"], parse("compress", COMMANDS["compress"], words))
        )
        task_data = load_data(config)
        config = choose_run_precision(choose_batch_size(config, folder, task_data), folder, task_data)
        context = RunContext(begin_run(folder, to_settings(config)), config, task_data)
        network = finetune_original(context)
        order = measure_order(context, network)
        freeze_embeddings(network, True)
        reorder(network, order)
        space, options = open_space(context, network, order), config.supernet
        step = supernet_step(network.train(), space, options, original_teacher(context), loss=task_data.loss)
        optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=1e-5, fused=True)
        rng, batches = np.random.default_rng(0), list(task_data.training(options.batch_size, stream=7)(0))
        with mixed_precision(task_data.device, options.precision):
            for number in range(steps):
                if number == FIRST:
                    begun = time.process_time()
                step(batches[number % len(batches)], rng, 0.9)
                optimizer.step()
                optimizer.zero_grad()
    return {
        "ms_per_step": round(1000 * (time.process_time() - begun) / (steps - FIRST)),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
        "precision": options.precision,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure_steps(options.steps)))
        return
    from archwright.environment import commit, cpu

    rows = []
    for number in range(options.rounds):
        for capacity in CAPACITIES:
            command = [sys.executable, "-m", "experiments.speed.kernel_cache", "--child", "--steps", str(options.steps)]
            environment = os.environ | {VARIABLE: str(capacity), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            measured = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                {"round": number, "capacity": capacity, **measured, "commit": commit(), "seed": 0, "cpu": cpu()}
            )
            print(rows[-1], flush=True)
    usual = median(row["ms_per_step"] for row in rows if row["capacity"] == CAPACITIES[0])
    for capacity in CAPACITIES:
        mine = [row for row in rows if row["capacity"] == capacity]
        time_ratio = median(row["ms_per_step"] for row in mine) / usual
        print(f"capacity {capacity}: {time_ratio:.2f} of the time, peak {median(r['peak_mb'] for r in mine):.0f} MB")
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
