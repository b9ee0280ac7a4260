"""All proxies by name, without loading torch: those of the package, each recorded where it is defined, and formulas."""

from dataclasses import replace
from importlib import import_module

from archwright.proxies.formulas.discovered import load_discovered_proxies
from archwright.proxies.proxy import RECORDS, Proxy, average, total
from archwright.registry import Registry

for module in (
    "counts",
    "scaling_law",
    "gradients",
    "correlations",
    "heads",
    "pca",
    "lpzero",
):  # in this order they are listed
    import_module(f"archwright.proxies.{module}")  # it records its proxies

SUMMED = tuple(record for record in RECORDS if record.join is total)
"""Sums over linears, layers or heads; the mean of each over those modules is another proxy, named ..._normalised."""

members = load_discovered_proxies()
# counts, sums, numbers of the whole network, which have nothing to normalise, then means
members |= {record.name: record for record in sorted(RECORDS, key=lambda r: (bool(r.passes), r.join is not total))}
for record in SUMMED:
    name, description = f"{record.name}_normalised", f"{record.description}; mean instead of sum"
    members[name] = replace(record, name=name, description=description, join=average)
PROXIES: Registry[Proxy] = Registry("proxy", members, group="archwright.proxies")
