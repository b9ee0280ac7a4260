"""`archwright compress --dry-run`: how long a run will take, how much memory and disk it needs, from a few real steps.

Everything is checked as for a real run. Then steps of the original and of the super-network, a repair, and answers to a
few batches are timed on this machine, and multiplied by how often each will happen. Nothing is trained to its end, and
nothing stays on disk: what measuring notes lies in a temporary folder.
"""

import math
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from archwright.compression.budgets import minutes
from archwright.compression.budgets.minutes import TIMED_TOKENS, USUAL_SHARE, count_tokens
from archwright.compression.budgets.total_size import fit_embeddings
from archwright.compression.context import RunContext
from archwright.compression.finetuning import extract_trainable, training_options
from archwright.compression.methods import METHODS
from archwright.compression.methods.candidates import plan_candidates
from archwright.compression.methods.distillation import distil_epochs
from archwright.compression.order import sample_batches
from archwright.compression.pipeline import default_folder, fit_space, go_on_with_rows, load_data, resolve_space
from archwright.compression.selection import BANDS, RESCORED
from archwright.compression.space import open_space
from archwright.compression.supernet import supernet_step
from archwright.compression.validation import validate, validate_new_run
from archwright.configs.compress import CompressConfig
from archwright.data.batching import Batch, batch_of
from archwright.errors import BadInput
from archwright.networks.load import freeze_embeddings
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import FEWEST_ROUNDS
from archwright.progress import duration
from archwright.random_streams import TIMING_BATCHES
from archwright.reports.numbers import count
from archwright.reports.tables import table
from archwright.spaces.subnetwork import ChainSpace, SubnetSpace
from archwright.store import RunFolder, is_run
from archwright.subnet.importance import REDUCTIONS, ImportanceOrder, order_by_importance, reorder
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.streams import record_streams
from archwright.subnet.spec import SubnetSpec
from archwright.subnet.supernet import FixedTeacher, plain_update
from archwright.tasks import TASK_KINDS
from archwright.threads import choose_threads
from archwright.training.loop import StepRecord, Update, train_network
from archwright.training.losses import distillation
from archwright.training.optimizer import PACKED
from archwright.training.schedule import Schedule
from archwright.training.task_data import TaskData, load_checkpoint

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/estimate/1"
TIMED_STEPS, WARM_STEPS, TIMED_SECONDS = 16, 2, 8.0
"""Steps of a training that are timed, those before them that warm up, and how long at most."""
ORDER_BATCHES = 2
"""Batches on which importance is measured here, of about 16."""
TRIAL_SECONDS = 0.04
"""What a trial takes beside its evaluation: proposing, noting, telling."""
LATENCY_CALLS = 2
"""An untimed run precedes every timed one."""
INT8_SECONDS = 10.0
"""Per network whose int8 file is weighed."""
REPORT_BYTES = 6_000_000
"""Page, trials and notes of a run, and the tokenizers beside its networks."""


@dataclass(frozen=True)
class Phase:
    """One phase of the run: what is counted in it, and the seconds it will take."""

    name: str
    seconds: float
    about: str


@dataclass(frozen=True)
class RunEstimate:
    """What a run will cost."""

    phases: tuple[Phase, ...]
    minutes: float | None
    """The limit of the whole run, if there is one."""
    memory_bytes: int
    """Peak of this process while steps were timed, and the networks that are measured at the end."""
    disk_bytes: int
    """While the run works: its networks, and the state of the longest training."""
    disk_after_bytes: int
    out: str
    facts: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        return sum(phase.seconds for phase in self.phases)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "seconds": self.seconds,
            "seconds_by_phase": {phase.name: phase.seconds for phase in self.phases},
            **{name: value for name, value in asdict(self).items() if name != "phases"},
        }

    def show(self, console: "Console") -> None:
        rows = [[phase.name, duration(phase.seconds), phase.about] for phase in self.phases]
        rows.append(["together", duration(self.seconds), f"the run folder would be {self.out}"])
        console.print(table(("phase", "time", ""), rows, left=(0, 2), styles={len(rows) - 1: "bold"}))
        after = f"{count(self.disk_bytes, 'B')} while it works, {count(self.disk_after_bytes, 'B')} afterwards"
        console.print(f"memory: {count(self.memory_bytes, 'B')} at its peak; disk: {after}", highlight=False)
        console.print(
            "an estimate from a few steps on this machine as busy as it is now; nothing was trained or written",
            highlight=False,
        )


