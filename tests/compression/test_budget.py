"""Budgets of `select`: how they are written, and which of them the run's own front can answer."""

from typing import Any

import pytest

from archwright.compression.budgets.limits import Limits, costs_of_front, parse_limits
from archwright.configs.budget import parse_bytes
from archwright.errors import BadInput

SIZES = {"12MB": 12e6, "12M": 12e6, "0.3 GB": 3e8, "500kb": 5e5, "2_000_000": 2e6, 3e6: 3e6, "40%": 40.0, 0.4: 40.0}


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_sizes_as_people_write_them(text: Any, size: float) -> None:
    assert parse_bytes(text, 100.0, option="--memory") == pytest.approx(size)


@pytest.mark.parametrize("text", ["", "MB", "-3MB", "lots", "nan", "0"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(BadInput, match="--memory must be a share such as 60% or a size such as 12MB"):
        parse_bytes(text, 100.0, option="--memory")


ORIGINAL = {"parameters": 100, "nonembedding_parameters": 40, "flops": 1000, "int8_bytes": 110}
NOTHING: dict[str, Any] = {
    **{"params": None, "total_params": False, "flops": None, "latency_ms": None, "memory": None, "int8_size": None},
    "original_memory": lambda: pytest.fail("measured though nobody asked for a share of it"),
}


def test_percentages_are_of_the_original_and_of_the_checkpoint() -> None:
    result = {"original": ORIGINAL, "checkpoint": {"parameters": 200, "nonembedding_parameters": 40}}
    given = {"params": "50%", "total_params": "50%", "flops": "10%", "latency_ms": 8.0, "int8_size": "50%"}
    most = {"nonembedding_parameters": 20, "parameters": 100, "flops": 100, "latency_ms": 8.0, "int8_file_bytes": 55}
    assert parse_limits(result, **{**NOTHING, **given, "memory": "1KB"}) == {**most, "memory": 1000}
    assert parse_limits(result, **{**NOTHING, "params": 0.5, "total_params": True}) == {"parameters": 100}
    measured = {**NOTHING, "memory": "50%", "original_memory": lambda: 300.0}
    assert parse_limits(result, **measured) == {"memory": 150}


def test_what_was_not_measured_is_not_within_a_limit() -> None:
    limits = Limits({"memory": 100, "flops": 10})
    assert limits.allow({"memory": {"disk": 90, "peak": 100}, "flops": 10})
    assert not limits.allow({"memory": {"disk": 90, "peak": 101}, "flops": 10})
    assert not limits.allow({"memory": {"disk": 101, "peak": 90}, "flops": 10})
    assert not limits.allow({"flops": 10}) and not limits.allow({"memory": None, "flops": 10})


def test_the_run_s_own_front_answers_what_it_was_made_for() -> None:
    both = {"nonembedding_parameters", "parameters"}
    assert costs_of_front({"objectives": ["validation_error", "nonembedding_parameters"]}) == both
    assert costs_of_front({}) == both  # earlier versions
    bands = {"selection": {"bands_of": "latency_ms"}, "objectives": ["validation_error", "latency_ms", "parameters"]}
    assert costs_of_front(bands) == {"latency_ms"}
    all_rows = {"selection": {"bands_of": None}, "objectives": ["validation_error", "flops", "latency_ms"]}
    assert costs_of_front(all_rows) == {"flops", "latency_ms"}
