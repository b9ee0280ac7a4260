"""The table of all methods: losses against the original, paired differences, parameters, latency.

    python experiments/peers/run.py --summary

Writes results.csv (one row per network), summary.md beside this file and the picture into docs/figures.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.peers.figure import draw
from experiments.peers.job import ABLATION, SIZES, SLACK
from experiments.peers.latency import Shape, as_shape, measure_shapes
from experiments.peers.records import Difference, Record, TestSet, load_records, load_test_set, paired_difference

HERE = Path(__file__).parent
FIGURE = HERE.parents[1] / "docs" / "figures" / "peers.png"
OURS, BY_LATENCY = "archwright", "archwright-latency"
LAYERS = ("first-layers", "drop-top", "layer-dropping")
"""Methods that drop layers, which equal latency is about."""
FEWEST_SEEDS = 3
OVERTIME = 1.05
"""Share of the minutes above which a method has had more time than the others."""
SAME_LATENCY = 1.02
"""Of two latencies this close none is called faster."""


@dataclass(frozen=True)
class TaskRecords:
    """All methods on one task, with what is common to them."""

    task: str
    records: dict[tuple[str, int], Record]
    """By method and seed."""
    test: TestSet
    milliseconds: dict[Shape, float]

    @property
    def methods(self) -> list[str]:
        """Without the ablations of ours, which have a table of their own."""
        return list(dict.fromkeys(method for method, _ in self.records if method not in ("original", *ABLATION)))

    def seeds(self, *methods: str) -> list[int]:
        """Seeds that all of these methods have."""
        every = {seed for _, seed in self.records}
        return sorted(seed for seed in every if all((method, seed) in self.records for method in methods))

    def latency(self, record: Record, name: str) -> float:
        """Share of the original's latency."""
        original = self.records["original", record.seed].network("original")
        shapes = [as_shape(network["layers"]) for network in (record.network(name), original)]
        return self.milliseconds[shapes[0]] / self.milliseconds[shapes[1]]

    def picks(self, method: str, size: float) -> dict[int, str]:
        """The method's network for a size by seed, where it has one."""
        picks = {seed: self.records[method, seed].pick(size) for seed in self.seeds(method, "original")}
        return {seed: name for seed, name in picks.items() if name is not None}

    def loss(self, method: str, picks: dict[int, str]) -> Difference:
        """Points lost against the original."""
        return self.compare(method, picks, "original", dict.fromkeys(picks, "original"))

    def compare(self, method: str, picks: dict[int, str], other: str, others: dict[int, str]) -> Difference:
        seeds = [seed for seed in picks if seed in others]
        first = [self.records[method, seed].answers[picks[seed]] for seed in seeds]
        second = [self.records[other, seed].answers[others[seed]] for seed in seeds]
        return paired_difference(self.test, first, second)


def write_summary(runs: Path, results: Path = HERE) -> None:
    """results.csv and summary.md into this folder; the picture is that of the main comparison alone."""
    records = load_records(runs)
    if not records:
        print(f"{runs} holds no finished method of a classification task yet.")
        return
    shapes = {as_shape(network["layers"]) for record in records for network in record.networks}
    milliseconds = measure_shapes(shapes, runs / "latency.json")
    tasks = [group_task(task, records, milliseconds) for task in dict.fromkeys(record.task for record in records)]
    results.mkdir(parents=True, exist_ok=True)
    write_results(results / "results.csv", tasks)
    (results / "summary.md").write_text("\n".join(line for task in tasks for line in task_tables(task)) + "\n")
    if results == HERE:
        draw(tasks, FIGURE)


def group_task(task: str, records: Iterable[Record], milliseconds: dict[Shape, float]) -> TaskRecords:
    chosen = {(record.method, record.seed): record for record in records if record.task == task}
    return TaskRecords(task, chosen, load_test_set(next(iter(chosen.values()))), milliseconds)


