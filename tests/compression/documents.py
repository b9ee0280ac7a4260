"""Small results as `compress` and `compress --compare` write them, with numbers one can work with by hand."""

from typing import Any

Document = dict[str, Any]


def networks(*points: tuple[float, float]) -> list[dict[str, Any]]:
    """Validation error and share; the test error is 0.1 above."""
    return [
        {"trial": n, "validation_error": e, "test_error": e + 0.1, "nonembedding_share": s, "seconds": 10.0 * n}
        for n, (e, s) in enumerate(points)
    ]


def run(*points: tuple[float, float], **changes: Any) -> Document:
    return {
        "schema": "archwright/compress/1",
        "task": "t",
        "model": "m",
        "metric": "accuracy",
        "space": "small",
        "strategy": "full",
        "sampler": "random",
        "seed": 0,
        "original": {"validation_error": 0.1, "test_error": 0.2},
        "front": networks(*points),
        "trials": networks(*points),
        "seconds": 40.0,
        **changes,
    }


def comparison(methods: dict[str, list[tuple[float, float]]], **changes: Any) -> Document:
    entries = {name: {"front": networks(*points), "trials": networks(*points)} for name, points in methods.items()}
    both = {"schema": "archwright/compare/1", "methods": entries, "space": None, "strategy": None, "sampler": None}
    return {**run(), **both, **changes}


GOOD, BAD = [(0.1, 0.2), (0.3, 0.1)], [(0.2, 0.4), (0.4, 0.3)]
