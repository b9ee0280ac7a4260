"""What every phase of `compress` needs: the task as batches, the tokenizer, and the checkpoint's own labels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.checksums import write_checksums
from archwright.configs import compress as o
from archwright.configs.budget import parse_budget, parse_vocabulary
from archwright.data.batching import Batch, Encoded, batches, evaluation_batches
from archwright.data.public_data import resolve_model
from archwright.data.tasks.grouping import NO_GROUP, group_rows
from archwright.data.tasks.rows import TextRows
from archwright.data.tasks.tables import read_once
from archwright.data.tasks.task import FEW, Task, load_task
from archwright.data.text.tokenizer import load_tokenizer
from archwright.data.text.vocabulary import Vocabulary, choose_vocabulary, prune_tokenizer
from archwright.devices import resolve_device
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.networks.embeddings import factorize_embeddings, keep_tokens, named_tokens, renumber_config
from archwright.networks.load import freeze_embeddings, load_supernet, max_length_of, stock_config, supernet_config
from archwright.networks.precision import choose_weights, stored_precisions
from archwright.networks.pruned import PrunedConfig, PrunedNetwork
from archwright.networks.width import check_width
from archwright.objectives.error import in_row_order, label_outcomes, measure_rows, predict_logits, sigmoid
from archwright.random_streams import TEST_SAMPLE, VALIDATION_HALVES
from archwright.statistics.paired import RowOutcomes
from archwright.statistics.thresholds import USUAL, choose_thresholds
from archwright.store import atomic_folder
from archwright.subnet.spec import SubnetSpec
from archwright.tasks import TASK_KINDS
from archwright.training.adapters import checkpoint_of
from archwright.training.checkpoint_head import HeadMatch, match_head
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.judging import choose_metric, parse_class_weights
from archwright.training.losses import task_loss

LEAST_TOKENS = 0.5
"""Of a model's word vectors: a tokenizer with fewer tokens is not the model's."""
MOST_UNKNOWN = 0.5
"""Share of the training tokens."""
FEWEST_TO_HALVE = 40
"""Validation rows; fewer search and choose all together."""


@dataclass(frozen=True)
class TaskData:
    """A task, tokenized for a checkpoint."""

    source: str
    """Folder or hub id of the checkpoint."""
    task: Task
    tokenizer: Any
    head: HeadMatch
    """What the checkpoint's own head has to do with the task."""
    encoded: dict[str, Encoded]
    seed: int
    device: torch.device
    vocabulary: Vocabulary | None = None
    """The tokens that stay where not all do; tokenizer and `encoded` know only them."""
    uncut: "TaskData | None" = None
    """The same rows with all tokens, where not all stay."""
    held_out: bool = True
    """Whether the validation rows are neither training nor test rows."""
    class_weights: tuple[float, ...] | None = None
    """How much every class counts in the loss, in id order; None: all alike."""
    groups: NDArray[np.int64] | None = None
    """Which validation rows share text, where the texts are not at hand any more."""

    def loss(self, logits: torch.Tensor, targets: torch.Tensor, group: ProcessGroup = SINGLE_PROCESS) -> torch.Tensor:
        """What training minimizes: the task's loss, with the weights of classes where there are some."""
        return task_loss(logits, targets, group, weights=self.class_weights)

    @property
    def row_loss(self) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """The same of one process, as a function that does not hold the rows."""
        return partial(task_loss, weights=self.class_weights)

    def steps_per_epoch(self, batch_size: int) -> int:
        return sum(1 for _ in batches(self.encoded["train"], batch_size=batch_size, rng=np.random.default_rng(0)))

    def training(self, batch_size: int, stream: int) -> Any:
        """Epoch number to batches; another stream for another training of the same run."""
        return lambda epoch: batches(
            self.encoded["train"], batch_size=batch_size, rng=np.random.default_rng((self.seed, stream, epoch))
        )

    @cached_property
    def validation(self) -> list[Batch]:
        return evaluation_batches(self.encoded["validation"], tokens=self.evaluation_tokens)

    @cached_property
    def halves(self) -> tuple[list[Batch], list[Batch]] | None:
        """The validation rows once more: those that search, and those that re-score; None when they are too few."""
        encoded = self.encoded["validation"]
        if encoded.rows < FEWEST_TO_HALVE:
            return None
        search, holdout = cut_halves(encoded, self.seed, self.validation_groups)
        tokens = self.evaluation_tokens
        return evaluation_batches(search, tokens=tokens), evaluation_batches(holdout, tokens=tokens)

    @cached_property
    def validation_groups(self) -> NDArray[np.int64] | None:
        """The group of each validation row: rows of one share text; None where a row is not one text."""
        rows = self.task.splits.get("validation")
        if not isinstance(rows, TextRows) or len(rows) != len(self.encoded["validation"]):
            return self.groups
        return group_rows(rows.columns)

    @property
    def trains(self) -> bool:
        """Whether there are training rows: a finished run does without them."""
        return "train" in self.encoded

    @cached_property
    def test(self) -> list[Batch]:
        return evaluation_batches(self.encoded["test"], tokens=self.evaluation_tokens)

    def sample_test_rows(self, rows: int) -> Encoded:
        """So many test rows at random, the same for every network."""
        encoded = self.encoded["test"]
        chosen = np.random.default_rng((self.seed, TEST_SAMPLE)).permutation(len(encoded))[:rows]
        return encoded.take(np.sort(chosen))

    @property
    def evaluation_tokens(self) -> int:
        return TASK_KINDS[self.task.kind].evaluation_tokens

    def error(self, network: PrunedNetwork, rows: list[Batch], spec: SubnetSpec | None = None) -> float:
        """1 - the task's metric (or the perplexity) of the network, or of the sub-network `spec` inside it."""
        return self.outcomes(network, rows, spec).error

    def outcomes(self, network: PrunedNetwork, rows: list[Batch], spec: SubnetSpec | None = None) -> RowOutcomes:
        """What it makes of every row: the same error, and how sure a difference from another network is."""
        task = self.task
        if TASK_KINDS[task.kind].independent:
            logits = predict_logits(network, rows, spec)
            targets = in_row_order([batch.targets for batch in rows], rows).astype(np.float64)
            thresholds = self.thresholds(network, spec, logits if rows is self.threshold_rows else None)
            return label_outcomes(logits, targets, metric=task.metric, thresholds=thresholds)
        return measure_rows(network, rows, spec, metric=task.metric, positive=task.positive, labels=task.labels)

    @property
    def threshold_rows(self) -> list[Batch]:
        """What thresholds of labels are chosen on: validation rows that search, not those that judge."""
        return self.halves[0] if self.halves else self.validation

    def thresholds(
        self,
        network: PrunedNetwork,
        spec: SubnetSpec | None = None,
        logits: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """The probability from which on each label is given, of this network; all 0.5 where no rows are held out.

        `logits` are its answers to `threshold_rows` where they are known.
        """
        if not self.held_out:
            return np.full(len(self.task.labels), USUAL)
        rows = self.threshold_rows
        if logits is None:
            logits = predict_logits(network, rows, spec)
        return choose_thresholds(sigmoid(logits), in_row_order([batch.targets for batch in rows], rows))

    def named_thresholds(self, network: PrunedNetwork) -> dict[str, float] | None:
        """The same by label, for a config; None where labels exclude each other."""
        if not TASK_KINDS[self.task.kind].independent:
            return None
        values = self.thresholds(network)
        return {name: round(float(value), 6) for name, value in zip(self.task.labels, values, strict=True)}

    def scale_error(self, error: float) -> float:
        """The error between 0, perfect, and 1, guessing: what a hypervolume is computed from."""
        return self.task.scale_error(error)

    def unscale_error(self, share: float) -> float:
        """The inverse of `scale_error`."""
        return self.task.unscale_error(share)

    @cached_property
    def token_counts(self) -> torch.Tensor:
        """How often each token occurs in the training rows, plus one."""
        return torch.from_numpy(1 + np.bincount(self.encoded["train"].ids, minlength=self.task.vocabulary))

    @cached_property
    def tokens_per_byte(self) -> float:
        """Of the test rows of a language model."""
        ids = self.encoded["test"].ids
        return len(ids) / len(self.tokenizer.decode(ids).encode())

    def bits_per_byte(self, perplexity: float) -> float:
        """The test perplexity in a unit that does not depend on the vocabulary: log2(perplexity) x tokens / bytes."""
        return float(np.log2(perplexity)) * self.tokens_per_byte

    def length(self, tokens: int) -> int:
        """Tokens of the text that costs are about; 0: as many as a typical one has."""
        return tokens or self.encoded["validation"].median_length


def cut_halves(encoded: Encoded, seed: int, groups: NDArray[np.int64] | None = None) -> tuple[Encoded, Encoded]:
    """The rows in two disjoint halves at random, in which every class is equally frequent.

    All questions about one context are in the same half, and so are rows of one group, so that no half has seen a text
    of the other; rows that belong to several groups (NO_GROUP) are in the first. Where that leaves less than a third
    for a half, rows are dealt one by one.
    """
    if encoded.windows is not None:
        groups = np.unique(encoded.windows.contexts, return_inverse=True)[1][encoded.windows.owners]
    elif groups is None:
        groups = np.arange(len(encoded))
    names, first = np.unique(groups, return_index=True)
    names, first = names[names != NO_GROUP], first[names != NO_GROUP]
    order = np.random.default_rng((seed, VALIDATION_HALVES)).permutation(len(names))
    if encoded.windows is None and encoded.targets.ndim == 1:
        order = order[np.argsort(encoded.targets[first[order]], kind="stable")]
    in_second = np.isin(groups, names[order[1::2]])
    if encoded.windows is None and not 1 / 3 <= in_second.mean() <= 2 / 3 and len(names) < len(encoded):
        logger.info("validation rows share so much text that their halves share some too")
        return cut_halves(encoded, seed)
    return encoded.take(np.flatnonzero(~in_second)), encoded.take(np.flatnonzero(in_second))


def load_task_data(
    model: o.ModelOptions, data: o.DataOptions, *, seed: int, device: str = "auto", held_out: float | None = None
) -> TaskData:
    """Everything that can be wrong about model and data is found here, before anything is written or trained."""
    where = resolve_device(device)
    source = checkpoint_of(model.model)
    task_data = prepare_task_data(
        *(stock_config(source), source, data),
        seed=seed,
        device=where,
        held_out=held_out,
        tokenizer=None if model.tokenizer is None else resolve_model(model.tokenizer),
    )
    return task_data if model.vocabulary is None else prune_vocabulary(task_data, model.vocabulary, data.max_length)


def prune_vocabulary(task_data: TaskData, rule: str | float, max_length: int) -> TaskData:
    """The task data with fewer tokens, as `rule` says."""
    config, whole = stock_config(task_data.source), task_data.encoded
    chosen = parse_vocabulary(rule, option="--vocabulary")
    vocabulary = choose_vocabulary(chosen, task_data.tokenizer, whole["train"], also=named_tokens(config))
    touched = {split: vocabulary.share_touched(encoded) for split, encoded in whole.items()}
    tokenizer = prune_tokenizer(task_data.tokenizer, vocabulary)
    return replace(
        task_data,
        task=replace(task_data.task, vocabulary=len(vocabulary)),
        tokenizer=tokenizer,
        encoded={split: rows.encode(tokenizer, max_length) for split, rows in task_data.task.splits.items()},
        vocabulary=replace(vocabulary, touched=touched),
        uncut=task_data,
    )


def prepare_task_data(
    config: Any,
    source: str,
    data: o.DataOptions,
    *,
    seed: int,
    device: torch.device,
    held_out: float | None = None,
    tokenizer: str | None = None,
    tokenizer_name: str | None = None,
) -> TaskData:
    """The task for the checkpoint of this config, its labels in the order of the checkpoint's head if it has one.

    The tokenizer is the checkpoint's, or that of another folder or hub id; `tokenizer_name` is what messages call it.
    """
    options = vars(data) | {"name": data.task, "seed": seed, "held_out": held_out}
    elsewhere = ("task", "max_length", "head", "metric", "class_weights")
    options = {key: value for key, value in options.items() if key not in elsewhere}
    options["labels"] = data.labels or None
    task = load_task(**options)
    head = match_head(config, task, head=data.head, order=data.labels or None).check()
    if head.kept and head.labels != task.labels:
        task = load_task(**{**options, "labels": head.labels})
    read_once.cache_clear()  # of rows that were left out nothing stays in memory
    task = choose_metric(replace(task, vocabulary=getattr(config, "vocab_size", 0)), data.metric)
    weights = parse_class_weights(data.class_weights, task)
    words = load_tokenizer(tokenizer or source)
    tokenizer_name = tokenizer_name or tokenizer or source
    check_vocabulary(words, task.vocabulary, tokenizer_name)
    encoded = {split: rows.encode(words, data.max_length) for split, rows in task.splits.items()}
    check_known(words, encoded["train"], task.vocabulary, tokenizer_name)
    room = getattr(config, "max_position_embeddings", None) or data.max_length
    cut = warn_cut(task, encoded["train"], data.max_length) if data.max_length <= room else ""  # else it is refused
    for line in (*task.warnings, cut):
        if line:
            logger.warning(line)
    return TaskData(
        *(source, task, words, head, encoded, seed, device),
        held_out=held_out is None or held_out > 0,
        class_weights=weights,
    )


def warn_cut(task: Task, encoded: Encoded, max_length: int) -> str:
    """That more than a few texts are so long that they are cut; questions and plain text have windows instead."""
    if not isinstance(task.splits["train"], TextRows):
        return ""
    cut = int((encoded.lengths >= max_length).sum())
    if cut <= FEW * len(encoded):
        return ""
    return f"{cut:,} of {len(encoded):,} training rows reach --max-length {max_length} and are cut there"


def check_vocabulary(tokenizer: Any, rows: int, source: str) -> None:
    """BadInput for a tokenizer of another model, with far fewer tokens than word vectors."""
    tokens = len(tokenizer)
    if tokens < LEAST_TOKENS * rows:
        raise BadInput(
            f"the tokenizer of {source!r} must be the model's own: it has {tokens:,} tokens, the model {rows:,} word "
            "vectors; put tokenizer.json beside the weights, or name its folder or hub id with --tokenizer."
        )


def check_known(tokenizer: Any, encoded: Encoded, rows: int, source: str) -> None:
    """BadInput where a token has no word vector, or most of the text is unknown to the tokenizer."""
    if rows and encoded.ids.max(initial=0) >= rows:
        raise BadInput(
            f"the tokenizer of {source!r} must be the model's own: it writes the token {int(encoded.ids.max()):,}, the "
            f"model has {rows:,} word vectors; name the model's tokenizer with --tokenizer."
        )
    if tokenizer.unk_token_id is None or tokenizer.unk_token_id == tokenizer.pad_token_id:
        return
    special = np.isin(encoded.ids, tokenizer.all_special_ids)
    unknown = encoded.ids == tokenizer.unk_token_id
    share = unknown.sum() / max(1, (~special | unknown).sum())
    if share > MOST_UNKNOWN:
        raise BadInput(
            f"the tokenizer of {source!r} must know the texts: {share:.0%} of the training tokens are unknown to it; "
            "name another folder or hub id with --tokenizer."
        )


def load_checkpoint(task_data: TaskData, model: o.ModelOptions, settings: o.SupernetOptions) -> PrunedNetwork:
    """The checkpoint as it was given, with a head for the task."""
    network = load_supernet(
        task_data.source,
        kind=task_data.task.kind,
        labels=task_data.task.labels,
        pooling=model.pooling,
        grouping=model.grouping,
        seed=task_data.seed,
        keep_head=task_data.head.kept,
        dtype=choose_weights(model.weights, task_data.source, stored_precisions(task_data.source)),
    )
    if task_data.vocabulary is not None:
        keep_tokens(network, torch.from_numpy(task_data.vocabulary.kept))
    if model.embedding_rank is not None:
        factorize_embeddings(network, model.embedding_rank, task_data.token_counts)
    freeze_embeddings(network, not settings.train_embeddings)
    return network.to(task_data.device)


def describe_checkpoint(task_data: TaskData, model: o.ModelOptions, *, whole: bool = False) -> PrunedConfig:
    """The config of `load_checkpoint`'s network before its weights are loaded; `whole`: with all of its embeddings."""
    task = task_data.task
    stock = stock_config(task_data.source)
    config = supernet_config(stock, kind=task.kind, labels=task.labels, grouping=model.grouping)
    if not whole:
        if task_data.vocabulary is not None:
            renumber_config(config, torch.from_numpy(task_data.vocabulary.kept))
        config.embedding_rank = model.embedding_rank
        config.width = parse_width(model, config)
    return config


def parse_width(model: o.ModelOptions, config: PrunedConfig) -> int | None:
    """The channels that --width leaves of this network; None: all of them."""
    if model.width is None:
        return None
    width = int(parse_budget(model.width, config.backbone[config.family.width], option="--width"))
    check_width(config, width)
    if model.embedding_rank is not None and model.embedding_rank >= width:
        raise BadInput(f"--embedding-rank must be below --width, {width}, got {model.embedding_rank}.")
    return width


def save_network(network: PrunedNetwork, task_data: TaskData, folder: Path) -> None:
    """The network and its tokenizer on disk, whole or not at all."""
    with atomic_folder(folder) as beside:
        network.save_pretrained(beside)
        task_data.tokenizer.save_pretrained(beside)
        write_checksums(beside)


def check_positions(network: PrunedNetwork, lengths: dict[str, int]) -> None:
    room = max_length_of(network)
    for option, length in lengths.items():
        if length > room:
            raise BadInput(f"{option} must be at most {room}, the positions of this model, got {length} tokens.")
