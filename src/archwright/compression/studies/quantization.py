"""`compress --compare quantized`: the original and the front in fewer bits; error, memory and latency of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.export import ExportedNetwork
from archwright.logs import silence_libraries
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import bootstrap_timing, one_thread, random_inputs, time_calls
from archwright.objectives.quantize import quantize_weights, stored_bytes
from archwright.progress import progress
from archwright.statistics import pareto_mask

NOTE = "quantized"
ORIGINAL_TRIAL = -1
"""As in `archwright export --trial -1`."""
YARDSTICK = "yardstick"
ERRORS = ("validation_error", "test_error")


@dataclass(frozen=True)
class Form:
    """A way to store and run a network."""

    bits: int
    runtime: str
    """torch: weights only, products of floats; torch int8: the inputs of every product become bytes too."""

    @property
    def name(self) -> str:
        return f"{self.bits} bit, {self.runtime}"

    def build(self, network: PrunedNetwork, names: Sequence[str], folder: Path) -> tuple[Any, int]:
        """The network with these inputs in this form, and the bytes of its weights: in memory, or of its file."""
        if self.runtime != "onnxruntime":
            small = quantize_weights(network, self.bits, product="int8" if self.runtime == "torch int8" else "float")
            return small, stored_bytes(small)
        from archwright.exporting.onnx_file import load_onnx, quantize, write_onnx  # onnx takes a second to import

        file, small_file = folder / "model.onnx", folder / "model_int8.onnx"
        with silence_libraries():
            if not file.exists():
                write_onnx(network, folder, names=names)
            if self.bits == 8:
                quantize(file, small_file)
        file = small_file if self.bits == 8 else file
        with one_thread():
            return ExportedNetwork(load_onnx(file), network), file.stat().st_size


EVALUATED = Form(32, "torch")
"""The form that the run itself evaluated."""
FORMS = (
    EVALUATED,
    Form(8, "torch"),
    Form(8, "torch int8"),
    Form(4, "torch"),
    Form(4, "torch int8"),
    Form(32, "onnxruntime"),
    Form(8, "onnxruntime"),
)


def study_quantization(
    evaluator: SubnetEvaluator, result: Mapping[str, Any], forms: Sequence[Form] = FORMS
) -> dict[str, Any]:
    """Points (error, bytes and latency of the original and each member of the front in every form) and their front.

    `joint_front` are the positions of the points that none beats in validation error and bytes. What an interrupted
    study has measured is not measured again.
    """
    context, run = evaluator.context, evaluator.context.run
    noted: dict[str, Any] = run.note(NOTE) or {}
    entries = [{"trial": ORIGINAL_TRIAL, **result["original"]}, *result["front"]]
    original = load_saved_network(run.original).cpu()
    with progress("networks in fewer bits", len(entries), unit="networks") as bar:
        for entry in entries:
            key = str(entry["trial"])
            if key not in noted:
                is_original = entry["trial"] == ORIGINAL_TRIAL
                network = original if is_original else evaluator.extract(entry["config"]).cpu()
                rows = context.original_data if is_original else context.task_data
                noted[key] = measure_forms(replace(context, task_data=rows), network, entry, original, forms)
                run.note(NOTE, noted)
            bar.advance()
    return join_sessions([noted[str(entry["trial"])] for entry in entries], context)


def measure_forms(
    context: RunContext,
    network: PrunedNetwork,
    entry: Mapping[str, Any],
    original: PrunedNetwork,
    forms: Sequence[Form],
) -> dict[str, Any]:
    """All forms of one network, timed in the same rounds as the original in float32, which is the yardstick."""
    rng = np.random.default_rng((context.seed, entry["trial"] + 1))
    names = tuple(context.task_data.validation[0].inputs)
    inputs = typical_inputs(network, names, context.length, rng)  # its words are the original's too
    with TemporaryDirectory() as folder, torch.no_grad():
        built = {form.name: form.build(network, names, Path(folder)) for form in forms}
        networks: dict[str, Any] = {YARDSTICK: original, **{name: small for name, (small, _) in built.items()}}
        calls = {name: partial(small, **inputs) for name, small in networks.items()}
        timings = time_calls(calls, rounds=context.config.measure.rounds, rng=rng, clock=thread_time)
        name, points = "original" if network is original else f"trial {entry['trial']}", []
        for form in forms:
            small, size = built[form.name]
            errors = {name: entry[name] for name in ERRORS} if form == EVALUATED else context.errors(small)
            shares = timings.samples[form.name] / timings.samples[YARDSTICK]
            points.append(
                {
                    "name": f"{name}, {form.name}",
                    "trial": entry["trial"],
                    "bits": form.bits,
                    "runtime": form.runtime,
                    "nonembedding_share": entry["nonembedding_share"],
                    **errors,
                    "bytes": size,
                    "latency_share": bootstrap_timing(shares, rng)._asdict(),
                }
            )
    return {"points": points, "yardstick_ms": timings[YARDSTICK].median}


def typical_inputs(
    network: PrunedNetwork, names: Sequence[str], length: int, rng: np.random.Generator
) -> dict[str, Tensor]:
    """One text of this length with exactly these inputs; one that random inputs do not have is 0."""
    inputs = random_inputs(network, batch=1, length=length, rng=rng)
    return {name: inputs.get(name, torch.zeros_like(inputs["input_ids"])) for name in names}


def join_sessions(sessions: Sequence[Mapping[str, Any]], context: RunContext) -> dict[str, Any]:
    """One document: shares of the yardstick become milliseconds of its median over all sessions."""
    reference = float(np.median([session["yardstick_ms"] for session in sessions]))
    points = [dict(point) for session in sessions for point in session["points"]]
    for point in points:
        share = point.pop("latency_share")
        point["latency_ms"] = {name: value * reference for name, value in share.items()}
    best = pareto_mask([(point["validation_error"], point["bytes"]) for point in points])
    latency = {"batch": 1, "length": context.length, "threads": 1, "rounds": context.config.measure.rounds}
    return {"points": points, "joint_front": np.flatnonzero(best).tolist(), "latency": latency}
