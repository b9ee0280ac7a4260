"""All formulas of a space, ranked pair of inputs by pair: matrices of scores, sorted in blocks, the best kept."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.errors import Failed
from archwright.jobs.discovery.table import LEAST_SHARE, REDUCTIONS, Mask, Table, Values
from archwright.jobs.discovery.trial import FITNESS, Trial
from archwright.jobs.eyes import Eyes, here
from archwright.progress import progress
from archwright.proxies.formula import Branch, Formula
from archwright.proxies.simplifying import PRUNED
from archwright.spaces.formulas import FormulaSpace, Sided
from archwright.store import digest, write_whole

FOLDER = "discover"
BINS = np.linspace(-1, 1, 401)
KEPT = 200
"""Formulas of a pair that are kept for every set of rows, besides the best of each size."""
WORTH_PROCESSES = 200_000
"""Formulas below which starting processes would take longer than ranking them here."""
JOINED = ("add", "sub", "mul")
"""The fourth binary operation is the third on numbers."""


@dataclass(frozen=True)
class Side:
    """One input with the numbers of its chains."""

    sided: Sided
    values: Values
    """Networks x layers x chains."""

    @property
    def signs(self) -> Mask:
        """(plus, minus) x chains: which of them the space has."""
        return np.array([self.sided.plus, self.sided.minus])

    @property
    def sizes(self) -> Values:
        return np.array([len(chain) for chain in self.sided.chains])

    def of(self, chains: Mask) -> "Side":
        """Only these chains."""
        of = self.sided
        kept = [
            triple
            for triple, wanted in zip(zip(of.chains, of.plus, of.minus, strict=True), chains, strict=True)
            if wanted
        ]
        named, plus, minus = zip(*kept, strict=True) if kept else ((), (), ())
        return Side(Sided(of.input, named, plus, minus), self.values[:, :, chains])


@dataclass(frozen=True)
class Pair:
    """All formulas of two inputs, or of one alone: work for a process."""

    left: Side
    right: Side | None
    trial: Trial
    reduction: str

    def __call__(self) -> dict[str, Any]:
        """How many formulas there are and how good the best of them are, on every set of rows."""
        there = ~np.isnan(self.left.values[:, :, 0])
        there &= ~np.isnan(self.right.values[:, :, 0]) if self.right else True
        networks: Mask = np.asarray(there.any(axis=1))
        known = {"total": self.total, "valid": 0, "counts": np.zeros(len(BINS) - 1, dtype=int).tolist(), "best": []}
        if self.trial.rows[networks].sum() < LEAST_SHARE * len(self.trial.truth):
            return known
        pair = replace(self, left=cut(self.left, there), right=cut(self.right, there) if self.right else None)
        fitness = pair.fitness(networks, there)
        return known | pair.summary(fitness)

    @property
    def total(self) -> int:
        return int(self.available().sum())

    def available(self) -> Mask:
        """(as it is, turned round) x binary x left x right: whether the space has the formula."""
        if self.right is None:
            return self.left.signs[:, None, :, None]
        left, right = self.left.signs, self.right.signs
        sums = np.repeat(left[:, :, None], right.shape[1], axis=2)  # the sign on the right is the binary operation's
        plus, minus = ((left[:, :, None] & other[:, None, :]).any(axis=0) for other in (right, right[::-1]))
        return np.stack([sums, sums, np.stack([plus, minus])], axis=1)

    def sizes(self) -> Values:
        """Of the same."""
        if self.right is None:
            return np.stack([self.left.sizes, self.left.sizes + 1])[:, None, :, None] + 1
        both = self.left.sizes[:, None] + self.right.sizes[None] + 3
        return np.stack([np.stack([both, both, both]), np.stack([both + 1, both, both + 1])])

    def fitness(self, networks: Mask, there: Mask) -> Values:
        """Binary x left x right x sets; NaN for what is not finite somewhere, or constant."""
        rankings = self.trial.rankings(networks)
        measure = FITNESS[self.trial.fitness]
        layers = REDUCTIONS[self.reduction](there.sum(axis=1).astype(np.float64))[networks]
        found = np.full((*self.available().shape[1:], len(self.trial.sets)), np.nan)
        for left, binary, scores in self.blocks(networks, layers):
            valid = np.isfinite(scores).all(axis=1)
            found[binary, left, valid] = measure(rankings, scores[valid])
        return found

    def blocks(self, networks: Mask, layers: Values) -> Iterator[tuple[int, int, Values]]:
        """Place of the left chain and of the binary operation, and the scores, right chains x networks."""
        left = self.left.values[networks].transpose(1, 2, 0)  # layers x chains x networks
        sums = left.sum(axis=0) / layers
        if self.right is None:
            yield from ((place, 0, row[None]) for place, row in enumerate(sums))
            return
        right = self.right.values[networks].transpose(1, 2, 0).copy()
        others = right.sum(axis=0) / layers
        with np.errstate(all="ignore"):
            for place, row in enumerate(sums):
                yield place, 0, row + others
                yield place, 1, row - others
                yield place, 2, sum(one[place] * other for one, other in zip(left, right, strict=True)) / layers

    def summary(self, fitness: Values) -> dict[str, Any]:
        """What is kept of all these numbers."""
        signed = np.where(self.available()[..., None], np.stack([fitness, -fitness]), np.nan)
        last = signed[..., -1]
        valid = np.isfinite(last)
        sizes = np.broadcast_to(self.sizes(), last.shape)
        counts = np.histogram(np.clip(last[valid], -1, 1), BINS)[0]
        best = [self.kept(signed[..., place], sizes) for place in range(signed.shape[-1])]
        return {"valid": int(valid.sum()), "counts": counts.tolist(), "best": best}

    def kept(self, fitness: Values, sizes: Values) -> list[list[Any]]:
        """[fitness, size, formula] of the best on one set of rows."""
        flat, of = np.nan_to_num(fitness, nan=-np.inf).ravel(), sizes.ravel()
        most = min(KEPT, len(flat))
        found = set(np.argpartition(flat, -most)[-most:].tolist())
        for size in np.unique(of):
            found.add(int(np.argmax(np.where(of == size, flat, -np.inf))))
        valid = [code for code in found if np.isfinite(flat[code])]
        return sorted(([float(flat[code]), int(of[code]), str(self.formula(code))] for code in valid), key=order)

    def formula(self, code: int) -> Formula:
        """The formula at this place of the arrays above."""
        shape = self.available().shape
        turned, binary, left, right = np.unravel_index(code, shape)
        one = Branch(self.left.sided.input, self.left.sided.chains[left])
        if self.right is None:
            alone = one.with_sign() if turned else one
            return Formula(alone, Branch(one.input, PRUNED), "add", self.reduction).canonical()
        other = Branch(self.right.sided.input, self.right.sided.chains[right])
        joined = Formula(one.with_sign() if turned else one, other, JOINED[binary], self.reduction)
        if turned and JOINED[binary] in FLIPPED:
            joined = replace(joined, binary=FLIPPED[JOINED[binary]])
        return joined.canonical()


FLIPPED = {"add": "sub", "sub": "add"}
"""Turned round as a whole: -(x + y) is -x - y."""


def order(row: Sequence[Any]) -> tuple[float, int, str]:
    """The best first; of equals the smallest."""
    return -row[0], row[1], row[2]


def cut(side: Side, there: Mask) -> Side:
    """Zero in layers that do not count, and without the chains that are not finite in one that does."""
    finite: Mask = np.asarray((np.isfinite(side.values) | ~there[..., None]).all(axis=(0, 1)))
    kept = side.of(finite)
    return replace(kept, values=np.where(there[..., None], kept.values, 0.0))


def pairs(space: FormulaSpace, table: Table, trial: Trial) -> dict[str, Pair]:
    """The work, by name: every pair of inputs, and every input alone."""
    sides = {name: side_of(space.sides[name], table) for name in space.inputs}
    alone = {name: Pair(side, None, trial, space.reduction) for name, side in sides.items()}
    both = {f"{a} {b}": Pair(sides[a], sides[b], trial, space.reduction) for a, b in space.pairs}
    return both | alone


def side_of(sided: Sided, table: Table) -> Side:
    columns = [table.column(Branch(sided.input, chain)) for chain in sided.chains]
    return Side(sided, np.stack(columns, axis=2))


def ranked(space: FormulaSpace, table: Table, trial: Trial, folder: Path, eyes: Eyes) -> dict[str, dict[str, Any]]:
    """What came of every pair; those done before, with the same statistics, rows and folds, are not done again."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    work = pairs(space, table, trial)
    files = {name: place / f"{key}.json" for name, key in keys(space, table, trial, work).items()}
    found = {name: read(file) for name, file in files.items() if file.exists()}
    undone = [name for name in work if name not in found]
    who = eyes if sum(work[name].total for name in undone) > WORTH_PROCESSES else here
    with progress("formulas", sum(one.total for one in work.values()), "formulas") as bar:
        bar.advance(sum(work[name].total for name in found))
        for done, result in who([work[name] for name in undone]):
            write_whole(files[undone[done]], json.dumps(result))
            found[undone[done]] = result
            bar.advance(work[undone[done]].total)
    return {name: found[name] for name in work}


def keys(space: FormulaSpace, table: Table, trial: Trial, names: Sequence[str] | dict[str, Pair]) -> dict[str, str]:
    rows = repr((trial.groups, trial.cells, trial.fitness, trial.fold.tolist(), space.reduction, space.unary, KEPT))
    content = digest(rows, repr((table.inputs, table.chains)), table.values.tobytes(), trial.truth.tobytes())
    return {name: digest(content, name) for name in names}


def read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
        if {"total", "valid", "counts", "best"} <= found.keys():
            return dict(found)
    except (OSError, ValueError, AttributeError):
        pass
    raise Failed(f"{file} is damaged; delete it and run the same command again.")
