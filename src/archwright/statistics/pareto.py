"""How much of the objective space a set of points dominates; every objective is minimised."""

from __future__ import annotations

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

from archwright.errors import BadInput

Points = NDArray[np.float64]  # points x objectives


def hypervolume(points: ArrayLike, reference: ArrayLike) -> float:
    """The volume between the points and the reference point, larger is better, exact; 0.0 without points.

    A point beyond the reference in any objective adds nothing (Zitzler et al. 2003; Klein et al. 2024, Figure 4).
    """
    rows, corner = _check_points(points, reference)
    return float(moocore.hypervolume(rows, ref=corner)) if len(rows) else 0.0


def hypervolume_over_time(points: ArrayLike, reference: ArrayLike) -> list[float]:
    """The hypervolume after the first point, the first two, and so on."""
    rows, corner = _check_points(points, reference)
    best = np.empty((0, corner.size))
    volumes: list[float] = []
    for row in rows:
        if not (best <= row).all(axis=1).any():  # a dominated or repeated point changes nothing
            best = np.vstack([best[~(row <= best).all(axis=1)], row])
            volumes.append(hypervolume(best, corner))
        else:
            volumes.append(volumes[-1])
    return volumes


def pareto_mask(points: ArrayLike) -> NDArray[np.bool_]:
    """True for every point that no other dominates; equal points stay together."""
    rows = np.asarray(points, dtype=np.float64)
    if not len(rows):
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(rows, keep_weakly=True), dtype=bool)


def _check_points(points: ArrayLike, reference: ArrayLike) -> tuple[Points, Points]:
    corner = np.asarray(reference, dtype=np.float64)
    rows = np.asarray(points, dtype=np.float64)
    if not rows.size:
        return np.empty((0, corner.size)), corner
    if rows.ndim != 2 or rows.shape[1] != corner.size:
        raise BadInput(f"points must be rows of {corner.size} objectives like the reference, got shape {rows.shape}.")
    if not (np.isfinite(rows).all() and np.isfinite(corner).all()):
        raise BadInput("a hypervolume needs finite numbers, got NaN or infinity; leave out trials without a value.")
    return rows, corner
