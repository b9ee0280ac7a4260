"""A network that `train` wrote, as a checkpoint or ONNX: read from its folder, compared on a few texts, timed."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from archwright.data.text.tokenizer import load_tokenizer
from archwright.exporting.checkpoint import export as write
from archwright.exporting.kinds import KINDS
from archwright.exporting.parity import Parity, varied_batches
from archwright.exporting.subjects import Subject, subject
from archwright.networks.embedded import resolve_model
from archwright.objectives.latency import one_thread, time_interleaved
from archwright.spaces.checkpoints import load_any_network, load_network

Inputs = Mapping[str, torch.Tensor]
LONGEST = 64
"""Tokens of the longest text that is compared."""
ROUNDS = 20
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


def export_trained(source: Path, to: str, *, folder: Path, int8: bool = False, against: str | None = None) -> Parity:
    """The parity report of the network in a folder, written to another one."""
    network = load_network(source)
    of, tokenizer = subject(network), load_tokenizer(str(source))
    batches = sample_batches(tokenizer, of)
    reference = partial(answered, network, of)
    with one_thread():
        return write(
            network,
            tokenizer,
            folder,
            to=to,
            int8=int8,
            reference=reference,
            batches=batches,
            latency=partial(latency, beside(against, reference), batches[1]),
        )


def answered(network: Any, of: Subject, inputs: Inputs) -> torch.Tensor:
    with torch.no_grad():
        return KINDS[of.kind].answer(network, inputs)


def beside(against: str | None, own: Callable[[Inputs], torch.Tensor]) -> Callable[[Inputs], Any]:
    """What the export is timed against: another model, such as the teacher, or the network itself in PyTorch."""
    if against is None:
        return own
    network = load_any_network(resolve_model(against))
    rows = network.get_input_embeddings().weight.shape[0]

    def run(inputs: Inputs) -> Any:
        given = {name: inputs[name].flatten(0, -2) for name in ("input_ids", "attention_mask")}
        given["input_ids"] = given["input_ids"] % rows  # which words it reads costs nothing
        with torch.no_grad():
            return network(**given)

    return run


def latency(other: Callable[[Inputs], Any], inputs: Inputs, run: Callable[[Inputs], Any]) -> Mapping[str, float]:
    """Milliseconds of one text on one thread, the two taking turns."""
    calls = {"exported": lambda: run(inputs), "original": lambda: other(inputs)}
    timings = time_interleaved(calls, rounds=ROUNDS, rng=np.random.default_rng(0), clock=thread_time)
    ours, theirs = timings["exported"], timings["original"]
    return {**ours._asdict(), "original": theirs.median, "ratio": ours.median / theirs.median}


def sample_batches(tokenizer: PreTrainedTokenizerBase, of: Subject) -> list[dict[str, torch.Tensor]]:
    """Texts in several shapes as the network reads them."""
    longest = min(LONGEST, of.room or LONGEST)
    made = varied_batches(tokenizer, *ASKED.get(of.kind, (TEXTS,)), max_length=longest)
    names = ("input_ids", "attention_mask", *(() if of.causal else ("token_type_ids",)))
    plain = [{name: batch[name] for name in names if name in batch} for batch in made]
    return [SHAPED.get(of.kind, dict)(batch) for batch in plain]


def with_context(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Where the tokenizer marks the second text, answers stand only there."""
    if "token_type_ids" not in batch:
        return batch
    return batch | {"context_mask": batch["token_type_ids"] * batch["attention_mask"]}


def with_choices(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Two choices: the text, and the one that is as far from the end as this is from the beginning."""
    return {name: torch.stack([tensor, tensor.flip(0)], 1) for name, tensor in batch.items()}


ASKED: dict[str, tuple[tuple[str, ...], ...]] = {"qa": (QUESTIONS, TEXTS)}
SHAPED: dict[str, Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]] = {
    "qa": with_context,
    "choice": with_choices,
}
