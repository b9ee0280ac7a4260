"""A text that is easy to learn, small designs of every space, and one pre-trained network that tests may read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.pipeline.runs import DESIGNS, QUICK, trained


@pytest.fixture(scope="session")
def text(place: Path) -> Path:
    """Three hundred lines; most words are the same, so that little has to be learnt for a guess."""
    words = ["the", "old", "film", "is", "very", "good", "and", "new", "story", "was", "told", "with", "music", "by"]
    rng = np.random.default_rng(0)
    shares = np.array([0.7, *[0.3 / (len(words) - 1)] * (len(words) - 1)])
    lines = [" ".join(rng.choice(words, size=int(rng.integers(4, 20)), p=shares)) for _ in range(300)]
    file = place / "text.txt"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture(scope="session")
def designs(place: Path) -> dict[str, Path]:
    """Files with one config each."""
    files = {}
    for name, config in DESIGNS.items():
        files[name] = place / f"{name}.json"
        files[name].write_text(json.dumps(config))
    return files


@pytest.fixture(scope="session")
def encoder(designs: dict[str, Path]) -> dict[str, Any]:
    """Options for an untrained encoder that reads words."""
    return {"space": "flexibert", "config": designs["flexibert"], "tokenizer": "words"}


@pytest.fixture(scope="session")
def pretrained(place: Path, text: Path, encoder: dict[str, Any]) -> Any:
    """A finished pre-training by masked words."""
    return trained(place / "mlm", **encoder, corpus=text, lesson="mlm", **{**QUICK, "steps": 60})
