"""The result of a run as one JSON document: the front, measured again with everything that was not searched for."""

from collections.abc import Mapping
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from archwright.compression.evaluator import ERROR, LATENCY, SubnetEvaluator
from archwright.compression.methods import METHODS
from archwright.environment import environment
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.objectives.latency import Timing, Timings, measure_latency, rank_timings
from archwright.search import config_of, front
from archwright.statistics import hypervolume_over_time
from archwright.statistics.pareto import hypervolume
from archwright.subnet.extract import extract
from archwright.subnet.spec import SubnetSpec, sizes
from archwright.version import __version__

SCHEMA = "archwright/compress/1"
ORDER_NOTE = (
    "|activation x gradient| of heads and units, and the loss without each layer, on {rows} training rows of {task} "
    "in the fine-tuned {model}"
)
REFERENCE = (1.0, 1.0)
"""Error and share of the non-embedding parameters at which the hypervolume of a single run ends."""
ORIGINAL = "original"


def build_result(evaluator: SubnetEvaluator, study: Study) -> dict[str, Any]:
    """Everything that out.json, the report and `select` need."""
    context, trials = evaluator.context, study.get_trials(deepcopy=False)
    original = load_saved_network(context.run.original).to(context.task_data.device)
    with context.run.phase("measure"):
        measured = measure_networks(evaluator, trials, original)
    rows = trial_rows(evaluator, trials)
    points = [(context.task_data.scale_error(row[ERROR]), row["nonembedding_share"]) for row in rows]
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        **describe_run(evaluator),
        **measured,
        "trials": rows,
        "hypervolume": hypervolume(points, REFERENCE),
        "hypervolume_over_time": hypervolume_over_time(points, REFERENCE),
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
    words = {"task": task.name, "model": config.model.model}
    return {
        "run": context.run.path.resolve().name,
        "folder": str(context.run.path),
        "model": config.model.model,
        "family": network.backbone["model_type"],
        "pooling": network.pooling,
        "task": task.name,
        "task_note": task.note,
        "rows": {split: encoded.rows for split, encoded in context.task_data.encoded.items()},
        "metric": task.metric,
        "method": config.supernet.method,
        "space": evaluator.space.name,
        "strategy": config.supernet.strategy if method.shared else None,
        "order": config.supernet.order if method.samplers else "none",
        "order_note": ORDER_NOTE.format(rows=order["rows"], **words) if order else f"as in {config.model.model}",
        "sampler": search.sampler if method.samplers else None,
        "seed": context.seed,
        "objectives": [ERROR, *(name for name in search.objectives if name != ERROR)],
        "layers": whole.layers,
        "heads": whole.heads,
        "units": whole.units,
    }


def measure_networks(evaluator: SubnetEvaluator, trials: list[FrozenTrial], original: PrunedNetwork) -> dict[str, Any]:
    """The original, the super-network if there is one, and the front, all timed together."""
    context, space, whole = evaluator.context, evaluator.space, evaluator.space.anatomy.full
    best = front(trials, space=space)
    # A network without layers can be worse than guessing: it is left out unless there is no other.
    best = [trial for trial in best if context.task_data.scale_error(trial.values[0]) <= 1] or best
    specs = {trial.number: space.build(config_of(space.choices, trial)) for trial in best}
    timings = measure_latency(
        evaluator.network,
        {ORIGINAL: whole, **{str(number): spec for number, spec in specs.items()}},
        batch=1,
        length=context.length,
        rounds=context.config.measure.rounds,
        seed=context.seed,
    )
    ranks = rank_timings({str(number): timings[str(number)] for number in specs})
    members = [
        {
            **measure_member(evaluator, trials[number], spec, timings[str(number)]),
            "latency_rank": ranks[str(number)],
            "int8_file_bytes": int8_bytes_of_file(evaluator, spec),
        }
        for number, spec in specs.items()
    ]
    shared = METHODS[context.config.supernet.method].shared
    return {
        ORIGINAL: measure_network(evaluator, original, None, whole, timings[ORIGINAL]),
        "supernet": measure_network(evaluator, evaluator.network, None, whole, timings[ORIGINAL]) if shared else None,
        "front": sorted(members, key=lambda entry: entry["nonembedding_parameters"]),
        "latency": describe_latency(evaluator, timings, specs),
    }


def measure_member(evaluator: SubnetEvaluator, trial: FrozenTrial, spec: SubnetSpec, timing: Timing) -> dict[str, Any]:
    """One entry of the front."""
    config = config_of(evaluator.space.choices, trial)
    return {
        "trial": trial.number,
        "config": config,
        "keep": [list(pair) for pair in sizes(spec)],
        **measure_network(evaluator, *evaluator.weights.locate(config), spec, timing, validation=trial.values[0]),
    }


def measure_network(
    evaluator: SubnetEvaluator,
    network: PrunedNetwork,
    part: SubnetSpec | None,
    spec: SubnetSpec,
    timing: Timing,
    *,
    validation: float | None = None,
) -> dict[str, Any]:
    """Errors of the network or a part of it, counts of the sub-network `spec`, and its latency."""
    task_data = evaluator.context.task_data
    return {
        ERROR: task_data.error(network, task_data.validation, part) if validation is None else validation,
        "test_error": task_data.error(network, task_data.test, part),
        **{name: int(evaluator.cost(name, spec)) for name in COSTS},
        "nonembedding_share": evaluator.share(spec),
        LATENCY: timing._asdict(),
    }


def int8_bytes_of_file(evaluator: SubnetEvaluator, spec: SubnetSpec) -> int | None:
    """Size of the sub-network's int8 ONNX file; None unless it is an objective or --measure-int8 is given."""
    config = evaluator.context.config
    if "int8_bytes" not in config.search.objectives and not config.measure.measure_int8:
        return None
    from archwright.exporting.onnx_file import int8_file_bytes  # onnx takes a second to import

    return int8_file_bytes(extract(evaluator.network, spec).eval())


def trial_rows(evaluator: SubnetEvaluator, trials: list[FrozenTrial]) -> list[dict[str, Any]]:
    """Every measured trial in the order of completion."""
    space, done = evaluator.space, [trial for trial in trials if trial.values is not None]
    ends = {trial.number: trial.datetime_complete for trial in done if trial.datetime_complete}
    done.sort(key=lambda trial: (ends[trial.number], trial.number))
    start = min(trial.datetime_start for trial in done if trial.datetime_start)
    rows = []
    for trial in done:
        rows.append(
            {
                "trial": trial.number,
                "values": list(trial.values),
                ERROR: trial.values[0],
                "nonembedding_share": evaluator.share(space.build(config_of(space.choices, trial))),
                "seconds": (ends[trial.number] - start).total_seconds(),
            }
        )
    return rows


def describe_latency(evaluator: SubnetEvaluator, timings: Timings, specs: Mapping[int, SubnetSpec]) -> dict[str, Any]:
    """How latency was measured, and how well the table predicted it: pairs of milliseconds."""
    table = evaluator.latency_table()
    pairs = [[table.predict(spec), timings[str(number)].median] for number, spec in specs.items()] if table else None
    return {
        "batch": 1,
        "length": evaluator.context.length,
        "threads": 1,
        "rounds": evaluator.context.config.measure.rounds,
        "sentinel_drift": timings.drift,
        "predicted_vs_measured": pairs,
    }
