"""All proxies by name, without loading torch: those of the package, each recorded where it is defined, and formulas."""

from importlib import import_module

from archwright.proxies.formulas.discovered import load_discovered_proxies
from archwright.proxies.proxy import RECORDS, Proxy, mean_form, total
from archwright.registry import Registry

for module in ("counts", "gradients", "correlations", "heads", "pca", "lpzero"):  # in this order they are listed
    import_module(f"archwright.proxies.{module}")  # it records its proxies

SUMMED = tuple(record for record in RECORDS if record.join is total)
"""Sums over linears, layers or heads; the mean of each is another proxy, named ..._normalised."""

members = load_discovered_proxies()
# counts, sums, numbers of the whole network, which have nothing to normalise, then means
members |= {record.name: record for record in sorted(RECORDS, key=lambda r: (bool(r.passes), r.join is not total))}
members |= {record.name: record for record in map(mean_form, SUMMED)}
PROXIES: Registry[Proxy] = Registry("proxy", members, group="archwright.proxies")
