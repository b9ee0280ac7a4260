"""`compress --compare quantized`: the original and the front in fewer bits; error, memory and latency of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from archwright.compression.context import load_context
from archwright.compression.methods import METHODS
from archwright.compression.run import FinishedRun
from archwright.compression.search import SubnetEvaluator
from archwright.networks.load import saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import one_thread, random_inputs, time_interleaved, timing_of
from archwright.objectives.quantize import quantized, stored_bytes
from archwright.progress import progress
from archwright.statistics import pareto_mask
from archwright.subnet.extract import extract

NOTE = "quantized"
ORIGINAL_TRIAL = -1
"""As in `archwright export --trial -1`."""
YARDSTICK = "yardstick"


@dataclass(frozen=True)
class Piece:
    """A network to be stored in several ways, with a folder for its files."""

    network: PrunedNetwork
    names: tuple[str, ...]
    """Of its inputs."""
    folder: Path

    @cached_property
    def onnx(self) -> Path:
        from archwright.exporting.onnx_file import write_onnx  # onnx takes a second to import
        from archwright.logs import silence_libraries

        with silence_libraries():
            write_onnx(self.network, self.folder, names=self.names)
        return self.folder / "model.onnx"

    @cached_property
    def onnx_int8(self) -> Path:
        from archwright.exporting.onnx_file import quantize
        from archwright.logs import silence_libraries

        with silence_libraries():
            quantize(self.onnx, self.folder / "model_int8.onnx")
        return self.folder / "model_int8.onnx"


class OnnxNetwork(nn.Module):
    """A file for onnxruntime that answers like the network it was made of."""

    def __init__(self, file: Path, like: PrunedNetwork):
        from archwright.exporting.onnx_file import load_onnx

        super().__init__()
        with one_thread():
            self.run = load_onnx(file)
        self.config, self.device = like.config, torch.device("cpu")

    def forward(self, **inputs: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.run(inputs))


@dataclass(frozen=True)
class Form:
    """A way to store and run a network."""

    bits: int
    runtime: str
    build: Callable[[Piece], tuple[Any, int]]
    """The network in this form, and the bytes of its weights: measured in memory, or the size of its file."""
    known: bool = False
    """Whether it is the form that the run itself evaluated."""

    @property
    def name(self) -> str:
        return f"{self.bits} bit, {self.runtime}"


def in_torch(bits: int, product: str) -> Callable[[Piece], tuple[Any, int]]:
    def build(piece: Piece) -> tuple[Any, int]:
        small = quantized(piece.network, bits, product=product)
        return small, stored_bytes(small)

    return build


def in_onnx(file: Callable[[Piece], Path]) -> Callable[[Piece], tuple[Any, int]]:
    return lambda piece: (OnnxNetwork(file(piece), piece.network), file(piece).stat().st_size)


FORMS = (
    Form(32, "torch", in_torch(32, "float"), known=True),
    Form(8, "torch", in_torch(8, "float")),
    Form(8, "torch int8", in_torch(8, "int8")),
    Form(4, "torch", in_torch(4, "float")),
    Form(4, "torch int8", in_torch(4, "int8")),
    Form(32, "onnxruntime", in_onnx(lambda piece: piece.onnx)),
    Form(8, "onnxruntime", in_onnx(lambda piece: piece.onnx_int8)),
)
"""torch: weights only, products of floats; torch int8: the inputs of every product become bytes too."""


def compare_quantized(run: FinishedRun) -> dict[str, Any]:
    """The study of a finished run; what an interrupted one has measured is not measured again."""
    context = load_context(run.folder)
    return quantized_study(METHODS[context.supernet.method].ground_of(context), run.result)


def quantized_study(
    evaluator: SubnetEvaluator, result: Mapping[str, Any], forms: Sequence[Form] = FORMS
) -> dict[str, Any]:
    """Points (error, bytes and latency of the original and each member of the front in every form) and their front.

    `joint_front` are the positions of the points that none beats in validation error and bytes.
    """
    noted: dict[str, Any] = evaluator.run.note(NOTE) or {}
    entries = [{"trial": ORIGINAL_TRIAL, **result["original"]}, *result["front"]]
    original = saved_network(evaluator.run.original).cpu()
    with progress("networks in fewer bits", len(entries), unit="networks") as bar:
        for entry in entries:
            key = str(entry["trial"])
            if key not in noted:
                network = original if entry["trial"] == ORIGINAL_TRIAL else alone(evaluator, entry["config"])
                noted[key] = measured(evaluator, network, entry, original, forms)
                evaluator.run.note(NOTE, noted)
            bar.advance()
    return joined([noted[str(entry["trial"])] for entry in entries], evaluator)


def alone(evaluator: SubnetEvaluator, config: dict[str, Any]) -> PrunedNetwork:
    """The sub-network as a network of its own on the CPU."""
    network, keep = evaluator.home(config)
    return (network if keep is None else extract(network, keep)).cpu().eval()


def measured(
    evaluator: SubnetEvaluator,
    network: PrunedNetwork,
    entry: Mapping[str, Any],
    original: PrunedNetwork,
    forms: Sequence[Form],
) -> dict[str, Any]:
    """All forms of one network, timed in the same rounds as the original in float32, which is the yardstick."""
    rng = np.random.default_rng((evaluator.seed, entry["trial"] + 1))
    names = tuple(evaluator.task_data.validation[0].inputs)
    inputs = typical_inputs(original, names, evaluator.length, rng)
    with TemporaryDirectory() as folder, torch.no_grad():
        piece = Piece(network, names, Path(folder))
        built = {form.name: form.build(piece) for form in forms}
        calls = {name: forward(ready, inputs) for name, (ready, _) in built.items()}
        timings = time_interleaved(
            {YARDSTICK: forward(original, inputs), **calls}, rounds=evaluator.measure.rounds, rng=rng, clock=thread_time
        )
        points = [
            {
                **described(form, entry),
                **errors(evaluator, built[form.name][0], form, entry),
                "bytes": built[form.name][1],
                "latency_share": timing_of(timings.samples[form.name] / timings.samples[YARDSTICK], rng)._asdict(),
            }
            for form in forms
        ]
    return {"points": points, "yardstick_ms": timings[YARDSTICK].median}


def described(form: Form, entry: Mapping[str, Any]) -> dict[str, Any]:
    network = "original" if entry["trial"] == ORIGINAL_TRIAL else f"trial {entry['trial']}"
    return {
        "name": f"{network}, {form.name}",
        "trial": entry["trial"],
        "bits": form.bits,
        "runtime": form.runtime,
        "nonembedding_share": entry["nonembedding_share"],
    }


def errors(evaluator: SubnetEvaluator, network: Any, form: Form, entry: Mapping[str, Any]) -> dict[str, float]:
    """Every form but the one that the run evaluated is evaluated here."""
    if form.known:
        return {name: entry[name] for name in ("validation_error", "test_error")}
    task_data = evaluator.task_data
    return {
        "validation_error": task_data.error(network, task_data.validation),
        "test_error": task_data.error(network, task_data.test),
    }


def typical_inputs(
    network: PrunedNetwork, names: Sequence[str], length: int, rng: np.random.Generator
) -> dict[str, Tensor]:
    """One text of this length with exactly these inputs; one that random inputs do not have is 0."""
    inputs = random_inputs(network, batch=1, length=length, rng=rng)
    return {name: inputs.get(name, torch.zeros_like(inputs["input_ids"])) for name in names}


def forward(network: Any, inputs: dict[str, Tensor]) -> Callable[[], Any]:
    return lambda: network(**inputs)


def joined(measured: Sequence[Mapping[str, Any]], evaluator: SubnetEvaluator) -> dict[str, Any]:
    """One document: shares of the yardstick become milliseconds of its median over all sessions."""
    reference = float(np.median([session["yardstick_ms"] for session in measured]))
    points = [dict(point) for point in all_points(measured)]
    for point in points:
        share = point.pop("latency_share")
        point["latency_ms"] = {name: value * reference for name, value in share.items()}
    best = pareto_mask([(point["validation_error"], point["bytes"]) for point in points])
    latency = {"batch": 1, "length": evaluator.length, "threads": 1, "rounds": evaluator.measure.rounds}
    return {"points": points, "joint_front": np.flatnonzero(best).tolist(), "latency": latency}


def all_points(measured: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for session in measured:
        yield from session["points"]
