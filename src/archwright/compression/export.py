"""A sub-network of a run as a checkpoint or ONNX file, compared with the sub-network and timed beside the original."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from archwright.compression.recovery import standing_alone
from archwright.compression.run import open_finished
from archwright.compression.search import SubnetEvaluator, load_evaluator
from archwright.data.batching import Encoded, batch_of
from archwright.errors import BadInput
from archwright.exporting.card import sizes_of
from archwright.exporting.checkpoint import export as write
from archwright.exporting.parity import Parity
from archwright.networks.load import saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import one_thread, random_inputs, time_interleaved
from archwright.store import RunFolder, is_run
from archwright.subnet.slicing import subnetwork
from archwright.training.plan import COMMAND

if TYPE_CHECKING:
    from rich.console import Console


ORIGINAL = -1


Logits = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]


@dataclass(frozen=True)
class ExportResult:
    """A checkpoint and the proof that it computes what the sub-network computed."""

    folder: Path
    parity: Parity

    def as_json(self) -> dict[str, Any]:
        return {**self.parity.as_json(), "folder": str(self.folder)}

    def show(self, console: "Console") -> None:
        for line in self.lines():
            console.print(line, soft_wrap=True, highlight=False)

    def lines(self) -> list[str]:
        parity, apart = self.parity, self.parity.difference
        shapes = ", ".join(" x ".join(f"{size:g}" for size in sizes_of(shape)) for shape in apart.shapes)
        lines = [
            f"written:  {self.folder} ({parity.format}, {parity.bytes / 1e6:.1f} MB, {parity.parameters:,} parameters)",
            f"verified: loaded again, its logits differ by at most {apart.largest:.1e} (largest logit "
            f"{apart.largest_logit:.1f}, limit {parity.limit:.0e}) on real texts of shapes {shapes}",
        ]
        if parity.latency:
            lines.append(
                "latency:  {median:.2f} ms ({ratio:.0%} of the original's {original:.2f} ms)".format(**parity.latency)
            )
        if parity.int8:
            same = parity.int8.difference.same_predictions
            lines.append(
                f"int8:     {parity.int8.file}, {parity.int8.bytes / 1e6:.1f} MB, logits differ by at most "
                f"{parity.int8.difference.largest:.2f}"
                + ("" if same is None else f", {same:.0%} of the answers are the same")
            )
        return lines


def check_run(folder: Path) -> None:
    """Refuses what is no run of `compress` either."""
    if not is_run(folder):
        raise BadInput(f"{folder} is no run of `train` or `compress` and no network: no run.json, no config.json.")
    if RunFolder(folder).settings.get("command") == COMMAND:
        raise BadInput(f"{folder} has no network: its training is not at its end, or one folder further down.")


def export_subnet(
    run: RunFolder, trial: int, to: str, *, folder: Path | None = None, int8: bool = False, recovered: bool = False
) -> ExportResult:
    evaluator = load_evaluator(run)
    network, reference = network_of(evaluator, trial, recovered)
    place = folder or run.path / "export" / "-".join((f"trial-{trial}", *(["recovered"] if recovered else []), to))
    with one_thread():  # latency is about one thread, in every runtime
        parity = write(
            network,
            evaluator.task_data.tokenizer,
            place,
            to=to,
            int8=int8,
            reference=reference,
            batches=SHAPES.get(network.config.kind, mixed)(evaluator.task_data.encoded["validation"]),
            latency=latency_of(evaluator),
        )
    return ExportResult(place, parity)


def latency_of(evaluator: SubnetEvaluator) -> Callable[[Logits], Mapping[str, float]]:
    """Times an exported network beside the original, alternately, on one text of typical length."""

    def latency(exported: Logits) -> Mapping[str, float]:
        original = saved_network(evaluator.run.original)  # only now: an export needs memory too
        inputs, whole = timed_inputs(evaluator, original), answers(original, None)
        calls = {"exported": lambda: exported(inputs), "original": lambda: whole(inputs)}
        rng = np.random.default_rng(evaluator.seed)
        timings = time_interleaved(calls, rounds=evaluator.measure.rounds, rng=rng, clock=thread_time)
        ours, theirs = timings["exported"], timings["original"]
        return {**ours._asdict(), "original": theirs.median, "ratio": ours.median / theirs.median}

    return latency


def timed_inputs(evaluator: SubnetEvaluator, original: PrunedNetwork) -> dict[str, torch.Tensor]:
    """Random tokens under the names that the task's batches have; every token is open to an answer."""
    drawn = random_inputs(original, batch=1, length=evaluator.length, rng=np.random.default_rng(evaluator.seed))
    others = {"token_type_ids": torch.zeros_like, "context_mask": torch.ones_like}
    named = batch_of(evaluator.task_data.encoded["validation"], np.arange(1)).inputs
    return {name: drawn[name] if name in drawn else others[name](drawn["input_ids"]) for name in named}


def network_of(evaluator: SubnetEvaluator, trial: int, recovered: bool) -> tuple[PrunedNetwork, Logits]:
    """The network to write, and what it is compared with: the sub-network where it was trained."""
    if recovered:
        folder = evaluator.run.recovered(trial)
        if not folder.exists():
            raise BadInput(
                f"trial {trial} has not been recovered; run `archwright select` with --recover-epochs first."
            )
        network = saved_network(folder)
        return network, answers(network, None)
    if trial == ORIGINAL:
        network = saved_network(evaluator.run.original)
        return network, answers(network, None)
    home, keep = evaluator.home(open_finished(evaluator.run.path).member(trial).config)
    return standing_alone(home, keep), answers(home, keep)


def answers(network: PrunedNetwork, keep: Any) -> Logits:
    def logits(inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        with torch.no_grad(), nullcontext() if keep is None else subnetwork(network, keep):
            found: torch.Tensor = network(**{name: tensor.to(network.device) for name, tensor in inputs.items()}).logits
            return found.cpu()

    return logits


def mixed(encoded: Encoded) -> list[dict[str, torch.Tensor]]:
    """Real texts in several shapes: one short, one long, few and many of mixed lengths."""
    order = np.argsort(encoded.lengths, kind="stable")
    spread = order[np.linspace(0, len(order) - 1, min(16, len(order))).astype(int)]
    chosen = [order[:1], order[-1:], order[len(order) // 2 :][:3], spread[::2], spread]
    return [batch_of(encoded, rows).inputs for rows in chosen if len(rows)]


def prefixes(encoded: Encoded) -> list[dict[str, torch.Tensor]]:
    """Blocks of real text, which all have one length, and their beginnings; few at once, for logits are large."""
    longest, last = int(encoded.lengths[0]), len(encoded) - 1
    wanted = [
        ([0], longest),
        ([last], max(1, longest // 16)),
        ([0, last // 2, last], max(1, longest // 4)),
        ([0, last], 1),
    ]
    made = []
    for rows, length in wanted:
        inputs = batch_of(encoded, np.unique(rows)).inputs
        made.append({name: tensor[:, :length].contiguous() for name, tensor in inputs.items()})
    return made


SHAPES: dict[str, Callable[[Encoded], list[dict[str, torch.Tensor]]]] = {"lm": prefixes}
"""Batches for the parity report of a kind of task, where it is not `mixed`."""
