"""Statistics of untrained networks: a second kind of look, kept on disk by content."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from archwright.discovery.score_table import Values
from archwright.errors import Failed
from archwright.parallel.pool import WorkerPool
from archwright.progress import progress
from archwright.proxies.formulas.inputs import passes_needed, roles_needed
from archwright.proxies.formulas.operations import Chain
from archwright.scoring.request import ScoreRequest, record_network
from archwright.scoring.scorer import key_of
from archwright.store import digest, write_whole

FOLDER = "statistics"


@dataclass(frozen=True)
class Statistics:
    """What to look at, and the chains whose numbers are wanted."""

    at: ScoreRequest
    inputs: tuple[str, ...]
    chains: tuple[Chain, ...]

    def __call__(self) -> Values:
        """Inputs x chains x layers."""
        from archwright.proxies.formulas.statistics import statistics

        probe = record_network(self.at, passes_needed(self.inputs), roles_needed(self.inputs))
        return np.asarray(statistics(probe, self.chains, self.inputs), dtype=np.float64)

    @property
    def key(self) -> str:
        return digest(key_of(self.at), repr((self.inputs, self.chains)))


def seen(wanted: Sequence[Statistics], folder: Path, eyes: WorkerPool) -> list[Values]:
    """The statistics of each; what lies in the folder is not taken again, the rest lies there as soon as it is."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    files = [place / f"{one.key}.npy" for one in wanted]
    undone = {file: one for file, one in zip(files, wanted, strict=True) if not file.exists()}
    tasks = [one for one in undone.values()]
    with progress("statistics", len(tasks), "networks") as bar:
        for done, found in eyes.map_unordered(tasks):
            write_whole(list(undone)[done], as_bytes(found))
            bar.advance()
    return [read(file, one) for file, one in zip(files, wanted, strict=True)]


def as_bytes(values: Values) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def read(file: Path, of: Statistics) -> Values:
    try:
        found = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Failed(f"{file} is damaged ({error}); delete it and run the same command again.") from error
    if found.ndim != 3 or found.shape[:2] != (len(of.inputs), len(of.chains)):
        raise Failed(f"{file} is damaged (shape {found.shape}); delete it and run the same command again.")
    return np.asarray(found, dtype=np.float64)


def without_proxies(at: ScoreRequest) -> ScoreRequest:
    """The look alone, so that what it is sent with is small."""
    return replace(at, proxies=(), own={}, found={})
