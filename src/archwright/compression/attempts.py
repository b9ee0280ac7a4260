"""What was tried, read out of results: one entry per run, or per method of a comparison."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

WEIGHT_SHARING, STANDARD = "weight-sharing", "standard"
SETTINGS = ("method", "space", "strategy", "sampler")
"""What distinguishes runs on one task, apart from the seed."""

SEARCH = "search"
"""The phase in which the seconds of the trials are counted."""

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Attempt:
    """One method, once: what it was and what it tried."""

    settings: Mapping[str, Any]
    seed: int
    points: list[tuple[float, float]]
    """Validation error and share of the non-embedding parameters of everything tried, in order."""
    seconds: list[float]
    result: Document = field(repr=False)
    """With `front`, `original` and, of a comparison, what its methods share."""
    compared: bool
    """Whether it ran beside others at equal wall-clock."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a second run of the same has too; only the first of them counts."""
        return (*(self.settings[name] for name in SETTINGS), self.seed, self.compared)


def alike(attempts: Sequence[Attempt], varied: str) -> list[Attempt]:
    """The runs that differ in one setting alone: of all such sets, the one with most of its values, then of runs."""
    others = [name for name in SETTINGS if name != varied]
    sets = sets_of([one for one in attempts if one.settings[varied] is not None], others)
    return max(sets, key=lambda of: (len({one.settings[varied] for one in of}), len(of)), default=[])


def side_by_side(attempts: Sequence[Attempt], varied: str) -> list[Attempt]:
    """Runs of comparisons where there are any; else of every method those settings that most of its runs have."""
    chosen = [one for one in attempts if one.compared] or list(attempts)
    names = dict.fromkeys(one.settings[varied] for one in chosen)
    sets = {name: sets_of([one for one in chosen if one.settings[varied] == name], SETTINGS) for name in names}
    return [one for of in sets.values() for one in max(of, key=len)]


def sets_of(attempts: Sequence[Attempt], names: Sequence[str]) -> list[list[Attempt]]:
    """Runs with equal settings together."""
    found: dict[tuple[Any, ...], list[Attempt]] = {}
    for one in attempts:
        found.setdefault(tuple(one.settings[name] for name in names), []).append(one)
    return list(found.values())


def attempts_of(document: Document) -> list[Attempt]:
    """The run of a compress result, or those of all methods of a comparison."""
    methods = document.get("methods")
    entries = methods or {document.get("method") or WEIGHT_SHARING: {}}
    return [attempt_of(name, {**document, **entry}, compared=bool(methods)) for name, entry in entries.items()]


def attempt_of(method: str, result: Document, *, compared: bool) -> Attempt:
    clock = seconds_of(result, began=trained_seconds(result) if compared else 0.0)
    rows = [row for row in result.get("trials") or result.get("front") or [] if is_measured(row)]
    tried = sorted(rows, key=clock)
    return Attempt(
        settings={**{name: result.get(name) for name in SETTINGS}, "method": method},
        seed=int(result.get("seed") or 0),
        points=[(row["validation_error"], row["nonembedding_share"]) for row in tried],
        seconds=[clock(row) for row in tried],
        result=result,
        compared=compared,
    )


def seconds_of(result: Document, *, began: float) -> Callable[[Mapping[str, Any]], float]:
    """When a network was done, after a search that began then; at the end where that was not recorded."""
    end = float(result.get("seconds") or 0.0)
    return lambda row: began + float(row["seconds"]) if is_number(row.get("seconds")) else end


def trained_seconds(result: Document) -> float:
    """What came before the search and counts when methods are given equal wall-clock."""
    phases = result.get("seconds_by_phase") or {}
    return float(sum(value for _, value in takewhile(lambda phase: phase[0] != SEARCH, phases.items())))


def is_measured(row: Mapping[str, Any]) -> bool:
    return all(is_number(row.get(name)) for name in ("validation_error", "nonembedding_share"))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
