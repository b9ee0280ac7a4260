"""FlexiBERT architectures with their GLUE scores (Serianni and Kalita 2023): the files of the public release."""

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, PublishedMetric, Row
from archwright.errors import BadInput
from archwright.search import Config
from archwright.spaces.flexibert import FlexiBertSpace
from archwright.statistics.ranks import RankOrder
from archwright.statistics.reliability import noise_ceiling

ORIGIN = "https://github.com/aaronserianni/training-free-nas"
LICENCE = "CC-BY-4.0"
TABLE = "BERT_benchmark.json"
METRICS = ("published_metrics.csv", "BERT_results_activation.csv")
"""Names under which the published metrics lie, here and in the public release; the first one there is taken."""
ABLATIONS = {
    "initialization": "BERT_initialization_ablation.csv",
    "batch": "BERT_batch_ablation.csv",
    "train": "BERT_train_ablation.csv",
}
TARGETS = ("glue", "cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst", "sts")
LAYER_KEYS = {"heads": "num_operation_heads", "feed_forward": "feed_forward_dimension", "stack": "num_feed_forward"}
ROBUST = "robust"
"""Weighted mean of the ranks on all tasks, 0 to 1. Ranks, so that a task that failed costs a row no more than being
last on it; weights are the reliability of a task between rows that are one network, and know nothing of sizes."""
FENCE = 4.0
"""A task failed where its result lies so many interquartile ranges below the first quartile."""
TRAINED = FlexiBertSpace("trained")
"""Which rows are one network does not depend on the variant."""


def load_nas_bert(folder: Path, variant: str = "trained") -> BenchmarkTable:
    """All rows of the folder; without a file of published metrics the rows have none."""
    space, path = FlexiBertSpace(variant), check_folder(folder) / TABLE
    entries, metrics = read_entries(path), read_metrics(folder)
    rows, missing = list[Row](), list[Missing]()
    for number, entry in enumerate(entries):
        row = read_row(entry, number, space, metrics)
        rows.append(row) if isinstance(row, Row) else missing.append(row)
    ids = Counter([row.id for row in rows] + [row.id for row in missing])
    twice = [name for name, count in ids.items() if count > 1]
    if twice:
        raise BadInput(
            f"{path} must name every architecture once, got id {twice[0]} {ids[twice[0]]} times; remove one."
        )
    if not rows:
        why = next((f"{row.id}: {row.reason}" for row in missing), "it is empty")
        raise BadInput(f"{path} has no usable architecture ({why}); download it again from {ORIGIN}.")
    complete = with_robust_target(with_failures(rows))
    robust = (ROBUST,) if ROBUST in complete[0].trained else ()
    return BenchmarkTable(
        name="nas-bert",
        variant=variant,
        space=space,
        rows=tuple(complete),
        missing=tuple(missing),
        target=TARGETS[0],
        targets=TARGETS + robust,
        licence=LICENCE,
        derived=robust,
    )


def with_failures(rows: list[Row]) -> list[Row]:
    """The rows, each with the tasks on which its run broke down."""
    failed: dict[str, set[str]] = {row.id: set() for row in rows}
    for task in TARGETS[1:]:
        results = np.array([row.trained[task] for row in rows])
        first, third = np.quantile(results, (0.25, 0.75))
        for place in np.flatnonzero(results < first - FENCE * (third - first)):
            failed[rows[place].id].add(task)
    return [replace(row, failed=tuple(task for task in TARGETS if task in failed[row.id])) for row in rows]


def with_robust_target(rows: list[Row]) -> list[Row]:
    """The rows with one more result, where enough of them are one network trained again to tell what is reliable."""
    weights = twin_reliabilities({task: [row.trained[task] for row in rows] for task in TARGETS[1:]}, rows)
    if weights is None:
        return rows
    tasks = list(weights)
    once = np.ones((1, len(rows)))
    orders = [RankOrder.of([row.trained[task] for row in rows]) for task in tasks]
    ranks = np.concatenate([order.ranks(once) / len(rows) for order in orders])  # tasks x rows
    robust = np.average(ranks, axis=0, weights=[weights[task] for task in tasks])
    return [replace(row, trained={**row.trained, ROBUST: float(v)}) for row, v in zip(rows, robust, strict=True)]


def twin_reliabilities(results: Mapping[str, list[float]], rows: list[Row]) -> dict[str, float] | None:
    """Reliability of each task, 0 to 1; None where too few rows are one network, or none is reliable."""
    networks = [row.network for row in rows]
    found = {task: noise_ceiling(values, networks=networks, cells=[0] * len(rows)) for task, values in results.items()}
    weights = {task: max(0.0, of.reliability or 0.0) for task, of in found.items() if of is not None}
    return weights if sum(weights.values()) > 0 else None


def read_ablation(folder: Path, name: str) -> list[dict[str, float]]:
    """Rows of a published ablation, as they stand: one per architecture and seed, batch or number of steps.

    Over seeds and batches the columns that are not normalised grow from row to row: the public script goes on adding.
    """
    if name not in ABLATIONS:
        raise BadInput(f"ablation must be one of {', '.join(ABLATIONS)}, got {name!r}; take one of these.")
    return [numbers(row) for row in csv_rows(check_folder(folder) / ABLATIONS[name])]


