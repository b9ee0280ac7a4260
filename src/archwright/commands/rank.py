"""`archwright rank`: training-free proxies judged on architectures that somebody trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.configs import scoring as so
from archwright.reports.rank.page import render_rank_page
from archwright.reports.rank.tables import papers_table, rank_table, xray_table
from archwright.scoring.ranking import rank_benchmark
from archwright.store import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

NORMALISED = "_normalised"


@dataclass(frozen=True)
class RankResult:
    """A benchmark with every proxy judged on it."""

    document: Mapping[str, Any]
    page: Path
    judging: so.JudgementOptions

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One entry per proxy, with the columns of the report."""
        return list(self.document["rows"])

    def terminal_document(self) -> dict[str, Any]:
        """For a terminal: a form that only divides by a number of modules stands on the page."""
        rows = [row for row in self.document["rows"] if not row["proxy"].endswith(NORMALISED)]
        left = len(self.document["rows"]) - len(rows)
        notes = [f"{left} normalised forms are on the page and in --json."] if left else []
        return {**self.document, "rows": rows, "notes": [*self.document["notes"], *notes]}

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        shown = self.terminal_document()
        console.print(rank_table(shown))
        if self.judging.xray:
            console.print(xray_table(self.document))
        if self.judging.compare_published:
            console.print(papers_table(self.document))
        for note in shown["notes"]:
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        console.print(f"report: {self.page}", soft_wrap=True, highlight=False)


def rank(config: so.RankConfig) -> RankResult:
    """Every proxy against what training gave, on the page and as numbers."""
    document, page = rank_benchmark(config)
    write_atomic(page, render_rank_page(document))
    return RankResult(document, page, config.judgement)
