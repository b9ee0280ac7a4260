"""hw-gpt-bench: decoders cut out of one trained super-network each for sizes s and m (Sukthanker et al. 2024).

Layout: gpt_s.jsonl and gpt_m.jsonl, one architecture per line with embed, layers, heads, mlp_ratio, bias, perplexity
and accuracy on OpenWebText. Weights are the first rows and columns of the super-network's: shared weights, which favour
what the super-network was trained on most. What is wrong with one line makes that row missing.
"""

import json
import math
from pathlib import Path
from typing import Any

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, Row, Unusable
from archwright.errors import BadInput
from archwright.search import Config
from archwright.spaces.hw_gpt import HwGptSpace

ORIGIN = "https://github.com/automl/HW-GPT-Bench"
LICENCE = "Apache-2.0"
TARGETS = ("perplexity", "accuracy")
SHARED = "shared weights: results of sub-networks of one super-network, not of networks trained by themselves"


def load_hw_gpt_bench(folder: Path, variant: str = "s") -> BenchmarkTable:
    """Perplexities with their sign changed."""
    file, space = folder / f"gpt_{variant}.jsonl", HwGptSpace(variant)
    if not file.is_file():
        raise BadInput(f"{file} must be a file of the benchmark, got none; download it from {ORIGIN}.")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, OSError) as error:
        raise BadInput(f"{file} must be a text file, got {error}; download it from {ORIGIN}.") from error
    rows, missing = [], []
    for number, line in enumerate(lines):
        try:
            rows.append(read_row(f"{variant}{number}", line, space))
        except Unusable as why:
            missing.append(Missing(f"{variant}{number}", str(why)))
    if not rows:
        why_none = missing[0].reason if missing else "it is empty"
        raise BadInput(f"{file} has no usable architecture ({why_none}); download it from {ORIGIN}.")
    return BenchmarkTable(
        "hw-gpt-bench",
        variant,
        space,
        tuple(rows),
        tuple(missing),
        target=TARGETS[0],
        targets=TARGETS,
        licence=LICENCE,
        caution=SHARED,
    )


def read_row(name: str, line: str, space: HwGptSpace) -> Row:
    try:
        entry = json.loads(line)
        config = read_config(entry)
        space.check(config)
        trained = {"perplexity": -number(entry, "perplexity"), "accuracy": number(entry, "accuracy")}
    except (ValueError, RecursionError) as error:
        raise Unusable(f"a line must be a JSON object: {error}") from error
    except KeyError as error:
        raise Unusable(f"has no {error.args[0]}") from error
    except (TypeError, AttributeError, BadInput) as error:
        raise Unusable(str(error)) from error
    return Row(name, space.canonical(config), trained, published={}, cell=f"{config['embed']}x{config['layers']}")


def read_config(entry: Any) -> Config:
    config: Config = {name: entry[name] for name in ("embed", "layers", "bias")}
    for name, key in (("heads", "heads"), ("ratio", "mlp_ratio")):
        values = entry[key]
        if not isinstance(values, list) or len(values) != config["layers"]:
            raise TypeError(f"{key} must be a list with one entry for each of {config['layers']} layers")
        config |= {f"{name}{place}": value for place, value in enumerate(values)}
    return config


def number(entry: Any, key: str) -> float:
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise TypeError(f"{key} must be a positive number, got {value!r}")
    return float(value)


HW_GPT_BENCH = Benchmark(
    "hw-gpt-bench",
    load_hw_gpt_bench,
    folder="hw-gpt-bench",
    origin=ORIGIN,
    licence=LICENCE,
    variants=("s", "m"),
)
