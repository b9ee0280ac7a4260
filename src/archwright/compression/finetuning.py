"""Fine-tuning of whole networks: the original, a sub-network by itself, and a selected one a little further."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import islice
from time import monotonic, perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.compression.context import RunContext
from archwright.configs import compress as o
from archwright.data.batching import Batch, batch_of, evaluation_batches
from archwright.devices import synchronize
from archwright.logs import logger
from archwright.networks.load import freeze_embeddings, load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.random_streams import (
    ADAPTER_WEIGHTS,
    FINETUNING_BATCHES,
    RECOVERY_BATCHES,
    STAND_ALONE_BATCHES,
    TIMING_BATCHES,
)
from archwright.store import digest
from archwright.store.arrays import read_arrays, write_arrays
from archwright.subnet.extract import extract
from archwright.subnet.spec import SubnetSpec
from archwright.subnet.supernet import FixedTeacher, plain_update
from archwright.tasks import TASK_KINDS
from archwright.training.loop import Carry, Checkpoints, Update, tokens_of, train_network
from archwright.training.lora import low_rank_adapters
from archwright.training.losses import find_distillation
from archwright.training.precision import mixed_precision
from archwright.training.recomputation import recompute_layers
from archwright.training.schedule import Schedule
from archwright.training.task_data import TaskData, load_checkpoint, save_network

TIMED_STEPS, TIMED_SECONDS = 12, 6.0
"""A step is timed so often, or for so long: those of a language model take seconds."""
TIMED_SHARE = 0.01
"""Part of --minutes that timing one kind of step may take."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, spread evenly however many there are: the first few steps tell of a whole training."""


class TimeUp(Exception):
    """The run's --minutes are over in the middle of a training."""


def finetune_original(context: RunContext) -> PrunedNetwork:
    """The whole network, fine-tuned in the ordinary way: what every sub-network is compared with. Done once per run."""
    run, task_data, group = context.run, context.original_data, context.group
    if group.agree(run.original.exists()):
        run.checkpoints("original").remove()  # a kill may have come between the two
        return load_saved_network(run.original).to(task_data.device)
    steps = plan_steps(context, "original", lambda: original_steps(context))
    epochs = steps / task_data.steps_per_epoch(context.config.supernet.batch_size)
    length = f"fine-tuning for {epochs:.3g} epoch{'' if epochs == 1 else 's'}" if steps else "not trained further"
    logger.warning("%s; %s", task_data.head.note, length)
    network = load_checkpoint(task_data, context.original_model, context.config.supernet)
    with run.phase("original"):
        train_phase(
            *(replace(context, task_data=task_data), network, plain_update(network, loss=context.loss)),
            phase="original",
            stream=FINETUNING_BATCHES,
            steps=steps,
            title="fine-tuning the original",
        )
    with group.first_ahead():  # the others may read it once it is there
        if group.first:
            save_network(network, task_data, run.original)
        run.checkpoints("original").remove()
    return network


def original_steps(context: RunContext) -> int:
    """How long the original is fine-tuned: the epochs of the config, fewer when --minutes is short.

    It does not depend on the method, so that methods can be compared.
    """
    options, minutes, task_data = context.config.supernet, context.config.search.minutes, context.original_data
    if TASK_KINDS[task_data.task.kind].teach is not None:
        return 0
    usual = 0.0 if task_data.head.trained else 2.0
    epochs = usual if options.original_epochs is None else options.original_epochs
    steps = round(task_data.steps_per_epoch(options.batch_size) * epochs)
    if minutes is None or not steps:
        return steps
    network = load_checkpoint(task_data, context.original_model, options)
    update = plain_update(network, loss=context.loss)
    seconds = seconds_per_step(replace(context, task_data=task_data), network, update)
    return max(1, min(steps, int(60 * minutes * TASK_KINDS[task_data.task.kind].shares.original / seconds)))


def plan_steps(context: RunContext, phase: str, count: Callable[[], int]) -> int:
    """The steps of a training, counted once per run and noted: timing them again would give another number.

    Of several processes all count, because a step of one needs the others; what the first one says counts for all.
    """
    plan, group = context.run.note("plan") or {}, context.group
    steps = group.agree(plan.get(phase))
    if steps is None:
        steps = group.agree(count())
        context.run.note("plan", {**plan, phase: steps})
    return int(steps)


