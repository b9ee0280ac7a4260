"""Run by itself: what exported folders answer where archwright is not installed. FILE of jobs in, logits out."""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.modules["archwright"] = None  # type: ignore[assignment]  # importing it fails
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def answer_onnx(path: Path, inputs: dict[str, Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    wanted = {one.name: np.array(inputs[one.name], dtype=np.int64) for one in session.get_inputs()}
    return session.run(["logits"], wanted)[0].tolist()


def answer_torch(path: Path, auto: str, inputs: dict[str, Any], remote: bool) -> Any:
    model = getattr(transformers, auto).from_pretrained(path, trust_remote_code=remote).eval()
    tensors = {name: torch.tensor(value) for name, value in inputs.items()}
    with torch.no_grad():
        return model(**tensors).logits.tolist()


def answer(job: dict[str, Any]) -> Any:
    path = Path(job["path"])
    if path.suffix == ".onnx":
        return answer_onnx(path, job["inputs"])
    return answer_torch(path, job["auto"], job["inputs"], job["remote"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    jobs = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(json.dumps({name: answer(job) for name, job in jobs.items()}))
