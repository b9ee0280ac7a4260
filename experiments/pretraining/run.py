"""The four ways to pre-train, each for a few hundred steps on WikiText-2: does the validation loss fall as it should?

    python experiments/pretraining/run.py runs/pretraining --data DATA [--steps 200]

Masked words and ELECTRA on encoders, the next word on a decoder of the GPT-2 space and on the RNN cell of NAS-Bench-NLP
with the lowest test loss there. Resumable. Writes results.csv and curves.csv beside this file.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

import archwright as aw
from archwright.benchmarks import BENCHMARKS
from archwright.spaces import ARCHITECTURES

HERE = Path(__file__).parent
VALIDATION_LINES = 400


def smallest(space: str, among: int = 200) -> dict[str, Any]:
    """Of random designs the one with the fewest parameters outside its embeddings."""
    found, rng = ARCHITECTURES[space], np.random.default_rng(0)
    return dict(min((found.sample(rng) for _ in range(among)), key=lambda config: found.counts(config).nonembedding))


def middle(space: str, among: int = 51) -> dict[str, Any]:
    """Of random designs the one of median size."""
    found, rng = ARCHITECTURES[space], np.random.default_rng(0)
    ordered = sorted((found.sample(rng) for _ in range(among)), key=lambda config: found.counts(config).nonembedding)
    return dict(ordered[among // 2])


def best_cell(data: Path) -> dict[str, Any]:
    source = BENCHMARKS["nas-bench-nlp"]
    table = source.load(data / source.folder, source.variants[0])
    return dict(max(table.rows, key=lambda row: row.trained.get(table.target, -np.inf)).config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    texts, few = options.data / "wikitext-2", options.out / "valid.txt"
    few.write_text("\n".join((texts / "valid.txt").read_text().splitlines()[:VALIDATION_LINES]))
    corpus = {"corpus": texts / "train.txt", "corpus_validation": few, "steps": options.steps, "threads": 1}
    lessons: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("mlm", "nlu-tiny", middle("nlu-tiny"), {"batch_size": 32, "max_length": 64, "learning_rate": 1e-3}),
        ("electra", "flexibert", middle("flexibert"), {"batch_size": 32, "max_length": 64, "learning_rate": 5e-4}),
        ("lm", "rnn", best_cell(options.data), {"batch_size": 20, "max_length": 70}),
        ("lm", "gpt2", smallest("gpt2"), {"batch_size": 8, "max_length": 64, "tokenizer": "words"}),
    ]
    rows, curves = [], []
    for lesson, space, config, how in lessons:
        result = trained(options.out / f"{lesson}-{space}", {"lesson": lesson, "space": space, **how, **corpus}, config)
        rows.append(row_of(lesson, space, result))
        curves += [{"lesson": lesson, "space": space, **point} for point in result["losses"]["curve"]]
        print(rows[-1], flush=True)
        for name, content in {"results.csv": rows, "curves.csv": curves}.items():
            write(HERE / name, content)


def trained(out: Path, asked: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    noted, file = out / "result.json", out.with_suffix(".json")
    file.write_text(json.dumps(config))
    if not noted.exists():
        aw.train(**asked, config=file, out=out)
    result: dict[str, Any] = json.loads(noted.read_text())
    return result


def row_of(lesson: str, space: str, result: dict[str, Any]) -> dict[str, Any]:
    validation, environment = result["validation"], result["environment"]
    return {
        "lesson": lesson, "space": space, "parameters": result["parameters"], "steps": result["steps"],
        "tokens": result["tokens"], "tokens_per_second": round(result["tokens_per_second"]),
        "before": json.dumps(validation["before"]), "after": json.dumps(validation["after"]), "seed": result["seed"],
        "commit": environment["commit"], "processor": environment["cpu"],
    }  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