def estimate_run(config: CompressConfig) -> RunEstimate:
    """What the run of this config would take; BadInput for whatever the run itself would refuse."""
    begun = perf_counter()
    config = resolve_space(config)
    method = METHODS[config.supernet.method]
    if config.compare.compare or not (method.shared or method.standalone):
        able = " and ".join(name for name in METHODS if METHODS[name].shared or METHODS[name].standalone)
        got = "--compare" if config.compare.compare else f"--method {config.supernet.method}"
        raise BadInput(f"--dry-run estimates single runs of {able}, got {got}; the others train little or nothing.")
    task_data = load_data(config)
    if TASK_KINDS[task_data.task.kind].teach is not None:
        raise BadInput(
            f"--dry-run needs a task with targets of its own, got {task_data.task.kind}, which learns the original's "
            "answers; time a run with few rows (--train-rows)."
        )
    config = fit_space(config, task_data)
    folder = config.output.out or default_folder(config, task_data)
    config, task_data = fit_embeddings(config, task_data, folder)
    validate(config, task_data)
    config, task_data = go_on_with_rows(config, folder, task_data)
    choose_threads(config.output.threads, config.search.workers, note=folder / "threads.json")
    if not is_run(folder):
        validate_new_run(config, task_data)
    with TemporaryDirectory() as place:
        return Measurements(RunContext(RunFolder(Path(place)), config, task_data)).estimate(folder, begun)


