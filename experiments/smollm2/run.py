"""SmolLM2-135M on WikiText-2: perplexity against size, in twelve minutes and by calibration alone.

    python experiments/smollm2/run.py runs/smollm2 --data WIKITEXT_FOLDER

Every part is one `archwright compress`, resumable: `weight-sharing` as usual, `retraining-free` of the untrained
checkpoint (nothing is trained at all), and whichever of the other methods is asked for. Then the networks of at most
half the size are exported and write. `summary.py` makes the tables and the figure.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNTRAINED = ["--original-epochs", "0"]
PARTS = {
    "weight-sharing": ["--learning-rate", "1e-4", "--trials", "40"],
    "retraining-free": ["--method", "retraining-free", *UNTRAINED],
    "layer-dropping": ["--method", "layer-dropping", "--learning-rate", "1e-4", *UNTRAINED],
    "head-pruning": ["--method", "head-pruning", *UNTRAINED],
    "magnitude": ["--method", "magnitude", *UNTRAINED],
    "random": ["--method", "random", *UNTRAINED],
}
"""Part -> options of `archwright compress` beside those that all share."""
FILES = {"train": "train", "validation": "valid", "test": "test"}
PROMPT = "The history of the town began when"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/wikitext-2"), help="train, valid, test .txt")
    parser.add_argument("--minutes", type=float, default=12.0, help="of each part; measuring the front comes on top")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: for a machine that others use too"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["weight-sharing", "retraining-free"])
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    for part in options.parts:
        archwright(options.clock, ["compress", *compress_words(part, options)])
        write_half(options.out / part, options.out / f"{part}-half")


def compress_words(part: str, options: argparse.Namespace) -> list[str]:
    files = [f"--{name}={options.data / file}.txt" for name, file in FILES.items()]
    rows = ["--train-rows", "2000", "--validation-rows", "24", "--test-rows", "40", "--max-length", "128"]
    place = ["--minutes", str(options.minutes), "--threads", "1", "--rounds", "5", "--seed", options.seed]
    return ["--model", "smollm2", "--task", "lm", *files, *rows, *PARTS[part], *place, "--out", str(options.out / part)]


def archwright(clock: str, words: list[str]) -> None:
    """A command in a process of its own, its --minutes by this clock."""
    code = (
        f"from experiments.peers.clock import use_clock\nuse_clock({clock!r})\n"
        "import sys\nfrom archwright.cli.main import main\nsys.exit(main())"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    subprocess.run([sys.executable, "-c", code, *words], check=True, env=environment)


def write_half(run: Path, folder: Path) -> None:
    """Exports the best network of at most half the size; what it writes after the prompt goes into text.json."""
    if not folder.exists():
        archwright("wall", ["select", str(run), "--params", "50%", "--to", "compact", "--out", str(folder)])
    code = (
        "from transformers import pipeline\n"
        f"write = pipeline('text-generation', model={str(folder)!r}, trust_remote_code=True)\n"
        f"print(write({PROMPT!r}, max_new_tokens=40, do_sample=False)[0]['generated_text'])"
    )
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    (run / "text.json").write_text(json.dumps({"text": text.strip()}))
    print(text)


if __name__ == "__main__":
    main()
