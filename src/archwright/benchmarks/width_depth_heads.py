"""width-depth-heads: open_lm decoders trained from scratch on a grid, some with several warm-ups (mlfoundations).

Layout: grid.json maps d=WIDTH_l=LAYERS_h=HEADS-batch-lr-wd-batch-tokens-warmup-lr_end to the final loss. The score of a
network is that of its best warm-up; the other warm-ups tell how much of the ranking is chance. Networks were trained
with 20 tokens per parameter, so every key also says how many parameters its network has.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, Row, Unusable
from archwright.errors import BadInput
from archwright.search import Config
from archwright.spaces.open_lm import OpenLmSpace

ORIGIN = "https://github.com/mlfoundations/scaling"
LICENCE = "MIT"
TABLE = "grid.json"
LOSS = "loss"
KEY = re.compile(r"d=(\d+)_l=(\d+)_h=(\d+)-[^-]+-[^-]+-[^-]+-[^-]+-(\d+)-(\d+)-.+")
TOKENS_PER_PARAMETER = 20


def load_width_depth_heads(folder: Path, variant: str = "trained") -> BenchmarkTable:
    """Losses with their sign changed, one row per network."""
    space, path = OpenLmSpace(), folder / TABLE
    runs: dict[tuple[int, int, int], dict[str, float]] = {}
    tokens: dict[tuple[int, int, int], int] = {}
    missing = []
    for key, value in read_entries(path).items():
        try:
            shape, seen, warmup = read_key(key)
            result = -loss(value)
            space.check(config_of(shape))
        except (Unusable, BadInput) as why:
            missing.append(Missing(key, str(why)))
            continue
        if tokens.setdefault(shape, seen) != seen:
            missing.append(Missing(key, f"{seen} tokens, where another run of the network has {tokens[shape]}"))
            continue
        runs.setdefault(shape, {})[f"warm-up {warmup}"] = result
    if not runs:
        raise BadInput(f"{path} has no usable run; download it from {ORIGIN} (exp_data).")
    rows = [row_of(shape, runs[shape], tokens[shape]) for shape in sorted(runs)]
    return BenchmarkTable(
        "width-depth-heads",
        variant,
        space,
        tuple(rows),
        tuple(missing),
        target=LOSS,
        targets=(LOSS,),
        licence=LICENCE,
        smallest_cell=2,
        caution="the best warm-up is a network's score; tokens grow with the size, 20 per parameter",
    )


def read_entries(path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(f"{path} must be a file of the benchmark, got none; download it from {ORIGIN}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} must be a JSON file, got: {error}; download it again from {ORIGIN}.") from error
    if not isinstance(entries, dict):
        raise BadInput(f"{path} must map runs to losses, got {type(entries).__name__}; download it from {ORIGIN}.")
    return entries


def read_key(key: str) -> tuple[tuple[int, int, int], int, int]:
    """(width, depth, heads), tokens and warm-up of a run."""
    found = KEY.fullmatch(key)
    if found is None:
        raise Unusable("must be named d=WIDTH_l=LAYERS_h=HEADS-batch-lr-wd-batch-tokens-warmup-lr_end")
    width, depth, heads, tokens, warmup = map(int, found.groups())
    return (width, depth, heads), tokens, warmup


def loss(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise Unusable(f"a loss must be a positive number, got {value!r}")
    return float(value)


def config_of(shape: tuple[int, int, int]) -> Config:
    return dict(zip(("width", "depth", "heads"), shape, strict=True))


def row_of(shape: tuple[int, int, int], runs: dict[str, float], tokens: int) -> Row:
    width, depth, heads = shape
    return Row(
        id=f"d={width}_l={depth}_h={heads}",
        config=config_of(shape),
        trained={LOSS: max(runs.values())},
        published={"parameters": tokens / TOKENS_PER_PARAMETER},
        cell=f"{width}x{depth}",
        runs=runs,
    )


WIDTH_DEPTH_HEADS = Benchmark(
    "width-depth-heads",
    load_width_depth_heads,
    folder="width-depth-heads",
    origin=ORIGIN,
    licence=LICENCE,
)
