"""nas-bench-nlp: recurrent cells, trained on WikiText-2 by Klyuchnikov et al. and scored by Serianni and Kalita.

Layout: train_logs_wikitext-2/logs.zip (or the unpacked logs anywhere below that folder), and of the other project
published_ptb_metrics.csv (a part of its RNN_results.csv, which is read too), RNN_parameters.csv and the ablations. Logs
of the two datasets have different names; what they share is the number of the recipe.
"""

import csv
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, PublishedMetric, Row, Unusable
from archwright.errors import BadInput
from archwright.search import Config
from archwright.spaces.cells import CellSpace

ORIGIN = "https://github.com/fmsnew/nas-bench-nlp-release"
METRICS_ORIGIN = "https://github.com/aaronserianni/training-free-nas"
LICENCE = "Apache-2.0 (logs), CC-BY-4.0 (published metrics)"
LOGS = "train_logs_wikitext-2"
TABLES = ("RNN_parameters.csv", "RNN_results.csv", "published_ptb_metrics.csv")
"""Those that exist are read in this order, later ones on top."""
ABLATIONS = {"initialization": "RNN_initialization_ablation.csv", "batch": "RNN_batch_ablation.csv"}
WIKITEXT, PTB = "wikitext2_loss", "ptb_loss"
FIXED: Mapping[str, Any] = {"emsize": 400, "nhid": 600, "nlayers": 3, "tied": True}
"""What shapes a network and is the same in all logs: others are none of the space."""
NAME, LOSS = "log name", "loss"
RESULTS = {LOSS, "perplexity", "bits per word"}
RENAMED = {"Hidden Synflow Saliency": "Hidden Synaptic Saliency"}
LOG = "log_stats_model_"
PARTS = 5


def load_nas_bench_nlp(folder: Path, variant: str = "trained") -> BenchmarkTable:
    """Losses with their sign changed; the one on PTB only where it was published."""
    space, tables = CellSpace(), read_metrics(folder)
    rows, sizes, missing = [], [], []
    for name, content in read_logs(folder):
        try:
            log = parse_log(content)
            size, row = number(log, "num_params"), read_row(name, log, space, tables)
        except Unusable as why:
            missing.append(Missing(name, str(why)))
        else:
            rows.append(row)
            sizes.append(size)
    if not rows:
        raise BadInput(f"{folder / LOGS} must hold training logs, got no usable one; download them from {ORIGIN}.")
    return BenchmarkTable(
        "nas-bench-nlp",
        variant,
        space,
        rows=tuple(Row(r.id, r.config, r.trained, r.published, c) for r, c in zip(rows, cells(sizes), strict=True)),
        missing=tuple(missing),
        target=WIKITEXT,
        targets=(WIKITEXT, PTB),
        licence=LICENCE,
        known="size",
        shaped=False,
    )


def read_logs(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    """Name and content of every log, in the order of names; no content where it cannot be read."""
    below = folder / LOGS
    if (below / "logs.zip").is_file():
        return read_zip(below / "logs.zip")
    if not below.is_dir():
        raise BadInput(f"{below} must be a folder with logs.zip, got none; download it from {ORIGIN}.")
    return ((path.stem, path.read_bytes()) for path in sorted(below.rglob("*.json")))


def read_zip(path: Path) -> Iterator[tuple[str, bytes | None]]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise BadInput(f"{path} must be a zip file, got a damaged one ({error}); download it from {ORIGIN}.") from error
    with archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".json") and not name.startswith("__MACOSX"):
                content = None
                with suppress(zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, OSError, EOFError):
                    content = archive.read(name)
                yield Path(name).stem, content


def parse_log(content: bytes | None) -> dict[str, Any]:
    if content is None:
        raise Unusable("the log is damaged inside the zip file")
    try:
        log = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"the log must be JSON: {error}") from error
    if not isinstance(log, dict):
        raise Unusable(f"the log must be a JSON object, got {type(log).__name__}")
    return log


def read_row(name: str, log: Mapping[str, Any], space: CellSpace, tables: Mapping[int, Mapping[str, float]]) -> Row:
    """A row without its cell; its name is the recipe's number and the run's."""
    config, recipe = read_config(log, space), int(number(log, "recepie_id"))
    trained = {WIKITEXT: -last_loss(log)}
    others = tables.get(recipe, {})
    trained |= {PTB: -others[LOSS]} if LOSS in others else {}
    metrics = {metric: value for metric, value in others.items() if metric not in RESULTS}
    return Row(f"{recipe}-{log.get('experiment_id', name)}", config, trained, metrics, cell="")


def read_config(log: Mapping[str, Any], space: CellSpace) -> Config:
    for key, value in FIXED.items():
        if log.get(key, value) != value:
            raise Unusable(f"{key} must be {value}, got {log[key]!r}")
    try:
        given = log.get("recepie")
        config = {"recipe": json.loads(given) if isinstance(given, str) else given}
        space.check(config)
    except (ValueError, RecursionError) as error:  # BadInput is one
        raise Unusable(f"recepie: {error}") from error
    return config


