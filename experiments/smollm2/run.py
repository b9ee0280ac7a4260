"""SmolLM2-135M on WikiText-2: perplexity against size for pruning without training and for a short super-network.

    python experiments/smollm2/run.py runs/smollm2 --data WIKITEXT_FOLDER

One `archwright compress --compare`, resumable; then the best network of at most half the size is exported and writes.
`summary.py` makes the table and the figure.
"""

import argparse
import subprocess
import sys
from pathlib import Path

METHODS = "weight-sharing,head-pruning,magnitude,random,retraining-free"
ARCHWRIGHT = (sys.executable, "-m", "archwright")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/wikitext-2"), help="train, valid, test .txt")
    parser.add_argument("--minutes", type=float, default=25.0, help="wall-clock of each method")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    files = [f"--{name}={options.data / file}.txt" for name, file in FILES.items()]
    training = ["--train-rows", "2000", "--validation-rows", "24", "--test-rows", "40", "--max-length", "128"]
    training += ["--original-epochs", "0", "--learning-rate", "1e-4", "--batch-size", "4", "--trials", "40"]
    place = ["--minutes", str(options.minutes), "--threads", "1", "--rounds", "5", "--seed", options.seed]
    compare = ["compress", "--compare", options.methods, "--model", "smollm2", "--task", "lm"]
    subprocess.run([*ARCHWRIGHT, *compare, *files, *training, *place, "--out", str(options.out)], check=True)
    chosen = ["select", str(options.out / "weight-sharing"), "--params", "50%", "--to", "compact"]
    subprocess.run([*ARCHWRIGHT, *chosen, "--out", str(options.out / "half")], check=True)
    print(written(options.out / "half"))


FILES = {"train": "train", "validation": "valid", "test": "test"}
PROMPT = "The history of the town began when"


def written(folder: Path) -> str:
    """What the exported network writes after the prompt, in a process that knows nothing of archwright."""
    code = (
        "from transformers import pipeline\n"
        f"write = pipeline('text-generation', model={str(folder)!r}, trust_remote_code=True)\n"
        f"print(write({PROMPT!r}, max_new_tokens=40, do_sample=False)[0]['generated_text'])"
    )
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
