"""Runs the application until it is interrupted."""

import errno
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn

from archwright.errors import BadInput
from archwright.web.app import create_app
from archwright.web.folder import open_folder
from archwright.web.security import Access, choose_access

BACKLOG = 2048
SHUTDOWN = 3
"""Seconds that open connections have when the server ends."""


class Server(uvicorn.Server):
    """Ends open streams of events as soon as it is told to end, instead of waiting for browsers to leave."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        close_streams(self)


def close_streams(server: uvicorn.Server) -> None:
    app: Any = server.config.app
    app.state.api.close_streams()


@dataclass(frozen=True)
class PreparedServer:
    """A server whose port is bound already, so that its address can be told before it runs."""

    server: Server
    listening: socket.socket
    address: str
    access: Access

    def run(self) -> None:
        self.server.run(sockets=[self.listening])

    def start(self) -> threading.Thread:
        """In a thread, for notebooks."""
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        close_streams(self.server)
        self.server.should_exit = True


def prepare_server(
    folder: Path,
    *,
    host: str,
    port: int,
    token: str | None,
    names: tuple[str, ...] = (),
    start_options: Sequence[str] | None = None,
    log: Callable[[str], None] | None = None,
) -> PreparedServer:
    """BadInput where the folder is none, or the address cannot be listened on."""
    served, access = open_folder(folder), choose_access(host, token, names)
    listening = bind(host, port)
    app = create_app(served, access, start_options=start_options)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN,
        limit_concurrency=1000,
        lifespan="on",
    )
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    secret = f"?token={quote(access.token)}" if access.token else ""
    address = f"http://{shown}:{listening.getsockname()[1]}/{secret}"
    return PreparedServer(Server(config), listening, address, access)


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)  # whoever opens the printed address at once waits until the server runs
    except (OSError, OverflowError) as error:
        listening.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise BadInput(
                f"--port must be free, got {port}, which another program listens on; choose another one, or 0 for any."
            ) from None
        words = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"--host must be an address of this machine, got {host!r}: {words}.") from None
    return listening
