"""`archwright design`: the architecture of a small language model, searched without training any."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs.design import DesignConfig
from archwright.designing.pipeline import FILE, design_architecture
from archwright.reports.architecture import draw_architecture
from archwright.reports.design import design_table
from archwright.reports.rivals import rivals_table
from archwright.rivals.pipeline import add_design_rivals, check_design_rivals

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class DesignResult:
    """The best architecture, and how it was found."""

    document: Mapping[str, Any]
    folder: Path
    page: Path

    @property
    def config(self) -> dict[str, Any]:
        """The best design; `score`, `train` and others read it from design.json."""
        return dict(self.document["config"])

    @property
    def front(self) -> list[dict[str, Any]]:
        """Designs that no other beats in every proxy: one where there is one proxy."""
        return list(self.document["front"])

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        console.print(draw_architecture(self.document.get("layers") or ()), highlight=False, markup=False)
        console.print(design_table(self.document))
        if self.document.get("rivals"):
            console.print(rivals_table(self.document["rivals"]))
        for file in (self.folder / FILE, self.page):
            console.print(f"{file.suffix[1:]}: {file}", soft_wrap=True, highlight=False)


def design(config: DesignConfig) -> DesignResult:
    """The design with the highest score within the limits, one search per seed; the best of them is the answer.

    With rivals it is trained on a task, and other ways to a network of its size beside it.
    """
    check_design_rivals(config)
    document, page = design_architecture(config)
    if config.rivals.rivals:
        document = add_design_rivals(config, document, (config.scoring.out / FILE, page))
    return DesignResult(document, config.scoring.out, page)
