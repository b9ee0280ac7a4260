"""The result of a run as one JSON document: the front, measured again with everything that was not searched for."""

from collections.abc import Callable, Mapping
from typing import Any

from archwright.compression.methods import METHODS
from archwright.compression.search import ERROR, LATENCY, SubnetEvaluator, latency_table
from archwright.environment import environment
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.objectives.latency import Timing, Timings, measure_latency, rank
from archwright.search import config_of, front
from archwright.statistics import hypervolume_over_time
from archwright.statistics.pareto import hypervolume
from archwright.subnet.extract import extract
from archwright.subnet.spec import SubnetSpec, nonembedding_parameters, sizes
from archwright.version import __version__

SCHEMA = "archwright/compress/1"
ORDER_NOTES = {
    "taylor": "|activation x gradient| of heads and units, and the loss without each layer, on {rows} training rows of "
    "{task} in the fine-tuned {model}",
    "none": "as in {model}",
}
REFERENCE = (1.0, 1.0)
"""Error and share of the non-embedding parameters at which the hypervolume of a single run ends."""
ORIGINAL, SUPERNET = "original", "supernet"


def build_result(evaluator: SubnetEvaluator, study: Any, original: PrunedNetwork) -> dict[str, Any]:
    """Everything that out.json, the report and `select` need."""
    trials = study.get_trials(deepcopy=False)
    with evaluator.run.phase("measure"):
        measured = measure_networks(evaluator, trials, original)
    history = trial_rows(evaluator, trials)
    points = [(evaluator.task_data.scaled(row[ERROR]), row["nonembedding_share"]) for row in history]
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        **asked(evaluator),
        **measured,
        "trials": history,
        "hypervolume": hypervolume(points, REFERENCE),
        "hypervolume_over_time": hypervolume_over_time(points, REFERENCE),
        "honesty": None,
        "seconds": sum(evaluator.run.seconds.values()),
        "seconds_by_phase": evaluator.run.seconds,
        "environment": environment(),
    }


def asked(evaluator: SubnetEvaluator) -> dict[str, Any]:
    """What the run was about."""
    of, task, settings = evaluator.space.anatomy, evaluator.task_data.task, evaluator.context.supernet
    return {
        "run": evaluator.run.path.resolve().name,
        "folder": str(evaluator.run.path),
        "model": evaluator.context.model.model,
        "family": evaluator.network.config.backbone["model_type"],
        "pooling": evaluator.network.config.pooling,
        "task": task.name,
        "task_note": task.note,
        "rows": {split: encoded.rows for split, encoded in evaluator.task_data.encoded.items()},
        "metric": task.metric,
        "method": settings.method,
        "space": evaluator.space.name,
        "strategy": settings.strategy if evaluator.supernet else None,
        "order": settings.order if METHODS[settings.method].samplers else "none",
        "order_note": order_note(evaluator),
        "sampler": evaluator.search.sampler if METHODS[settings.method].samplers else None,
        "seed": evaluator.seed,
        "objectives": [ERROR, *(name for name in evaluator.search.objectives if name != ERROR)],
        "layers": of.layers,
        "heads": of.heads,
        "units": of.units,
    }


def order_note(evaluator: SubnetEvaluator) -> str:
    noted = evaluator.run.note("order")
    words = {"task": evaluator.task_data.task.name, "model": evaluator.context.model.model}
    return ORDER_NOTES["none" if noted is None else evaluator.context.supernet.order].format(
        rows=(noted or {}).get("rows"), **words
    )


def measure_networks(evaluator: SubnetEvaluator, trials: list[Any], original: PrunedNetwork) -> dict[str, Any]:
    """The original, the super-network if there is one, and the front, all timed together."""
    keeps = {
        trial.number: evaluator.space.build(config_of(evaluator.space.choices, trial))
        for trial in worthwhile(evaluator, front(trials, space=evaluator.space))
    }
    timings = timed_front(evaluator, keeps)
    ranks = rank({str(number): timings[str(number)] for number in keeps})
    weigh, whole = weights_of(evaluator), evaluator.space.anatomy.full
    members = [
        {**member(evaluator, trials[number], keep, timings), "latency_rank": ranks[str(number)], **weigh(keep)}
        for number, keep in keeps.items()
    ]
    return {
        ORIGINAL: numbers(evaluator, (original, None), whole, timings[ORIGINAL]),
        SUPERNET: numbers(evaluator, (evaluator.network, None), whole, timings[ORIGINAL])
        if evaluator.supernet
        else None,
        "front": sorted(members, key=lambda entry: entry["nonembedding_parameters"]),
        "latency": latency_facts(evaluator, timings, keeps),
    }


