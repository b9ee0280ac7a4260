"""A network as a checkpoint or ONNX file, compared with where it came from and timed beside it.

It is a sub-network of a run of `compress`, on real texts of its task, or a network that `train` wrote, on a few texts.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from archwright.compression.budgets.limits import read_picked
from archwright.compression.evaluator import SubnetEvaluator
from archwright.data.batching import Encoded, batch_of
from archwright.data.public_data import resolve_model
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput
from archwright.exporting.card import CardFacts
from archwright.exporting.checkpoint import export
from archwright.exporting.exportable import NetworkTraits, network_traits
from archwright.exporting.formats import FORMATS, ExportFormat
from archwright.exporting.kinds import task_export
from archwright.exporting.parity import Inputs, Parity, Run, latency_words, shape_sizes, varied_batches
from archwright.logs import silence_libraries
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import one_thread, random_inputs, time_calls
from archwright.progress import Bar, progress
from archwright.reports.compress.summary import embedding_lines, loss_words, member_commands
from archwright.search import Config
from archwright.spaces.checkpoints import load_any_network, load_network
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import SubnetSpec
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import TaskData

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
            f"written:  {self.folder} ({parity.format}, {parity.bytes / 1e6:.1f} MB, {parity.parameters:,} parameters"
            f"{'' if parity.weights == 'float32' else f' in {parity.weights}, compared in float32'})",
            f"verified: loaded again, its logits differ by at most {apart.largest:.1e} (largest logit "
            f"{apart.largest_logit:.1f}, limit {parity.limit:.0e}) on real texts of shapes {shapes}",
        ]
        if parity.latency:
            lines.append(f"latency:  {latency_words(parity.latency)}")
        if parity.int8:
            same = parity.int8.difference.same_predictions
            lines.append(
                f"int8:     {parity.int8.file}, {parity.int8.bytes / 1e6:.1f} MB, logits differ by at most "
                f"{parity.int8.difference.largest:.2f}"
                + ("" if same is None else f", {same:.0%} of the answers are the same")
            )
            lines += [f"          {latency_words(parity.int8.latency)}"] if parity.int8.latency else []
            if parity.int8.test_error is not None and parity.test_error is not None:
                lines.append(
                    f"test:     error {parity.test_error:.4f}, with 8-bit weights {parity.int8.test_error:.4f}"
                    + ("" if parity.test_rows is None else f" ({parity.test_rows:,} rows)")
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
    is_original = config is None and not recovered
    if is_original:
        task_data = evaluator.context.original_data
    network, part = find_network(evaluator, trial, config, recovered)
    standalone = network if part is None or config is None else evaluator.extract(config)
    if (thresholds := task_data.named_thresholds(standalone)) is not None:
        standalone.config.thresholds = thresholds
    folder = folder or run.path / "export" / "-".join((f"trial-{trial}", *(["recovered"] if recovered else []), to))
    sample_batches = TASK_KINDS[network.config.kind].export_batches.load()
    original = OriginalTimer(evaluator, FORMATS.get(to))
    with one_thread():  # latency is about one thread, in every runtime
        parity = export(
            standalone,
            task_data.tokenizer,
            folder,
            to=to,
            int8=int8,
            reference=logits_of(network, part),
            batches=sample_batches(task_data.encoded["validation"]),
            latency=original.time_beside,
            test_error=lambda exported: test_error(task_data, exported, network),
            notes=(
                *(() if is_original else embedding_lines(run.note("result") or {})),
                *([] if thresholds is None else [threshold_words(thresholds)]),
            ),
            test_rows=task_data.encoded["test"].rows,
            facts=None if is_original or recovered else card_facts(evaluator, trial),
        )
    return ExportResult(folder, parity)


def threshold_words(thresholds: dict[str, float]) -> str:
    """One line for the model card."""
    return "thresholds: " + ", ".join(f"{label} {value:.3f}" for label, value in thresholds.items())


def card_facts(evaluator: SubnetEvaluator, trial: int) -> CardFacts | None:
    """What the result of the run says about a member of its front; None of runs and trials without one."""
    run = evaluator.context.run
    result: dict[str, Any] = run.note("result") or {"front": []}
    known = [*result["front"], *read_picked(run)]
    member = next((entry for entry in known if entry["trial"] == trial), None)
    if member is None or "test_rows" not in member:
        return None
    perplexity = result["metric"] == "perplexity"
    return CardFacts(
        model=result["model"],
        task=result["task"],
        metric=result["metric"],
        score=member["test_error"] if perplexity else 1 - member["test_error"],
        rows=member["test_rows"],
        loss=f"{loss_words(result, member, 'test_error')} against the original",
        command=member_commands({**result, "folder": None}, member)["export"],
    )


def test_error(task_data: TaskData, exported: Run, network: PrunedNetwork) -> float:
    """Of an exported network on the test rows of its task."""
    chooses = TASK_KINDS[task_data.task.kind].independent and task_data.held_out  # thresholds of its own
    batches = len(task_data.test) + (len(task_data.threshold_rows) if chooses else 0)
    with progress("test rows of the export", batches, "batches") as bar:
        return task_data.error(cast(PrunedNetwork, ExportedNetwork(exported, network, bar)), task_data.test)


class ExportedNetwork(nn.Module):
    """An exported network as one that errors can be measured of."""

    def __init__(self, run: Run, like: PrunedNetwork, bar: Bar | None = None):
        super().__init__()
        self.run, self.config, self.device, self.bar = run, like.config, torch.device("cpu"), bar
        self._like = (like,)  # in a tuple, so that it is no module of this one

    def forward(self, **inputs: torch.Tensor) -> SimpleNamespace:
        logits = task_export(self.config.kind).as_logits(self._like[0], self.run, inputs)
        if self.bar is not None:
            self.bar.advance()
        return SimpleNamespace(logits=logits)


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
            on_device = {name: x.to(network.device) for name, x in inputs.items()}
            return task_export(network.config.kind).answer(network, on_device).cpu()

    return forward


@dataclass(frozen=True)
class OriginalTimer:
    """Times exported networks beside the original in the same runtime, on one text of typical length."""

    evaluator: SubnetEvaluator
    form: ExportFormat | None
    """Of the exported networks."""

    @cached_property
    def inputs(self) -> Inputs:
        context = self.evaluator.context
        rng = np.random.default_rng(context.seed)
        tokens = random_inputs(self.evaluator.network, batch=1, length=context.length, rng=rng)  # ids that both know
        others = {"token_type_ids": torch.zeros_like, "context_mask": torch.ones_like}  # all are open to an answer
        names = batch_of(context.task_data.encoded["validation"], np.arange(1)).inputs
        return {name: tokens[name] if name in tokens else others[name](tokens["input_ids"]) for name in names}

    @cached_property
    def original(self) -> Forward:
        """Made when it is first needed: an export needs memory too."""
        network = load_saved_network(self.evaluator.context.run.original)
        if self.form is None or self.form.runtime == ExportFormat.runtime:
            return logits_of(network, None)
        with TemporaryDirectory() as place, silence_libraries():
            self.form.write(network.eval(), Path(place), self.inputs)
            return self.form.load(Path(place), network.config.kind)

    def time_beside(self, exported: Forward) -> dict[str, Any]:
        context, runtime = self.evaluator.context, self.form.runtime if self.form else ExportFormat.runtime
        rounds, seed = context.config.measure.rounds, context.seed
        times = time_side_by_side(exported, self.original, self.inputs, rounds, seed)
        return {**times, "runtime": runtime, "original_runtime": runtime}


def time_side_by_side(exported: Forward, original: Forward, inputs: Inputs, rounds: int, seed: int) -> dict[str, Any]:
    """Milliseconds of one text on one thread, the two networks alternately."""
    calls = {"exported": lambda: exported(inputs), "original": lambda: original(inputs)}
    timings = time_calls(calls, rounds=rounds, rng=np.random.default_rng(seed), clock=thread_time)
    ours, theirs = timings["exported"], timings["original"]
    length = int(inputs["input_ids"].shape[-1])
    times = {"original": theirs.median, "ratio": ours.median / theirs.median, "length": length, "threads": 1}
    return {**ours._asdict(), **times}


def mixed_batches(encoded: Encoded) -> list[dict[str, torch.Tensor]]:
    """Real texts in several shapes: one short, one long, few and many of mixed lengths."""
    order = np.argsort(encoded.lengths, kind="stable")
    spread = order[np.linspace(0, len(order) - 1, min(16, len(order))).astype(int)]
    choices = [order[:1], order[-1:], order[len(order) // 2 :][:3], spread[::2], spread]
    return [batch_of(encoded, rows).inputs for rows in choices if len(rows)]


def single_text_batches(encoded: Encoded) -> list[dict[str, torch.Tensor]]:
    """The same of rows that are several texts, each by itself."""
    texts = len(encoded.offsets) - 1
    return mixed_batches(replace(encoded, choices=1, targets=np.zeros(texts, dtype=np.float32)))


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

    def time_beside(exported: Forward) -> dict[str, Any]:
        times = time_side_by_side(exported, other, batches[1], TRAINED_ROUNDS, seed=0)
        return {**times, "runtime": FORMATS[to].runtime, "original_runtime": ExportFormat.runtime}

    with one_thread():
        parity = export(
            network,
            tokenizer,
            folder,
            to=to,
            int8=int8,
            reference=reference,
            batches=batches,
            latency=time_beside,
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
