"""The result of a run as one JSON document: the front, measured again with everything that was not searched for."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from archwright.compression.budgets import minutes
from archwright.compression.budgets.targets import TARGETS
from archwright.compression.checkpoint_size import describe_embeddings
from archwright.compression.context import RunContext
from archwright.compression.evaluator import SCALED, SubnetEvaluator
from archwright.compression.export import ExportedNetwork
from archwright.compression.methods import METHODS
from archwright.compression.selection import BANDS, SURELY, Finalist, choose_members, cost_of_bands, find_finalists
from archwright.compression.space import ERROR, GENERATION, LATENCY
from archwright.data.batching import Batch, evaluation_batches
from archwright.data.encoding import NO_TARGET
from archwright.environment import environment
from archwright.networks.load import load_saved_network, max_length_of
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.objectives.error import WordTags, label_set_outcomes, tag_counts
from archwright.objectives.generation import MIDDLE, measure_generation
from archwright.objectives.latency import Timing, Timings, measure_latency, rank_timings
from archwright.progress import progress
from archwright.random_streams import PAIRED_ROWS
from archwright.search import config_of
from archwright.statistics import RATIOS, hypervolume_over_time
from archwright.statistics.own_metric import is_own, short_name
from archwright.statistics.paired import PairedErrors, RowOutcomes
from archwright.statistics.pareto import hypervolume
from archwright.store import RunFolder
from archwright.store.arrays import read_arrays, write_arrays
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import Anatomy, SubnetSpec, nonembedding_parameters, sizes
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import FEWEST_TO_HALVE
from archwright.version import __version__

SCHEMA = "archwright/compress/1"
ORDER_NOTE = "{scores} of heads and units, and {layers}, on {rows} training rows of {task} in {network}"
SCORES = {"fisher": "Fisher information", "taylor": "|activation x gradient|"}
REFERENCE = (1.0, 1.0)
"""Error and share of the non-embedding parameters at which the hypervolume of a single run ends."""
ORIGINAL, SUPERNET, CUT = "original", "supernet", "cut"
KNOWS_NOTHING = 0.5
"""The error of a constant answer where the metric is the area under a ROC curve."""
OUTCOMES = "rescored.npz"
"""The file of a run with what networks answered on the rows that re-score them."""
WRITTEN_ROUNDS = 10
"""Most rounds in which written tokens are timed: a step of a decoder takes tens of milliseconds."""


def build_result(evaluator: SubnetEvaluator, study: Study) -> dict[str, Any]:
    """Everything that out.json, the report and `select` need."""
    context, trials = evaluator.context, study.get_trials(deepcopy=False)
    original = load_saved_network(context.run.original).to(context.task_data.device)
    with context.run.phase("rescore"):
        finalists = find_finalists(evaluator, trials)
        errors = score_networks(
            evaluator, original, finalists, context.holdout_rows, context.original_holdout_rows, title="re-score"
        )
        write_outcomes(context.run, errors)
        members = finalists if context.halves is None else choose_members(finalists, errors)
    with context.run.phase("measure"):
        measured = measure_networks(evaluator, original, members, errors)
    rows, scale = trial_rows(evaluator, trials), context.task_data.scale_error
    points = [(scale(row[ERROR]), row["nonembedding_share"]) for row in rows]
    tested = [(scale(member["test_error"]), member["nonembedding_share"]) for member in measured["front"]]
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        **describe_run(evaluator),
        "selection": describe_selection(evaluator, finalists),
        **measured,
        "trials": rows,
        "hypervolume": hypervolume(points, REFERENCE),
        "hypervolume_over_time": hypervolume_over_time(points, REFERENCE),
        "test_hypervolume": hypervolume(tested, REFERENCE),
        "honesty": None,
        "seconds": sum(context.run.seconds.values()),
        "seconds_by_phase": context.run.seconds,
        "environment": environment(),
    }


def describe_run(evaluator: SubnetEvaluator) -> dict[str, Any]:
    """What the run was about."""
    context, whole, network = evaluator.context, evaluator.space.anatomy, evaluator.network.config
    config, task, order = context.config, context.task_data.task, context.run.note("order")
    method, search = METHODS[config.supernet.method], config.search
    words = {
        "task": task.name,
        "network": f"{'the fine-tuned ' if TASK_KINDS[task.kind].teach is None else ''}{config.model.model}",
        "scores": SCORES.get(config.supernet.order, ""),
        "layers": "its sum over each layer" if config.supernet.space == "chain" else "the loss without each layer",
    }
    return {
        "run": context.run.path.resolve().name,
        "folder": str(context.run.path),
        "model": config.model.model,
        "family": network.backbone["model_type"],
        "pooling": network.pooling,
        "task": task.name,
        "kind": task.kind,
        "task_note": task.note,
        "rows": {split: encoded.rows for split, encoded in context.task_data.encoded.items()},
        "metric": short_name(task.metric),
        "method": config.supernet.method,
        "space": evaluator.space.name,
        "strategy": config.supernet.strategy if method.shared else None,
        "teacher": config.supernet.teacher if method.shared else None,
        "order": config.supernet.order if method.samplers else "none",
        "order_note": ORDER_NOTE.format(rows=order["rows"], **words) if order else f"as in {config.model.model}",
        "sampler": search.sampler if method.samplers else None,
        "seed": context.seed,
        "for": search.for_,
        "export_options": TARGETS[search.for_].options,
        "objectives": [ERROR, *(name for name in search.objectives if name != ERROR)],
        "layers": whole.layers,
        "heads": whole.heads,
        "units": whole.units,
        **describe_embeddings(context.task_data, config.model),
    }


def describe_search(evaluator: SubnetEvaluator) -> dict[str, Any]:
    """What somebody needs who watches the study of a running search: what it is about, and what its numbers mean.

    `nonembedding_parameters` are of the whole network; `vocabulary` is there when objectives are scaled perplexities.
    """
    task = evaluator.context.task_data.task
    scaled = task.metric == "perplexity" and evaluator.context.run.note(SCALED)
    return {
        **describe_run(evaluator),
        "trials": evaluator.trials,
        "nonembedding_parameters": evaluator.whole_layers,
        "vocabulary_size": task.vocabulary if scaled else None,
    }


def describe_selection(evaluator: SubnetEvaluator, finalists: Sequence[Finalist]) -> dict[str, Any]:
    """Which rows chose the members of the front, and how."""
    context = evaluator.context
    chosen = context.config.search.selection
    note = None
    if chosen == "halves" and context.halves is None:
        rows = context.task_data.encoded["validation"].rows
        note = f"{rows} validation rows are too few for halves of {FEWEST_TO_HALVE // 2}: all of them search and judge."
    return {
        "rule": "all" if context.halves is None else "halves",
        "search_rows": count_rows(context.search_rows),
        "holdout_rows": count_rows(context.holdout_rows),
        "bands": None if context.halves is None else BANDS,
        "bands_of": None if context.halves is None else cost_of_bands(evaluator),
        "rescored": len(finalists),
        "note": note,
    }


def count_rows(batches: Sequence[Batch]) -> int:
    """Rows as the task counts them: questions, not their windows."""
    windows = batches[0].windows
    return sum(len(batch.rows) for batch in batches) if windows is None else len(windows.contexts)


def score_networks(
    evaluator: SubnetEvaluator,
    original: PrunedNetwork,
    finalists: Sequence[Finalist],
    rows: list[Batch],
    original_rows: list[Batch],
    *,
    title: str,
) -> PairedErrors:
    """The original, the super-network if there is one, and these sub-networks, all on the same rows.

    Where the original was cut after fine-tuning it reads them in its own tokens, and what the cut left is scored too.
    """
    context, data, outcomes, whole = evaluator.context, evaluator.context.task_data, {}, None
    full = sizes(evaluator.space.anatomy.full)
    cut, shared = context.start != context.run.original, METHODS[context.config.supernet.method].shared
    with progress(title, 1 + cut + len(finalists) + shared, unit="networks") as bar:
        outcomes[ORIGINAL] = context.original_data.outcomes(original, original_rows)
        bar.advance()
        if cut:
            outcomes[CUT] = data.outcomes(load_saved_network(context.start).to(data.device), rows)
            bar.advance()
        for finalist in finalists:
            network, part = evaluator.weights.locate(finalist.config)
            outcomes[finalist.name] = data.outcomes(network, rows, part)
            if network is evaluator.network and sizes(finalist.spec) == full:
                whole = outcomes[finalist.name]
            bar.advance()
        if shared:
            outcomes[SUPERNET] = data.outcomes(evaluator.network, rows) if whole is None else whole
            bar.advance()
    return PairedErrors(outcomes, seed=(context.seed, PAIRED_ROWS))


def write_outcomes(run: RunFolder, errors: PairedErrors) -> None:
    """What networks answered on the rows that re-score them, so that `select` need not ask again."""
    arrays: dict[str, Any] = {}
    for name, rows in errors.outcomes.items():
        for part in fields(rows):
            value = getattr(rows, part.name)
            arrays |= {} if value is None else {f"{name}.{part.name}": value}
    write_arrays(run.path / OUTCOMES, arrays, packed=True)


def read_outcomes(run: RunFolder) -> dict[str, RowOutcomes]:
    """By name; nothing where none were written, as by earlier versions."""
    if not (run.path / OUTCOMES).exists():
        return {}
    parts: dict[str, dict[str, Any]] = {}
    for key, array in read_arrays(run.path / OUTCOMES).items():
        name, part = key.rsplit(".", 1)
        parts.setdefault(name, {})[part] = array
    return {name: RowOutcomes(**{**values, "metric": str(values["metric"])}) for name, values in parts.items()}


def measure_networks(
    evaluator: SubnetEvaluator, original: PrunedNetwork, members: Sequence[Finalist], validation: PairedErrors
) -> dict[str, Any]:
    """The original, the super-network if there is one, and the front: test errors, costs, latencies timed together."""
    context, whole = evaluator.context, evaluator.space.anatomy.full
    tested, original_tested = (
        evaluation_batches(encoded, tokens=context.task_data.evaluation_tokens)
        for encoded in minutes.tested_rows(context, original, members=len(members))
    )
    test = score_networks(evaluator, original, members, tested, original_tested, title="test rows")
    timings = time_members(evaluator, original, members, seconds=minutes.LATENCY * sum(context.run.seconds.values()))
    written = measure_written(evaluator, members)
    ranks = rank_timings({member.name: timings[member.name] for member in members})

    def measure(name: str, anatomy: Anatomy, spec: SubnetSpec, timing: Timing | None) -> dict[str, Any]:
        data, tested = context.task_data, test.error(name)
        bits = {"test_bits_per_byte": data.bits_per_byte(tested)} if data.task.metric == "perplexity" else {}
        return {
            ERROR: validation.error(name),
            "test_error": tested,
            **bits,
            "validation_rows": len(validation.outcomes[name]),
            "test_rows": len(test.outcomes[name]),
            "loss": validation.loss(name, ORIGINAL)._asdict(),
            "test_loss": test.loss(name, ORIGINAL)._asdict(),
            **{cost: int(COSTS[cost].measure(anatomy, spec, length=context.length)) for cost in COSTS},
            "nonembedding_share": nonembedding_parameters(anatomy, spec) / evaluator.whole_layers,
            LATENCY: timing and timing._asdict(),
            GENERATION: written[name]._asdict() if name in written else None,
        }

    pruned, first = evaluator.space.anatomy, read_anatomy(original.config)
    cut = context.start != context.run.original  # then nothing of the super-network's size was timed
    int8: dict[str, dict[str, Any]] = {}
    with progress("int8 files", len(members), "networks") as bar:
        for member in members:
            int8[member.name] = measure_int8(evaluator, member, tested)
            bar.advance()
    entries = [
        {
            **describe_member(evaluator, member, members, validation),
            **measure(member.name, pruned, member.spec, timings[member.name]),
            "latency_rank": ranks[member.name],
            **int8[member.name],
        }
        for member in members
    ]
    return {
        ORIGINAL: measure(ORIGINAL, first, first.full, timings[ORIGINAL]),
        CUT: measure(CUT, pruned, whole, None) if CUT in validation.outcomes else None,
        SUPERNET: measure(SUPERNET, pruned, whole, None if cut else timings[ORIGINAL])
        if SUPERNET in validation.outcomes
        else None,
        "front": sorted(entries, key=lambda entry: entry["nonembedding_parameters"]),
        "latency": describe_latency(evaluator, timings, members),
        "constant": best_constant(context, validation.outcomes[ORIGINAL], test.outcomes[ORIGINAL]),
    }


def time_members(
    evaluator: SubnetEvaluator, original: PrunedNetwork, members: Sequence[Finalist], *, seconds: float | None = None
) -> Timings:
    """Latencies of the original and these sub-networks, timed together."""
    context = evaluator.context
    return measure_latency(
        evaluator.network,
        {ORIGINAL: evaluator.space.anatomy.full, **{member.name: member.spec for member in members}},
        first=original if context.start != context.run.original else None,
        batch=1,
        length=context.length,
        rounds=context.config.measure.rounds,
        seed=context.seed,
        seconds=seconds,
        prepare=TARGETS[context.config.search.for_].prepare,
        device=context.latency_device,
    )


def best_constant(context: RunContext, validation: RowOutcomes, test: RowOutcomes) -> dict[str, Any] | None:
    """The class that is right most often when it is always answered, and its errors; None where there are no classes.

    A network that is no better has learnt nothing.
    """
    task = context.task_data.task
    if TASK_KINDS[task.kind].independent:
        return best_constant_labels(context)
    if task.metric in RATIOS:
        return best_constant_tag(context)

    def error(answer: int, rows: RowOutcomes) -> float:
        if rows.metric == "roc_auc":
            return KNOWS_NOTHING
        given = answer if task.positive is None or is_own(task.metric) else answer == task.positive
        logits = np.tile(np.eye(len(task.labels))[answer], (len(rows), 1))
        return RowOutcomes(rows.metric, np.full_like(rows.targets, given), rows.targets, logits).error

    if not task.labels:
        return None
    answer = min(range(len(task.labels)), key=lambda label: error(label, validation))
    return {"answer": task.labels[answer], ERROR: error(answer, validation), "test_error": error(answer, test)}


def best_constant_tag(context: RunContext) -> dict[str, Any]:
    """The same where words have tags: the one that is best on the validation rows when every word gets it."""
    task = context.task_data.task

    def error(answer: int, split: str) -> float:
        targets = context.task_data.encoded[split].targets  # rows x time
        rows, places = (targets != NO_TARGET).nonzero()
        wanted = targets[rows, places].astype(np.int64)
        words = WordTags(np.full_like(wanted, answer), wanted, rows, len(targets))
        return RowOutcomes(task.metric, *tag_counts(words, metric=task.metric, labels=task.labels)).error

    answer = min(range(len(task.labels)), key=lambda tag: error(tag, "validation"))
    return {
        "answer": task.labels[answer],
        ERROR: error(answer, "validation"),
        "test_error": error(answer, "test"),
    }


def best_constant_labels(context: RunContext) -> dict[str, Any]:
    """The same where a text has several labels: the most frequent ones, as many as are best on the validation rows."""
    task, encoded = context.task_data.task, context.task_data.encoded
    order = np.argsort(-encoded["validation"].targets.sum(axis=0), kind="stable")

    def error(labels: int, split: str) -> float:
        if task.metric == "roc_auc":
            return KNOWS_NOTHING
        targets = encoded[split].targets.astype(np.float64)
        given = np.tile(np.isin(np.arange(targets.shape[1]), order[:labels]).astype(np.float64), (len(targets), 1))
        return label_set_outcomes(given, targets, metric=task.metric, logits=2 * given - 1).error

    labels = min(range(1, len(order) + 1), key=lambda number: error(number, "validation"))
    return {
        "answer": "|".join(task.labels[label] for label in order[:labels]),
        ERROR: error(labels, "validation"),
        "test_error": error(labels, "test"),
    }


def describe_member(
    evaluator: SubnetEvaluator, member: Finalist, members: Sequence[Finalist], errors: PairedErrors
) -> dict[str, Any]:
    """What a member of the front is, how the search saw it, and which others are surely better."""
    return {
        "trial": member.trial.number,
        "config": member.config,
        "source": member.config.get("source"),
        "keep": [list(pair) for pair in sizes(member.spec)],
        "band": member.band,
        "search_error": evaluator.trial_error(member.trial),
        "beaten_by": [other.trial.number for other in members if errors.is_better(other.name, member.name, by=SURELY)],
    }


def measure_written(evaluator: SubnetEvaluator, members: Sequence[Finalist]) -> dict[str, Timing]:
    """Milliseconds per written token of original and front, for language models; nothing for others."""
    context = evaluator.context
    if context.task_data.task.kind != "lm":
        return {}
    specs = {ORIGINAL: evaluator.space.anatomy.full, **{member.name: member.spec for member in members}}
    room = max_length_of(evaluator.network) - 1
    rounds, length = min(WRITTEN_ROUNDS, context.config.measure.rounds), min(MIDDLE, room)
    timings = measure_generation(
        evaluator.network, specs, length=length, rounds=rounds, seed=context.seed, device=context.latency_device
    )
    return {SUPERNET: timings[ORIGINAL], **timings.by_name}


def measure_int8(evaluator: SubnetEvaluator, member: Finalist, tested: list[Batch]) -> dict[str, Any]:
    """Size of a sub-network's int8 ONNX file, and in runs for that export its error on the test rows.

    None unless the size is an objective, --measure-int8 is given or the run is for it.
    """
    config, data = evaluator.context.config, evaluator.context.task_data
    wanted = TARGETS[config.search.for_].int8
    if "int8_bytes" not in config.search.objectives and not config.measure.measure_int8 and not wanted:
        return {"int8_file_bytes": None}
    from archwright.exporting.onnx_file import open_int8  # onnx takes a second to import

    network = evaluator.extract(member.config).cpu()
    with open_int8(network, names=list(tested[0].inputs)) as (size, run):
        exported = cast(PrunedNetwork, ExportedNetwork(run, network))
        return {"int8_file_bytes": size, **({"int8_test_error": data.error(exported, tested)} if wanted else {})}


def trial_rows(evaluator: SubnetEvaluator, trials: list[FrozenTrial]) -> list[dict[str, Any]]:
    """Every measured trial in the order of completion."""
    space, done = evaluator.space, [trial for trial in trials if trial.values is not None]
    ends = {trial.number: trial.datetime_complete for trial in done if trial.datetime_complete}
    done.sort(key=lambda trial: (ends[trial.number], trial.number))
    start = min(trial.datetime_start for trial in done if trial.datetime_start)
    rows = []
    for trial in done:
        error, spec = evaluator.trial_error(trial), space.build(config_of(space.choices, trial))
        kept = sizes(spec)
        rows.append(
            {
                "trial": trial.number,
                "values": [error, *trial.values[1:]],
                ERROR: error,
                "nonembedding_share": evaluator.share(spec),
                "layers": sum(1 for heads, units in kept if heads or units),
                "heads": sum(heads for heads, _ in kept),
                "units": sum(units for _, units in kept),
                "seconds": (ends[trial.number] - start).total_seconds(),
            }
        )
    return rows


def describe_latency(evaluator: SubnetEvaluator, timings: Timings, members: Sequence[Finalist]) -> dict[str, Any]:
    """How latency was measured, and how well the table predicted it: pairs of milliseconds."""
    table = evaluator.latency_table()
    pairs = [[table.predict(member.spec), timings[member.name].median] for member in members] if table else None
    return {
        "batch": 1,
        "length": evaluator.context.length,
        "runtime": TARGETS[evaluator.context.config.search.for_].runtime,
        "device": evaluator.context.latency_device.type,
        "threads": 1,
        "rounds": timings.rounds,
        "stopped": timings.stopped,
        "sentinel_drift": timings.drift,
        "predicted_vs_measured": pairs,
    }
