"""Plots of characters: points on a grid with two axes, and a one-line histogram."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from archwright.reports.numbers import SHARE, ErrorFormat

Point = tuple[float, float]


@dataclass(frozen=True)
class Canvas:
    """A plot of x from 0 to 1 and of errors between `low` and `high`, growing upwards; see `Canvas.around`."""

    cells: list[list[str]]
    low: float
    high: float
    errors: ErrorFormat = SHARE

    @classmethod
    def around(cls, points: Sequence[Point], *, columns: int, rows: int, errors: ErrorFormat = SHARE) -> "Canvas":
        """An empty plot with room for these points."""
        canvas = cls([[" "] * columns for _ in range(rows)], 0.0, 1.0, errors)
        heights = [canvas._height(y) for _, y in points]
        low, high = min(heights), max(heights)
        room = (high - low) * 0.05 or 0.01
        return cls(canvas.cells, max(0.0, low - room), high + room, errors)

    def _height(self, error: float) -> float:
        """Where an error stands on the paper; on a logarithmic scale it is a perplexity, which is never below 1."""
        return math.log(max(error, 1.0)) if self.errors.scale == "log" else error

    def _cell(self, point: Point) -> tuple[int, int]:
        """Row (0 on top) and column of a point, the nearest one when it lies outside."""
        rows, columns = len(self.cells), len(self.cells[0])
        height = (self._height(point[1]) - self.low) / (self.high - self.low)
        row, column = round((1 - height) * (rows - 1)), round(point[0] * (columns - 1))
        return min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)

    def draw_marks(self, points: Sequence[Point], mark: str) -> None:
        for point in points:
            row, column = self._cell(point)
            self.cells[row][column] = mark

    def draw_steps(self, points: Sequence[Point]) -> None:
        """The staircase through points sorted by x: an error holds until the next larger network."""
        for left, right in pairwise(points):
            (top, start), (bottom, end) = self._cell(left), self._cell(right)
            for column in range(start, end):
                self.cells[top][column] = "─"
            for row in range(min(top, bottom), max(top, bottom)):
                self.cells[row][end] = "│" if row != top else "┐"

    def text(self, *, below: str, key: Sequence[str]) -> str:
        rows, columns = len(self.cells), len(self.cells[0])
        lines = []
        for row, cells in enumerate(self.cells):
            height = self.high - (self.high - self.low) * row / (rows - 1)
            error = math.exp(height) if self.errors.scale == "log" else height
            label = self.errors.show(error, 1) if row in (0, rows // 2, rows - 1) else ""
            lines.append(f"{label:>7} ┤{''.join(cells)}")
        scale = "".join(f"{label:<{columns // 4}}" for label in ("0 %", "25 %", "50 %", "75 %")).ljust(columns)
        lines += [" " * 8 + "└" + "─" * columns, " " * 9 + f"{scale[: columns - 5]}100 %"]
        lines += [" " * 9 + part[:columns] for part in (below, *wrap_words(key, columns))]
        return "\n".join([f"  {self.errors.word}", *(line.rstrip() for line in lines)]) + "\n"


def wrap_words(words: Sequence[str], columns: int) -> list[str]:
    """The words with two spaces between them, on as many lines as they need."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]}  {word}" if lines[-1] else word
        lines[-1:] = [longer] if len(longer) <= columns or not lines[-1] else [lines[-1], word]
    return lines


def text_histogram(shares: Sequence[float], columns: int) -> str:
    """A histogram of values between 0 and 1 as one line of block characters."""
    counts = [0] * columns
    for share in shares:
        counts[min(max(int(share * columns), 0), columns - 1)] += 1
    tallest = max(counts)
    return "".join("▁▂▃▄▅▆▇█"[math.ceil(8 * count / tallest) - 1] if count else " " for count in counts)
