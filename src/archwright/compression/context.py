"""One run of `compress`: its folder, its config and its task, for the command that began it and workers that join."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from archwright.compression.digests import check_inputs
from archwright.compression.kept import has_kept_inputs, load_kept_inputs
from archwright.configs.compress import CompressConfig, ModelOptions
from archwright.configs.options import config_options, config_values, make_config
from archwright.data.batching import Batch
from archwright.data.public_data import EMBEDDED
from archwright.devices import resolve_device
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.statistics.own_metric import is_own, resolve_own
from archwright.store import RunFolder
from archwright.store.run import INPUTS
from archwright.tasks import TASK_KINDS
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.task_data import TaskData, load_task_data

OUTSIDE_OF_RUN = ("compare", "preview", "dry_run")
"""Options of CompressConfig that say nothing about a single run."""
NOTED_EVERY = 5.0
"""Seconds after which the remaining time of a run is noted again."""
OLDER = {
    **{"selection": "all", "split": "random", "teacher": "in-place", "repair": "mask", "cut": "before"},
    **{"validation_role": "test", "precision": "float32", "for_": "compact", "weights": "float32"},
    **{"optimizer": "adamw", "gradient_checkpointing": False, "distil_epochs": 0.0},
}
"""Options that earlier versions did not have, and what their runs did."""


@dataclass(frozen=True)
class RunContext:
    """What every phase of a run works with."""

    run: RunFolder
    config: CompressConfig
    task_data: TaskData
    group: ProcessGroup = SINGLE_PROCESS
    """The processes that train together; the first one does everything else."""

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """What a training minimizes: the mean over the targets of all processes."""
        return self.task_data.loss(logits, targets, self.group)

    @property
    def seed(self) -> int:
        return self.task_data.seed

    @property
    def length(self) -> int:
        """Tokens of the text that FLOPs and latency are about."""
        return self.task_data.length(self.config.measure.length)

    @property
    def latency_device(self) -> torch.device:
        return resolve_device(self.config.measure.latency_device, "--latency-device")

    @property
    def halves(self) -> tuple[list[Batch], list[Batch]] | None:
        """The validation rows that search and those that re-score; None when all of them do both."""
        return self.task_data.halves if self.config.search.selection == "halves" else None

    @property
    def search_rows(self) -> list[Batch]:
        """What the sampler minimises the error of."""
        return self.halves[0] if self.halves else self.task_data.validation

    @property
    def holdout_rows(self) -> list[Batch]:
        """What judges the best of the search, and what a loss against the original is reported on."""
        return self.halves[1] if self.halves else self.task_data.validation

    @property
    def original_model(self) -> ModelOptions:
        """The model as the original is fine-tuned; what is missing here is cut after that."""
        model = self.config.model
        if model.cut == "before":
            return replace(model, width=None)
        per_row = TASK_KINDS[self.task_data.task.kind].per_row
        return replace(model, vocabulary=None if per_row else model.vocabulary, embedding_rank=None, width=None)

    @property
    def original_data(self) -> TaskData:
        """The rows as the original reads them: in its own tokens."""
        whole = self.task_data.uncut
        return self.task_data if whole is None or self.original_model.vocabulary is not None else whole

    @property
    def original_holdout_rows(self) -> list[Batch]:
        """The rows of `holdout_rows` as the original reads them."""
        data = self.original_data
        return data.halves[1] if self.halves and data.halves else data.validation

    @property
    def start(self) -> Path:
        """Folder of the network whose layers are pruned: the fine-tuned original, cut if it is cut after that."""
        return self.run.original if self.original_model == self.config.model else self.run.path / "cut"

    def errors(self, network: PrunedNetwork) -> dict[str, float]:
        """Of a network by itself, on the validation rows that judge and the test rows."""
        data, errors = self.task_data, {}
        with progress("errors", 2, "sets of rows") as bar:
            for name, rows in (("validation_error", self.holdout_rows), ("test_error", data.test)):
                errors[name] = data.error(network, rows)
                bar.advance()
        return errors


def load_context(folder: RunFolder, *, device: str = "cpu", training: bool = True, taught: bool = True) -> RunContext:
    """The context of a run that has begun; the device may be another one.

    Without `training` that of a finished run comes from its folder alone, which has no training rows; without `taught`
    its rows are as they were before the original was there.
    """
    config = from_settings({**folder.settings, **own_inputs(folder)})
    if has_kept_inputs(folder) and not training:
        return teach(RunContext(folder, config, load_kept_inputs(folder, device=device)))
    task_data = load_task_data(config.model, config.data, seed=config.output.seed, device=device)
    check_inputs(folder, task_data)
    context = RunContext(folder, config, task_data)
    return teach(context) if taught else context


def teach(context: RunContext, original: PrunedNetwork | None = None) -> RunContext:
    """The context with the original's answers as targets where the kind of task learns from nothing else."""
    record = TASK_KINDS[context.task_data.task.kind].teach
    if record is None:
        return context
    with context.group.first_ahead():
        taught: RunContext = record.load()(context, original)
    return taught


