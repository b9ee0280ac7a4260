"""A list of designs in the run folder, for methods that need no sampler."""

from collections.abc import Iterable

from archwright.compression.context import RunContext
from archwright.search import Config
from archwright.spaces.subnetwork import large_config
from archwright.store import RunFolder
from archwright.subnet.spec import Anatomy, SubnetSpec


def note_designs(context: RunContext, of: Anatomy, keeps: Iterable[SubnetSpec]) -> None:
    """The designs to evaluate, as configs of LARGE: the whole network, then these."""
    note_configs(context.run, [large_config(of, part) for part in (of.full, *keeps)])


def note_configs(run: RunFolder, configs: list[Config]) -> None:
    run.note("designs", {"configs": configs})


def noted_designs(run: RunFolder) -> tuple[Config, ...]:
    return tuple(run.note("designs")["configs"])