def worthwhile(evaluator: SubnetEvaluator, members: list[Any]) -> list[Any]:
    """Those that are not worse than guessing, which a network without layers can be; all if there is no other."""
    return [trial for trial in members if evaluator.task_data.scaled(trial.values[0]) <= 1] or members


def weights_of(evaluator: SubnetEvaluator) -> Callable[[SubnetSpec], dict[str, int | None]]:
    """What weighs a member's int8 ONNX file, when its size is an objective or was asked for; else None."""
    if "int8_bytes" not in evaluator.search.objectives and not evaluator.measure.measure_int8:
        return lambda keep: {"int8_file_bytes": None}
    from archwright.exporting.onnx_file import int8_file_bytes  # onnx takes a second to import

    return lambda keep: {"int8_file_bytes": int8_file_bytes(extract(evaluator.network, keep).eval())}


def timed_front(evaluator: SubnetEvaluator, keeps: Mapping[int, SubnetSpec]) -> Timings:
    """The original and all members of the front, timed together."""
    named = {ORIGINAL: evaluator.space.anatomy.full, **{str(number): keep for number, keep in keeps.items()}}
    return measure_latency(
        evaluator.network, named, batch=1, length=evaluator.length, rounds=evaluator.measure.rounds, seed=evaluator.seed
    )


def member(evaluator: SubnetEvaluator, trial: Any, keep: SubnetSpec, timings: Timings) -> dict[str, Any]:
    """One entry of the front."""
    config = config_of(evaluator.space.choices, trial)
    return {
        "trial": trial.number,
        "config": config,
        "keep": [list(pair) for pair in sizes(keep)],
        **numbers(evaluator, evaluator.home(config), keep, timings[str(trial.number)], validation=trial.values[0]),
    }


def numbers(
    evaluator: SubnetEvaluator,
    home: tuple[PrunedNetwork, SubnetSpec | None],
    keep: SubnetSpec,
    timing: Timing,
    *,
    validation: float | None = None,
) -> dict[str, Any]:
    """Errors, counts and latency of a network."""
    of, task_data = evaluator.space.anatomy, evaluator.task_data
    network, part = home
    counts = {name: int(cost.measure(of, keep, length=evaluator.length)) for name, cost in COSTS.items()}
    return {
        ERROR: task_data.error(network, task_data.validation, part) if validation is None else validation,
        "test_error": task_data.error(network, task_data.test, part),
        **counts,
        "nonembedding_share": counts["nonembedding_parameters"] / nonembedding_parameters(of, of.full),
        LATENCY: timing._asdict(),
    }


def trial_rows(evaluator: SubnetEvaluator, trials: list[Any]) -> list[dict[str, Any]]:
    """Every measured trial in the order of completion."""
    done = sorted((t for t in trials if t.values is not None), key=lambda t: (t.datetime_complete, t.number))
    begun = min(t.datetime_start for t in done)
    whole = nonembedding_parameters(evaluator.space.anatomy, evaluator.space.anatomy.full)
    return [
        {
            "trial": trial.number,
            "values": list(trial.values),
            ERROR: trial.values[0],
            "nonembedding_share": nonembedding_parameters(
                evaluator.space.anatomy, evaluator.space.build(config_of(evaluator.space.choices, trial))
            )
            / whole,
            "seconds": (trial.datetime_complete - begun).total_seconds(),
        }
        for trial in done
    ]


def latency_facts(evaluator: SubnetEvaluator, timings: Timings, keeps: Mapping[int, SubnetSpec]) -> dict[str, Any]:
    table = latency_table(evaluator)
    pairs = [[table.predict(keep), timings[str(number)].median] for number, keep in keeps.items()] if table else None
    return {
        "batch": 1,
        "length": evaluator.length,
        "threads": 1,
        "rounds": evaluator.measure.rounds,
        "sentinel_drift": timings.drift,
        "predicted_vs_measured": pairs,
    }
