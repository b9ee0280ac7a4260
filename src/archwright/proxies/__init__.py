"""Training-free proxies: pure functions of a probe, higher is better. One registry feeds code, help, tests and page."""

from archwright.proxies.files import from_file
from archwright.proxies.proxy import Proxy, Unscored, passes_of, roles_of
from archwright.proxies.registry import PROXIES

__all__ = ["PROXIES", "Proxy", "Unscored", "from_file", "passes_of", "roles_of"]
