"""Correlations that papers printed about training-free proxies, to stand beside ours.

w-pca: "Gradient-free Proxy for Efficient Language Model Search", submission under review;
lpzero: "LPZero: Language Model Zero-cost Proxy Search from Zero", submission under review;
training-free-nas: Serianni & Kalita, "Training-free Neural Architecture Search for RNNs and Transformers" (ACL 2023).
Papers that contradict each other, or themselves, stand side by side.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

FILE = "published.csv"


def published_numbers() -> list[dict[str, Any]]:
    """All printed numbers, in the order of the papers' tables.

    `paper`, `table`: where it stands; `benchmark`; `printed`: the proxy's name there; `proxy`: ours that it is about,
    empty when there is none; `statistic`: a name of STATISTICS, what it is, not always what it was called;
    `value`; `note`.
    """
    text = files("archwright.statistics").joinpath(FILE).read_text(encoding="utf-8")
    return [row | {"value": float(row["value"])} for row in csv.DictReader(text.splitlines())]


STATISTICS = {"spearman": "spearman", "kendall": "kendall_b", "pearson-called-spearman": "pearson"}
"""A printed statistic -> the column of a judgement that is the same thing."""