class Measurements:
    """What is timed for an estimate, on the untrained checkpoint: how fast it computes does not depend on weights."""

    def __init__(self, context: RunContext) -> None:
        self.context, self.data, self.options = context, context.task_data, context.config.supernet
        self.kind = TASK_KINDS[self.data.task.kind]
        self.network = load_checkpoint(self.data, context.config.model, self.options)
        self.steps_per_epoch = self.data.steps_per_epoch(self.options.batch_size)
        self.is_cached = self.kind.per_row and self.options.epochs >= 1
        """Whether the teacher answers every row once."""

    def estimate(self, folder: Path, begun: float) -> RunEstimate:
        context, search = self.context, self.context.config.search
        shared = METHODS[self.options.method].shared
        order, order_seconds = self.measure_order()
        if order is not None:
            reorder(self.network, order)
        space = open_space(context, self.network, order)
        middle = space.chain.spec(0.5) if isinstance(space, ChainSpace) else halved(space)
        answer, half_answer = self.answer_seconds(None), self.answer_seconds(middle)
        phases = [Phase("load", perf_counter() - begun, "read, tokenize, load the weights; as measured now")]
        phases.append(self.estimate_original())
        if context.start != context.run.original:
            phases.append(Phase("cut", 2 * order_seconds, "vocabulary, width, word vectors"))
        if order is not None:
            phases.append(Phase("order", order_seconds, "importance of heads, units and layers"))
        if shared:
            phases.append(self.estimate_supernet(space, answer))
            if isinstance(space, ChainSpace):
                phases.append(self.estimate_candidates(space))
        trial = count_tokens(context.search_rows) * half_answer + TRIAL_SECONDS
        about = f"{search.trials:,} trials of {trial:.2g} s"
        if not shared:
            alone = self.step_seconds(self.network, plain_update(self.network, loss=self.data.loss)) * USUAL_SHARE
            steps = round(self.options.epochs * self.steps_per_epoch)
            trial += alone * steps
            about = f"{search.trials:,} networks of at most {steps:,} steps of {alone:.2g} s"
        phases.append(Phase("search", search.trials * trial / search.workers, about))
        rescored = min(BANDS * RESCORED if context.halves else BANDS, search.trials)
        held_out = count_tokens(context.holdout_rows) * (2 * answer + rescored * half_answer)
        phases.append(Phase("rescore", held_out, f"{rescored} networks on the other validation rows"))
        phases.append(self.estimate_measuring(min(BANDS, rescored), answer, half_answer, phases))
        if honesty := context.config.fidelity.honesty:
            epochs = context.config.fidelity.honesty_epochs or self.options.epochs
            alone = self.step_seconds(self.network, plain_update(self.network, loss=self.data.loss)) * USUAL_SHARE
            phases.append(Phase("honesty", honesty * epochs * self.steps_per_epoch * alone, f"{honesty} networks"))
        working, afterwards = self.disk_bytes(space)
        return RunEstimate(
            tuple(phases if search.minutes is None else limit_phases(phases, search.minutes, self.data)),
            search.minutes,
            peak_memory() + self.measured_networks(min(BANDS, rescored)),
            working,
            afterwards,
            str(folder),
            {"seconds_per_token": answer, "rows": {name: rows.rows for name, rows in self.data.encoded.items()}},
        )

    def measure_order(self) -> tuple[ImportanceOrder | None, float]:
        """An order by a few batches, and the seconds that all of them will take."""
        if self.options.order == "none":
            return None, 0.0
        batches = sample_batches(self.context)
        begun, some = perf_counter(), batches[:ORDER_BATCHES]
        order = order_by_importance(
            *(self.network, some, self.data.loss, REDUCTIONS[self.options.order]),
            remove_layers=self.options.space != "chain",
            span=self.kind.importance_span,
        )
        return order, (perf_counter() - begun) * len(batches) / len(some)

    def answer_seconds(self, spec: SubnetSpec | None) -> float:
        """Per token of an evaluation, of the whole network or of a part of it, with everything around it."""
        rows: list[Batch] = []
        for batch in self.context.search_rows:
            rows.append(batch)
            if count_tokens(rows) >= TIMED_TOKENS:
                break
        self.data.error(self.network, rows[:1], spec)  # warms up
        begun = perf_counter()
        self.data.error(self.network, rows, spec)
        return (perf_counter() - begun) / count_tokens(rows)

    def step_seconds(self, network: PrunedNetwork, update: Update) -> float:
        """Of an average step of a training with everything around it, optimizer included."""
        records: list[StepRecord] = []

        def log(record: StepRecord) -> None:
            records.append(record)
            if len(records) > WARM_STEPS and sum(each.seconds for each in records) > TIMED_SECONDS:
                raise Enough

        steps = WARM_STEPS + TIMED_STEPS
        with suppress(Enough):
            train_network(
                *(network, self.repeat_batches(steps), update),
                Schedule(steps=steps, learning_rate=self.options.learning_rate),
                seed=self.context.seed,
                title="timing steps",
                log=log,
                **training_options(self.options),
            )
        timed = records[WARM_STEPS:]
        usual = len(self.data.encoded["train"].ids) / self.steps_per_epoch
        return usual * sum(each.seconds for each in timed) / max(1, sum(each.tokens for each in timed))

    def repeat_batches(self, steps: int) -> Callable[[int], list[Batch]]:
        """Batches of the training rows, from the beginning again where they are too few."""
        epochs = self.data.training(self.options.batch_size, stream=TIMING_BATCHES)
        return lambda epoch: list(islice((batch for number in range(steps) for batch in epochs(number)), steps))

    def teacher(self) -> FixedTeacher:
        """As costly as the original will be: known answers where it answers all rows once, a network otherwise."""
        frozen = None if self.is_cached else load_checkpoint(self.data, self.context.config.model, self.options).eval()

        with torch.no_grad():
            row = batch_of(self.data.encoded["train"], np.arange(1)).to(self.data.device)
            shape = self.network.eval()(**row.inputs).logits.shape[1:]

        @torch.no_grad()
        def answers(batch: Batch) -> torch.Tensor:
            if frozen is not None:
                logits: torch.Tensor = frozen(**batch.inputs).logits
                return logits
            return torch.zeros(len(batch.rows), *shape, device=self.data.device)

        temperature = self.options.temperature
        return FixedTeacher(answers, lambda logits, wanted: temperature**2 * distillation(logits, wanted, temperature))

    def estimate_original(self) -> Phase:
        data = self.context.original_data
        usual = 0.0 if data.head.trained else 2.0
        epochs = usual if self.options.original_epochs is None else self.options.original_epochs
        steps = round(self.steps_per_epoch * epochs)
        if not steps:
            return Phase("original", 0.0, "not trained further")
        network = load_checkpoint(data, self.context.original_model, self.options)
        step = self.step_seconds(network, plain_update(network, loss=self.data.loss))
        return Phase("original", steps * step, f"{steps:,} steps of {step:.2g} s")

    def estimate_supernet(self, space: SubnetSpace, answer: float) -> Phase:
        teacher = self.teacher() if self.options.teacher == "original" else None
        freeze_embeddings(self.network, not self.options.train_embeddings)
        step = self.step_seconds(
            self.network, supernet_step(self.network, space, self.options, teacher, loss=self.data.loss)
        )
        steps = round(self.steps_per_epoch * self.options.epochs)
        answers = len(self.data.encoded["train"].ids) * answer if teacher and self.is_cached else 0.0
        return Phase("supernet", answers + steps * step, f"{steps:,} steps of {step:.2g} s")

    def estimate_candidates(self, space: ChainSpace) -> Phase:
        """One repair is done, and steps of the networks that are trained by themselves."""
        batches, begun = sample_batches(self.context), perf_counter()
        recording = record_streams(self.network, batches)
        recorded = perf_counter() - begun
        begun = perf_counter()
        REPAIRS[self.options.repair](self.network, space.chain.spec(0.6), recording)
        repair = perf_counter() - begun
        plan = plan_candidates(self.context, space)
        alone = round(self.steps_per_epoch * distil_epochs(self.context))
        trained = [(space.chain.spec(share / 100), alone) for share in plan.distilled]
        trained += [(spec, round(self.steps_per_epoch * self.options.epochs)) for spec in plan.dropped.values()]
        seconds = 0.0
        for spec, steps in trained:
            network = extract_trainable(self.network, spec)
            update = plain_update(network, loss=self.data.loss, teacher=self.teacher())
            seconds += steps * self.step_seconds(network, update)
        about = (
            f"{len(plan.pruned)} repaired in {repair:.2g} s each, {len(plan.distilled)} of them trained for "
            f"{alone:,} steps"
        )
        return Phase("candidates", 2 * recorded + len(plan.pruned) * repair + seconds, about)

    def estimate_measuring(self, members: int, answer: float, half_answer: float, before: list[Phase]) -> Phase:
        """Test rows of original, super-network and front; latency, which has its part of the time so far."""
        context, encoded = self.context, self.data.encoded["test"]
        rows = encoded.rows if encoded.windows is not None else minutes.usual_test_rows(context, encoded.rows)
        tokens = len(encoded.ids) * rows / encoded.rows
        testing = tokens * (2 * answer + members * half_answer)
        measure = context.config.measure
        per_round = LATENCY_CALLS * context.length * (4 * answer + members * half_answer)
        afforded = minutes.LATENCY * sum(phase.seconds for phase in before)
        latency = min(measure.rounds * per_round, max(FEWEST_ROUNDS * per_round, afforded))
        int8 = members * INT8_SECONDS if measure.measure_int8 or "int8_bytes" in context.config.search.objectives else 0
        return Phase("measure", testing + latency + int8, f"{rows:,} test rows and latency of about {members} networks")

    def measured_networks(self, members: int) -> int:
        """Bytes of what is in memory at the end beside the super-network: the original and the front."""
        whole, trained = self.weight_bytes()
        return round(whole + members * USUAL_SHARE * trained)

    def weight_bytes(self) -> tuple[int, int]:
        """Of all weights, and of those that are trained."""
        tensors = list(self.network.parameters())
        return sum(tensor.nbytes for tensor in tensors), sum(t.nbytes for t in tensors if t.requires_grad)

    def disk_bytes(self, space: SubnetSpace) -> tuple[int, int]:
        """While the run works, and after it: networks, and the state of AdamW beside the one in training."""
        whole, trained = self.weight_bytes()
        numbers = sum(tensor.numel() for tensor in self.network.parameters() if tensor.requires_grad)
        state = (2 if self.options.optimizer == PACKED else 8) * numbers
        fixed = whole - trained
        networks = whole * (2 if METHODS[self.options.method].shared else 1)
        networks += whole if self.context.start != self.context.run.original else 0
        if isinstance(space, ChainSpace):
            plan = plan_candidates(self.context, space)
            shares = [share for _, share in plan.pruned] + plan.distilled
            networks += sum(round(fixed + share / 100 * trained) for share in shares) + fixed + trained // 2
        elif not METHODS[self.options.method].shared:
            networks += BANDS * round(fixed + USUAL_SHARE * trained)
        return networks + whole + state + REPORT_BYTES, networks + REPORT_BYTES


