"""A user's own proxy: a function in a file of theirs, carried as source so that it works on any machine."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.proxies.proxy import PASSES, ROLES, Proxy, Unscored

if TYPE_CHECKING:
    from archwright.probe import Probe

DEFAULT = ("forward", "loss", "inputs")
"""Passes a proxy of the user's may look at unless it says otherwise: `my_proxy.passes = ("forward",)`."""


def from_file(target: str) -> Proxy:
    """The proxy `folder/my_proxy.py:my_proxy`: a function of a probe that gives a number, higher = better."""
    path, _, name = target.rpartition(":")
    if not path or not name:
        raise BadInput(f"A proxy of your own is given as file.py:function, got {target!r}.")
    try:
        source = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise BadInput(f"The file {path!r} with the proxy {name} cannot be read: {failure}.") from failure
    function = run_source(name, source)
    passes = tuple(getattr(function, "passes", DEFAULT))
    for unknown in (each for each in passes if each not in PASSES):
        raise BadInput(f"There is no pass {unknown!r}; choose from {', '.join(PASSES)}.")
    summary = (inspect.getdoc(function) or "a proxy of the user's").splitlines()[0]
    return Proxy(name, summary, SourceFunction(name, source), passes=passes, roles=ROLES, content=source)


@dataclass(frozen=True)
class SourceFunction:
    """The function of this name in this source; whatever goes wrong inside it is the reason why there is no score."""

    name: str
    source: str

    def __call__(self, probe: "Probe") -> float:
        function = run_source(self.name, self.source)
        try:
            with restore_torch_settings():
                score = function(probe)
                try:
                    return float(score)
                except (TypeError, ValueError, RuntimeError):
                    raise Unscored(f"{self.name} must give a number, got {type(score).__name__}.") from None
        except Unscored:
            raise
        except (Exception, SystemExit) as failure:  # somebody else's code
            raise Unscored(f"{self.name} raised {type(failure).__name__}: {failure}") from failure


@lru_cache
def run_source(name: str, source: str) -> Callable[..., Any]:
    """Runs the source once per process; its function of this name, or BadInput where there is none that could be."""
    namespace: dict[str, Any] = {"__name__": name}
    try:
        with restore_torch_settings():
            exec(compile(source, f"<proxy {name}>", "exec"), namespace)
    except (Exception, SystemExit) as failure:  # somebody else's code: whatever it raises, its author should read it
        raise BadInput(f"The file with {name} cannot be run: {type(failure).__name__}: {failure}") from failure
    function: Callable[..., Any] | None = namespace.get(name)
    if not callable(function):
        raise BadInput(f"There is no function {name!r} in the file given; write `def {name}(probe): ...` into it.")
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        signature = inspect.signature(function)
        raise BadInput(f"The proxy {name} must take one argument, the probe, got {signature}.") from None
    return function


@contextmanager
def restore_torch_settings() -> Iterator[None]:
    """Afterwards torch has the settings and random numbers it had: listed proxies are scored in this process too."""
    import torch

    dtype, gradients, threads, state = (
        torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.get_rng_state(),
    )  # fmt: skip
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        torch.set_num_threads(threads)
        torch.set_rng_state(state)
