"""What a search can minimise, and what a sub-network costs, counted without building it. Knows no torch."""

from dataclasses import dataclass
from typing import Protocol

from archwright.registry import Registry
from archwright.subnet.spec import Anatomy, SubnetSpec, flops, int8_bytes, nonembedding_parameters, parameters


class CountCost(Protocol):
    """A sub-network's cost; `length` is the number of tokens in one text."""

    def __call__(self, anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> float: ...


@dataclass(frozen=True)
class SearchObjective:
    """Something a search can minimise, with a line for --help."""

    description: str


@dataclass(frozen=True)
class Cost(SearchObjective):
    """An objective that is counted from the anatomy alone."""

    measure: CountCost
    unit: str


OBJECTIVES: Registry[SearchObjective] = Registry(
    "objective",
    {
        "validation_error": SearchObjective("1 - the task's metric on the validation rows"),
        "parameters": Cost(
            "all parameters of the extracted network",
            lambda anatomy, spec, *, length: parameters(anatomy, spec),
            "parameters",
        ),
        "nonembedding_parameters": Cost(
            "its parameters without the embeddings, which no search can remove",
            lambda anatomy, spec, *, length: nonembedding_parameters(anatomy, spec),
            "parameters",
        ),
        "flops": Cost("floating point operations for one text", flops, "operations"),
        "int8_bytes": Cost(
            "size of its weights after int8 quantization",
            lambda anatomy, spec, *, length: int8_bytes(anatomy, spec),
            "bytes",
        ),
        "latency_ms": SearchObjective(
            "milliseconds for one batch on this device, one thread, from a table measured before the search"
        ),
        "generation_ms": SearchObjective(
            "language models: milliseconds per written token with cached keys and values, from such a table"
        ),
    },
)

COSTS: dict[str, Cost] = {name: cost for name, cost in OBJECTIVES.items() if isinstance(cost, Cost)}
