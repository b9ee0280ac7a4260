"""One run of `compress`: its folder, its config and its task, for the command that began it and workers that join."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_options, config_values, make_config
from archwright.data.public_data import EMBEDDED
from archwright.networks.pruned import PrunedNetwork
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.store import RunFolder
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import ImportanceOrder
from archwright.training.task_data import TaskData, load_task_data

OUTSIDE_OF_RUN = ("compare", "preview")
"""Options of CompressConfig that say nothing about a single run."""


@dataclass(frozen=True)
class RunContext:
    """What every phase of a run works with."""

    run: RunFolder
    config: CompressConfig
    task_data: TaskData

    @property
    def seed(self) -> int:
        return self.task_data.seed

    @property
    def length(self) -> int:
        """Tokens of the text that FLOPs and latency are about."""
        return self.task_data.length(self.config.measure.length)

    def errors(self, network: PrunedNetwork) -> dict[str, float]:
        """Of a network by itself, on the validation and the test rows."""
        data = self.task_data
        return {"validation_error": data.error(network, data.validation), "test_error": data.error(network, data.test)}

    def space(self, network: PrunedNetwork, order: ImportanceOrder | None = None) -> SubnetSpace:
        """The sub-networks of this network; without an order its layers go from the top."""
        name = self.config.supernet.space or "small"
        return subnet_space(name, read_anatomy(network.config), order.layers if order else None)


def load_context(folder: RunFolder, *, device: str = "cpu") -> RunContext:
    """The context of a run that has begun, from its folder alone; the device may be another one."""
    config = from_settings(folder.settings)
    task_data = load_task_data(config.model, config.data, seed=config.output.seed, device=device)
    return RunContext(folder, config, task_data)


def to_settings(config: CompressConfig) -> dict[str, Any]:
    """The options of a run by their names, as JSON values that mean the same in every folder."""
    values = config_values(config)
    for name in OUTSIDE_OF_RUN:
        del values[name]
    model, store = values["model"], values["store"]
    if model not in EMBEDDED and Path(model).is_dir():
        values["model"] = str(Path(model).resolve())
    if store and store.startswith("sqlite:///"):
        values["store"] = f"sqlite:///{Path(store.removeprefix('sqlite:///')).resolve()}"
    return dict(json.loads(json.dumps(values, default=lambda path: str(Path(path).resolve()))))


def from_settings(settings: Mapping[str, Any]) -> CompressConfig:
    """The inverse of `to_settings`; what an older run does not have is as usual, what only it has is left out."""
    known = config_options(CompressConfig)
    return make_config(CompressConfig, {name: value for name, value in settings.items() if name in known})


def write_deadline(run: RunFolder, deadline: float | None) -> None:
    """Notes when the run's --minutes are over, a value of `time.monotonic()`, for workers, whose clocks differ."""
    run.note("deadline", {"at": None if deadline is None else time.time() + deadline - time.monotonic()})


def read_deadline(run: RunFolder) -> float | None:
    """The same on this process's clock; None while there is none."""
    at = (run.note("deadline") or {"at": None})["at"]
    return None if at is None else float(time.monotonic() + at - time.time())
