"""Labelled texts as they were read: labels are still strings, nothing is split yet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from archwright.errors import BadInput


@dataclass(frozen=True)
class Examples:
    """One file's worth of labelled texts."""

    source: str
    """Where they come from, for messages."""
    texts: list[str]
    pairs: list[str] | None
    labels: list[str]
    choices: Mapping[str, list[str]] = field(default_factory=dict)
    """Multiple choice: column -> the choices it holds; none for other tasks."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class RawTask:
    """What a source of data knows about a task before it is split and its labels are numbered."""

    name: str
    train: Examples
    shares: Mapping[str, float]
    """Which splits are cut from `train`, and how much of it each takes."""
    validation: Examples | None = None
    test: Examples | None = None
    labels: tuple[str, ...] | None = None
    """Official names in id order; none: the sorted labels of `train`."""
    regression: bool | None = None
    """None: decided by the labels."""
    metric: str | None = None
    note: str = ""


def quoted(value: object, limit: int = 60) -> str:
    """A user's value for a message: on one line, cut when long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def listed(values: Iterable[object], limit: int = 12) -> str:
    """The first values of a list for a message, and how many more there are."""
    shown = [quoted(value, 40) for value in values]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def whole(text: str) -> bool:
    """Whether a text is real Unicode; JSON can smuggle in half a character."""
    return text.isascii() or text.encode("utf-8", "ignore").decode() == text


def utf8(raw: bytes, source: str) -> str:
    """The text of a file, without byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte 0x{raw[error.start]:02x} at position {error.start}"
        raise BadInput(f"data files must be UTF-8, {source} is not ({where}); convert it, e.g. with iconv.") from None
