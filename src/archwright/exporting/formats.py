"""The formats a network can be exported to, one file each. Importing the list loads no torch; using a format does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from archwright.errors import BadInput
from archwright.exporting.kinds import TaskExport
from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    Run = Callable[[Mapping[str, Tensor]], Tensor]
    """A batch's inputs to its logits, on the CPU and without gradients."""


def count_safetensors(file: Path) -> int:
    """How many numbers a file of weights holds."""
    from safetensors import safe_open

    with safe_open(file, "np") as tensors:
        return sum(prod(tensors.get_slice(name).get_shape()) for name in list(tensors.keys()))


@dataclass(frozen=True)
class ExportFormat:
    """One way to write a network, and to read it back as a user would."""

    write: "Callable[[PreTrainedModel, Path, Mapping[str, Tensor]], None]"
    """Network, folder and a batch (its input names count) to files in the folder."""
    load: "Callable[[Path, str], Run]"
    """Folder and kind of task to what a user runs."""
    otherwise: str
    """What to do when the difference is above the limit."""
    limit: float = 1e-5
    """Largest difference of logits, as a share of the largest logit or of 1."""
    weights: str = "model.safetensors"
    """The file that holds the weights."""
    count_stored: Callable[[Path], int] = count_safetensors
    """How many numbers the file with the weights holds."""
    usage: Callable[[TaskExport], str] = lambda kind: kind.usage
    """How a user runs it, for the model card."""
    keeps_bfloat16: bool = False
    """Whether weights in bfloat16 are written as they are; otherwise they become float32."""
    stock: bool = False
    """Whether it is one of transformers' own classes."""
    library: str = "transformers"
    runtime: str = "PyTorch"
    """What runs it, and what an original has to run in that its latency is compared with."""
    trust: str = ""
    """What the loading functions of transformers need to be told beside the folder."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a user must know about a network that pools like this, for the model card."""
    quantize: "Callable[[Path], tuple[str, Run]] | None" = None
    """Writes one more file with 8-bit weights into the folder; gives its name and what it computes."""


FORMATS: Registry[ExportFormat] = Registry(
    "export format",
    {
        "hf": Lazy("archwright.exporting.hf:HF", "stock Hugging Face classes, for layers of equal units and all heads"),
        "hf-padded": Lazy(
            "archwright.exporting.hf:HF_PADDED",
            "stock Hugging Face classes for any sizes: what was removed is filled with zeros, so not faster",
        ),
        "compact": Lazy(
            "archwright.exporting.compact:COMPACT",
            "small tensors and a modeling file of its own; loads with trust_remote_code=True",
        ),
        "onnx": Lazy(
            "archwright.exporting.onnx_file:ONNX",
            "one ONNX file for onnxruntime, any batch size and length, optionally with 8-bit weights too",
        ),
    },
    group="archwright.export_formats",
)


def find_format(name: str, *, int8: bool) -> ExportFormat:
    """The format of this name; BadInput when there is none, or when it has no 8-bit weights and these are wanted."""
    if name not in FORMATS:
        near = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {near[0]}?" if near else "choose one of these."
        raise BadInput(f"the format must be one of {', '.join(FORMATS)}, got {name!r}; {hint}")
    form = FORMATS[name]
    if int8 and form.quantize is None:
        able = ", ".join(other for other, kind in FORMATS.items() if kind.quantize)
        raise BadInput(f"8-bit weights need the format {able}, got {name!r}; leave int8 away or export to {able}.")
    return form
