"""What eight bits cost a small network: accuracy on SST-2's dev rows of both ONNX files of an export.

archwright export runs/small_models/glue-SST-2-w_pca-longer-0 --to onnx --int8 --out runs/onnx
python experiments/small_models/int8.py runs/onnx --data DATA
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import onnxruntime as ort
from transformers import AutoTokenizer

LENGTH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    with open(options.data / "glue" / "SST-2" / "dev.tsv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    truth = np.array([int(row["label"]) for row in rows])
    found = {
        name: answers(options.folder, name, [row["sentence"] for row in rows])
        for name in ("model.onnx", "model_int8.onnx")
    }
    for name, given in found.items():
        print(f"{name}: accuracy {(given == truth).mean():.4f} on {len(truth)} rows")
    print(f"same answers: {(found['model.onnx'] == found['model_int8.onnx']).mean():.4f}")


def answers(folder: Path, name: str, texts: list[str]) -> np.ndarray:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    session = ort.InferenceSession(folder / name, providers=["CPUExecutionProvider"])
    wanted = [entry.name for entry in session.get_inputs()]
    found = []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="np")
        found.append(int(session.run(None, {key: batch[key] for key in wanted})[0].argmax()))
    return np.array(found)


if __name__ == "__main__":
    main()
