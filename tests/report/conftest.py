"""A realistic result and preview (MiniLM-L6-H384), and a real browser."""

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LAYERS, HEADS, UNITS, WIDTH = 6, 12, 1536, 384
EMBEDDINGS = 12_064_512
PER_HEAD = 4 * WIDTH * 32 + 3 * 32
PER_UNIT = 2 * WIDTH + 1
FULL = LAYERS * (HEADS * PER_HEAD + UNITS * PER_UNIT + 6 * WIDTH)


def network(heads: int, units: int, depth: int, rng: np.random.Generator) -> dict[str, Any]:
    size = depth * (heads * PER_HEAD + units * PER_UNIT + 6 * WIDTH)
    share = size / FULL
    error = 0.05 + 0.4 * math.exp(-9 * share) + rng.gamma(3.0, 0.03)
    median = 0.35 + 5.1 * share**0.9
    return {
        "config": {"heads": heads, "units": units, "layers": depth},
        "keep": [[heads, units]] * depth + [[0, 0]] * (LAYERS - depth),
        "validation_error": round(error, 4),
        "test_error": round(error + rng.normal(0.004, 0.004), 4),
        "parameters": EMBEDDINGS + size,
        "nonembedding_parameters": size,
        "nonembedding_share": share,
        "flops": int(2 * 32 * size),
        "latency_ms": {"median": median, "low": median * 0.97, "high": median * 1.04},
        "int8_bytes": int(1.02 * (EMBEDDINGS + size)),
    }


def area(points: list[tuple[float, float]]) -> float:
    """Hypervolume of (share, error) points up to (1, 1), by sweeping from left to right."""
    total, best, last = 0.0, 1.0, 1.0
    for x, y in sorted(point for point in points if point[0] < 1 and point[1] < 1):
        if y < best:
            total += (best - y) * (last - x)
            best = y
    return total


def synthetic(trials: int = 150) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    tried = [
        network(int(rng.integers(0, 13)), int(rng.integers(1, 13)) * 128, int(rng.integers(2, 7)), rng)
        | {"trial": number, "seconds": 1.6 * number}
        for number in range(trials)
    ]
    front, best = [], math.inf
    for entry in sorted(tried, key=lambda item: (item["nonembedding_parameters"], item["validation_error"])):
        if entry["validation_error"] < best:
            best = entry["validation_error"]
            front.append({key: value for key, value in entry.items() if key != "seconds"})
    base = network(HEADS, UNITS, LAYERS, rng)
    original = {
        key: base[key] for key in ("parameters", "nonembedding_parameters", "flops", "latency_ms", "int8_bytes")
    }
    rows = [
        {key: entry[key] for key in ("trial", "validation_error", "nonembedding_share", "seconds")}
        | {"values": [entry["validation_error"], entry["nonembedding_parameters"]]}
        for entry in tried
    ]
    over_time = [area([(r["nonembedding_share"], r["validation_error"]) for r in rows[: n + 1]]) for n in range(trials)]
    measured = [entry["latency_ms"]["median"] for entry in front]
    return {
        "schema": "archwright/compress/1",
        "archwright": "0.1.0",
        "model": "all-MiniLM-L6-v2",
        "family": "bert",
        "task": "glue/SST-2",
        "task_note": "Validation is 30 % of the training file; test is the given dev set.",
        "metric": "accuracy",
        "space": "small",
        "strategy": "full",
        "sampler": "nsga2",
        "seed": 0,
        "order": "taylor",
        "objectives": ["validation_error", "nonembedding_parameters"],
        "layers": LAYERS,
        "heads": HEADS,
        "units": UNITS,
        "original": {"validation_error": 0.081, "test_error": 0.079, **original},
        "supernet": {"validation_error": 0.084, "test_error": 0.085, **original},
        "front": front,
        "trials": rows,
        "hypervolume": over_time[-1],
        "hypervolume_over_time": over_time,
        "latency": {
            "batch": 1,
            "length": 32,
            "threads": 1,
            "rounds": 30,
            "sentinel_drift": 0.012,
            "predicted_vs_measured": [[value * (1 + rng.normal(0, 0.03)), value] for value in measured],
        },
        "seconds": 738.4,
        "seconds_by_phase": {"original": 121.0, "order": 11.2, "supernet": 341.5, "search": 241.0, "measure": 23.7},
        "environment": {
            "commit": "4f1c2d9",
            "python": "3.11.2",
            "torch": "2.13.0",
            "transformers": "5.22.0",
            "cpu": "Intel Xeon 2.80 GHz",
            "cores": 2,
            "threads": 2,
        },
        "run": "minilm-sst2",
    }


def synthetic_preview() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shapes = {
        "small": (0.9, 2.0, 3.1),
        "layer": (1.0, 1.0, 1.8),
        "medium": (9.0, 9.0, 25.9),
        "large": (1.0, 1.0, 2795.9),
    }
    spaces = {}
    for name, (a, b, digits) in shapes.items():
        shares = [float(share) for share in rng.beta(a, b, 500)]
        gallery = [(rng.random((LAYERS, HEADS)) < share).astype(int).tolist() for share in (0.2, 0.5, 0.8)]
        spaces[name] = {
            "description": f"What the {name} space may remove.",
            "size_log10": digits,
            "bits": {"layer": LAYERS, "large": LAYERS * (HEADS + UNITS)}.get(name),
            "gallery": gallery,
            "unit_shares": rng.random((3, LAYERS)).round(3).tolist(),
            "shares": shares,
        }
    return {
        "schema": "archwright/preview/1",
        "model": "all-MiniLM-L6-v2",
        "family": "bert",
        "layers": LAYERS,
        "heads": HEADS,
        "units": UNITS,
        "parameters": EMBEDDINGS + FULL,
        "embedding_parameters": EMBEDDINGS,
        "nonembedding_parameters": FULL,
        "smallest_parameters": EMBEDDINGS + PER_HEAD + PER_UNIT,
        "spaces": spaces,
    }


_RESULT, _PREVIEW = synthetic(), synthetic_preview()


@pytest.fixture
def result() -> dict[str, Any]:
    return copy.deepcopy(_RESULT)


@pytest.fixture
def preview() -> dict[str, Any]:
    return copy.deepcopy(_PREVIEW)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"the browser tests need {CHROMIUM}; install it with: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield chromium
        chromium.close()