def last_loss(log: Mapping[str, Any]) -> float:
    """Test loss of the last epoch; the losses are a list, or a list written as text."""
    losses = log.get("test_losses")
    listed = losses.strip(" []").split(",") if isinstance(losses, str) else losses
    try:
        last = float(listed[-1])  # type: ignore[index]
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise Unusable(f"test_losses must be a list of numbers, got {str(losses)[:40]!r}") from error
    if not math.isfinite(last):
        raise Unusable(f"the test loss of the last epoch is {last}")
    return last


def number(log: Mapping[str, Any], key: str) -> float:
    try:
        return float(log[key])
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(f"{key} must be a number, got {log.get(key)!r}") from error


def cells(sizes: list[float]) -> list[str]:
    """Fifths of the rows by number of parameters; equal sizes are in the same one."""
    bounds = np.quantile(sizes, np.arange(1, PARTS) / PARTS)
    return [f"size {place + 1} of {PARTS}" for place in np.searchsorted(bounds, sizes)]


def read_metrics(folder: Path) -> dict[int, dict[str, float]]:
    """Loss on PTB and metrics, by number of the recipe; empty where the other project's files are not there."""
    found: dict[int, dict[str, float]] = {}
    for name in TABLES:
        for recipe, values in table(folder / name) if (folder / name).is_file() else ():
            found.setdefault(recipe, {}).update(values)
    return found


def read_ablation(folder: Path, kind: str) -> dict[int, list[dict[str, float]]]:
    """Published metrics of ten recipes over ten initialisations or ten batches, by number of the recipe."""
    if kind not in ABLATIONS:
        raise BadInput(f"an ablation must be one of {', '.join(ABLATIONS)}, got {kind!r}.")
    path = folder / ABLATIONS[kind]
    if not path.is_file():
        raise BadInput(f"{path} must be a file, got none; download it from {METRICS_ORIGIN}, folder data.")
    found: dict[int, list[dict[str, float]]] = {}
    for recipe, values in table(path):
        found.setdefault(recipe, []).append(values)
    return found


def read_repeats(folder: Path) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Published metrics over other initial weights and other batches, by number of the recipe."""
    kinds = {"seeds": "initialization", "batches": "batch"}
    return {
        kind: {str(recipe): rows for recipe, rows in read_ablation(folder, name).items()}
        for kind, name in kinds.items()
        if (folder / ABLATIONS[name]).is_file()
    }


def table(path: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Number of the recipe and all finite numbers of every line; two lines glued together are taken apart."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise BadInput(f"{path} must be a text file, got {error}; download it from {METRICS_ORIGIN}.") from error
    reader = csv.DictReader(StringIO(re.sub(f"(?<=[^\\n])(?={LOG})", "\n", text)), skipinitialspace=True)
    if NAME not in (reader.fieldnames or ()):
        raise BadInput(f"{path} must have a column {NAME!r}, got {reader.fieldnames}; is it another file?")
    for line in reader:
        if found := re.match(rf"{LOG}(\d+)_", line[NAME] or ""):
            yield int(found[1]), dict(finite(line))


def finite(line: Mapping[str | None, Any]) -> Iterator[tuple[str, float]]:
    for column, text in line.items():
        try:
            value = float(text)
        except (TypeError, ValueError):
            continue
        if column and math.isfinite(value):
            yield RENAMED.get(column.strip(), column.strip()), value


PENN_TREEBANK = "our batch is WikiText-2 and the vocabulary that of the batch, theirs Penn Treebank"
SAME_NAME = (
    "Activation Distance", "Synaptic Saliency", "Jacobian Covariance", "Jacobian Cosine", "Large Noise Jacobian",
    "Large Noise Jacobian Cosine", "More Noised Jacobian", "More Noised Jacobian Cosine",
)  # fmt: skip
"""Columns that are called like our proxies."""
NAS_BENCH_NLP = Benchmark(
    "nas-bench-nlp",
    load_nas_bench_nlp,
    folder="nas-bench-nlp",
    origin=ORIGIN,
    licence=LICENCE,
    metrics=(
        *(PublishedMetric(column, column.lower().replace(" ", "_"), PENN_TREEBANK) for column in SAME_NAME),
        PublishedMetric(
            "Hidden Synaptic Saliency",
            "hidden_saliency",
            f"not defined in the paper, ours is sum |h dL/dh|; {PENN_TREEBANK}",
        ),
        *(
            PublishedMetric(f"Layer {n} Hidden Covariance", f"hidden_covariance_entering_{n}", PENN_TREEBANK)
            for n in (1, 2, 3)
        ),
        *(
            PublishedMetric(
                f"Layer {layer} Hidden Covariance",
                f"hidden_covariance_{layer}",
                f"the state after each step instead of before it; {PENN_TREEBANK}",
            )
            for layer in (1, 2, 3)
        ),
    ),
    read_repeats=read_repeats,
)
