"""A network as a checkpoint or ONNX file, compared with where it came from and timed beside it.

It is a sub-network of a run of `compress`, on real texts of its task, or a network that `train` wrote, on a few texts.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from archwright.compression.evaluator import SubnetEvaluator
from archwright.data.batching import Encoded, batch_of
from archwright.data.public_data import resolve_model
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput
from archwright.exporting.checkpoint import export
from archwright.exporting.exportable import NetworkTraits, network_traits
from archwright.exporting.kinds import task_export
from archwright.exporting.parity import Inputs, Parity, shape_sizes, varied_batches
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import one_thread, random_inputs, time_calls
from archwright.search import Config
from archwright.spaces.checkpoints import load_any_network, load_network
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import SubnetSpec
from archwright.tasks import TASK_KINDS

if TYPE_CHECKING:
    from rich.console import Console

Forward = Callable[[Inputs], Any]
ORIGINAL = -1
"""Number that stands for the fine-tuned original among the trials."""
TRAINED_LENGTH = 64
"""Tokens of the longest text that a trained network is compared on."""
TRAINED_ROUNDS = 20
TEXTS = (
    "No.",
    "It rained.",
    "The film was lovely.",
    "She read the letter twice and put it away.",
    "In the north the winters are long, and the days are short.",
    "Nobody knew who had written the song, but everyone in the village could sing it.",
    "The company said on Monday that it would close two of its plants by the end of next year.",
    "After the war he returned to the town where he was born and opened a small shop near the station.",
)
"""Of all lengths; what they say does not matter, for it is the difference of two networks that counts."""
QUESTIONS = ("What?", "Who read the letter?", "Where are the winters long?", "When did the company say that?") * 2


@dataclass(frozen=True)
class ExportResult:
    """A checkpoint and the proof that it computes what the network computed."""

    folder: Path
    parity: Parity

    def as_json(self) -> dict[str, Any]:
        return {**self.parity.as_json(), "folder": str(self.folder)}

    def show(self, console: "Console") -> None:
        for line in self.lines():
            console.print(line, soft_wrap=True, highlight=False)

    def lines(self) -> list[str]:
        parity, apart = self.parity, self.parity.difference
        shapes = ", ".join(" x ".join(f"{size:g}" for size in shape_sizes(shape)) for shape in apart.shapes)
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


def export_subnet(
    evaluator: SubnetEvaluator,
    trial: int,
    config: Config | None,
    *,
    to: str,
    folder: Path | None = None,
    int8: bool = False,
    recovered: bool = False,
) -> ExportResult:
    """Writes the sub-network of a trial; its config is needed unless it is recovered or the original."""
    run, task_data = evaluator.context.run, evaluator.context.task_data
    network, part = find_network(evaluator, trial, config, recovered)
    standalone = network if part is None or config is None else evaluator.extract(config)
    folder = folder or run.path / "export" / "-".join((f"trial-{trial}", *(["recovered"] if recovered else []), to))
    sample_batches = TASK_KINDS[network.config.kind].export_batches.load()
    with one_thread():  # latency is about one thread, in every runtime
        parity = export(
            standalone,
            task_data.tokenizer,
            folder,
            to=to,
            int8=int8,
            reference=logits_of(network, part),
            batches=sample_batches(task_data.encoded["validation"]),
            latency=lambda exported: time_beside_original(evaluator, exported),
        )
    return ExportResult(folder, parity)


def find_network(
    evaluator: SubnetEvaluator, trial: int, config: Config | None, recovered: bool
) -> tuple[PrunedNetwork, SubnetSpec | None]:
    """Where the weights are that the export is compared with: a network, and what of it is the sub-network."""
    run = evaluator.context.run
    if recovered:
        if not run.recovered_network(trial).exists():
            raise BadInput(
                f"trial {trial} has not been recovered; run `archwright select` with --recover-epochs first."
            )
        return load_saved_network(run.recovered_network(trial)), None
    if config is None:
        return load_saved_network(run.original), None
    return evaluator.weights.locate(config)


def logits_of(network: PrunedNetwork, part: SubnetSpec | None) -> Callable[[Inputs], torch.Tensor]:
    """The forward pass of a network, or of a part of it."""

    def forward(inputs: Inputs) -> torch.Tensor:
        with torch.no_grad(), nullcontext() if part is None else subnetwork(network, part):
            logits: torch.Tensor = network(**{name: x.to(network.device) for name, x in inputs.items()}).logits
            return logits.cpu()

    return forward


def time_beside_original(evaluator: SubnetEvaluator, exported: Forward) -> dict[str, float]:
    """Latency of an exported network and of the original on one text of typical length."""
    context = evaluator.context
    original = load_saved_network(context.run.original)  # only now: an export needs memory too
    rng = np.random.default_rng(context.seed)
    tokens = random_inputs(original, batch=1, length=context.length, rng=rng)
    others = {"token_type_ids": torch.zeros_like, "context_mask": torch.ones_like}  # every token is open to an answer
    names = batch_of(context.task_data.encoded["validation"], np.arange(1)).inputs
    inputs = {name: tokens[name] if name in tokens else others[name](tokens["input_ids"]) for name in names}
    return time_side_by_side(exported, logits_of(original, None), inputs, context.config.measure.rounds, context.seed)


def time_side_by_side(exported: Forward, original: Forward, inputs: Inputs, rounds: int, seed: int) -> dict[str, float]:
    """Milliseconds of one text on one thread, the two networks alternately."""
    calls = {"exported": lambda: exported(inputs), "original": lambda: original(inputs)}
    timings = time_calls(calls, rounds=rounds, rng=np.random.default_rng(seed), clock=thread_time)
    ours, theirs = timings["exported"], timings["original"]
    return {**ours._asdict(), "original": theirs.median, "ratio": ours.median / theirs.median}


def mixed_batches(encoded: Encoded) -> list[dict[str, torch.Tensor]]:
    """Real texts in several shapes: one short, one long, few and many of mixed lengths."""
    order = np.argsort(encoded.lengths, kind="stable")
    spread = order[np.linspace(0, len(order) - 1, min(16, len(order))).astype(int)]
    choices = [order[:1], order[-1:], order[len(order) // 2 :][:3], spread[::2], spread]
    return [batch_of(encoded, rows).inputs for rows in choices if len(rows)]


def block_batches(encoded: Encoded) -> list[dict[str, torch.Tensor]]:
    """Blocks of real text, which all have one length, and their beginnings; few at once, for logits are large."""
    longest, last = int(encoded.lengths[0]), len(encoded) - 1
    shapes = [
        ([0], longest),
        ([last], max(1, longest // 16)),
        ([0, last // 2, last], max(1, longest // 4)),
        ([0, last], 1),
    ]
    batches = []
    for rows, length in shapes:
        inputs = batch_of(encoded, np.unique(rows)).inputs
        batches.append({name: tensor[:, :length].contiguous() for name, tensor in inputs.items()})
    return batches


def export_trained_network(
    source: Path, *, to: str, folder: Path, int8: bool = False, against: str | None = None
) -> ExportResult:
    """Writes the network that `train` saved in `source`; it is timed against another model, or itself in PyTorch."""
    network = load_network(source)
    description, tokenizer = network_traits(network), load_tokenizer(str(source))
    batches = text_batches(tokenizer, description)

    def reference(inputs: Inputs) -> torch.Tensor:
        with torch.no_grad():
            return task_export(description.kind).answer(network, inputs)

    other = reference if against is None else load_forward(against)
    with one_thread():
        parity = export(
            network,
            tokenizer,
            folder,
            to=to,
            int8=int8,
            reference=reference,
            batches=batches,
            latency=lambda exported: time_side_by_side(exported, other, batches[1], TRAINED_ROUNDS, seed=0),
        )
    return ExportResult(folder, parity)


def load_forward(model: str) -> Forward:
    """The forward pass of another model, such as the teacher, on inputs of ours."""
    network = load_any_network(resolve_model(model))
    rows = network.get_input_embeddings().weight.shape[0]

    def forward(inputs: Inputs) -> Any:
        flat = {name: inputs[name].flatten(0, -2) for name in ("input_ids", "attention_mask")}
        flat["input_ids"] = flat["input_ids"] % rows  # which words it reads costs nothing
        with torch.no_grad():
            return network(**flat)

    return forward


def text_batches(tokenizer: PreTrainedTokenizerBase, description: NetworkTraits) -> list[dict[str, torch.Tensor]]:
    """TEXTS in several shapes as the network reads them."""
    task, longest = task_export(description.kind), min(TRAINED_LENGTH, description.room or TRAINED_LENGTH)
    texts = (QUESTIONS, TEXTS) if task.asks else (TEXTS,)
    names = ("input_ids", "attention_mask", *(() if description.causal else ("token_type_ids",)))
    batches = []
    for encoded in varied_batches(tokenizer, *texts, max_length=longest):
        batch = {name: encoded[name] for name in names if name in encoded}
        if task.asks and "token_type_ids" in batch:  # the tokenizer marks the second text: answers stand there
            batch["context_mask"] = batch["token_type_ids"] * batch["attention_mask"]
        if "choices" in task.axes:  # two: the text, and the one as far from the end as this is from the beginning
            batch = {name: torch.stack([tensor, tensor.flip(0)], 1) for name, tensor in batch.items()}
        batches.append(batch)
    return batches
