"""A Llama of 1.07 billion random bfloat16 weights through compress, select and export: memory and time by phase.

    python experiments/large_decoders/run.py runs/large --data WIKITEXT_FOLDER

Parts, each a process of its own, the next not before the last has ended: `calibrate` (retraining-free pruning to 50 %
with least squares, nothing is trained), `supernet` (one step of the super-network with gradient checkpointing and 8-bit
moments: the smallest network and two at random, with the original as teacher), `select`, `recover` (the
chosen network of `calibrate`, one step through adapters) and `export`. What is measured does not depend on what the
weights are; the networks are worth nothing.
A part that is done is not done again. Everything goes into results.csv beside this file.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from archwright.data.public_data import resolve_model
from archwright.data.text.tokenizer import load_tokenizer
from archwright.environment import commit, cpu

ROOT = Path(__file__).resolve().parents[2]
SIZE = {
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
LENGTH, ROWS = 32, 4
"""Tokens of a block, and blocks that calibrate: 128 tokens."""
LETTERS = 40_000
"""Of each file of text that are read."""
FILES = {"train": "train", "validation": "valid", "test": "test"}
PARTS = ("calibrate", "supernet", "select", "recover", "export")
COLUMNS = ("part", "phase", "peak_gb", "peak_anonymous_gb", "seconds", "cpu_seconds", "parameters", "tokens")
FACTS = ("seed", "threads", "commit", "cpu", "cores", "load")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/wikitext-2"), help="train, valid, test .txt")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, default=Path(__file__).parent / "results.csv")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    model = write_model(options.out / "model", options.seed)
    for name, file in FILES.items():
        text = (options.data / f"{file}.txt").read_text(encoding="utf-8")[:LETTERS]
        (options.out / f"{name}.txt").write_text(text, encoding="utf-8")
    for part in options.parts:
        run_part(part, options.out, model, options.seed)
    write_csv(options.csv, options.out)


def write_model(folder: Path, seed: int) -> Path:
    """The checkpoint with SmolLM2's tokenizer, made once."""
    if not (folder / "tokenizer.json").exists():
        tokenizer = load_tokenizer(resolve_model("smollm2"))
        torch.manual_seed(seed)
        config = LlamaConfig(vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=2, pad_token_id=0, **SIZE)
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def part_words(part: str, out: Path, model: Path, seed: int) -> list[str]:
    """The command of a part."""
    if part == "select":
        return ["select", str(out / "calibrate"), "--params", "60%"]
    if part == "recover":
        epochs = str(2 / ROWS)  # one step of two blocks, of the run's batch size
        return ["select", str(out / "calibrate"), "--params", "60%", "--recover-epochs", epochs, "--lora", "8"]
    if part == "export":
        return ["export", str(out / "calibrate"), "--trial", str(chosen_trial(out)), "--to", "compact"]
    files = [word for name in FILES for word in (f"--{name}", str(out / f"{name}.txt"))]
    rows = ["--max-length", str(LENGTH), "--validation-rows", "2", "--test-rows", "2", "--batch-size", "2"]
    place = ["--out", str(out / part), "--seed", str(seed), "--threads", "1", "--rounds", "3"]
    usual = ["compress", "--model", str(model), "--task", "lm", *files, *rows, *place, "--original-epochs", "0"]
    if part == "calibrate":
        return [*usual, "--train-rows", str(ROWS), "--method", "retraining-free", "--shares", "50%"]
    saving = ["--gradient-checkpointing", "--optimizer", "adamw-8bit", "--checkpoint-seconds", "3600"]
    space = ["--space", "small", "--order", "none", "--epochs", "1", "--trials", "2"]
    return [*usual, "--train-rows", "2", *space, *saving]


def chosen_trial(out: Path) -> int:
    """The trial that `select --params 60%` picks: the largest member of the front within it."""
    front = json.loads((out / "calibrate" / "result.json").read_text())["front"]
    within = [member for member in front if member["nonembedding_share"] <= 0.6]
    return int(max(within, key=lambda member: member["nonembedding_share"])["trial"])


def run_part(part: str, out: Path, model: Path, seed: int) -> None:
    """In a process of its own, unless it is done; the load of the machine is noted beside the numbers."""
    done = out / f"{part}.json"
    if done.exists():
        return
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    measured = out / f"{part}.phases.json"
    facts = {"seed": seed, "threads": 1, "commit": commit(), "cpu": cpu(), "cores": os.cpu_count()}
    facts["load"] = round(os.getloadavg()[0], 1)
    script = ROOT / "experiments/large_decoders/measured.py"
    words = [sys.executable, str(script), str(measured), *part_words(part, out, model, seed)]
    subprocess.run(words, check=True, env=environment)
    done.write_text(json.dumps({"phases": json.loads(measured.read_text()), **facts}))


def write_csv(file: Path, out: Path) -> None:
    """One row per part and phase."""
    with open(file, "w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, (*COLUMNS, *FACTS))
        writer.writeheader()
        for part in PARTS:
            if (out / f"{part}.json").exists():
                writer.writerows(part_rows(part, json.loads((out / f"{part}.json").read_text())))
    print(file.read_text(encoding="utf-8"))


def part_rows(part: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    tokens = {"calibrate": ROWS * LENGTH, "supernet": 2 * LENGTH, "recover": 2 * LENGTH}.get(part, "")
    return [
        {
            "part": part,
            "phase": phase,
            "peak_gb": round(numbers["peak_bytes"] / 1e9, 2),
            "peak_anonymous_gb": round(numbers["peak_anonymous_bytes"] / 1e9, 2),
            "seconds": round(numbers["seconds"], 1),
            "cpu_seconds": round(numbers["cpu_seconds"], 1),
            "parameters": parameters(),
            "tokens": tokens,
            **{name: document[name] for name in FACTS},
        }
        for phase, numbers in document["phases"].items()
    ]


def parameters(vocabulary: int = 49152) -> int:
    """Of the network, counted."""
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(LlamaConfig(vocab_size=vocabulary, **SIZE))
    return sum(tensor.numel() for tensor in network.parameters())


if __name__ == "__main__":
    main()
