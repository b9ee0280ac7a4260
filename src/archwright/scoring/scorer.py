"""Many looks: what to look with, which of them were done before, and the rest done by whoever looks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from archwright.configs import scoring as so
from archwright.data.public_data import GPT2_ORIGIN, WIKITEXT, WIKITEXT_ORIGIN, public_data
from archwright.data.text.snippets import (
    Snippets,
    TextEncoder,
    checkpoint_encoder,
    gpt2_encoder,
    snippets,
    word_encoder,
)
from archwright.errors import BadInput
from archwright.networks.embedded import resolve_model
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.progress import progress
from archwright.proxies import PROXIES, own_proxy
from archwright.scoring.request import ScoreRequest, ScoreResult
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import ScoreStore, digest

ROOMS = ("networks", "spaces", "probe", "proxies")
"""Code that a score depends on."""
FOUND = frozenset({"discovered"})
"""Origins of proxies that are no code: another formula may have the name tomorrow."""

VOCABULARIES: dict[str, Callable[[Path], TextEncoder]] = {
    "bert": lambda _: checkpoint_encoder(resolve_model("minilm")),
    "gpt2": lambda _: gpt2_encoder(public_data("gpt2-bpe", origin=GPT2_ORIGIN, option="ARCHWRIGHT_DATA")),
    "words": word_encoder,
}
"""How the networks of a space read a text."""


@dataclass(frozen=True)
class ScoringSetup:
    """Everything that is the same for all looks of a command."""

    space: ArchitectureSpace
    proxies: tuple[str, ...]
    own: dict[str, str]
    loss: str
    text: Path
    vocabulary: TextEncoder
    rows: int
    length: int
    seed: int
    initial: str
    batches: dict[int, Snippets] = field(default_factory=dict)
    """Those asked for so far."""

    def batch(self, number: int) -> Snippets:
        """The batch of this number, the same for every architecture."""
        if number not in self.batches:
            seed = (self.seed, number)
            made = snippets(self.text, self.vocabulary, self.loss, rows=self.rows, length=self.length, seed=seed)
            self.batches[number] = made
        return self.batches[number]

    def look(self, config: Config, *, seed: int = 0, batch: int = 0) -> ScoreRequest:
        """At this architecture, with the weights and the batch of these numbers."""
        design = self.space.canonical(config)
        found = {name: PROXIES[name].target for name in self.proxies if is_found(name)}
        return ScoreRequest(
            self.space, design, (self.seed, seed), self.batch(batch), self.loss, self.initial, self.proxies, self.own,
            found,
        )  # fmt: skip


def is_found(name: str) -> bool:
    """Whether a listed proxy is a formula that `discover` found."""
    return name in PROXIES and PROXIES[name].origin in FOUND


def scoring_setup(
    space: ArchitectureSpace, proxies: so.ProxyOptions, looks: so.RecordingOptions, *, always: tuple[str, ...] = ()
) -> ScoringSetup:
    """What to look with, some proxies `always` among it; BadInput for whatever cannot be."""
    rows, length = size_of(space, looks)
    loss = looks.loss or space.losses[0]
    if loss not in space.losses:
        raise BadInput(f"--loss must be one of {', '.join(space.losses)} for this space, got {loss!r}.")
    text = looks.text or public_data(WIKITEXT, origin=WIKITEXT_ORIGIN, option="--text")
    own = own_proxies(proxies.proxy)
    names = tuple(dict.fromkeys((*always, *(proxies.proxies or PROXIES), *own)))
    vocabulary = VOCABULARIES[space.text](text)
    return ScoringSetup(space, names, own, loss, text, vocabulary, rows, length, looks.seed, looks.initial)


def size_of(space: ArchitectureSpace, looks: so.RecordingOptions) -> tuple[int, int]:
    """Texts of a batch and tokens of each: as asked for, else the usual ones; BadInput for what no network can read."""
    asked = zip((looks.batch_rows, looks.length), space.batch, strict=True)
    rows, length = (usual if given is None else given for given, usual in asked)
    plan = space.plan(space.sample(np.random.default_rng(0)))  # all designs have the same positions
    longest = getattr(plan, "max_position_embeddings", None)  # recurrent cells need none
    if longest is not None and length > longest:
        raise BadInput(f"--length must be at most {longest}, the positions of networks of this space, got {length}.")
    return rows, length


def check_page(page: Path) -> Path:
    """The page, in a folder that is there now; BadInput when nothing can be written, before any work is done."""
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"the page {page} cannot be written ({error.strerror}: {error.filename}); choose another --out or --html."
        ) from error
    if page.is_dir():
        raise BadInput(f"--html must be a file, got the folder {page}.")
    return page


def own_proxies(named: Sequence[str]) -> dict[str, str]:
    """Source of the user's proxies by name, each name once and none of a listed proxy."""
    own: dict[str, str] = {}
    for name, source in map(own_proxy, named):
        if name in PROXIES or name in own:
            raise BadInput(f"--proxy must have a name of its own, {name!r} is taken; rename the function.")
        own[name] = source
    return own


