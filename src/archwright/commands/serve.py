"""`archwright serve`: the live page of a folder of runs."""

import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.commands import COMMANDS
from archwright.configs.serve import ServeConfig
from archwright.web.server import PreparedServer, prepare_server

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, repr=False)
class ServeResult:
    """A page that is served until it is closed."""

    folder: Path
    server: PreparedServer

    @property
    def address(self) -> str:
        return self.server.address

    def __repr__(self) -> str:
        return f"{self.folder} is served at {self.address}"

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}" target="_blank">{self.address}</a>'

    def as_json(self) -> dict[str, Any]:
        return {"schema": "archwright/serve/1", "folder": str(self.folder), "address": self.address}

    def close(self) -> None:
        self.server.stop()

    def show(self, console: "Console") -> None:
        """Blocks until it is interrupted; the command line calls it."""


def serve(config: ServeConfig) -> ServeResult:
    """The page, in a thread where a notebook or console goes on after this call, else until it is interrupted."""
    prepared = prepare_server(
        config.runs,
        host=config.host,
        port=config.port,
        token=config.token,
        names=config.names,
        start_options=COMMANDS["compress"].first if config.allow_start else None,
    )
    result = ServeResult(config.runs, prepared)
    if config.open:
        webbrowser.open(prepared.address)
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        prepared.start()
        return result
    print(f"{config.runs} is served at {prepared.address}  (Ctrl-C ends it)", file=sys.stderr, flush=True)
    prepared.run()
    return result
