"""`archwright report RUN...`: finished runs and comparisons under the paper's protocol, as a page and as numbers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.checksums import CHECKSUM, has_checksum
from archwright.compression.studies.protocol import compare_runs
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.reports.compress.protocol import protocol_table, render_protocol_page
from archwright.store import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

RESULT, PAGE = "result.json", "protocol.html"
KEYS = {
    "archwright/compress": ("task", "model", "original", "front"),
    "archwright/compare": ("task", "model", "original", "methods"),
    "archwright/preview": ("model", "spaces"),
}
"""Schemas that can be reported on, without their version, and what such a document must have."""


@dataclass(frozen=True)
class ReportResult:
    """A page about several runs."""

    protocol: Mapping[str, Any]
    page: Path

    def as_json(self) -> dict[str, Any]:
        return dict(self.protocol)

    def show(self, console: "Console") -> None:
        console.print(protocol_table(self.protocol))
        for note in self.protocol["notes"]:
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        console.print(f"report: {self.page}", soft_wrap=True, highlight=False)


def report(config: o.ReportConfig) -> ReportResult:
    """The page and the numbers of these runs, compared per task and model; a run that is given twice counts once."""
    if not config.runs:
        raise BadInput("at least one run is needed: `archwright report RUN...` with folders of `archwright compress`.")
    files = dict.fromkeys(result_file(Path(path)).resolve() for path in config.runs)
    protocol = compare_runs([read_document(file) for file in files], seed=config.seed)
    config.out.mkdir(parents=True, exist_ok=True)
    page = config.out / PAGE
    write_atomic(page, render_protocol_page(protocol))
    return ReportResult(protocol, page)


def result_file(path: Path) -> Path:
    """The result in the folder of a run or comparison, or the file itself."""
    file = path / RESULT if path.is_dir() else path
    if not file.is_file():
        raise BadInput(
            f"RUN must be a finished run, a comparison or a file written by --json, got {path}; "
            "finish it with the same `archwright compress` command."
        )
    return file


def read_document(file: Path) -> dict[str, Any]:
    """A result that can be compared."""
    try:
        document = json.loads(file.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"RUN must be JSON as archwright writes it, got {file}, which is not ({error}).") from error
    schema = str(document.get("schema")) if isinstance(document, dict) else str(None)
    needed = KEYS.get(schema.rpartition("/")[0])
    if needed is None:
        raise BadInput(f"RUN must have one of the schemas {', '.join(KEYS)}, got {file} with {schema}.")
    if lacking := [key for key in needed if key not in document]:
        raise BadInput(f"{file} is damaged: it has no {lacking[0]!r}; run its `archwright compress` command again.")
    if not has_checksum(document):
        raise BadInput(f"{file} is damaged: its checksum is another one; run its `archwright compress` command again.")
    return {key: value for key, value in document.items() if key != CHECKSUM}
