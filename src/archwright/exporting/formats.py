"""The formats a network can be exported to. Importing the list loads no torch; using a format does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from archwright.exporting.kinds import Kind

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel as Network

    Run = Callable[[Mapping[str, Tensor]], Tensor]
    """A batch's inputs to its logits, on the CPU and without gradients."""
    Write = Callable[[Network, Path, Mapping[str, Tensor]], None]
    """Network, folder and a batch (its input names count) to files in the folder."""


@dataclass(frozen=True)
class Format:
    """One way to write a network, and to read it back as a user would."""

    description: str
    write: "Write"
    load: "Callable[[Path, str], Run]"
    weights: str
    """The file that holds the weights."""
    limit: float
    """Largest difference of logits, as a share of the largest logit or of 1."""
    usage: Callable[[Kind], str]
    """How a user runs it, for the model card."""
    otherwise: str
    """What to do when the difference is above the limit."""
    stored: Callable[[Path], int]
    """How many numbers the file with the weights holds."""
    stock: bool = False
    """Whether it is one of transformers' own classes."""
    library: str = "transformers"
    trust: str = ""
    """What the loading functions of transformers need to be told beside the folder."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a user must know about a network that pools like this, for the model card."""
    quantize: "Callable[[Path], Quantized] | None" = None
    """From the folder to one more file in it with 8-bit weights."""


@dataclass(frozen=True)
class Quantized:
    """The 8-bit file that was written, and what it computes."""

    weights: str
    run: "Run"


def write_hf(network: "Network", folder: Path, batch: "Mapping[str, Tensor]") -> None:
    from archwright.exporting.stock import write_stock

    write_stock(network, folder)


def write_padded(network: "Network", folder: Path, batch: "Mapping[str, Tensor]") -> None:
    from archwright.exporting.stock import write_padded

    write_padded(network, folder)


def write_compact(network: "Network", folder: Path, batch: "Mapping[str, Tensor]") -> None:
    from archwright.exporting.compact import write_compact

    write_compact(network, folder)


def write_onnx(network: "Network", folder: Path, batch: "Mapping[str, Tensor]") -> None:
    from archwright.exporting.onnx_file import write_onnx

    write_onnx(network, folder, names=list(batch))


def load_stock(folder: Path, kind: str) -> "Run":
    from archwright.exporting.stock import load_stock

    return load_stock(folder, kind)


def load_compact(folder: Path, kind: str) -> "Run":
    from archwright.exporting.compact import load_compact

    return load_compact(folder, kind)


def load_onnx(folder: Path, kind: str) -> "Run":
    from archwright.exporting.onnx_file import load_onnx

    return load_onnx(folder / "model.onnx")


def quantize_onnx(folder: Path) -> Quantized:
    from archwright.exporting.onnx_file import load_onnx, quantize

    quantize(folder / "model.onnx", folder / "model_int8.onnx")
    return Quantized("model_int8.onnx", load_onnx(folder / "model_int8.onnx"))


def stored_in_safetensors(file: Path) -> int:
    from safetensors import safe_open

    with safe_open(file, "np") as tensors:
        return sum(prod(tensors.get_slice(name).get_shape()) for name in list(tensors.keys()))


def stored_in_onnx(file: Path) -> int:
    import onnx

    return sum(prod(tensor.dims) for tensor in onnx.load(file, load_external_data=False).graph.initializer)


POOLED = """\
The network pools by the mean over all tokens. Stock heads look at the first token only, so the last layer of this
checkpoint is not a trained one: it computes the mean. Run it as it is, also in half precision; to train on, export to
`compact`.
"""


def torch_usage(kind: Kind) -> str:
    return kind.usage


def onnx_usage(kind: Kind) -> str:
    return kind.onnx_usage


FORMATS: dict[str, Format] = {
    "hf": Format(
        description="stock Hugging Face classes, for layers of equal units and all heads",
        write=write_hf,
        load=load_stock,
        stock=True,
        weights="model.safetensors",
        stored=stored_in_safetensors,
        limit=1e-5,
        usage=torch_usage,
        notes={"mean": POOLED},
        otherwise="export to compact",
    ),
    "hf-padded": Format(
        description="stock Hugging Face classes for any sizes: what was removed is filled with zeros, so not faster",
        write=write_padded,
        load=load_stock,
        stock=True,
        weights="model.safetensors",
        stored=stored_in_safetensors,
        limit=1e-5,
        usage=torch_usage,
        notes={"mean": POOLED},
        otherwise="export to compact",
    ),
    "compact": Format(
        description="small tensors and a modeling file of its own; loads with trust_remote_code=True",
        write=write_compact,
        load=load_compact,
        weights="model.safetensors",
        stored=stored_in_safetensors,
        limit=1e-5,
        usage=torch_usage,
        trust=", trust_remote_code=True",
        otherwise="check that the reference is the network that was extracted",
    ),
    "onnx": Format(
        description="one ONNX file for onnxruntime, any batch size and length, optionally with 8-bit weights too",
        write=write_onnx,
        load=load_onnx,
        weights="model.onnx",
        stored=stored_in_onnx,
        library="onnx",
        limit=1e-4,
        usage=onnx_usage,
        otherwise="export to compact",
        quantize=quantize_onnx,
    ),
}
