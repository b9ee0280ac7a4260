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
WIDTH = 160
"""Of a line in a record."""
DIGITS = 7
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
    gone = sorted(set(read_record(name)[key]) - set(names))
    assert not gone, f"{name} {key}: gone are {', '.join(gone)}"


def check_keys(name: str, key: str, document: Any) -> None:
    """Whether all recorded keys of a document are still there, at any depth; new ones may have come."""
    if RECORDING:
        check(name, key, shape(document))
        return
    gone = sorted(key_paths(read_record(name)[key]) - key_paths(shape(document)))
    assert not gone, f"{name} {key}: gone are {', '.join(gone)}"


def read_record(name: str) -> dict[str, Any]:
    return json.loads((RECORDS / f"{name}.json").read_text())


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
    if len(flat) + len(indent) <= WIDTH or not isinstance(value, dict | list):
        return flat
    deeper = indent + " "
    if isinstance(value, dict):
        lines = [f"{deeper}{json.dumps(name)}: {lay_out(one, deeper)}" for name, one in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + indent + "}"
    lines = [deeper + lay_out(one, deeper) for one in value]
    if all(isinstance(one, int | float) for one in value):
        return json.dumps(value)
    return "[\n" + ",\n".join(lines) + "\n" + indent + "]"


def shape(value: Any) -> Any:
    """Keys without values: 0 stands for a value, a list is what its members have together."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in sorted(value.items())}
    if isinstance(value, list):
        return {"[]": merge([shape(one) for one in value])}
    return 0


def merge(shapes: list[Any]) -> Any:
    maps = [one for one in shapes if isinstance(one, dict)]
    names = sorted({name for one in maps for name in one})
    return {name: merge([one[name] for one in maps if name in one]) for name in names} if maps else 0


def key_paths(shaped: Any, path: str = "") -> set[str]:
    """Every path of keys."""
    if not isinstance(shaped, dict):
        return set()
    return {found for name, one in shaped.items() for found in {f"{path}.{name}", *key_paths(one, f"{path}.{name}")}}
