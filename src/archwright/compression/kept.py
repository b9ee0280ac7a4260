"""What a finished run needs of its inputs, inside its folder: so it can be chosen from, exported and shown alone.

These are the checkpoint's config, the tokenizers, names of labels, and the tokens of validation and test rows. Training
rows and pre-trained weights are not among them: `select --recover-epochs` and a search that goes on read them again.
"""

import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.checksums import verify_checksums, write_checksums
from archwright.data.batching import Encoded
from archwright.data.tasks.task import Task
from archwright.data.text.tokenizer import load_tokenizer
from archwright.data.text.vocabulary import Vocabulary
from archwright.data.windows import Windows
from archwright.devices import resolve_device
from archwright.errors import Failed
from archwright.networks.load import stock_config
from archwright.store import RunFolder, atomic_folder
from archwright.store.arrays import read_arrays, write_arrays
from archwright.training.checkpoint_head import HeadMatch
from archwright.training.digests import parts_of
from archwright.training.task_data import TaskData

FOLDER = "kept"
SPLITS = ("validation", "test")
CUT, WHOLE = "tokenizer", "whole-tokenizer"
"""Folders of the tokenizer, and of the one that knows all tokens where not all stay; in both the config."""
WAY_OUT = "delete the folder and run the same `archwright compress` command again, with its data in place"


def keep_inputs(run: RunFolder, task_data: TaskData) -> None:
    """Writes them once per run."""
    if (run.path / FOLDER).exists():
        return
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for which, data in versions_of(task_data).items():
        for split in SPLITS:
            for name, part in parts_of(data.encoded[split]):
                (arrays if isinstance(part, np.ndarray) else plain)[f"{which}/{split}/{name}"] = part
    if task_data.validation_groups is not None:
        arrays["groups"] = task_data.validation_groups
    if task_data.vocabulary is not None:
        arrays["vocabulary"] = task_data.vocabulary.kept
    with atomic_folder(run.path / FOLDER) as place:
        for which, data in versions_of(task_data).items():
            stock_config(task_data.source).save_pretrained(place / which)
            data.tokenizer.save_pretrained(place / which)
        write_arrays(place / "rows.npz", arrays)
        (place / "task.json").write_text(json.dumps({**describe(task_data), "encoded": plain}))
        write_checksums(place)


def versions_of(task_data: TaskData) -> dict[str, TaskData]:
    """The task data, and that with all tokens where not all stay, by the folders of their tokenizers."""
    return {CUT: task_data} | ({} if task_data.uncut is None else {WHOLE: task_data.uncut})


def describe(task_data: TaskData) -> dict[str, Any]:
    task, vocabulary = task_data.task, task_data.vocabulary
    return {
        "task": {field.name: getattr(task, field.name) for field in fields(task) if field.name != "splits"},
        "whole_vocabulary": None if task_data.uncut is None else task_data.uncut.task.vocabulary,
        "head": asdict(task_data.head),
        "seed": task_data.seed,
        "held_out": task_data.held_out,
        "class_weights": task_data.class_weights,
        "vocabulary": vocabulary and {name: getattr(vocabulary, name) for name in ("size", "touched", "note")},
    }


def has_kept_inputs(run: RunFolder) -> bool:
    """Whether the run is finished and has them; those of earlier versions have not."""
    return (run.path / FOLDER).is_dir() and (run.path / "result.json").exists()


def load_kept_inputs(run: RunFolder, *, device: str) -> TaskData:
    """The task data of a finished run without its training rows, from its folder alone."""
    place = run.path / FOLDER
    verify_checksums(place, way_out=WAY_OUT)
    try:
        noted = json.loads((place / "task.json").read_text())
        arrays = read_arrays(place / "rows.npz", way_out=WAY_OUT)
        task_data = build_task_data(place, noted, arrays, CUT, device)
        if noted["whole_vocabulary"] is None:
            return task_data
        whole = build_task_data(place, noted, arrays, WHOLE, device)
        whole = replace(whole, task=replace(whole.task, vocabulary=noted["whole_vocabulary"]))
        return replace(task_data, uncut=whole, vocabulary=Vocabulary(arrays["vocabulary"], **noted["vocabulary"]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Failed(f"{place} is damaged ({error}); {WAY_OUT}.") from error


def build_task_data(
    place: Path, noted: dict[str, Any], arrays: dict[str, NDArray[Any]], which: str, device: str
) -> TaskData:
    task = {**noted["task"], "labels": tuple(noted["task"]["labels"]), "splits": {}}
    parts = arrays | noted["encoded"]
    return TaskData(
        source=str(place / which),
        task=Task(**task),
        tokenizer=load_tokenizer(str(place / which)),
        head=HeadMatch(**{**noted["head"], "labels": tuple(noted["head"]["labels"])}),
        encoded={split: build_encoded(parts, f"{which}/{split}/") for split in SPLITS},
        seed=noted["seed"],
        device=resolve_device(device),
        held_out=noted["held_out"],
        class_weights=noted["class_weights"] and tuple(noted["class_weights"]),
        groups=arrays.get("groups"),
    )


def build_encoded(parts: dict[str, Any], prefix: str) -> Encoded:
    own = {name.removeprefix(prefix): part for name, part in parts.items() if name.startswith(prefix)}
    windows = {name.removeprefix("windows."): own.pop(name) for name in list(own) if name.startswith("windows.")}
    if windows:
        windows["answers"] = [tuple(texts) for texts in windows["answers"]]
        own["windows"] = Windows(**windows)
    return Encoded(**own)
