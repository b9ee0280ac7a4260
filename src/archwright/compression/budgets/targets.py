"""What a run is meant to be exported to: where its search stays, and what runs its networks. Loads no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

    from archwright.configs.compress import CompressConfig
    from archwright.networks.pruned import PrunedNetwork

Prepare = Callable[["PrunedNetwork", "Mapping[str, Tensor]"], Callable[[], Any]]
"""A network and the inputs of one batch to a call that runs it once."""


def prepare_onnx(network: "PrunedNetwork", inputs: "Mapping[str, Tensor]", *, int8: bool = False) -> Callable[[], Any]:
    """The network as an ONNX file, with 8-bit weights or without, in onnxruntime on one thread."""
    from archwright.exporting.onnx_file import open_float, open_int8  # onnx takes a second to import
    from archwright.objectives.latency import one_thread

    with one_thread(), (open_int8 if int8 else open_float)(network, names=list(inputs)) as (_, run):
        return lambda: run(inputs)


@dataclass(frozen=True)
class ExportTarget:
    """One export that a run can be for."""

    description: str
    options: str
    """Of `export` and `select`, for the commands that are printed."""
    runtime: str = "torch"
    """What latency is measured in, of sub-networks and of the original."""
    prepare: Prepare | None = None
    """How a network is made ready there, which takes seconds, so that a table of blocks is made of shallow ones; None:
    as it is, in torch."""
    int8: bool = False
    """Whether weights are bytes: then size and test error of the 8-bit file are measured for the whole front."""
    cost: str | None = None
    """The cost that is searched for where none is given."""
    spaces: tuple[str, ...] = ()
    """Those in which every sub-network can be exported exactly, the usual one first; empty: all."""
    stock: bool = False
    """Whether classes of transformers must be able to say the network: one table of word vectors, the whole width."""


TARGETS: dict[str, ExportTarget] = {
    "compact": ExportTarget("PyTorch with a modeling file of its own; any sub-network", "--to compact"),
    "hf": ExportTarget(
        "stock Hugging Face classes: all heads and equally many units in every layer that stays",
        "--to hf",
        spaces=("stock", "layer"),
        stock=True,
    ),
    "onnx": ExportTarget(
        "onnxruntime: latency is measured there", "--to onnx", runtime="onnxruntime", prepare=prepare_onnx
    ),
    "onnx-int8": ExportTarget(
        "onnxruntime with 8-bit weights: latency and test error are measured there, and their bytes are the cost",
        "--to onnx --int8",
        runtime="onnxruntime int8",
        prepare=partial(prepare_onnx, int8=True),
        int8=True,
        cost="int8_bytes",
    ),
}


def target_space(name: str, space: str | None, method_spaces: tuple[str, ...], method: str) -> str | None:
    """The space of a run for this target: the given one, or the first that target and method share.

    BadInput where the export could not say its sub-networks. None: whatever is usual.
    """
    able = TARGETS[name].spaces
    if not able:
        return space
    shared = [each for each in able if each in method_spaces]
    if not shared:
        raise BadInput(
            f"--for {name} needs a method that searches in the space {' or '.join(able)}, got --method {method}; "
            "take weight-sharing, or --for compact."
        )
    if space is not None and space not in shared:
        raise BadInput(f"--for {name} needs --space {' or '.join(shared)}, got {space}; leave --space out.")
    return space or shared[0]


def validate_target(config: "CompressConfig", *, stock_family: bool, family: str) -> None:
    """BadInput for what the export that the run is for could not write."""
    name, device = config.search.for_, config.measure.latency_device
    if TARGETS[name].prepare is not None and device != "cpu":
        raise BadInput(
            f"--for {name} is timed in onnxruntime on one thread of a CPU, got --latency-device {device}; leave it out."
        )
    if not TARGETS[name].stock:
        return
    if not stock_family:
        raise BadInput(
            f"--for {name} needs a family that transformers has classes for, got {family}; take --for compact."
        )
    for option, value in {"embedding-rank": config.model.embedding_rank, "width": config.model.width}.items():
        if value is not None:
            raise BadInput(
                f"--{option} makes a network that stock classes cannot say, got {value} with --for {name}; leave one "
                "of the two out."
            )
