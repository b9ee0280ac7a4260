"""The rows of the decoder comparison: blocks of 128 tokens of WikiText-2 as SmolLM2 reads them, cut by archwright.

The folder holds train.npz, validation.npz and test.npz (ids and targets, -100 where nothing follows) for the peers, and
rows.json with the options by which `archwright compress` reads the same blocks.
"""

import json
from pathlib import Path

import numpy as np

MODEL = "smollm2"
SOURCES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
ROWS = {"train": 2000, "validation": 24, "test": 100}
MAX_LENGTH = 128


def write_blocks(seed: int, folder: Path, *, data: Path) -> Path:
    """The folder with the blocks of a seed; written once."""
    from archwright.compression.pipeline import load_data
    from archwright.data.batching import batch_of
    from archwright.data.public_data import resolve_model
    from archwright.store import atomic_folder
    from experiments.peers.original import load_compress_config

    if folder.exists():
        return folder
    words = ["--model", MODEL, "--task", "lm", "--max-length", str(MAX_LENGTH)]
    for name, file in SOURCES.items():
        words += [f"--{name}", str((data / file).resolve()), f"--{name}-rows", str(ROWS[name])]
    task_data = load_data(load_compress_config([*words, "--seed", str(seed)]))
    with atomic_folder(folder) as beside:
        for name, encoded in task_data.encoded.items():
            batch = batch_of(encoded, np.arange(len(encoded)))
            np.savez(beside / f"{name}.npz", ids=batch.inputs["input_ids"].numpy(), targets=batch.targets.numpy())
        rows = {name: len(encoded) for name, encoded in task_data.encoded.items()}
        facts = {"task": "lm", "seed": seed, "metric": "perplexity", "rows": rows, "words": words}
        (beside / "rows.json").write_text(json.dumps({**facts, "pretrained": resolve_model(MODEL)}, indent=1))
    return folder
