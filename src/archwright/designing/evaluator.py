"""Scores of many designs at once: from layer to layer where the space allows it, else network by network."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from archwright.configs import design as do
from archwright.configs import scoring as so
from archwright.designing.prefix_stacks import STACKS
from archwright.designing.prefix_workers import prefix_pool
from archwright.errors import BadInput
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.proxies import PROXIES, Proxy
from archwright.proxies.proxy import GRADIENT_FREE
from archwright.scoring.request import ScoreRequest, ScoreResult, chosen_proxies
from archwright.scoring.scorer import ScoringSetup, as_known, from_known, key_of, remaining, scoring_setup
from archwright.search import Candidate, smallest
from archwright.search.batch_loop import Measured
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import Scores

MOST_TOLD = 12
"""Names that an error lists."""


def named_proxies(names: Sequence[str]) -> so.ProxyOptions:
    """Proxies that are listed, and the user's own as FILE:NAME; BadInput for a name nobody knows."""
    if not names:
        raise BadInput("--proxy must name at least one proxy, such as w_pca.")
    own = tuple(name for name in names if name not in PROXIES and ":" in name)
    listed = tuple(name for name in names if name not in own)
    for name in listed:
        if name not in PROXIES:
            some = ", ".join(list(PROXIES)[:MOST_TOLD])
            raise BadInput(
                f"--proxy must be one that `archwright score --help` lists ({some}, ...) or FILE:NAME, got {name!r}."
            )
    return so.ProxyOptions(proxies=listed, proxy=own)


def setup_for(space: ArchitectureSpace, names: Sequence[str], looking: do.DesignScoringOptions) -> ScoringSetup:
    """What to look with: these proxies, in this order."""
    proxies = named_proxies(names)
    setup = scoring_setup(space, proxies, looking, always=proxies.proxies)
    wanted = {name.rpartition(":")[2] if ":" in name and name not in PROXIES else name for name in names}
    kept = tuple(name for name in setup.proxies if name in wanted)
    return ScoringSetup(**{**vars(setup), "proxies": kept})


def is_forward(at: ScoreRequest) -> bool:
    """Whether nothing but a forward pass is needed."""
    return all(set(proxy.passes) <= GRADIENT_FREE for proxy in chosen(at))


def chosen(at: ScoreRequest) -> list[Proxy]:
    return list(chosen_proxies(at).values())


@contextmanager
def open_pool(setup: ScoringSetup, looking: do.DesignScoringOptions) -> Iterator[WorkerPool]:
    """Whoever looks: processes that walk, or those that see whole networks, or a cluster."""
    at = setup.look(smallest(setup.space.choices))
    walks = type(setup.space) in STACKS and is_forward(at) and looking.ray is None
    with prefix_pool(looking.workers) if walks else worker_pool(looking.workers, looking.ray) as seek:
        yield seek


@dataclass(frozen=True)
class ProxyEvaluator:
    """Judges designs by their proxies, with weights and batch of one repeat; what is known is not done again."""

    setup: ScoringSetup
    known: Scores
    seek: WorkerPool
    repeat: int
    spent: dict[str, float]
    """Processor seconds of every look so far, also of those that an earlier run did."""
    done: list[str]
    """Looks that this run did."""

    def __call__(self, candidates: Sequence[Candidate]) -> list[Measured]:
        wanted = [self.setup.look(one.config, seed=self.repeat, batch=self.repeat) for one in candidates]
        return [self._measured(seen) for seen in self.seen(wanted)]

    def seen(self, wanted: Sequence[ScoreRequest]) -> list[ScoreResult]:
        keys = [key_of(at) for at in wanted]
        undone = {
            key: rest for key, at in zip(keys, wanted, strict=True) if (rest := remaining(at, self.known.of(key)))
        }
        names, looks = list(undone), list(undone.values())
        for place, one in self.seek.map_unordered(looks):
            self.known.add(names[place], as_known(looks[place], one))
            self.done.append(names[place])
        found = [from_known(at, self.known.of(key)) for key, at in zip(keys, wanted, strict=True)]
        self.spent.update(zip(keys, (seen.seconds for seen in found), strict=True))
        return found

    def _measured(self, seen: ScoreResult) -> Measured:
        """Higher is better, in the order of the proxies; or the first reason why one is missing."""
        if seen.missing:
            return "; ".join(f"{name}: {why}" for name, why in seen.missing.items())
        return [seen.scores[name] for name in self.setup.proxies]
