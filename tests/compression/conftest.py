"""A tiny checkpoint, a few sentences, and one finished run that tests may read but not change."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import torch

from tests.compression.runs import compressed, saved_model, table_file
from tests.postgres import postgres_folder, server_in


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """A job sets the number of threads of its process, which is ours."""
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="session")
def bert(place: Path, minilm: Path) -> Path:
    return saved_model(place / "bert", minilm)


@pytest.fixture(scope="session")
def rows(place: Path) -> Path:
    return table_file(place / "rows.csv")


@pytest.fixture(scope="session")
def given(bert: Path, rows: Path) -> dict[str, Any]:
    """Model and data of most runs."""
    return {"model": str(bert), "train": rows}


@pytest.fixture(scope="session")
def run(place: Path, given: dict[str, Any]) -> Any:
    """A finished run with several members on its front."""
    return compressed(place / "run", **given, epochs=6.0, original_epochs=6.0, learning_rate=3e-3, trials=14)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a fresh database on a real server."""
    with postgres_folder() as folder:
        server = server_in(folder)
        name = "s" + uuid4().hex[:8]
        server.psql(f"CREATE DATABASE {name};")
        yield server.get_uri(database=name)
        server.cleanup()
