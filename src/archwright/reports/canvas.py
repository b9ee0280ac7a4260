"""Characters on a grid with two axes, and a one-line histogram."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from archwright.reports.measures import SHARE, Measure

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """From a value to a height on the paper, and back."""

    height: Callable[[float], float]
    value: Callable[[float], float]


SCALES = {"linear": Scale(float, float), "log": Scale(lambda y: math.log(max(y, 1.0)), math.exp)}
"""A perplexity is never below 1."""


@dataclass(frozen=True)
class Canvas:
    """A plot of x from 0 to 1 and y between `low` and `high` on the scale of the measure, growing upwards."""

    cells: list[list[str]]
    low: float
    high: float
    measure: Measure = SHARE

    @classmethod
    def around(cls, points: Sequence[Point], *, columns: int, rows: int, measure: Measure = SHARE) -> "Canvas":
        heights = [SCALES[measure.scale].height(y) for _, y in points]
        low, high = min(heights), max(heights)
        room = (high - low) * 0.05 or 0.01
        return cls([[" "] * columns for _ in range(rows)], max(0.0, low - room), high + room, measure)

    def _cell(self, point: Point) -> tuple[int, int]:
        """Row (0 on top) and column of a point, the nearest one when it lies outside."""
        rows, columns = len(self.cells), len(self.cells[0])
        height = (SCALES[self.measure.scale].height(point[1]) - self.low) / (self.high - self.low)
        row, column = round((1 - height) * (rows - 1)), round(point[0] * (columns - 1))
        return min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)

    def marks(self, points: Sequence[Point], mark: str) -> None:
        for point in points:
            row, column = self._cell(point)
            self.cells[row][column] = mark

    def steps(self, points: Sequence[Point]) -> None:
        """The staircase through points sorted by x: an error holds until the next larger network."""
        for left, right in pairwise(points):
            (top, start), (bottom, end) = self._cell(left), self._cell(right)
            for column in range(start, end):
                self.cells[top][column] = "─"
            for row in range(min(top, bottom), max(top, bottom)):
                self.cells[row][end] = "│" if row != top else "┐"

    def text(self, *, below: str, key: Sequence[str]) -> str:
        rows, columns = len(self.cells), len(self.cells[0])
        height = self.high - self.low
        named = {row: self.high - height * row / (rows - 1) for row in (0, rows // 2, rows - 1)}
        value, show = SCALES[self.measure.scale].value, self.measure.show
        labels = [f"{show(value(named[row]), 1):>7}" if row in named else " " * 7 for row in range(rows)]
        lines = [f"{label} ┤{''.join(cells)}" for label, cells in zip(labels, self.cells, strict=True)]
        scale = "".join(f"{label:<{columns // 4}}" for label in ("0 %", "25 %", "50 %", "75 %")).ljust(columns)
        lines += [" " * 8 + "└" + "─" * columns, " " * 9 + f"{scale[: columns - 5]}100 %"]
        lines += [" " * 9 + part[:columns] for part in (below, *wrapped(key, columns))]
        return "\n".join([f"  {self.measure.word}", *(line.rstrip() for line in lines)]) + "\n"


def wrapped(words: Sequence[str], columns: int) -> list[str]:
    """The words with two spaces between them, on as many lines as they need."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]}  {word}" if lines[-1] else word
        lines[-1:] = [longer] if len(longer) <= columns or not lines[-1] else [lines[-1], word]
    return lines


def bars(shares: Sequence[float], columns: int) -> str:
    """A histogram of values between 0 and 1 as one line of block characters."""
    counts = [0] * columns
    for share in shares:
        counts[min(max(int(share * columns), 0), columns - 1)] += 1
    tallest = max(counts)
    return "".join("▁▂▃▄▅▆▇█"[math.ceil(8 * count / tallest) - 1] if count else " " for count in counts)
