"""A realistic result and preview (MiniLM-L6-H384), and a real browser."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.compression.studies.protocol import compare_runs
from tests.chromium import PATIENCE

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


METHODS = {
    "weight-sharing": (0.0, 90),
    "standard": (0.035, 14),
    "head-pruning": (0.09, 8),
    "retraining-free": (0.06, 9),
    "layer-dropping": (0.02, 5),
    "magnitude": (0.13, 8),
    "random": (0.1, 30),
}
"""How much worse a method is than the best at small sizes, and how many networks it tries."""


def synthetic_compared(seed: int = 0, task: str = "glue/SST-2", trials: int = 150) -> dict[str, Any]:
    whole = synthetic(trials)
    rng = np.random.default_rng([seed, len(task)])
    shared = ("archwright", "model", "family", "task_note", "metric", "original", "environment")
    methods = {name: synthetic_method(name, worse, tries, rng) for name, (worse, tries) in METHODS.items()}
    return {
        "schema": "archwright/compare/1",
        **{key: whole[key] for key in shared},
        "task": task,
        "seed": seed,
        "minutes": 4.0,
        "methods": methods,
    }


def synthetic_method(name: str, worse: float, tries: int, rng: np.random.Generator) -> dict[str, Any]:
    tried = []
    for number in range(tries):
        entry = network(int(rng.integers(0, 13)), int(rng.integers(1, 13)) * 128, int(rng.integers(1, 7)), rng)
        lost = worse * (1 - entry["nonembedding_share"]) + 0.02 * rng.random()
        entry["validation_error"] += lost
        entry["test_error"] += lost
        tried.append(entry | {"trial": number, "seconds": 60 + 180 * (number + 1) / tries})
    front, best = [], math.inf
    for entry in sorted(tried, key=lambda item: (item["nonembedding_share"], item["validation_error"])):
        if entry["validation_error"] < best:
            best = entry["validation_error"]
            front.append(entry)
    keys = ("trial", "validation_error", "nonembedding_share", "seconds")
    rows = [{key: entry[key] for key in keys} for entry in tried]
    volumes = [area([(r["nonembedding_share"], r["validation_error"]) for r in rows[: n + 1]]) for n in range(tries)]
    return {
        "front": [{key: value for key, value in entry.items() if key != "seconds"} for entry in front],
        "trials": rows,
        "hypervolume": volumes[-1],
        "hypervolume_over_time": volumes,
        "seconds": 240.0,
        "folder": f"runs/compare/{name}",
        "note": "only heads can go" if name == "head-pruning" else "",
    }


def synthetic_studies() -> dict[str, Any]:
    """Blocks that a result has when honesty or quantization was asked for."""
    rng = np.random.default_rng(5)
    pairs = [[e, e + float(rng.normal(0, 0.02)), float(rng.random())] for e in rng.uniform(0.1, 0.4, 20).tolist()]
    correlations = {name: {"value": 0.7, "low": 0.5, "high": 0.85} for name in ("kendall", "spearman")}
    latency = {"median": 3.0, "low": 2.9, "high": 3.2}
    points = [
        {
            "name": f"{'original' if trial is None else f'trial {trial}'}, {bits} bit",
            "bits": bits,
            "runtime": "torch",
            "validation_error": 0.1 + 0.02 * (bits == 4),
            "test_error": 0.11 + 0.02 * (bits == 4),
            "bytes": bits * 2_000_000,
            "latency_ms": latency,
            "trial": trial,
            "nonembedding_share": 1.0 if trial is None else 0.5,
        }
        for bits in (32, 8, 4)
        for trial in (None, 7)
    ]
    return {
        "honesty": {"k": 20, "pairs": pairs, **correlations},
        "quantized": {"points": points, "joint_front": [3, 5]},
    }


def synthetic_documents() -> list[dict[str, Any]]:
    """Comparisons, and runs that differ in space, strategy and sampler, on two tasks with two seeds."""
    changes = {
        "space": ("small", "layer", "medium", "large"),
        "strategy": ("standard", "sandwich"),
        "sampler": ("random", "local", "ehvi"),
    }
    documents = [synthetic_preview()]
    for task in ("glue/SST-2", "movie-reviews"):
        for seed in (0, 1):
            documents.append(synthetic_compared(seed, task))
            for setting, values in changes.items():
                for value in values:
                    run = synthetic_run(task, seed, **{setting: value})
                    documents += [run, run | {"method": "standard"}]
    return [documents[0], documents[1] | synthetic_studies(), *documents[2:]]


def synthetic_run(task: str, seed: int, **changes: Any) -> dict[str, Any]:
    run = synthetic(30) | {"task": task, "seed": seed, "sampler": "random", **changes}
    rng = np.random.default_rng([seed, *"".join(changes.values()).encode()])
    order = rng.permutation(30)
    run["trials"] = [run["trials"][at] | {"trial": n, "seconds": 1.5 * n} for n, at in enumerate(order)]
    for row in run["trials"]:
        row["validation_error"] += float(rng.normal(0, 0.01))
    return run


_RESULT, _PREVIEW, _COMPARED = synthetic(), synthetic_preview(), synthetic_compared()


@pytest.fixture
def result() -> dict[str, Any]:
    return copy.deepcopy(_RESULT)


@pytest.fixture
def preview() -> dict[str, Any]:
    return copy.deepcopy(_PREVIEW)


@pytest.fixture
def compared() -> dict[str, Any]:
    return copy.deepcopy(_COMPARED)


@pytest.fixture(scope="session")
def protocol() -> dict[str, Any]:
    """Everything the protocol can show; tests may read but not change it."""
    return compare_runs(synthetic_documents())


@contextmanager
def watched(browser: Any, folder: Path) -> Iterator[Callable[..., Any]]:
    """Opens pages from disk; fails at the end on any console message, script error or request to elsewhere."""
    complaints: list[str] = []
    contexts = []

    def open_page(html: str, **options: Any) -> Any:
        file = folder / "page.html"
        file.write_text(html, "utf-8")
        contexts.append(browser.new_context(viewport={"width": 1200, "height": 900}, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("dialog"), dialog.dismiss()))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


POLL = 25
"""Milliseconds between two looks at a page."""


def check_width(page: Any, width: int) -> None:
    """In a window of this width nothing is wider, once the plots have found their new sizes."""
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    wait_until(page, f"document.documentElement.scrollWidth <= {width}")


def wait_until(page: Any, expression: str) -> None:
    """As wait_for_function, which a page that forbids eval refuses."""
    for _ in range(PATIENCE // POLL):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(POLL)
    pytest.fail(f"never true: {expression}")


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from disk; the test fails on whatever the page complains about."""
    with watched(browser, tmp_path) as open_page:
        yield open_page
