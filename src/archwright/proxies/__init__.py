"""Training-free proxies: pure functions of a probe, higher is better. One list feeds code, help, tests and page."""

from collections.abc import Iterable

from archwright.proxies.files import from_file, from_source, own_proxy
from archwright.proxies.listed import PROXIES
from archwright.proxies.proxy import Proxy, Unscored

__all__ = ["PROXIES", "Proxy", "Unscored", "from_file", "from_source", "own_proxy", "passes_of", "roles_of"]


def passes_of(proxies: Iterable[Proxy]) -> tuple[str, ...]:
    """Passes that `record` has to run for these proxies."""
    return tuple(dict.fromkeys(name for proxy in proxies for name in proxy.passes))


def roles_of(proxies: Iterable[Proxy]) -> tuple[str, ...]:
    """Roles that `record` has to keep for these proxies."""
    return tuple(dict.fromkeys(name for proxy in proxies for name in proxy.of))
