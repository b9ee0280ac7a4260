"""The result of a run as one JSON document: the front, measured again with everything that was not searched for."""

from collections.abc import Callable, Mapping
from typing import Any

import archwright
from archwright.jobs.environment import environment
from archwright.jobs.methods import METHODS
from archwright.jobs.searching import ERROR, LATENCY, Ground, latency_table
from archwright.judge import hypervolume, hypervolume_over_time
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives import COSTS, Timing, Timings, measure_latency, rank
from archwright.search import config_of, front
from archwright.subnet.extract import extract
from archwright.subnet.keep import Keep, nonembedding_parameters, sizes

SCHEMA = "archwright/compress/1"
ORDER_NOTES = {
    "taylor": "|activation x gradient| of heads and units, and the loss without each layer, on {rows} training rows of "
    "{task} in the fine-tuned {model}",
    "none": "as in {model}",
}
REFERENCE = (1.0, 1.0)
"""Error and share of the non-embedding parameters at which the hypervolume of a single run ends."""
ORIGINAL, SUPERNET = "original", "supernet"


def result_of(ground: Ground, study: Any, original: PrunedNetwork) -> dict[str, Any]:
    """Everything that out.json, the report and `select` need."""
    trials = study.get_trials(deepcopy=False)
    with ground.run.phase("measure"):
        measured = measured_networks(ground, trials, original)
    history = trial_rows(ground, trials)
    points = [(ground.scene.scaled(row[ERROR]), row["nonembedding_share"]) for row in history]
    return {
        "schema": SCHEMA,
        "archwright": archwright.__version__,
        **asked(ground),
        **measured,
        "trials": history,
        "hypervolume": hypervolume(points, REFERENCE),
        "hypervolume_over_time": hypervolume_over_time(points, REFERENCE),
        "honesty": None,
        "seconds": sum(ground.run.seconds.values()),
        "seconds_by_phase": ground.run.seconds,
        "environment": environment(),
    }


def asked(ground: Ground) -> dict[str, Any]:
    """What the run was about."""
    of, task, settings = ground.space.anatomy, ground.scene.task, ground.brief.supernet
    return {
        "run": ground.run.path.resolve().name,
        "folder": str(ground.run.path),
        "model": ground.brief.model.model,
        "family": ground.network.config.backbone["model_type"],
        "pooling": ground.network.config.pooling,
        "task": task.name,
        "task_note": task.note,
        "rows": {split: encoded.rows for split, encoded in ground.scene.encoded.items()},
        "metric": task.metric,
        "method": settings.method,
        "space": ground.space.name,
        "strategy": settings.strategy if ground.supernet else None,
        "order": settings.order if METHODS[settings.method].samplers else "none",
        "order_note": order_note(ground),
        "sampler": ground.search.sampler if METHODS[settings.method].samplers else None,
        "seed": ground.seed,
        "objectives": [ERROR, *(name for name in ground.search.objectives if name != ERROR)],
        "layers": of.layers,
        "heads": of.heads,
        "units": of.units,
    }


def order_note(ground: Ground) -> str:
    noted = ground.run.note("order")
    words = {"task": ground.scene.task.name, "model": ground.brief.model.model}
    return ORDER_NOTES["none" if noted is None else ground.brief.supernet.order].format(
        rows=(noted or {}).get("rows"), **words
    )


def measured_networks(ground: Ground, trials: list[Any], original: PrunedNetwork) -> dict[str, Any]:
    """The original, the super-network if there is one, and the front, all timed together."""
    keeps = {
        trial.number: ground.space.build(config_of(ground.space.choices, trial))
        for trial in worthwhile(ground, front(trials, space=ground.space))
    }
    timings = timed_front(ground, keeps)
    ranks = rank({str(number): timings[str(number)] for number in keeps})
    weigh, whole = weights_of(ground), ground.space.anatomy.full
    members = [
        {**member(ground, trials[number], keep, timings), "latency_rank": ranks[str(number)], **weigh(keep)}
        for number, keep in keeps.items()
    ]
    return {
        ORIGINAL: numbers(ground, (original, None), whole, timings[ORIGINAL]),
        SUPERNET: numbers(ground, (ground.network, None), whole, timings[ORIGINAL]) if ground.supernet else None,
        "front": sorted(members, key=lambda entry: entry["nonembedding_parameters"]),
        "latency": latency_facts(ground, timings, keeps),
    }


