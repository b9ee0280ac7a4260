"""Who may ask: the right host name, no other site's script, a token where others reach the page, no large bodies."""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archwright.errors import BadInput

COOKIE = "archwright_token"
LARGEST_BODY = 64 * 1024
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Of every answer. Styles may stand in attributes, because plotly sets some so; scripts may not."""


@dataclass(frozen=True)
class Access:
    """Which requests are let in."""

    names: frozenset[str]
    """Host names that the page is known by, in small letters and without a port."""
    any_address: bool
    """Whether an IP address is such a name too, for a page that listens on all of them."""
    token: str | None
    """What a browser must know; None: only this machine can ask."""

    def knows_host(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname or "", parts.port  # which is a number up to 65535, or an error
        except ValueError:
            return False
        return name in self.names or (self.any_address and is_address(name))

    def is_token(self, given: str | None) -> bool:
        return self.token is not None and given is not None and hmac.compare_digest(given.encode(), self.token.encode())


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def choose_access(host: str, token: str | None, names: tuple[str, ...]) -> Access:
    """Loopback needs no token; any other address gets one where none is given."""
    if token is not None and len(token) < 8:
        raise BadInput(f"--token must have at least 8 characters, got {len(token)}; leave it out and one is made.")
    local = is_loopback(host)
    known = {"localhost", "127.0.0.1", "::1", host, *names}
    if not local:
        known.add(socket.gethostname())
    wildcard = is_address(host) and ipaddress.ip_address(host).is_unspecified
    made = token or (None if local else secrets.token_urlsafe(24))
    return Access(frozenset(name.lower() for name in known), wildcard, made)


class Guard:
    """ASGI middleware: refuses what may not pass, and adds the headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self.refuse(scope, headers)
        if refused is not None:
            await refused(scope, receive, with_headers(send))
            return
        await self.app(scope, limited(receive), with_headers(send))

    def refuse(self, scope: Scope, headers: dict[str, str]) -> Any:
        """The answer to a request that may not pass; None: it may."""
        host = headers.get("host", "")
        if not self.access.knows_host(host):
            words = "This page is not known by the host name of this request; open the address that was printed.\n"
            return PlainTextResponse(words, 421)
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
        other_site = headers.get("sec-fetch-site") == "cross-site" and scope["path"].startswith("/api/")
        unsaid = scope["method"] not in SAFE_METHODS and origin is None and "authorization" not in headers
        if foreign or other_site or unsaid:
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        if not headers.get("content-length", "0").isdigit() or int(headers.get("content-length", "0")) > LARGEST_BODY:
            return PlainTextResponse(f"The body must have at most {LARGEST_BODY} bytes.\n", 413)
        return None if self.access.token is None else self.ask_token(scope, headers)

    def ask_token(self, scope: Scope, headers: dict[str, str]) -> Any:
        """None for those who know the token; one in the address becomes a cookie."""
        if self.access.is_token(cookie_token(headers.get("cookie", ""))):
            return None
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.access.is_token(bearer):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        given = dict(query).get("token")
        if scope["method"] == "GET" and self.access.is_token(given):
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            path = "/" + scope["path"].lstrip("/")  # // would be another host
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(COOKIE, str(given), httponly=True, samesite="strict", max_age=7 * 86_400)
            return answer
        words = "A token is needed, and this one is wrong.\n" if given else "A token is needed.\n"
        return PlainTextResponse(f"{words}Open the address that archwright serve printed.\n", 401)


def cookie_token(header: str) -> str | None:
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def limited(receive: Receive) -> Receive:
    """A body without a length is cut off where it is too large."""
    read = 0

    async def receive_less() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        return {"type": "http.disconnect"} if read > LARGEST_BODY else message

    return receive_less


def with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            more = {**HEADERS, "cache-control": "no-store"}
            extra = [(k.encode(), v.encode()) for k, v in more.items() if k.encode() not in own]
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return send_more