class Enough(Exception):
    """Steps were timed for long enough."""


def halved(space: SubnetSpace) -> SubnetSpec:
    """The first half of the layers of the whole network."""
    full = space.anatomy.full
    half = math.ceil(len(full) / 2)
    nothing = type(full[0])(0, 0)
    return (*full[:half], *[nothing] * (len(full) - half))


def limit_phases(phases: list[Phase], limit: float, data: TaskData) -> list[Phase]:
    """The phases as --minutes shortens them: each training to its part, the search and what follows to the rest."""
    shares, seconds = TASK_KINDS[data.task.kind].shares, 60 * limit
    limited: list[Phase] = []
    for phase in phases:
        past = sum(each.seconds for each in limited)
        left = {
            "original": shares.original * seconds,
            "supernet": max(0.0, shares.training * seconds - past),
            "candidates": shares.candidates * seconds,
            "search": max(minutes.SEARCH * seconds, seconds * (1 - minutes.TESTING - minutes.LATENCY) - past),
        }.get(phase.name, math.inf)
        cut = f"{phase.about}, shortened by --minutes" if phase.seconds > left else phase.about
        limited.append(Phase(phase.name, min(phase.seconds, left), cut))
    return limited


def peak_memory() -> int:
    """Bytes of this process since it began, at its peak."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else 1024 * peak)
