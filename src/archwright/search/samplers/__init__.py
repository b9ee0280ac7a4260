"""Every way to decide what to try next: one file with one record each; other packages add theirs as entry points."""

from archwright.registry import Registry
from archwright.search.samplers import asha, ehvi, evolution, genetic, local, nsga2, random
from archwright.search.samplers.sampler import Sampler

SAMPLERS: Registry[Sampler] = Registry(
    "sampler",
    {
        "random": random.SAMPLER,
        "local": local.SAMPLER,
        "evolution": evolution.SAMPLER,
        "ehvi": ehvi.SAMPLER,
        "nsga2": nsga2.SAMPLER,
        "genetic": genetic.SAMPLER,
        "mo-asha": asha.SAMPLER,
    },
    group="archwright.samplers",
)
