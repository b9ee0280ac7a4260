"""A Ray cluster: whether it answers, and a connection to it."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from typing import Any

from archwright.errors import BadInput

LOCAL, AUTO = "local", "auto"
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


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """The module `ray`, connected to the cluster; a connection that was there before is used and left alone."""
    os.environ.update(QUIET)
    check_ray(address)
    import ray

    if ray.is_initialized():
        yield ray
        return
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
