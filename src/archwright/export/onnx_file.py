"""A pruned network as one ONNX file, and the same with 8-bit weights."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from archwright.export.silence import silenced
from archwright.export.stock import labelled_config
from archwright.networks.pruned import PrunedNetwork

EXAMPLE = {"input_ids": 1, "attention_mask": 1, "token_type_ids": 0}
"""What the network is traced with, valid in every vocabulary."""


class Logits(nn.Module):
    """The network with a tensor for an answer."""

    def __init__(self, network: PrunedNetwork):
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        logits: Tensor = self.network(input_ids, attention_mask, token_type_ids).logits
        return logits


def write_onnx(network: PrunedNetwork, folder: Path, *, names: Sequence[str]) -> None:
    """`model.onnx` for inputs of these names and any batch size and length, and a config.json with the label names."""
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=longest(network))}
    torch.onnx.export(
        Logits(network).eval(),
        kwargs={name: torch.full((2, 8), EXAMPLE[name]) for name in names},
        f=folder / "model.onnx",
        input_names=list(names),
        output_names=["logits"],
        dynamic_shapes={name: axes for name in names},
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    labelled_config(network).save_pretrained(folder)


def longest(network: PrunedNetwork) -> int:
    return int(network.config.backbone["max_position_embeddings"])


def load_onnx(file: Path) -> Callable[[Mapping[str, Tensor]], Tensor]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        (logits,) = session.run(["logits"], {name: tensor.numpy() for name, tensor in inputs.items()})
        return torch.from_numpy(logits)

    return run


def quantize(file: Path, to: Path) -> None:
    """Weights as signed bytes with one scale per output; activations are quantized while running.

    Weights use 7 of the 8 bits: processors without VNNI overflow otherwise, and with it nothing is lost.
    """
    model = onnx.load(file)
    del model.graph.value_info[:]  # shapes known from tracing contradict those of the quantized graph
    quantize_dynamic(model, to, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


def int8_file_bytes(network: PrunedNetwork) -> int:
    """Size of the network's ONNX file with 8-bit weights, written for this and thrown away."""
    with TemporaryDirectory() as folder, silenced():
        write_onnx(network, Path(folder), names=("input_ids", "attention_mask"))
        quantize(Path(folder) / "model.onnx", Path(folder) / "model_int8.onnx")
        return (Path(folder) / "model_int8.onnx").stat().st_size
