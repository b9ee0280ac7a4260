"""How tests are dealt to processes: file by file, the longest first, so that none has one alone at the end."""

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = "tests/golden/"
"""Files that share runs, each of which a process makes once."""
LONGEST = (
    TOGETHER,
    "tests/compression/test_rung_workers.py",
    "tests/compression/test_workers.py",
    "tests/compression/test_kill.py",
    "tests/compression/test_ray.py",
    "tests/reports/test_report_browser.py",
    "tests/reports/test_rank_browser.py",
    "tests/reports/test_panels_browser.py",
    "tests/search/test_workers.py",
    "tests/training/test_kill.py",
    "tests/training/test_distributed.py",
    "tests/exporting/test_generation.py",
    "tests/exporting/test_minilm.py",
    "tests/exporting/test_export.py",
    "tests/exporting/test_trained.py",
    "tests/compression/test_kinds.py",
    "tests/compression/test_methods.py",
)
"""Work that takes longest, longest first; the rest follows by number of tests."""


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # it would begin with the files of most tests, which are short ones

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """What stays in one process."""
    return TOGETHER if nodeid.startswith(TOGETHER) else nodeid.partition("::")[0]


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts the tests by the unit they belong to; within one their order stays."""
    sizes: dict[str, int] = {}
    for item in items:
        sizes[unit_of(item.nodeid)] = sizes.get(unit_of(item.nodeid), 0) + 1
    places = {unit: place for place, unit in enumerate(LONGEST)}

    def rank(item: pytest.Item) -> tuple[int, int, str]:
        unit = unit_of(item.nodeid)
        return places.get(unit, len(LONGEST)), -sizes[unit], unit

    items.sort(key=rank)
