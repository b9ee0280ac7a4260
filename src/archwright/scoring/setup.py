"""What is the same for all networks that a command scores: proxies, loss, text, size of a batch, seed."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from archwright.configs import scoring as so
from archwright.data.public_data import WIKITEXT, WIKITEXT_ORIGIN, public_data
from archwright.data.text.kinds import TEXT_KINDS
from archwright.data.text.snippets import Snippets, TextEncoder, snippets
from archwright.errors import BadInput
from archwright.proxies import PROXIES, Proxy, from_file
from archwright.scoring.request import ScoreRequest
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace


@dataclass(frozen=True)
class ScoringSetup:
    """Makes the requests of a command."""

    space: ArchitectureSpace
    proxies: dict[str, Proxy]
    loss: str
    text: Path
    vocabulary: TextEncoder
    rows: int
    length: int
    seed: int
    initial: str
    batches: dict[int, Snippets] = field(default_factory=dict)
    """Those that were needed so far, by number."""

    def request(self, config: Config, *, seed: int = 0, batch: int = 0) -> ScoreRequest:
        """To score this architecture with the weights and the batch of these numbers; a batch is the same for all."""
        if batch not in self.batches:
            self.batches[batch] = snippets(
                self.text, self.vocabulary, self.loss, rows=self.rows, length=self.length, seed=(self.seed, batch)
            )
        canonical = self.space.canonical(config)
        return ScoreRequest(
            self.space, canonical, (self.seed, seed), self.batches[batch], self.loss, self.initial, self.proxies
        )


def scoring_setup(
    space: ArchitectureSpace, proxies: so.ProxyOptions, options: so.RecordingOptions, *, always: tuple[str, ...] = ()
) -> ScoringSetup:
    """From the options of a command, some proxies `always` among it; BadInput for whatever cannot be."""
    rows, length = batch_size(space, options)
    loss = options.loss or space.losses[0]
    if loss not in space.losses:
        raise BadInput(f"--loss must be one of {', '.join(space.losses)} for this space, got {loss!r}.")
    text = options.text or public_data(WIKITEXT, origin=WIKITEXT_ORIGIN, option="--text")
    if proxies.proxies and proxies.all_proxies:
        raise BadInput("--all-proxies takes all, so --proxies has no effect; leave one of them out.")
    usual = (name for name in PROXIES if proxies.all_proxies or PROXIES[name].is_default)
    chosen = {name: PROXIES[name] for name in (*always, *(proxies.proxies or usual))}
    own: dict[str, Proxy] = {}
    for proxy in map(from_file, proxies.proxy):
        if proxy.name in PROXIES or proxy.name in own:
            raise BadInput(f"--proxy must have a name of its own, {proxy.name!r} is taken; rename the function.")
        own[proxy.name] = proxy
    vocabulary = TEXT_KINDS[space.text].encoder(text)
    return ScoringSetup(space, chosen | own, loss, text, vocabulary, rows, length, options.seed, options.initial)


def batch_size(space: ArchitectureSpace, options: so.RecordingOptions) -> tuple[int, int]:
    """Texts of a batch and tokens of each: those of the options, else of the space; BadInput for too many tokens."""
    usual_rows, usual_length = space.batch
    rows = usual_rows if options.batch_rows is None else options.batch_rows
    length = usual_length if options.length is None else options.length
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