def worthwhile(ground: Ground, members: list[Any]) -> list[Any]:
    """Those that are not worse than guessing, which a network without layers can be; all if there is no other."""
    return [trial for trial in members if ground.scene.scaled(trial.values[0]) <= 1] or members


def weights_of(ground: Ground) -> Callable[[Keep], dict[str, int | None]]:
    """What weighs a member's int8 ONNX file, when its size is an objective or was asked for; else None."""
    if "int8_bytes" not in ground.search.objectives and not ground.measure.measure_int8:
        return lambda keep: {"int8_file_bytes": None}
    from archwright.export.onnx_file import int8_file_bytes  # onnx takes a second to import

    return lambda keep: {"int8_file_bytes": int8_file_bytes(extract(ground.network, keep).eval())}


def timed_front(ground: Ground, keeps: Mapping[int, Keep]) -> Timings:
    """The original and all members of the front, timed together."""
    named = {ORIGINAL: ground.space.anatomy.full, **{str(number): keep for number, keep in keeps.items()}}
    return measure_latency(
        ground.network, named, batch=1, length=ground.length, rounds=ground.measure.rounds, seed=ground.seed
    )


def member(ground: Ground, trial: Any, keep: Keep, timings: Timings) -> dict[str, Any]:
    """One entry of the front."""
    config = config_of(ground.space.choices, trial)
    return {
        "trial": trial.number,
        "config": config,
        "keep": [list(pair) for pair in sizes(keep)],
        **numbers(ground, ground.home(config), keep, timings[str(trial.number)], validation=trial.values[0]),
    }


def numbers(
    ground: Ground,
    home: tuple[PrunedNetwork, Keep | None],
    keep: Keep,
    timing: Timing,
    *,
    validation: float | None = None,
) -> dict[str, Any]:
    """Errors, counts and latency of a network."""
    of, scene = ground.space.anatomy, ground.scene
    network, part = home
    counts = {name: int(cost.measure(of, keep, length=ground.length)) for name, cost in COSTS.items()}
    return {
        ERROR: scene.error(network, scene.validation, part) if validation is None else validation,
        "test_error": scene.error(network, scene.test, part),
        **counts,
        "nonembedding_share": counts["nonembedding_parameters"] / nonembedding_parameters(of, of.full),
        LATENCY: timing._asdict(),
    }


def trial_rows(ground: Ground, trials: list[Any]) -> list[dict[str, Any]]:
    """Every measured trial in the order of completion."""
    done = sorted((t for t in trials if t.values is not None), key=lambda t: (t.datetime_complete, t.number))
    begun = min(t.datetime_start for t in done)
    whole = nonembedding_parameters(ground.space.anatomy, ground.space.anatomy.full)
    return [
        {
            "trial": trial.number,
            "values": list(trial.values),
            ERROR: trial.values[0],
            "nonembedding_share": nonembedding_parameters(
                ground.space.anatomy, ground.space.build(config_of(ground.space.choices, trial))
            )
            / whole,
            "seconds": (trial.datetime_complete - begun).total_seconds(),
        }
        for trial in done
    ]


def latency_facts(ground: Ground, timings: Timings, keeps: Mapping[int, Keep]) -> dict[str, Any]:
    table = latency_table(ground)
    pairs = [[table.predict(keep), timings[str(number)].median] for number, keep in keeps.items()] if table else None
    return {
        "batch": 1,
        "length": ground.length,
        "threads": 1,
        "rounds": ground.measure.rounds,
        "sentinel_drift": timings.drift,
        "predicted_vs_measured": pairs,
    }
