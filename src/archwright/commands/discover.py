"""`archwright discover`: better proxies as formulas, found by evolution or among all, and judged on rows kept away."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs.discover import DiscoverConfig
from archwright.discovery.pipeline import discover_formulas
from archwright.reports.discover.page import discover_table, transfer_table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class DiscoverResult:
    """What was found, with how good it is on rows that were kept away."""

    document: Mapping[str, Any]
    page: Path
    saved: Path | None

    @property
    def best(self) -> list[dict[str, Any]]:
        """The best formula, then the best of smaller sizes."""
        return list(self.document["best"])

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        console.print(discover_table(self.document))
        if self.document["transfer"]:
            console.print(transfer_table(self.document))
        for note in (*self.document["notes"], *([f"saved: {self.saved}"] if self.saved else [])):
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        console.print(f"report: {self.page}", soft_wrap=True, highlight=False)


def discover(config: DiscoverConfig) -> DiscoverResult:
    """Formulas searched without each of five folds and judged on it, for several splits; the last is chosen on all."""
    return DiscoverResult(*discover_formulas(config))
