"""What a chosen sub-network may cost: the limits of `select`, one record each. Loads no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from archwright.configs.budget import parse_budget, parse_bytes
from archwright.errors import BadInput
from archwright.reports.numbers import count, number
from archwright.store import RunFolder

Entry = Mapping[str, Any]
"""A network of a result: the original, or a member of the front."""
LAYERS, PARAMETERS, FLOPS = "nonembedding_parameters", "parameters", "flops"
LATENCY, MEMORY, INT8_SIZE = "latency_ms", "memory", "int8_file_bytes"
PICKED = "picked"
"""The note of a run about networks that were chosen for other budgets than its front is about."""


@dataclass(frozen=True)
class Budget:
    """One cost that can be limited."""

    option: str
    value: Callable[[Entry], float | None]
    """Of a network whose cost was counted or measured; None where it was not."""
    words: Callable[[float], str]
    """An amount of it as a person reads it."""
    counted: bool = True
    """Whether it is counted without building the network; otherwise the pick is measured."""


def memory_bytes(entry: Entry) -> float | None:
    """What --memory is about: the larger of weights on disk and peak of resident memory."""
    disk, peak = (number(entry, MEMORY, key) for key in ("disk", "peak"))
    return None if disk is None or peak is None else max(disk, peak)


BUDGETS: dict[str, Budget] = {
    LAYERS: Budget("--params", lambda e: number(e, LAYERS), lambda n: f"{n:,.0f} non-embedding parameters"),
    PARAMETERS: Budget("--total-params", lambda e: number(e, PARAMETERS), lambda n: f"{n:,.0f} parameters"),
    FLOPS: Budget("--flops", lambda e: number(e, FLOPS), lambda n: f"{count(n)} FLOPs"),
    LATENCY: Budget("--latency-ms", lambda e: number(e, LATENCY, "median"), lambda n: f"{n:.2f} ms", counted=False),
    MEMORY: Budget("--memory", memory_bytes, lambda n: f"{count(n, 'B')} of memory", counted=False),
    INT8_SIZE: Budget(
        "--int8-size", lambda e: number(e, INT8_SIZE), lambda n: f"{count(n, 'B')} with 8-bit weights", counted=False
    ),
}
"""By the name of the cost in a result."""


@dataclass(frozen=True)
class Limits:
    """Costs and their largest allowed values, and what may be lost."""

    most: Mapping[str, float]
    max_loss: float | None = None
    surely: bool = False
    """Whether the upper end of the loss's interval must be within `max_loss`."""

    def allow(self, entry: Entry) -> bool:
        """Whether every limited cost of this network is known and within its limit."""
        values = {name: BUDGETS[name].value(entry) for name in self.most}
        return all(value is not None and value <= self.most[name] for name, value in values.items())

    @property
    def words(self) -> str:
        return " and ".join(f"{BUDGETS[name].words(most)}" for name, most in self.most.items())


def parse_limits(
    result: Mapping[str, Any],
    *,
    params: str | float | None,
    total_params: str | float | bool,
    flops: str | float | None,
    latency_ms: float | None,
    memory: str | float | None,
    int8_size: str | float | None,
    original_memory: Callable[[], float],
) -> dict[str, float]:
    """Costs and their largest allowed values; percentages are of the original, of parameters of the checkpoint.

    `original_memory` is called only for a percentage of it.
    """
    original = result["original"]
    whole = result.get("checkpoint") or original  # older runs have no smaller embeddings
    limits: dict[str, float] = {}
    if params is not None:
        counted = PARAMETERS if total_params is True else LAYERS
        limits[counted] = parse_budget(params, whole[counted], option="--params")
    if not isinstance(total_params, bool):
        limits[PARAMETERS] = parse_budget(total_params, whole[PARAMETERS], option="--total-params")
    if flops is not None:
        limits[FLOPS] = parse_budget(flops, original[FLOPS], option="--flops")
    if latency_ms is not None:
        if latency_ms <= 0:
            raise BadInput(f"--latency-ms must be above zero, got {latency_ms}.")
        limits[LATENCY] = latency_ms
    if memory is not None:
        relative = is_share(memory)
        limits[MEMORY] = parse_bytes(memory, original_memory() if relative else 0.0, option="--memory")
    if int8_size is not None:
        limits[INT8_SIZE] = parse_bytes(int8_size, original["int8_bytes"], option="--int8-size")
    return limits


def is_share(value: str | float) -> bool:
    """Whether an amount is one of the original: 60%, 0.6."""
    text = str(value).strip()
    try:
        return text.endswith("%") or 0 < float(text) <= 1
    except ValueError:
        return False


def read_picked(run: RunFolder) -> list[dict[str, Any]]:
    """What `select` chose for other budgets than the front is about, as entries like those of the front."""
    return list((run.note(PICKED) or {"entries": []})["entries"])


def write_picked(run: RunFolder, entry: Entry) -> None:
    others = [other for other in read_picked(run) if other["trial"] != entry["trial"]]
    run.note(PICKED, {"entries": [*others, dict(entry)]})


def costs_of_front(result: Mapping[str, Any]) -> set[str]:
    """Costs that the run's own front was made for; a limit of another one needs a front of its own."""
    selection = result.get("selection") or {}
    objectives = [name for name in result.get("objectives", (LAYERS,)) if name != "validation_error"]
    costs = {selection["bands_of"]} if selection.get("bands_of") else set(objectives)
    parameters = {LAYERS, PARAMETERS}  # embeddings are the same in all sub-networks of a run
    return costs | parameters if costs & parameters else costs
