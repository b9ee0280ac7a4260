"""A pruned network as one ONNX file, and the same with 8-bit weights."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnxruntime
import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.exporting.exportable import network_traits
from archwright.exporting.formats import ExportFormat
from archwright.exporting.hf import copy_labels
from archwright.exporting.kinds import task_export
from archwright.exporting.onnx_int8 import quantize_decoder, quantize_encoder
from archwright.logs import silence_libraries
from archwright.networks.pruned import PrunedNetwork

FILE, INT8_FILE = "model.onnx", "model_int8.onnx"
EXAMPLE = {"input_ids": 1, "attention_mask": 1, "token_type_ids": 0, "context_mask": 1}
"""What the network is traced with, valid in every vocabulary."""
SIZES = {"batch": 2, "choices": 3, "sequence": 8}
"""The shape it is traced with; any other may be used later."""
ONE_FILE = 2**31 - 2**24
"""Bytes of weights that fit into one file; those of larger networks lie in a second file beside it."""
CAUSAL = "causal"
"""The file's mark, "True" or "False", for whether it is a decoder: each token sees only those before it."""


class TensorOutput(nn.Module):
    """The network with a tensor for an answer."""

    def __init__(self, network: PreTrainedModel, kind: str):
        super().__init__()
        self.network, self.answer = network, task_export(kind).answer

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        context_mask: Tensor | None = None,
    ) -> Tensor:
        more = {"attention_mask": attention_mask, "token_type_ids": token_type_ids, "context_mask": context_mask}
        given = {name: tensor for name, tensor in more.items() if tensor is not None}
        return self.answer(self.network, {"input_ids": input_ids, **given})


def write_onnx(network: PreTrainedModel, folder: Path, *, names: Sequence[str]) -> None:
    """`model.onnx` for inputs of these names and any batch size and length, and a config.json with the label names."""
    traits = network_traits(network)
    kind = task_export(traits.kind)
    axes = kind.axes
    longest = {"sequence": traits.room}  # positions end somewhere, rows do not
    dynamic = {place: torch.export.Dim(name, max=longest.get(name)) for place, name in enumerate(axes)}
    program: Any = torch.onnx.export(
        TensorOutput(network, traits.kind).eval(),
        kwargs={name: torch.full([SIZES[axis] for axis in axes], EXAMPLE[name]) for name in names},
        input_names=list(names),
        output_names=[kind.output],
        dynamic_shapes={name: dynamic for name in names},
        dynamo=True,
        verbose=False,
    )
    program.model.metadata_props[CAUSAL] = str(traits.causal and not traits.recurrent)
    beside = sum(tensor.nbytes for tensor in network.parameters()) > ONE_FILE
    program.save(folder / FILE, external_data=beside)
    # where transformers has no class, the names of the labels alone: the file needs no more
    config = network.config.stock() if traits.stock else PreTrainedConfig()
    copy_labels(config, network).save_pretrained(folder)


def load_onnx(file: Path) -> Callable[[Mapping[str, Tensor]], Tensor]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        (logits,) = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
        return torch.from_numpy(logits)

    return run


def quantize(file: Path, to: Path) -> None:
    """Writes the network of a file of `write_onnx` with 8-bit weights to `to`, in the way that suits its family."""
    model = onnx.load(file)
    del model.graph.value_info[:]  # shapes known from tracing contradict those of the quantized graph
    marks = {mark.key: mark.value for mark in model.metadata_props}
    quantize_weights = quantize_decoder if marks[CAUSAL] == "True" else quantize_encoder
    quantize_weights(model, to)


def int8_file_bytes(network: PrunedNetwork) -> int:
    """Size of the network's ONNX file with 8-bit weights, written for this and thrown away."""
    with open_int8(network, names=("input_ids", "attention_mask")) as (size, _):
        return size


@contextmanager
def open_float(network: PrunedNetwork, *, names: Sequence[str]) -> Iterator[tuple[int, Callable[..., Tensor]]]:
    """Bytes of the network's ONNX file for inputs of these names, and what it computes; gone with the block."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / FILE
        with silence_libraries():
            write_onnx(network, Path(folder), names=names)
        yield file.stat().st_size, load_onnx(file)


@contextmanager
def open_int8(network: PrunedNetwork, *, names: Sequence[str]) -> Iterator[tuple[int, Callable[..., Tensor]]]:
    """The same with 8-bit weights."""
    with TemporaryDirectory() as folder:
        file, small = Path(folder) / FILE, Path(folder) / INT8_FILE
        with silence_libraries():
            write_onnx(network, Path(folder), names=names)
            quantize(file, small)
        yield small.stat().st_size, load_onnx(small)


def write_int8_file(folder: Path) -> tuple[str, Callable[[Mapping[str, Tensor]], Tensor]]:
    quantize(folder / FILE, folder / INT8_FILE)
    return INT8_FILE, load_onnx(folder / INT8_FILE)


ONNX = ExportFormat(
    write=lambda network, folder, batch: write_onnx(network, folder, names=list(batch)),
    load=lambda folder, kind: load_onnx(folder / FILE),
    weights=FILE,
    count_stored=lambda file: sum(
        prod(tensor.dims) for tensor in onnx.load(file, load_external_data=False).graph.initializer
    ),
    library="onnx",
    runtime="onnxruntime",
    limit=1e-4,
    usage=lambda kind: kind.onnx_usage,
    otherwise="export to compact",
    quantize=write_int8_file,
)
