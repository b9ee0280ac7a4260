"""A user's own proxy: a function in a file of theirs, carried as source so that it works on any machine."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.proxies.listed import ALL_ROLES, PASS_NAMES
from archwright.proxies.proxy import Proxy, Unscored

if TYPE_CHECKING:
    from archwright.probe import Probe

DEFAULT = ("forward", "loss", "inputs")
"""Passes a proxy of the user's may look at unless it says otherwise: `my_proxy.passes = ("forward",)`."""


def from_file(target: str) -> Proxy:
    """The proxy `folder/my_proxy.py:my_proxy`: a function of a probe that gives a number, higher = better."""
    return from_source(*own_proxy(target))


def own_proxy(target: str) -> tuple[str, str]:
    """Name and source of the proxy `folder/my_proxy.py:my_proxy`, which has been tried out as far as that goes."""
    path, _, name = target.rpartition(":")
    if not path or not name:
        raise BadInput(f"A proxy of your own is given as file.py:function, got {target!r}.")
    try:
        source = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise BadInput(f"The file {path!r} with the proxy {name} cannot be read: {failure}.") from failure
    from_source(name, source)
    return name, source


def from_source(name: str, source: str) -> Proxy:
    """The proxy that this function of this source is."""
    function = function_of(name, source)
    passes = checked(tuple(getattr(function, "passes", DEFAULT)))
    summary = (inspect.getdoc(function) or "a proxy of the user's").splitlines()[0]
    return Proxy(name, "own", passes, "", summary, of=ALL_ROLES, load=partial(guarded, source=source))


def checked(passes: tuple[str, ...]) -> tuple[str, ...]:
    for name in passes:
        if name not in PASS_NAMES:
            raise BadInput(f"There is no pass {name!r}; choose from {', '.join(PASS_NAMES)}.")
    return passes


@lru_cache
def function_of(name: str, source: str) -> Callable[..., Any]:
    function = executed(name, source).get(name)
    if not callable(function):
        raise BadInput(f"There is no function {name!r} in the file given; write `def {name}(probe): ...` into it.")
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        signature = inspect.signature(function)
        raise BadInput(f"The proxy {name} must take one argument, the probe, got {signature}.") from None
    found: Callable[..., Any] = function
    return found


def executed(name: str, source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": name}
    try:
        with apart():
            exec(compile(source, f"<proxy {name}>", "exec"), namespace)
    except (Exception, SystemExit) as failure:  # somebody else's code: whatever it raises, its author should read it
        raise BadInput(f"The file with {name} cannot be run: {type(failure).__name__}: {failure}") from failure
    return namespace


def guarded(name: str, *, source: str) -> Callable[["Probe"], float]:
    """The function, with whatever goes wrong inside it told as the reason why there is no score."""
    function = function_of(name, source)

    def measure(probe: "Probe") -> float:
        try:
            with apart():
                return number(function(probe), name)
        except Unscored:
            raise
        except (Exception, SystemExit) as failure:  # somebody else's code
            raise Unscored(f"{name} raised {type(failure).__name__}: {failure}") from failure

    return measure


@contextmanager
def apart() -> Iterator[None]:
    """Afterwards torch has the settings and random numbers it had: listed proxies are scored in this process too."""
    import torch

    dtype, graded, threads, state = (
        torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.get_rng_state(),
    )  # fmt: skip
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(graded)
        torch.set_num_threads(threads)
        torch.set_rng_state(state)


def number(found: Any, name: str) -> float:
    try:
        return float(found)
    except (TypeError, ValueError, RuntimeError):
        raise Unscored(f"{name} must give a number, got {type(found).__name__}.") from None