def seconds_per_step(context: RunContext, network: PrunedNetwork, update: Update) -> float:
    """Of a training with the run's options, measured over a few steps from its begin to its end, after one that warms
    up: as many as TIMED_SHARE of --minutes has room for, at least one.

    The network is not changed: the steps end with their gradients, which are deleted.

    Batches differ in length: seconds per token are measured, and a step has as many tokens as the average one. Of
    several processes all do the same steps, each its own rows, and the first one's time counts.
    """

    def take_step(batch: Batch, share: float) -> None:
        own = group.take_rows(batch)
        with group.step([own]):
            update(own, rng, share)

    task_data, options, group = context.task_data, context.config.supernet, context.group
    most = min(TIMED_SECONDS, 60 * TIMED_SHARE * (context.config.search.minutes or math.inf))
    group.wait_for_first()
    rng, batches = np.random.default_rng(0), iter(task_data.training(options.batch_size, stream=TIMING_BATCHES)(0))
    shown = progress("timing a step", 1 + TIMED_STEPS)
    kept = recompute_layers(network, options.gradient_checkpointing)
    with mixed_precision(task_data.device, options.precision), kept, training_mode(network), shown as bar:
        take_step(next(batches), 0.5)
        bar.advance()
        synchronize(task_data.device)
        start, tokens = perf_counter(), 0
        for step, batch in enumerate(islice(batches, TIMED_STEPS)):
            take_step(batch, (0.5 + GOLDEN * step) % 1)
            tokens += tokens_of(batch)
            bar.advance()
            if group.agree(perf_counter() - start > most):
                break
        synchronize(task_data.device)
        seconds = group.agree(perf_counter() - start)
    network.zero_grad()
    usual = len(task_data.encoded["train"].ids) / task_data.steps_per_epoch(options.batch_size)
    return seconds / max(1, tokens) * usual


@contextmanager
def training_mode(network: PrunedNetwork) -> Iterator[None]:
    """Training mode inside, and afterwards the mode there was."""
    before = network.training
    network.train()
    try:
        yield
    finally:
        network.train(before)


def training_options(options: o.SupernetOptions) -> dict[str, Any]:
    """What all trainings of a run have in common, as `train_network` takes it."""
    return {
        "every_seconds": options.checkpoint_seconds,
        "precision": options.precision,
        "optimizer": options.optimizer,
        "recompute": options.gradient_checkpointing,
    }


def train_phase(
    context: RunContext,
    network: PrunedNetwork,
    update: Update,
    *,
    phase: str,
    stream: int,
    steps: int,
    title: str,
    carry: Carry | None = None,
) -> None:
    """A training that a run does once: resumable from the checkpoint of this phase."""
    options = context.config.supernet
    train_network(
        network,
        context.task_data.training(options.batch_size, stream=stream),
        update,
        Schedule(steps=steps, learning_rate=options.learning_rate),
        seed=context.seed * 2 + stream,
        checkpoints=context.run.checkpoints(phase),
        title=title,
        carry=carry,
        group=context.group,
        share_rows=True,
        **training_options(options),
    )


def original_teacher(context: RunContext) -> FixedTeacher:
    """The fine-tuned original as it is, to learn from: half labels, half T^2 KL to its softened answers.

    Where targets are its answers already, there is nothing else to learn.
    """
    temperature = context.config.supernet.temperature
    if TASK_KINDS[context.task_data.task.kind].teach is not None:
        return FixedTeacher(lambda batch: batch.targets, context.loss)
    distillation = find_distillation(context.task_data.task.kind)

    def distil(logits: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        return temperature**2 * distillation(logits, answers, temperature, context.group)

    return FixedTeacher(TeacherAnswers(context), distil)


class TeacherAnswers:
    """Logits of the fine-tuned original in evaluation mode, by batch.

    Of all training rows at once, kept in the run folder, where they are few numbers per row and every row comes up;
    otherwise batch by batch. The original reads a row in its own tokens, whatever is left of them elsewhere.
    """

    def __init__(self, context: RunContext) -> None:
        self.context, self.task_data = context, context.original_data
        self.cached = TASK_KINDS[self.task_data.task.kind].per_row and context.config.supernet.epochs >= 1

    @cached_property
    def teacher(self) -> PrunedNetwork:
        return load_saved_network(self.context.run.original).to(self.task_data.device).eval()

    @cached_property
    def logits(self) -> torch.Tensor:
        """Rows x classes (regression: x 1)."""
        file = self.context.run.path / "teacher.npz"
        group = self.context.group
        if group.first:
            file.with_suffix(".npy").unlink(missing_ok=True)  # of an earlier version, without a checksum
        if not group.agree(file.exists()):
            logits = self.answer_all_rows()
            with group.first_ahead():
                if group.first:
                    write_arrays(file, {"logits": logits})
        return torch.from_numpy(read_arrays(file)["logits"]).to(self.task_data.device)

    @torch.no_grad()
    def answer_all_rows(self) -> NDArray[np.float32]:
        """Rows x classes; of several processes each answers a part of the rows and gets the answers of all."""
        group, encoded = self.context.group, self.task_data.encoded["train"]
        batches = evaluation_batches(encoded, tokens=self.task_data.evaluation_tokens)
        own, answers = group.deal(batches), []
        whole = torch.autocast(self.task_data.device.type, enabled=False)  # a training that asks may be less exact
        with whole, progress("teacher's answers", sum(len(b.rows) for b in own), unit="rows") as bar:
            for batch in own or batches[:1]:  # without rows of its own a process learns how many classes there are
                answers.append(self.teacher(**batch.to(self.task_data.device).inputs).logits.float().cpu())
                bar.advance(len(batch.rows))
        logits = torch.zeros(sum(len(batch.rows) for batch in batches), answers[0].shape[1])
        for batch, part in zip(own, answers, strict=False):
            logits[torch.from_numpy(batch.rows)] = part
        table: NDArray[np.float32] = group.sum(logits).numpy()
        return table

    @torch.no_grad()
    def __call__(self, batch: Batch) -> torch.Tensor:
        if self.cached:
            return self.logits[torch.as_tensor(batch.rows, device=self.task_data.device)]
        if self.task_data is not self.context.task_data:
            batch = batch_of(self.task_data.encoded["train"], batch.rows).to(self.task_data.device)
        logits: torch.Tensor = self.teacher(**batch.inputs).logits
        return logits


def extract_trainable(start: PrunedNetwork, spec: SubnetSpec) -> PrunedNetwork:
    """The sub-network as a network of its own; what is frozen in `start` is frozen in it too."""
    network = extract(start, spec)
    frozen = {name for name, parameter in start.named_parameters() if not parameter.requires_grad}
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name not in frozen)
    return network


