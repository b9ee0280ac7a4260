"""A served folder, and clients."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from archwright.web.app import create_app
from archwright.web.folder import open_folder
from archwright.web.security import choose_access
from tests.reports.conftest import synthetic
from tests.web.served import write_finished, write_search

HOSTILE = "<script>alert(1)<img src=x onerror=alert(2)>"


@pytest.fixture(scope="session")
def result() -> dict[str, Any]:
    return synthetic(40)


@pytest.fixture
def folder(tmp_path: Path, result: dict[str, Any]) -> Path:
    """Two finished runs, one of them with a hostile name, and a search in the middle."""
    root = tmp_path / "runs"
    write_finished(root / "one", result)
    write_finished(root / "group" / HOSTILE.replace("/", ""), {**result, "model": HOSTILE}, seed=5)
    write_search(root / "search", trials=12)
    return root


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    app = create_app(open_folder(folder), choose_access("127.0.0.1", None, ()))
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as client:
        yield client
