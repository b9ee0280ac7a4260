"""Weight-sharing NAS, standard NAS and every baseline at equal wall-clock, on one task and one seed after another.

    python experiments/structural_pruning/run.py runs/structural_pruning --data GLUE_FOLDER --seeds 0,1,2

Each (task, seed) is one `archwright compress --compare`; what is finished is skipped and what was interrupted goes on.
`--clock cpu` counts CPU seconds of the single thread, for a machine that others use too.
`summary.py` makes the tables and figures.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

METHODS = "weight-sharing,standard,head-pruning,retraining-free,layer-dropping,magnitude,random"
TASKS = ("movie-reviews", "glue/SST-2")
MORE = ("glue/RTE", "glue/MRPC", "glue/CoLA", "glue/STS-B", "glue/QNLI")


def command(task: str, seed: int, out: Path, options: argparse.Namespace) -> list[str]:
    code = (
        f"from experiments.peers.clock import use_clock\nuse_clock({options.clock!r})\n"
        "import sys\nfrom archwright.cli.main import main\nsys.exit(main())"
    )
    words = [sys.executable, "-c", code, "compress", "--compare", options.methods, "--task", task]
    words += ["--data", str(options.data / task.removeprefix("glue/"))] if task.startswith("glue/") else []
    words += ["--train-rows", str(options.rows), "--validation-rows", "500", "--minutes", str(options.minutes)]
    return [*words, "--threads", "1", "--seed", str(seed), "--out", str(out)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/glue"), help="folder of the GLUE tasks")
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"others: {','.join(MORE)}")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rows", type=int, default=1000, help="training rows")
    parser.add_argument("--minutes", type=float, default=3.0, help="of each method, by the clock")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    for seed in map(int, options.seeds.split(",")):
        for task in options.tasks.split(","):
            out = options.out / f"{task.replace('/', '-').lower()}-{seed}"
            if (out / "report.html").exists():
                continue
            out.parent.mkdir(parents=True, exist_ok=True)
            with open(f"{out}.log", "a") as log:
                subprocess.run(command(task, seed, out, options), stdout=log, stderr=log, check=True, env=environment)
            print(f"{task}, seed {seed}: {out / 'report.html'}", flush=True)


if __name__ == "__main__":
    main()
