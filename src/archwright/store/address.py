"""Addresses of databases: told apart and shown without the password that may be in them, in whatever spelling."""

import re
from typing import Any
from urllib.parse import quote_plus, unquote, unquote_plus

PLAIN = re.compile(
    r"(?P<scheme>[\w+]+)://((?P<user>[^@?]*)@)?(?P<place>[\w.\-]*(:\d+)?(/[\w.\-]*)*)(\?(?P<query>[^@]*))?"
)
"""An address whose parts cannot be mistaken. With an @ or ? in the password nobody knows where it ends."""
SECRETS = ("password", "passfile", "sslpassword", "sslkey")


def without_password(value: Any) -> Any:
    """An option as it may be shown: of an address the place, without user, password and query."""
    if not isinstance(value, str) or "://" not in value:
        return value
    plain = PLAIN.fullmatch(value)
    return f"{plain['scheme']}://{plain['place']}" if plain else f"{value.partition('://')[0]}://***"


def is_same(before: Any, now: Any) -> bool:
    """Whether two options are equal but for the password of a database."""
    return bool(before == now) or _public_parts(before) == _public_parts(now)


def _public_parts(value: Any) -> Any:
    """What names a database; an address that is no proper one is taken as it is."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if not isinstance(value, str) or "://" not in value:
        return value
    try:
        url = make_url(value)
    except (ArgumentError, ValueError):
        return value
    query = tuple(sorted((key, words) for key, words in url.query.items() if key not in SECRETS))
    return url.drivername, url.username, url.host, url.port, url.database, query


def hide_secrets(text: str, address: str) -> str:
    """What a driver says about an address, without what is secret in it; nothing when that cannot be told apart."""
    plain = PLAIN.fullmatch(address)
    if plain is None:
        return ""
    secrets = [(plain["user"] or "").partition(":")[2]]
    for part in (plain["query"] or "").split("&"):
        name, _, value = part.partition("=")
        if unquote_plus(name) in SECRETS:
            secrets.append(value)
    spellings = {spell(secret) for secret in secrets if secret for spell in (str, unquote, unquote_plus, quote_plus)}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, "***")
    return text