def read_repeats(folder: Path) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Published metrics over other initial weights and other batches, by id of the row."""
    repeats: dict[str, dict[str, list[dict[str, float]]]] = {}
    for kind, name in (("seeds", "initialization"), ("batches", "batch")):
        if (folder / ABLATIONS[name]).is_file():
            for row in read_ablation(folder, name):
                repeats.setdefault(kind, {}).setdefault(f"{row['ID']:.0f}", []).append(row)
    return repeats


def check_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise BadInput(f"the nas-bert benchmark is a folder with {TABLE}, got {folder}; download it from {ORIGIN}.")
    return folder


def read_entries(path: Path) -> list[Any]:
    try:
        entries = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(f"{path.parent} must hold {TABLE}, got none; download it from {ORIGIN} (data/).") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} must be a JSON file, got: {error}; download it again from {ORIGIN}.") from error
    if not isinstance(entries, list):
        kind = type(entries).__name__
        raise BadInput(f"{path} must be a list of architectures, got {kind}; download it again from {ORIGIN}.")
    return entries


def read_row(
    entry: Any, number: int, space: FlexiBertSpace, metrics: Mapping[str, Mapping[str, float]]
) -> Row | Missing:
    """What is wrong with one entry makes that entry missing, and no other."""
    name = f"entry {number}"
    try:
        if not isinstance(entry["id"], int | str) or isinstance(entry["id"], bool):
            raise BadInput(f"an id must be a number or a word, got {entry['id']!r}; give it one.")
        name = str(entry["id"])
        config, scores = config_of(entry), scores_of(entry)
        space.check(config)
    except KeyError as error:
        return Missing(name, f"has no {error}")
    except (TypeError, AttributeError) as error:
        return Missing(name, f"is not laid out as an architecture: {error}")
    except BadInput as error:
        return Missing(name, str(error))
    twin = json.dumps(TRAINED.canonical(config), sort_keys=True)
    return Row(name, config, scores, metrics.get(name, {}), f"{config['layers']}x{config['hidden']}", twin)


def config_of(entry: Any) -> Config:
    """The choices of an entry as they stand, whatever they are."""
    overrides = entry["hparams"]["model_hparam_overrides"]
    layers = list(overrides["nas_config"]["encoder_layers"])
    config: Config = {"layers": len(layers), "hidden": overrides["hidden_size"]}
    for number, layer in enumerate(layers):
        operation = f"{layer['operation_type']}/{layer['operation_parameter']}"
        config |= {f"{name}.{number}": layer[key] for name, key in LAYER_KEYS.items()}
        config[f"operation.{number}"] = operation
    return config


def scores_of(entry: Any) -> dict[str, float]:
    scores = {name: entry["scores"][name] for name in TARGETS}
    for name, score in scores.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise BadInput(f"score {name} must be a finite number, got {score!r}; the row is left out.")
    return {name: float(score) for name, score in scores.items()}


def read_metrics(folder: Path) -> dict[str, dict[str, float]]:
    """Columns of each architecture, by id; a cell that is no finite number is left out."""
    path = next((folder / name for name in METRICS if (folder / name).exists()), None)
    if path is None:
        return {}
    metrics: dict[str, dict[str, float]] = {}
    for row in csv_rows(path):
        if "ID" not in row:
            raise BadInput(f"{path} must have a column ID, got {', '.join(row)[:60]}; download it again from {ORIGIN}.")
        if row["ID"] in metrics:
            raise BadInput(f"{path} must name every architecture once, got id {row['ID']} twice; remove one.")
        metrics[row["ID"]] = {name: value for name, value in numbers(row).items() if name != "ID"}
    return metrics


def csv_rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, restkey="", restval=""))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} must be a CSV file, got: {error}; download it again from {ORIGIN}.") from error
    for line, row in enumerate(rows, start=2):
        if "" in row or "" in row.values():
            raise BadInput(f"{path} line {line} must have as many cells as its header; download it from {ORIGIN}.")
    return rows


def numbers(row: Mapping[str, str]) -> dict[str, float]:
    """Cells that are finite numbers."""
    values = {}
    for name, text in row.items():
        try:
            values[name] = float(text)
        except ValueError:
            continue
    return {name: value for name, value in values.items() if math.isfinite(value)}


NOISE = "back-propagates ones through a LayerNorm, whose true gradient is zero: the published values are rounding noise"
TEXT = "our batch is WikiText-2, theirs OpenWebText"
SOFTMAX = "theirs also takes a softmax over the features of Fourier and cosine layers"
NAS_BERT = Benchmark(
    "nas-bert",
    load_nas_bert,
    folder="nas-bert",
    origin=ORIGIN,
    licence=LICENCE,
    variants=("trained", "described", "published"),
    metrics=(
        PublishedMetric("Number of Parameters", "parameters", "exact under variant published"),
        PublishedMetric("Synaptic Diversity", "synaptic_diversity", NOISE),
        PublishedMetric("Synaptic Diversity Normalized", "synaptic_diversity_normalised", NOISE),
        PublishedMetric("Synaptic Saliency", "synaptic_saliency_published", NOISE),
        PublishedMetric("Synaptic Saliency Normalized", "synaptic_saliency_published_normalised", NOISE),
        PublishedMetric(
            "Activation Distance", "activation_distance_published", "the published sum grows from row to row"
        ),
        PublishedMetric("Activation Distance Normalized", "activation_distance_published_normalised", TEXT),
        PublishedMetric("Jacobian Score", "jacobian_covariance", NOISE),
        PublishedMetric("Jacobian Score Normalized", "jacobian_cosine", f"really the cosine; {NOISE}"),
        PublishedMetric("Head Importance", "head_importance_published", NOISE),
        PublishedMetric("Head Importance Normalized", "head_importance_published_normalised", NOISE),
        PublishedMetric("Head Confidence", "attention_confidence_published", TEXT),
        PublishedMetric("Head Confidence Normalized", "attention_confidence_published_normalised", TEXT),
        PublishedMetric("Head Softmax Confidence", "softmax_confidence_published", SOFTMAX),
        PublishedMetric("Head Softmax Confidence Normalized", "softmax_confidence_published_normalised", SOFTMAX),
    ),
    read_repeats=read_repeats,
)
