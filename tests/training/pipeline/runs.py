"""Small trainings as a user starts them."""

from pathlib import Path
from typing import Any

import archwright as aw
from archwright.spaces.flexibert import LAYER

DESIGNS: dict[str, dict[str, Any]] = {
    "flexibert": {"layers": 2, "hidden": 128}
    | {f"{name}.{at}": values[0] for at in range(2) for name, values in LAYER.items()},
    "nlu-tiny": {f"block.{at}": "mobile-132" for at in range(6)} | {"block.3": "base-132"},
    "gpt2": {"n_layer": 2, "d_model": 128, "d_embed": 128, "div_val": 1}
    | {f"n_head{at}": 2 for at in range(2)}
    | {f"d_inner{at}": 256 for at in range(2)},
    "rnn": {
        "recipe": {
            "node_0": {"op": "linear", "input": ["x", "h_prev_0"]},
            "h_new_0": {"op": "activation_tanh", "input": ["node_0"]},
        }
    },
}
QUICK: dict[str, Any] = {
    "steps": 25, "batch_size": 8, "max_length": 16, "validation_rows": 40, "threads": 1, "learning_rate": 2e-3
}  # fmt: skip


def trained(out: Path, **options: Any) -> Any:
    return aw.train(**{**options, "out": out})