def own_inputs(folder: RunFolder) -> dict[str, str]:
    """Options that name what lies in the run folder itself, where that is now: the folder may have been moved."""
    found: dict[str, str] = {}
    for name in ("model", "tokenizer", "train", "validation", "test"):
        path = folder.path / INPUTS / Path(str(folder.settings.get(name))).name
        if Path(str(folder.settings.get(name))).parent.name == INPUTS and path.exists():
            found[name] = str(path)
    return found


def to_settings(config: CompressConfig) -> dict[str, Any]:
    """The options of a run by their names, as JSON values that mean the same in every folder."""
    values = config_values(config)
    for name in OUTSIDE_OF_RUN:
        del values[name]
    model, store = values["model"], values["store"]
    if model not in EMBEDDED and Path(model).is_dir():
        values["model"] = str(Path(model).resolve())
    if values["metric"] is not None and is_own(values["metric"]):
        values["metric"] = resolve_own(values["metric"])
    if store and store.startswith("sqlite:///"):
        values["store"] = f"sqlite:///{Path(store.removeprefix('sqlite:///')).resolve()}"
    return dict(json.loads(json.dumps(values, default=lambda path: str(Path(path).resolve()))))


def from_settings(settings: Mapping[str, Any]) -> CompressConfig:
    """The inverse of `to_settings`; what an older run does not have is as it was, what only it has is left out."""
    known = config_options(CompressConfig)
    return make_config(CompressConfig, {name: v for name, v in {**OLDER, **settings}.items() if name in known})


@contextmanager
def share_deadline(run: RunFolder, deadline: float | None) -> Iterator[None]:
    """Tells workers in the block how long the run's --minutes still last; a deadline is of `time.monotonic()`.

    What travels is the number of seconds that remain, noted anew every few seconds: the clocks of machines differ.
    """
    ended = threading.Event()

    def note_again() -> None:
        while not ended.wait(NOTED_EVERY):
            with suppress(OSError):  # a full disk: workers go on by what they have read, the run will tell
                write_deadline(run, deadline)

    write_deadline(run, deadline)
    thread = threading.Thread(target=note_again, daemon=True)
    if deadline is not None:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if deadline is not None:
            thread.join()


def write_deadline(run: RunFolder, deadline: float | None) -> None:
    """Notes the seconds until a deadline, which is a value of `time.monotonic()`."""
    run.note("deadline", {"remaining": None if deadline is None else deadline - time.monotonic()})


def read_deadline(run: RunFolder) -> float | None:
    """The same on this process's clock, as if it had been noted just now; None while there is none."""
    remaining = (run.note("deadline") or {}).get("remaining")
    return None if remaining is None else time.monotonic() + float(remaining)


class SharedDeadline:
    """The deadline of a run as another process follows it: the clock of this process goes on from the last note.

    A search that had one and has none any more is over.
    """

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._note: Any = None
        self._deadline: float | None = None

    def __call__(self) -> float | None:
        note = self._run.note("deadline")
        if note != self._note:
            self._note, self._deadline = note, read_deadline(self._run) or self._deadline
        return self._deadline
