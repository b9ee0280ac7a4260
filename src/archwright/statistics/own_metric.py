"""A metric of the user's own: FILE.py:FUNCTION, called as FUNCTION(labels, predictions), higher is better.

Labels and predictions are arrays with one entry per row: class ids, numbers, or rows x labels of 0 and 1 where a text
has several labels. A function with a parameter `logits` gets the network's outputs too, rows x outputs. It returns one
number, 1 for perfect answers: the error is 1 - it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.errors import BadInput

MARK = ".py:"
"""What tells a function from the name of a metric."""


def is_own(metric: str) -> bool:
    return MARK in metric


def resolve_own(metric: str) -> str:
    """The same with the whole path, so that it means the same in every folder."""
    file, _, name = metric.rpartition(":")
    return f"{Path(file).expanduser().resolve()}:{name}"


def short_name(metric: str) -> str:
    """What a metric is called in reports: FILE.py:FUNCTION without folders."""
    return metric if not is_own(metric) else f"{Path(metric.rpartition(':')[0]).name}:{metric.rpartition(':')[2]}"


@cache
def load_own(metric: str) -> Callable[..., Any]:
    """The function; BadInput when there is none."""
    file, _, name = metric.rpartition(":")
    path = Path(file).expanduser()
    if not path.is_file():
        raise BadInput(f"--metric FILE.py:FUNCTION needs a file, got {file!r}, which is not there; check the path.")
    spec = spec_from_file_location(f"archwright_metric_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file raises
        raise BadInput(f"--metric {metric}: {path} cannot be run ({type(error).__name__}: {error}).") from error
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None or not callable(function):
        names = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        raise BadInput(f"--metric {metric}: {path} has no function {name!r}; it has {', '.join(names) or 'none'}.")
    return function


def takes_logits(function: Callable[..., Any]) -> bool:
    try:
        return "logits" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions of compiled modules have no signature
        return False


def score_own(
    metric: str, predictions: NDArray[Any], labels: NDArray[Any], logits: NDArray[Any] | None = None
) -> float:
    """What the user's function says; BadInput when that is no finite number."""
    function = load_own(metric)
    more = {"logits": logits} if takes_logits(function) else {}
    try:
        value = float(function(labels, predictions, **more))
    except Exception as error:
        raise BadInput(f"--metric {metric} failed ({type(error).__name__}: {error}); correct the function.") from error
    if not np.isfinite(value):
        raise BadInput(f"--metric {metric} must return a finite number, got {value}; correct the function.")
    return value
