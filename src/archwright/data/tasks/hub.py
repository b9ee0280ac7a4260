"""Data sets by their name for the `datasets` library, when it is installed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from archwright.data.files import quote, quote_all
from archwright.data.tasks.table_files import Lines, feature_names, name_classes
from archwright.data.tasks.tables import Columns, Examples, RawTask, collect
from archwright.errors import BadInput

PREFIX = "hf:"
VALIDATION_SPLITS = ("validation", "valid", "dev", "validation_matched")


def load_hub(name: str, *, columns: Columns) -> RawTask:
    """A data set `hf:NAME` or `hf:NAME:CONFIG`; a split whose labels are hidden (-1) counts as missing."""
    splits = load_splits(name)
    if "train" not in splits:
        raise BadInput(f"{name} needs a split 'train', it has {quote_all(splits)}.")
    seen = {split for split, rows in splits.items() if not hidden(rows, columns.label)}
    held_out = [*[split for split in VALIDATION_SPLITS if split in seen][:1], *({"test"} & seen)]
    examples = {split: read_split(splits[split], columns, f"{name} split {split!r}") for split in ["train", *held_out]}
    names = class_names(splits["train"], columns.label)
    return RawTask(
        name=name,
        train=examples["train"],
        validation=examples[held_out[0]] if len(held_out) > 1 else None,
        test=examples[held_out[-1]] if held_out else None,
        shares=({"validation": 0.15, "test": 0.15}, {"validation": 0.3}, {})[len(held_out)],
        labels=names,
        regression=False if names else None,
        note=f"the split {held_out[0]!r} is the test set" if len(held_out) == 1 else "",
    )


def load_splits(name: str) -> dict[str, Any]:
    """The splits of a data set, from the cache, a folder or the hub."""
    dataset, _, config = name.removeprefix(PREFIX).partition(":")
    if not dataset:
        raise BadInput(f"a `datasets` name is written hf:NAME or hf:NAME:CONFIG, got {quote(name)}.")
    try:
        return dict(import_module("datasets").load_dataset(dataset, config or None))
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"cannot load {name}: {quote(reason, 200)}; check the name, hf:NAME or hf:NAME:CONFIG."
        ) from None


def first_hub_row(name: str) -> Mapping[str, Any] | None:
    """The first row of train; None where there is none."""
    rows: Iterable[Mapping[str, Any]] = load_splits(name).get("train", ())
    return next(iter(rows), None)


def hub_lines(name: str) -> tuple[dict[str, Lines], dict[str, float], str]:
    """The rows of train, validation and test, class numbers as names; what is cut from train instead; a note.

    One split beside train is the test set.
    """
    splits = load_splits(name)
    if "train" not in splits:
        raise BadInput(f"{name} needs a split 'train', it has {quote_all(splits)}.")
    held_out = [*[split for split in VALIDATION_SPLITS if split in splits][:1], *({"test"} & set(splits))]
    roles = {"train": "train", **dict(zip(("test", "validation"), held_out[::-1], strict=False))}
    lines = {role: name_classes(splits[split], feature_names(splits[split].features)) for role, split in roles.items()}
    shares: tuple[dict[str, float], ...] = ({"validation": 0.15, "test": 0.15}, {"validation": 0.3}, {})
    note = f"the split {held_out[0]!r} is the test set" if len(held_out) == 1 else ""
    return lines, shares[len(held_out)], note


def class_names(rows: Any, column: str) -> tuple[str, ...] | None:
    """The label names the data set brings, in id order."""
    feature = rows.features.get(column)
    names = getattr(feature, "names", None)
    return tuple(names) if names else None


def hidden(rows: Any, column: str) -> bool:
    """Whether the labels were held back, as in GLUE's test sets on the hub."""
    return class_names(rows, column) is not None and any(label == -1 for label in rows[column])


def read_split(rows: Any, columns: Columns, source: str) -> Examples:
    """Examples of one split, class numbers replaced by names."""
    if len(rows) == 0:
        raise BadInput(f"{source} has no rows.")
    examples = collect(list(enumerate(rows, start=1)), columns, source)
    names = class_names(rows, columns.label)
    if names is None:
        return examples
    if any(int(label) not in range(len(names)) for label in examples.labels):
        raise BadInput(f"{source} has rows without a label; its classes are {quote_all(names)}.")
    return replace(examples, labels=[names[int(label)] for label in examples.labels])
