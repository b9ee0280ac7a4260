"""The contract of every registry: each member loads, is of its kind and, where `--help` lists it, fits a line."""

from importlib import import_module
from typing import Any

import pytest

from archwright.registry import Registry

REGISTRIES = {
    "benchmarks:BENCHMARKS": "benchmarks:Benchmark",
    "compression.methods:METHODS": "compression.methods.method:Method",
    "designing:METHODS": None,
    "exporting.formats:FORMATS": "exporting.formats:ExportFormat",
    "networks.families:FAMILIES": "networks.families.family:Family",
    "objectives.costs:OBJECTIVES": "objectives.costs:SearchObjective",
    "proxies:PROXIES": "proxies:Proxy",
    "scoring.initial_weights:INITIALS": None,
    "search.samplers:SAMPLERS": "search.samplers.sampler:Sampler",
    "spaces:ARCHITECTURES": "spaces.architectures:ArchitectureSpace",
    "subnet.pruning:REPAIRS": None,
    "subnet.strategies:STRATEGIES": None,
    "tasks:TASK_KINDS": "tasks.kind:TaskKind",
    "training.objectives:OBJECTIVES": "training.plan:TrainingObjective",
}
"""Where each is, and the class of its members; None: a function."""
EXTENSIBLE = {"benchmarks", "families", "proxies", "samplers", "spaces", "tasks"}


def find(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(f"archwright.{module}"), name)


@pytest.mark.parametrize("target", REGISTRIES)
def test_every_member_is_of_its_kind_and_described(target: str) -> None:
    registry, kind = find(target), REGISTRIES[target]
    assert isinstance(registry, Registry) and registry
    descriptions = registry.descriptions()
    for name, member in registry.items():
        assert callable(member) if kind is None else isinstance(member, find(kind)), name
        assert name in descriptions and "\n" not in descriptions[name]
        assert descriptions[name] or target == "networks.families:FAMILIES"  # which no option lists


def test_packages_can_add_what_the_documentation_says() -> None:
    groups = {find(target).group for target in REGISTRIES}
    assert {f"archwright.{kind}" for kind in EXTENSIBLE} <= groups