def task_tables(task: TaskRecords) -> list[str]:
    """The page of one task."""
    first = next(iter(task.records.values()))
    rows, facts = first.facts["rows"], first.facts
    unit = "CPU minutes of one core" if facts["clock"] == "cpu" else "minutes of wall-clock"
    original = [task.test.error(task.records["original", seed].answers["original"]) for seed in task.seeds("original")]
    return [
        f"## {task.task}",
        "",
        f"{rows['train']:,} training, {rows['validation']:,} validation, {rows['test']:,} test rows; metric "
        f"{task.test.metric}; original {', '.join(f'{100 * error:.1f}' for error in original)} % by seed; "
        f"{facts['minutes']:g} {unit} per method for all sizes, with {facts['threads']} thread(s).",
        "",
        "Points lost against the original, mean over seeds, with the 95 % interval of a bootstrap over rows and seeds; "
        f"in brackets the mean share of the non-embedding parameters (a size may be exceeded by {SLACK:g} points; "
        "ours may not).",
        "",
        *table(["method", "seeds", "seconds", *(f"{size} %" for size in SIZES)], loss_rows(task)),
        "",
        *reservations(task),
        *(difference_section(task) if OURS in task.methods else []),
        *(latency_section(task) if OURS in task.methods else []),
        *ablation_section(task),
    ]


def reservations(task: TaskRecords) -> list[str]:
    """What makes the comparison weaker than it looks: methods with few seeds, or with more time than the others."""
    seeds = {method: len(task.seeds(method, "original")) for method in task.methods}
    few = [f"{method} ({number})" for method, number in seeds.items() if number < FEWEST_SEEDS]
    late = []
    for method in task.methods:
        records = [task.records[method, seed] for seed in task.seeds(method, "original")]
        worst = max(record.seconds / (60 * record.facts["minutes"]) for record in records)
        late += [f"{method} (up to {worst:.0%} of it)"] if worst > OVERTIME else []
    lines = [f"Fewer than {FEWEST_SEEDS} seeds, so nothing is settled: {', '.join(few)}."] if few else []
    lines += [f"Took more than the time of the others: {', '.join(late)}."] if late else []
    return [part for line in lines for part in (line, "")]


def table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def loss_rows(task: TaskRecords) -> list[list[str]]:
    rows = []
    for method in task.methods:
        seeds = task.seeds(method, "original")
        seconds = sum(task.records[method, seed].seconds for seed in seeds) / len(seeds)
        cells = [method, str(len(seeds)), f"{seconds:.0f}"]
        for size in SIZES:
            picks = task.picks(method, size)
            cells.append(f"{task.loss(method, picks)} ({mean_share(task, method, picks):.0f} %)" if picks else "-")
        rows.append(cells)
    return rows


def mean_share(task: TaskRecords, method: str, picks: dict[int, str]) -> float:
    shares = [task.records[method, seed].network(name)["share"] for seed, name in picks.items()]
    return 100 * sum(shares) / len(shares)


def difference_section(task: TaskRecords) -> list[str]:
    """Ours against each method at the same size; negative: ours is better."""
    rows, better = [], []
    for method in task.methods:
        if method == OURS:
            continue
        cells = [method]
        for size in SIZES:
            ours, theirs = task.picks(OURS, size), task.picks(method, size)
            if not set(ours) & set(theirs):
                cells.append("-")
                continue
            difference = task.compare(OURS, ours, method, theirs)
            better += [f"{method} at {size} %"] if difference.low > 0 else []
            cells.append(str(difference))
        rows.append(cells)
    return [
        "Paired differences in points at the same size; negative: archwright loses less. "
        f"Better than archwright beyond the interval: {', '.join(better) or 'none'}.",
        "",
        *table(["archwright minus", *(f"{size} %" for size in SIZES)], rows),
        "",
    ]


