"""What a sub-network costs, counted without building it, and the list of all objectives. Knows no torch."""

from dataclasses import dataclass
from typing import Protocol

from archwright.subnet.spec import Anatomy, SubnetSpec, flops, int8_bytes, nonembedding_parameters, parameters


class Measure(Protocol):
    """A sub-network's cost; `length` is the number of tokens in one text."""

    def __call__(self, anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> float: ...


@dataclass(frozen=True)
class Cost:
    description: str
    measure: Measure
    unit: str


def _parameters(anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> float:
    return parameters(anatomy, spec)


def _nonembedding_parameters(anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> float:
    return nonembedding_parameters(anatomy, spec)


def _flops(anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> float:
    return flops(anatomy, spec, length=length)


def _int8_bytes(anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> float:
    return int8_bytes(anatomy, spec)


COSTS: dict[str, Cost] = {
    "parameters": Cost("all parameters of the extracted network", _parameters, "parameters"),
    "nonembedding_parameters": Cost(
        "its parameters without the embeddings, which no search can remove", _nonembedding_parameters, "parameters"
    ),
    "flops": Cost("floating point operations for one text", _flops, "operations"),
    "int8_bytes": Cost("size of its weights after int8 quantization", _int8_bytes, "bytes"),
}

OBJECTIVES: dict[str, str] = {
    "validation_error": "1 - the task's metric on the validation rows",
    **{name: cost.description for name, cost in COSTS.items()},
    "latency_ms": "milliseconds for one batch on this device, one thread, from a table measured before the search",
}
"""Everything a search can minimise, with a line for --help."""
