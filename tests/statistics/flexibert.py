"""The FlexiBERT benchmark as plain columns, read without any of our loaders."""

import csv
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.statistics import Resampling, draw_resamples, lexicographic

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    glue: Array
    tasks: Array
    depth: Array
    width: Array
    networks: list[str]
    """What was really trained: operators had no effect, nor had the width of a stack of one."""
    published: dict[str, Array]

    @property
    def cells(self) -> list[str]:
        return [f"{depth}x{width}" for depth, width in zip(self.depth, self.width, strict=True)]

    @property
    def shape(self) -> Array:
        return lexicographic(self.depth, self.width)

    def ground(self, size: int = 200) -> Resampling:
        return draw_resamples(
            self.glue,
            cells=self.cells,
            parameters=self.published["Number of Parameters"],
            depth_width=self.shape,
            groups=self.networks,
            rng=np.random.default_rng(0),
            size=size,
        )


def trained(row: dict[str, Any]) -> str:
    chosen = row["hparams"]["model_hparam_overrides"]
    layers = [
        (
            one["num_operation_heads"],
            one["num_feed_forward"],
            one["feed_forward_dimension"] * (one["num_feed_forward"] == 3),
        )
        for one in chosen["nas_config"]["encoder_layers"]
    ]
    return repr((chosen["hidden_size"], layers))


@cache
def flexibert(data_dir: Path) -> Columns:
    rows = json.loads((data_dir / "nas-bert" / "BERT_benchmark.json").read_text())
    metrics = {int(row["ID"]): row for row in csv.DictReader((data_dir / "nas-bert" / "published_metrics.csv").open())}
    chosen = [row["hparams"]["model_hparam_overrides"] for row in rows]
    names = [name for name in next(iter(metrics.values())) if name not in ("ID", "GLUE Score")]
    return Columns(
        np.array([row["scores"]["glue"] for row in rows]),
        np.array([[score for task, score in row["scores"].items() if task != "glue"] for row in rows]),
        np.array([len(one["nas_config"]["encoder_layers"]) for one in chosen]),
        np.array([one["hidden_size"] for one in chosen]),
        [trained(row) for row in rows],
        {name: np.array([float(metrics[row["id"]][name] or "nan") for row in rows]) for name in names},
    )