def finetune(
    task_data: TaskData,
    network: PrunedNetwork,
    options: o.SupernetOptions,
    *,
    epochs: float,
    checkpoints: Checkpoints | None = None,
    deadline: float | None = None,
) -> PrunedNetwork:
    """The network after the first `epochs` of the --epochs that a network is trained by itself.

    The learning rate follows all --epochs, so that a checkpoint of fewer can be continued to more. Raises TimeUp at the
    deadline, a value of `time.monotonic()`.
    """
    step = plain_update(network, loss=task_data.loss)

    def update(batch: Any, rng: np.random.Generator, progress: float) -> float:
        if deadline is not None and monotonic() >= deadline:
            raise TimeUp
        return step(batch, rng, progress)

    steps_per_epoch = task_data.steps_per_epoch(options.batch_size)
    train_network(
        network,
        task_data.training(options.batch_size, stream=STAND_ALONE_BATCHES),
        update,
        Schedule(steps=round(steps_per_epoch * options.epochs), learning_rate=options.learning_rate),
        seed=task_data.seed,
        checkpoints=checkpoints,
        title="fine-tuning one network",
        stop=round(steps_per_epoch * epochs),
        **training_options(options),
    )
    return network


def recover_subnet(
    context: RunContext, network: PrunedNetwork, trial: int, recovery: o.RecoveryOptions
) -> dict[str, Any]:
    """Trains an extracted sub-network by itself, also towards the original's answers; its errors before and after.

    The result is saved in the run folder, where `export --recovered` looks for it. A recovery that was killed goes on
    from its checkpoint, if it is asked for with the same options.
    """
    task_data, options, run, group = context.task_data, context.config.supernet, context.run, context.group
    phase = f"recovery-{trial}-{digest(repr(recovery))[:8]}"
    freeze_embeddings(network, not options.train_embeddings)
    before = context.errors(network) if group.first else {}
    steps = max(1, round(task_data.steps_per_epoch(options.batch_size) * recovery.recover_epochs))
    rank, seed = recovery.lora, int(np.random.SeedSequence((context.seed, ADAPTER_WEIGHTS)).generate_state(1)[0])
    with low_rank_adapters(network, rank, seed=seed) if rank else nullcontext():
        train_network(
            network,
            task_data.training(options.batch_size, stream=RECOVERY_BATCHES),
            plain_update(network, loss=context.loss, teacher=original_teacher(context)),
            Schedule(steps=steps, learning_rate=recovery.recover_learning_rate),
            seed=context.seed,
            checkpoints=run.checkpoints(phase),
            title="recovery",
            group=group,
            share_rows=True,
            **training_options(options),
        )
    if not group.first:
        return {"epochs": recovery.recover_epochs, "before": {}, "after": {}}
    save_network(network, task_data, run.recovered_network(trial))
    for left in run.path.glob(f"checkpoint-recovery-{trial}-*.safetensors"):  # also of other options
        left.unlink()
    return {"epochs": recovery.recover_epochs, "lora": rank, "before": before, "after": context.errors(network)}