def latency_section(task: TaskRecords) -> list[str]:
    """Ours, searched by size or by latency, against networks without their top layers that are not faster."""
    rows = []
    for searched in (name for name in (OURS, BY_LATENCY) if name in task.methods):
        rows += latency_rows(task, searched)
    head = ["", "minus", "seeds", "latency against the original", "difference"]
    return ["At equal latency (our best on validation rows that is not slower):", "", *table(head, rows), ""]


def latency_rows(task: TaskRecords, searched: str) -> list[list[str]]:
    rows = []
    for method in (name for name in LAYERS if name in task.methods):
        seeds = task.seeds(method, searched, "original")
        depths = sorted({len(as_shape(n["layers"])) for seed in seeds for n in task.records[method, seed].networks})
        for depth in depths:
            theirs = {seed: name for seed in seeds if (name := network_of_depth(task.records[method, seed], depth))}
            ours = {seed: name for seed in theirs if (name := fastest_pick(task, searched, method, seed, theirs[seed]))}
            if ours:
                latency = [task.latency(task.records[method, seed], theirs[seed]) for seed in ours]
                difference = task.compare(searched, ours, method, theirs)
                share = f"{100 * sum(latency) / len(latency):.0f} %"
                rows.append([searched, f"{method}, {depth} layers", str(len(ours)), share, str(difference)])
    return rows


def ablation_section(task: TaskRecords) -> list[str]:
    """What a method of ours loses without one of its parts; positive: the part pays."""
    rows = []
    for method, whole in ABLATION.items():
        if not (seeds := task.seeds(method, whole, "original")):
            continue
        cells = [method, whole, str(len(seeds))]
        for size in SIZES:
            ours, theirs = task.picks(whole, size), task.picks(method, size)
            shared = set(ours) & set(theirs)
            cells.append(str(task.compare(method, theirs, whole, ours)) if shared else "-")
        rows.append(cells)
    head = ["without a part", "minus", "seeds", *(f"{size} %" for size in SIZES)]
    return ["Ablation, in points; positive: the part pays.", "", *table(head, rows), ""] if rows else []


def network_of_depth(record: Record, depth: int) -> str | None:
    return next((n["name"] for n in record.networks if len(as_shape(n["layers"])) == depth), None)


def fastest_pick(task: TaskRecords, searched: str, method: str, seed: int, name: str) -> str | None:
    """Our network with the least validation error that is not slower than the other method's."""
    ours, most = task.records[searched, seed], SAME_LATENCY * task.latency(task.records[method, seed], name)
    fitting = [network for network in ours.networks if task.latency(ours, network["name"]) <= most]
    return min(fitting, key=lambda network: network["validation_error"])["name"] if fitting else None


def write_results(path: Path, tasks: list[TaskRecords]) -> None:
    rows = [row for task in tasks for record in task.records.values() for row in result_rows(task, record)]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def result_rows(task: TaskRecords, record: Record) -> Iterable[dict[str, Any]]:
    """One row per network of a record."""
    original = task.test.error(task.records["original", record.seed].answers["original"])
    environment = record.document.get("environment") or record.facts["environment"]
    for network in record.networks:
        error = task.test.error(record.answers[network["name"]])
        picked = [size for size in SIZES if record.method != "original" and record.pick(size) == network["name"]]
        yield {
            "task": task.task,
            "seed": record.seed,
            "method": record.method,
            "network": network["name"],
            "picked_for": " ".join(map(str, picked)),
            "share": round(network["share"], 4),
            "test_error": round(error, 4),
            "lost_points": round(100 * (error - original), 2),
            "latency_ratio": round(task.latency(record, network["name"]), 3),
            "heads_and_units": " ".join(f"{heads}/{units}" for heads, units in network["layers"]),
            "steps": network.get("steps"),
            "seconds": None if network.get("seconds") is None else round(network["seconds"], 1),
            "minutes": record.facts["minutes"],
            "clock": record.facts["clock"],
            "threads": record.facts["threads"],
            "test_rows": record.facts["rows"]["test"],
            "commit": record.facts["commit"] or environment["commit"],
            "cpu": environment["cpu"],
        }
