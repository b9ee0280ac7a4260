"""What a teacher says about a batch: states of its layers and logits, worked out once per row where they are kept.

Kept states are rounded to float16, whose error (a 2,000th of a state) is far below what a student is away from its
teacher, and a training rounds them the first time too. So a training with a cache of its own ends with the same weights
whether a row was worked out or read, and a resumed one with those of an undisturbed one: of a batch always the same
rows are worked out together. In a cache that runs share, a row may come from a batch of another run, and one that was
damaged is worked out with the batch of a later epoch: its numbers, and so the weights, may then differ by rounding.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.data.batching import Batch, batch_of
from archwright.data.encoding import NO_TARGET, Encoded
from archwright.errors import Failed
from archwright.logs import logger
from archwright.training.digests import LETTERS, digest_rows
from archwright.training.objectives.layers import LayerStates, record_layers, run_network
from archwright.training.teaching.cache import AnswerCache, Arrays, Part, bytes_of_rows, open_cache

NO_ANSWER_HERE = -1e4
"""Logit of a token that cannot begin or end an answer, as networks for questions have it."""
STATES, TOKEN_LOGITS, ROW_LOGITS = "states", "token-logits", "row-logits"
WAY_OUT = "give a folder on another disk with --teacher-cache, or a lower --teacher-cache-gb"


class Answers(NamedTuple):
    """Of one batch; None: not asked for."""

    states: LayerStates | None
    logits: torch.Tensor | None


class KeptAnswers:
    """A network that is not trained: its answers, from a cache for the rows that are in it."""

    def __init__(self, network: Any, layers: Sequence[int] = (), *, logits: bool = False):
        """States of the embeddings and of these layers, counted from 1, where there are any; and logits."""
        self.network, self.layers, self.logits = network, tuple(layers), logits
        self.cache: AnswerCache | None = None
        self.widths: dict[str, int] = {}
        """Of the states in a row of the cache, one after another."""
        self.parts: dict[str, Part] = {}
        self.precision = "float32"
        """Of the matrix products that they come from."""
        self.encoded: Encoded | None = None
        self.starts: NDArray[np.int64] = np.zeros(1, np.int64)

    def __call__(self, batch: Any) -> Answers:
        if self.cache is None:
            return self.compute(batch)
        kept = np.asarray(batch.rows) < len(self.cache)
        if not kept.any():
            return self.compute(batch)
        inside, outside = np.flatnonzero(kept), np.flatnonzero(~kept)
        parts = [(inside, self.remember(take_rows(batch, inside)))]
        if len(outside):
            parts.append((outside, self.compute(take_rows(batch, outside))))
        return self.join(parts, batch)

    @torch.no_grad()
    def compute(self, batch: Any) -> Answers:
        """A pass of the network over these rows."""
        self.network.eval()
        if not self.layers:
            return Answers(None, run_network(self.network, batch.inputs, logits=True))
        with record_layers(self.network) as states:
            logits = run_network(self.network, batch.inputs, logits=self.logits)
        return Answers(states, logits)

    def remember(self, batch: Any) -> Answers:
        """The same for rows of the cache: read where all of them are there, else worked out together and kept."""
        assert self.cache is not None
        rows = [int(row) for row in batch.rows]
        arrays = [self.cache.read(row) for row in rows]
        missing = [place for place, found in enumerate(arrays) if found is None]
        if missing:
            whole = self.pack(self.compute(batch), batch)
            for place in missing:
                self.cache.write(rows[place], whole[place])
            return self.unpack(whole, batch)
        return self.unpack([found for found in arrays if found is not None], batch)

    def pack(self, answers: Answers, batch: Any) -> list[Arrays]:
        """What is kept of every row: its tokens without padding."""
        real, rows = text_mask(batch), len(batch.targets)
        texts = len(real) // rows
        packed: dict[str, NDArray[Any]] = {}
        if answers.states is not None:
            states = torch.cat(list(flat_states(answers.states, self.layers).values()), -1)
            packed[STATES] = half_precision(states[real])
        found: list[Arrays] = [{} for _ in range(rows)]
        ends = np.cumsum([0, *real.view(rows, texts, -1).sum((1, 2)).tolist()])
        if answers.logits is not None:
            logits = answers.logits.float()
            if (name := logits_part(logits)) == ROW_LOGITS:
                for row, values in zip(found, logits.cpu().numpy(), strict=True):
                    row[ROW_LOGITS] = values[None]
            else:
                packed[name] = by_token(batch, logits)[real].cpu().numpy()
        for place, row in enumerate(found):
            row |= {name: values[ends[place] : ends[place + 1]] for name, values in packed.items()}
        return found

    def unpack(self, arrays: Sequence[Arrays], batch: Any) -> Answers:
        """The answers as the network gives them: logits with padding, states packed, which saves three copies."""
        real = text_mask(batch)
        states, logits = None, None
        if STATES in arrays[0]:
            rows = torch.from_numpy(np.concatenate([row[STATES] for row in arrays])).to(real.device)
            parts = rows.split(list(self.widths.values()), -1)
            states = layer_states({name: part.float() for name, part in zip(self.widths, parts, strict=True)})
            states.packed = real
        if ROW_LOGITS in arrays[0]:
            logits = torch.from_numpy(np.concatenate([row[ROW_LOGITS] for row in arrays])).to(real.device)
        elif TOKEN_LOGITS in arrays[0]:
            about_spans = batch.windows is not None
            padded = pad_tokens([row[TOKEN_LOGITS] for row in arrays], real, NO_ANSWER_HERE if about_spans else 0.0)
            logits = padded.transpose(1, 2) if about_spans else padded
        return Answers(states, logits)

    def join(self, parts: Sequence[tuple[NDArray[np.int64], Answers]], batch: Any) -> Answers:
        """The answers to some rows and to others, in the order of the batch."""
        if len(parts) == 1:
            return parts[0][1]
        order = np.argsort(np.concatenate([rows for rows, _ in parts]))
        texts = len(text_mask(batch)) // len(batch.targets)
        by_text = (order[:, None] * texts + np.arange(texts)).ravel()
        found = [answers for _, answers in parts]
        states, logits = None, None
        if self.layers:
            each = [flat_states(pad_states(one.states), self.layers) for one in found if one.states is not None]
            states = layer_states({name: torch.cat([one[name] for one in each])[by_text] for name in each[0]})
        if found[0].logits is not None:
            logits = torch.cat([one.logits for one in found if one.logits is not None])[torch.from_numpy(order)]
        return Answers(states, logits)

    def plan_cache(self, encoded: Encoded, limit: int, precision: str = "float32") -> float:
        """The share of these rows whose answers fit into so many bytes; `open` keeps those.

        `precision` is that of the matrix products of the training that asks.
        """
        self.precision = precision
        sample = batch_of(encoded, np.arange(min(2, len(encoded)))).to(next(self.network.parameters()).device)
        answers = self.compute(sample)
        if answers.states is not None:
            self.widths = {name: state.shape[-1] for name, state in flat_states(answers.states, self.layers).items()}
            self.parts[STATES] = Part(sum(self.widths.values()), True, "float16")
        if answers.logits is not None:
            name = logits_part(answers.logits)
            token = name == TOKEN_LOGITS
            numbers = by_token(sample, answers.logits).shape[-1] if token else answers.logits.shape[-1]
            self.parts[name] = Part(numbers, token, "float32")
        starts = encoded.offsets[:: encoded.choices]
        rows = int(np.searchsorted(bytes_of_rows(self.parts, starts), limit, side="right")) - 1
        self.encoded, self.starts = encoded, starts[: max(rows, 0) + 1]
        return max(rows, 0) / len(encoded)

    def open(self, folder: Path) -> None:
        """Keeps the answers that were planned for from now on.

        The folder inside `folder` is named after teacher, rows and what is kept: others are never read.
        """
        assert self.encoded is not None
        if len(self.starts) < 2:
            logger.warning("a row of the teacher's answers is larger than --teacher-cache-gb allows: none is kept")
            return
        self.cache = open_cache(folder / self.digest(self.encoded), self.parts, self.starts, WAY_OUT)

    def digest(self, encoded: Encoded) -> str:
        """Of everything that the kept numbers follow from."""
        about = [{name: list(part) for name, part in self.parts.items()}, list(self.widths), len(self.starts)]
        about += [self.precision] if self.precision != "float32" else []
        found = hashlib.sha256(digest_rows({"train": encoded}, about).encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            found.update(name.encode())
            found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        return found.hexdigest()[:LETTERS]

    def describe(self) -> dict[str, Any]:
        """For the result: what is kept, and how much of the rows that is."""
        if self.cache is None or self.encoded is None:
            return {}
        if self.cache.damaged:
            logger.warning("the teacher's answers to %s rows were damaged and worked out again", self.cache.damaged)
        share = len(self.cache) / len(self.encoded)
        return {"teacher_cache": {"rows": len(self.cache), "share": share, "bytes": self.cache.size}}


def take_rows(batch: Any, places: NDArray[np.int64]) -> Any:
    """Some rows of a batch, as wide as it is; the batch itself where it has no others."""
    if len(places) == len(batch.rows):
        return batch
    chosen = torch.from_numpy(places).to(batch.targets.device)
    return replace(
        batch,
        inputs={name: tensor[chosen] for name, tensor in batch.inputs.items()},
        targets=batch.targets[chosen],
        rows=batch.rows[places],
        asked=None if batch.asked is None else batch.asked[chosen],
    )


def restore_tokens(batch: Batch) -> Batch:
    """A masked batch with the tokens that stood there, whose targets they are: what its teacher reads."""
    hidden, ids = batch.targets != NO_TARGET, batch.inputs["input_ids"]
    return replace(batch, inputs={**batch.inputs, "input_ids": torch.where(hidden, batch.targets, ids)})


def pad_tokens(rows: Sequence[NDArray[Any]], real: torch.Tensor, filler: float) -> torch.Tensor:
    """Numbers of the tokens of every row as texts x time x numbers; a row may have several texts."""
    texts, lengths = len(real) // len(rows), real.sum(1).tolist()
    padded = torch.full((*real.shape, rows[0].shape[1]), filler)
    with catch_warnings():  # what is mapped from the disk is only read here
        simplefilter("ignore", UserWarning)
        for number, row in enumerate(rows):
            own = lengths[number * texts : (number + 1) * texts]
            for place, part in enumerate(torch.from_numpy(row).split(own), number * texts):
                padded[place, : len(part)] = part
    return padded.to(real.device)


def text_mask(batch: Any) -> torch.Tensor:
    """Where there is no padding, texts x time."""
    mask: torch.Tensor = batch.inputs["attention_mask"].flatten(0, -2).bool()
    return mask


def logits_part(logits: torch.Tensor) -> str:
    """Whether these logits are about rows or about tokens: rows x classes, or with time as a third dimension."""
    return ROW_LOGITS if logits.dim() == 2 else TOKEN_LOGITS


def by_token(batch: Any, logits: torch.Tensor) -> torch.Tensor:
    """Rows x time x numbers; networks for questions give rows x 2 x time."""
    return logits.transpose(1, 2) if batch.windows is not None else logits


def flat_states(states: LayerStates, layers: Sequence[int]) -> dict[str, torch.Tensor]:
    """The states that a student is compared with, by name."""
    found = {"embeddings": states.embeddings}
    found |= {f"hidden-{number}": states.hidden[number] for number in layers}
    return found | {f"attention-{n}": states.attention[n] for n in layers if n in states.attention}


def layer_states(flat: Mapping[str, torch.Tensor]) -> LayerStates:
    """The inverse of `flat_states`."""
    states = LayerStates([flat["embeddings"]])
    for name, state in flat.items():
        kind, _, number = name.partition("-")
        if number:
            {"hidden": states.hidden, "attention": states.attention}[kind][int(number)] = state
    return states


def pad_states(states: LayerStates) -> LayerStates:
    """Packed states as texts x time x width; others as they are."""
    if states.packed is None:
        return states
    layers = sorted(states.hidden)
    padded = {}
    for name, state in flat_states(states, layers).items():
        padded[name] = state.new_zeros(*states.packed.shape, state.shape[-1])
        padded[name][states.packed] = state
    return layer_states(padded)


def half_precision(values: torch.Tensor) -> NDArray[np.float16]:
    """Rounded; Failed for what float16 cannot hold."""
    rounded = values.detach().to("cpu", torch.float16)
    if not bool(torch.isfinite(rounded).all()):
        largest = float(values.abs().max())
        raise Failed(f"the teacher's states must be below 65,504 to be kept, got {largest:.3g}; --teacher-cache-gb 0.")
    array: NDArray[np.float16] = rounded.numpy()
    return array
