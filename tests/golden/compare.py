"""Values beside their records. ARCHWRIGHT_RECORD=1 writes the records instead."""

import json
import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"
RECORDING = os.environ.get("ARCHWRIGHT_RECORD") == "1"
TRAINED = (1e-4, 1e-6)
"""Relative and absolute tolerance of floats that went through training."""
SCORED = (1e-5, 1e-9)
"""The same for scores of untrained networks."""
DIGITS = 8
"""Significant digits of a float in a record."""


def check(name: str, key: str, value: Any, tolerance: tuple[float, float] = TRAINED) -> None:
    """Compares with records/NAME.json at `key`; ints, strings, configs and the order of lists exactly."""
    value = rounded(json.loads(json.dumps(value)))
    file = RECORDS / f"{name}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    if RECORDING:
        known[key] = value
        file.write_text(lay_out({name: known[name] for name in sorted(known)}) + "\n")
        return
    assert key in known, f"{file} has no {key!r}; record it with ARCHWRIGHT_RECORD=1"
    wrong = list(differences(known[key], value, tolerance))
    shown = "\n".join(wrong[:20])
    assert not wrong, f"{name} {key}: {len(wrong)} values are not as recorded\n{shown}"


def check_still_there(name: str, key: str, names: Collection[str]) -> None:
    """Whether all names of records/NAME.json at `key` are there; new ones may have come."""
    if RECORDING:
        check(name, key, sorted(names))
        return
    known = json.loads((RECORDS / f"{name}.json").read_text())[key]
    gone = sorted(set(known) - set(names))
    assert not gone, f"{name} {key}: gone are {', '.join(gone)}"


def differences(old: Any, new: Any, tolerance: tuple[float, float], path: str = "") -> Iterator[str]:
    """One line for each place where they differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            if name in old and name in new:
                yield from differences(old[name], new[name], tolerance, f"{path}.{name}")
            else:
                yield f"{path}.{name}: only {'recorded' if name in old else 'there now'}"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, tolerance, f"{path}[{place}]")
    elif not alike(old, new, tolerance):
        yield f"{path}: recorded {old!r}, now {new!r}"


def alike(old: Any, new: Any, tolerance: tuple[float, float]) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (old, new))
    if numbers and (isinstance(old, float) or isinstance(new, float)):
        return math.isclose(old, new, rel_tol=tolerance[0], abs_tol=tolerance[1]) or (old != old and new != new)
    return type(old) is type(new) and bool(old == new)


def rounded(value: Any) -> Any:
    """Floats with few digits, so that records stay small."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {name: rounded(one) for name, one in value.items()} if isinstance(value, dict) else value


def without(value: Any, names: Collection[str]) -> Any:
    """The same without these keys, wherever they are."""
    if isinstance(value, dict):
        return {name: without(one, names) for name, one in value.items() if name not in names}
    return [without(one, names) for one in value] if isinstance(value, list) else value


def lay_out(value: Any, indent: str = "") -> str:
    """JSON with one line for whatever is short."""
    flat = json.dumps(value)
    if len(flat) + len(indent) <= 118 or not isinstance(value, dict | list):
        return flat
    deeper = indent + " "
    if isinstance(value, dict):
        lines = [f"{deeper}{json.dumps(name)}: {lay_out(one, deeper)}" for name, one in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + indent + "}"
    lines = [deeper + lay_out(one, deeper) for one in value]
    if all(isinstance(one, int | float) for one in value):
        return json.dumps(value)
    return "[\n" + ",\n".join(lines) + "\n" + indent + "]"


def key_paths(value: Any, path: str = "") -> set[str]:
    """Every path of keys; lists are collapsed to []."""
    if isinstance(value, dict):
        return {found for name, one in value.items() for found in {f"{path}.{name}", *key_paths(one, f"{path}.{name}")}}
    if isinstance(value, list):
        return {found for one in value for found in key_paths(one, f"{path}[]")}
    return set()
