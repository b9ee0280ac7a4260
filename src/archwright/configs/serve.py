"""Options of `serve`."""

from dataclasses import dataclass
from pathlib import Path

from archwright.configs.options import option

RUNS = Path("runs")


@dataclass(frozen=True)
class ServeConfig:
    """What to show, and to whom."""

    runs: Path = option(RUNS, metavar="RUNS_DIR")  # noqa: RUF009 - as everywhere: a field
    """Folder with runs below it."""
    host: str = "127.0.0.1"
    """Address to listen on; any but this machine's own needs a token."""
    port: int = option(8321, minimum=0, maximum=65535)
    """Port to listen on; 0: any that is free."""
    token: str | None = None
    """What a browser must know; made and printed where --host needs one and none is given."""
    names: tuple[str, ...] = ()
    """Further host names that the page is known by, as behind a proxy."""
    allow_start: bool = False
    """Whether runs may be started, stopped and resumed on the page."""
    open: bool = False
    """Whether to open the page in a browser."""
