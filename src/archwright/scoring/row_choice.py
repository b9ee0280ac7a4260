"""Which rows of a large benchmark are scored by building their networks: what fits the time and the memory.

Estimates are closed-form and the same on every machine, so that one seed always chooses the same rows. Only networks
that do not fit the memory of this machine depend on it, and a line says how many.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archwright.environment import available_memory
from archwright.networks.roles import Counts
from archwright.random_streams import ROW_CHOICE

USUAL_MINUTES = 5.0
"""What `rank` may take on two cores if nobody says otherwise."""
CORES = 2
ROWS_SHARE, REPEATS_SHARE = 0.6, 0.25
"""Of the time for the rows, and for repeats with other weights and batches; the rest is for costs and statistics."""
RATE = 25e9
"""Floating-point operations per second and core, as slow processors of today reach them on small networks."""
FIXED_SECONDS, SECONDS_PER_WEIGHT = 0.25, 6e-8
"""Of one network: whatever its size; and to draw a weight and let all proxies read it and its gradient."""
COPIES = 6
"""Numbers held per weight while all default passes run: itself, gradients, absolute values, flows, scratch."""
MEMORY_SHARE = 0.7
MOST_REPEATS = 10


@dataclass(frozen=True)
class RowChoice:
    """Places of the rows to score, in the order in which they are scored, and what to say about the others."""

    places: tuple[int, ...]
    repeats: int
    """Initial weights, and batches, that the ten networks of the ablation are scored with; below 2 there is none."""
    notes: tuple[str, ...]


def choose_rows(
    counts: Sequence[Counts],
    cells: Sequence[str],
    *,
    tokens: int,
    wanted: int | None,
    minutes: float | None,
    workers: int,
    seed: int,
) -> RowChoice:
    """All rows where they fit; else a stratified sample of those whose networks fit the memory of a worker."""
    memory = available_memory()
    limit = math.inf if memory is None else MEMORY_SHARE * memory / max(1, workers) / (4 * COPIES)
    fits = [place for place, count in enumerate(counts) if count.nonembedding <= limit]
    large = len(counts) - len(fits)
    budget = 60 * CORES * (USUAL_MINUTES if minutes is None else minutes)
    seconds = [network_seconds(counts[place], tokens) for place in fits]
    mean = float(np.mean(seconds)) if seconds else 0.0
    affordable = len(fits) if sum(seconds) <= ROWS_SHARE * budget else int(ROWS_SHARE * budget / mean)
    amount = min(len(fits), affordable if wanted is None else wanted)
    order = stratified_order([cells[place] for place in fits], rng=np.random.default_rng((seed, ROW_CHOICE)))
    places = tuple(fits[place] for place in order[:amount])
    repeats = min(MOST_REPEATS, int(REPEATS_SHARE * budget / (2 * 10 * mean))) if mean else 0
    notes = []
    if large:
        notes.append(
            f"{large} of {len(counts)} networks are too large to be scored in the memory here; counts are of all."
        )
    if amount < len(fits):
        why = (
            "--rows"
            if wanted is not None
            else f"what {budget / 60 / CORES:g} minutes on 2 cores are estimated to allow"
        )
        notes.append(
            f"Proxies that need a network are scored on {amount} of {len(fits)} rows ({why}), a seeded sample with all "
            f"cells in proportion; counts are those of all rows. --rows N scores more."
        )
    return RowChoice(places, repeats, tuple(notes))


def network_seconds(counts: Counts, tokens: int) -> float:
    """Core-seconds that building and scoring one network with the default proxies is estimated to take."""
    return FIXED_SECONDS + 3 * counts.flops * tokens / RATE + SECONDS_PER_WEIGHT * counts.nonembedding


def stratified_order(cells: Sequence[str], *, rng: np.random.Generator) -> list[int]:
    """All places in an order of which every beginning has each cell in proportion, as far as whole rows allow."""
    names = np.asarray(cells)
    share = np.empty(len(names))
    for cell in np.unique(names):
        here = np.flatnonzero(names == cell)
        share[rng.permutation(here)] = (np.arange(len(here)) + 0.5) / len(here)  # how much of its cell comes before
    return [int(place) for place in np.lexsort((rng.random(len(names)), share))]
