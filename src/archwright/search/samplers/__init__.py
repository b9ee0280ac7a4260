"""Every way to decide what to try next; adding one is one file and one line here."""

from archwright.search.samplers.asha import Asha
from archwright.search.samplers.ehvi import Ehvi
from archwright.search.samplers.evolution import Evolution
from archwright.search.samplers.genetic import Genetic
from archwright.search.samplers.local import Local
from archwright.search.samplers.nsga2 import Nsga2
from archwright.search.samplers.random import Random
from archwright.search.samplers.sampler import Sampler

SAMPLERS: dict[str, Sampler] = {
    "random": Sampler("random search: every config drawn anew", Random, together=True),
    "local": Sampler("local search: a neighbour of a random member of the current front", Local),
    "evolution": Sampler("regularized evolution: mutates the best of 5 out of the 10 youngest", Evolution),
    "ehvi": Sampler("expected hypervolume improvement: Gaussian processes, best for few trials", Ehvi, packed=False),
    "nsga2": Sampler("NSGA-II: generations of 20 with crossover and mutation", Nsga2, together=True),
    "genetic": Sampler(
        "genetic algorithm: generations of 50 from the better half, each choice mutated at 0.1", Genetic, together=True
    ),
    "mo-asha": Sampler("MO-ASHA: the best third is trained longer; only for standard NAS", Asha, rungs=True),
}
