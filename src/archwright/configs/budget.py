"""Budgets as people write them: 60%, 5M, 0.5."""

from pathlib import Path

from archwright.errors import BadInput

UNITS = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}


def parse_budget(value: str | float, whole: float, *, option: str) -> float:
    """An absolute number from `60%` or 0.6 (of `whole`), `5M` or 5000000."""
    text = plain_text(value)
    try:
        if text.endswith("%"):
            number = float(text[:-1]) / 100 * whole
        elif text[-1:].upper() in UNITS:
            number = parse_units(text)
        else:
            number = float(text) * (whole if 0 < float(text) <= 1 else 1)
    except ValueError:
        raise BadInput(f"{option} must be a share such as 60% or a number such as 5M, got {value!r}.") from None
    if not 0 < number < float("inf"):
        raise BadInput(f"{option} must be above zero, got {value!r}.")
    return number


def parse_bytes(value: str | float, whole: float, *, option: str) -> float:
    """Bytes from `60%` (of `whole`), `12MB`, `0.3GB` or 12000000; a unit is a power of ten, with or without its B."""
    try:
        return parse_budget(plain_text(value).upper().removesuffix("B"), whole, option=option)
    except BadInput:
        raise BadInput(f"{option} must be a share such as 60% or a size such as 12MB, got {value!r}.") from None


def parse_count(value: str | float, *, option: str) -> float:
    """So many things, shares not allowed: 15.7M, 20000000."""
    try:
        number = parse_units(plain_text(value))
    except ValueError:
        number = 0.0
    if not 1 <= number < float("inf"):
        raise BadInput(f"{option} must be a number such as 15.7M, got {value!r}.")
    return number


def parse_vocabulary(value: str | float, *, option: str) -> int | Path | None:
    """So many tokens, the file that lists them, or None for those of the task: 8000, 8K, tokens.txt, task."""
    text = plain_text(value)
    if text == "task":
        return None
    if not text[:1].isdigit() or Path(str(value)).is_file():
        return Path(str(value)).expanduser()
    return int(parse_count(value, option=option))


def parse_points(value: str | float, *, option: str) -> float:
    """A loss of the metric as a fraction: `1%` and 0.01 are one point."""
    text = str(value).strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise BadInput(f"{option} must be points of the metric such as 1%, got {value!r}.") from None
    if not 0 <= number <= 1:
        raise BadInput(f"{option} must be 0% to 100%, got {value!r}.")
    return number


def plain_text(value: str | float) -> str:
    """Without blanks around it and separators of thousands."""
    return str(value).strip().replace("_", "").replace(",", "")


def parse_units(text: str) -> float:
    unit = UNITS.get(text[-1:].upper())
    return float(text) if unit is None else float(text[:-1]) * unit
