"""Where the public tables of trained architectures lie."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder(data_dir: Path) -> Path:
    """Holds one folder per benchmark: nas-bert/, lts-gpt2/, nas-bench-nlp/."""
    return data_dir
