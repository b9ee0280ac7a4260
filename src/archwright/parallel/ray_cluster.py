"""A Ray cluster: whether it answers, and a connection to it."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from archwright.errors import BadInput

LOCAL, AUTO = "local", "auto"
CACHED = 2
"""Shared values that a process of a node keeps."""
RETRIES = 5
"""Nodes, or processes, that may die under one task before the run gives up."""
ANSWER_SECONDS = 20.0
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def check_ray(address: str) -> None:
    """BadInput when Ray is not installed, or no cluster answers at the address."""
    if find_spec("ray") is None:
        raise BadInput("--ray needs the package ray, which is not installed; pip install 'archwright[ray]'.")
    if address != LOCAL and not answers(address):
        raise BadInput(
            f"--ray must be the address of a running Ray cluster (host:port), auto or local, got {address!r}, where "
            "none answers; start one with `ray start --head`."
        )


def answers(address: str) -> bool:
    """Whether a cluster can be reached; asked in a process of its own, because Ray itself tries for minutes."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check"]
    try:
        if address != AUTO:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()  # whether anything is there
            command += ["--address", address]
        done = subprocess.run(command, env=os.environ | QUIET, capture_output=True, timeout=ANSWER_SECONDS)
    except (OSError, OverflowError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


_values: dict[str, Any] = {}  # of this process of a node, the last used at the end


@dataclass(frozen=True)
class SharedValue:
    """Something large that many tasks need: it travels to a node once, and every process there unpacks it once."""

    key: str
    reference: Any

    def load(self) -> Any:
        """At a node."""
        import ray

        value = _values.pop(self.key) if self.key in _values else ray.get(self.reference)
        _values[self.key] = value
        while len(_values) > CACHED:
            del _values[next(iter(_values))]
        return value


def share_value(ray: Any, value: Any) -> SharedValue:
    """The value for tasks of this connection; it must not change any more."""
    return SharedValue(uuid4().hex, ray.put(value))


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """The module `ray`, connected to the cluster; a connection that was there before is used and left alone."""
    known = sys.modules.get("ray")
    if known is not None and known.is_initialized():
        yield known
        return
    os.environ.update(QUIET)
    check_ray(address)
    import ray

    extra: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    with redirect_stdout(sys.stderr):  # Ray prints the death of a node, with its log, where our JSON may go
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL, **extra)
        except (OSError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise BadInput(f"--ray must be a cluster that this command can join, got {address!r}: {reason}") from error
        try:
            yield ray
        finally:
            ray.shutdown()
