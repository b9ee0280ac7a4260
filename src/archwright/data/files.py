"""Files as UTF-8 text, and a user's values as messages quote them."""

from collections.abc import Iterable
from pathlib import Path

from archwright.errors import BadInput


def read_bytes(path: Path, *, most: int = -1) -> bytes:
    """The whole file, or at most so many bytes of it, or one clear line why not."""
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except (FileNotFoundError, ValueError):  # ValueError: a null character in the path
        raise BadInput(f"there is no file {str(path)!r}; check the path.") from None
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}.") from None


def quote(value: object, limit: int = 60) -> str:
    """A user's value for a message: on one line, cut when long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def quote_all(values: Iterable[object], limit: int = 12) -> str:
    """The first values of a list for a message, and how many more there are."""
    shown = [quote(value, 40) for value in values]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def is_unicode(text: str) -> bool:
    """Whether a text is real Unicode; JSON can smuggle in half a character."""
    return text.isascii() or text.encode("utf-8", "ignore").decode() == text


def decode_utf8(raw: bytes, source: str) -> str:
    """The text of a file, without byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte 0x{raw[error.start]:02x} at position {error.start}"
        raise BadInput(f"data files must be UTF-8, {source} is not ({where}); convert it, e.g. with iconv.") from None