@dataclass(frozen=True)
class Scorer:
    """Sees many looks, with the processes and the memory of one command."""

    known: ScoreStore
    eyes: WorkerPool

    def scores(self, wanted: Sequence[ScoreRequest], why: str) -> list[ScoreResult]:
        """What is seen at each; equal looks are done once, and what is known is not done again."""
        keys = [key_of(at) for at in wanted]
        undone = {
            key: rest for key, at in zip(keys, wanted, strict=True) if (rest := remaining(at, self.known.of(key)))
        }
        self._see(undone, why)
        return [from_known(at, self.known.of(key)) for key, at in zip(keys, wanted, strict=True)]

    def alone(self, wanted: Sequence[ScoreRequest], why: str) -> list[dict[str, float | None]]:
        """Seconds and memory of each look as it stands, with nothing shared between proxies."""
        keys = [digest(key_of(at), *at.proxies) for at in wanted]
        self._see({key: at for key, at in zip(keys, wanted, strict=True) if not self.known.of(key)}, why)
        return [next(iter(self.known.of(key)["cost"].values())) for key in keys]

    def _see(self, undone: Mapping[str, ScoreRequest], why: str) -> None:
        keys, looks = list(undone), list(undone.values())
        with progress(why, len(looks), "looks") as bar:
            for place, one in self.eyes.map_unordered(looks):
                self.known.add(keys[place], as_known(looks[place], one))
                bar.advance()


@contextmanager
def open_scorer(looks: so.RecordingOptions) -> Iterator[Scorer]:
    """With the workers and the folder that the options name."""
    known = ScoreStore(looks.out)
    with worker_pool(looks.workers, looks.ray) as found:
        yield Scorer(known, found)


def remaining(at: ScoreRequest, known: dict[str, Any]) -> ScoreRequest | None:
    """The look with the proxies that are not known yet; None when all are."""
    done = set(known.get("scores", ())) | set(known.get("missing", ()))
    names = tuple(name for name in at.proxies if kept_as(at, name) not in done)
    return replace(at, proxies=names) if names else None


def kept_as(at: ScoreRequest, name: str) -> str:
    """Name under which a score is kept; it changes with the source of a user's proxy and with a found formula."""
    changing = {n: PROXIES[n].target for n in (name,) if is_found(n)} | dict(at.own)
    return f"{name} {digest(changing[name])}" if name in changing else name


def as_known(at: ScoreRequest, one: ScoreResult) -> dict[str, Any]:
    parts: dict[str, Mapping[str, Any]] = {"scores": one.scores, "missing": one.missing}
    named = {part: {kept_as(at, name): value for name, value in found.items()} for part, found in parts.items()}
    return {
        **named,
        "cost": {digest(*one.scores, *one.missing): {"seconds": one.seconds, "peak_mb": one.peak_mb}},
        "etas": one.etas,
    }


def from_known(at: ScoreRequest, known: dict[str, Any]) -> ScoreResult:
    scores, missing = (
        {name: known[part][kept_as(at, name)] for name in at.proxies if kept_as(at, name) in known[part]}
        for part in ("scores", "missing")
    )
    etas = known["etas"] if "v_pca" in at.proxies else {}
    spent = known["cost"].values()  # several looks when more proxies were asked for later
    peaks = [one["peak_mb"] for one in spent if one["peak_mb"] is not None]
    return ScoreResult(scores, missing, sum(one["seconds"] for one in spent), max(peaks, default=None), etas)


def key_of(at: ScoreRequest) -> str:
    """Name of what a look depends on, but for its proxies."""
    return digest(code(), request_digest(at))


def request_digest(at: ScoreRequest) -> str:
    """Name of the network, its initial weights and its batch."""
    design = json.dumps([at.space.name, repr(at.space), at.config, at.seed, at.loss, at.initial], sort_keys=True)
    read = json.dumps([at.batch.input_ids.shape, at.batch.vocabulary])
    return digest(design, read, at.batch.input_ids.tobytes(), at.batch.labels.tobytes())


@cache
def code() -> str:
    """Name of the code that scores depend on."""
    package = Path(__file__).parents[1]
    files = sorted(file for room in ROOMS for file in (package / room).rglob("*.py"))
    return digest(*(file.read_bytes() for file in (*files, package / "scoring" / "request.py")))
