"""micro-lm: small encoders trained here on masked words of WikiText-2, matched in size across operators and places.

Layout: micro_lm.csv has one row per network, seed, learning rate and number of steps with the loss on hidden words.
A network's result is the mean over its seeds at the usual learning rate after all steps. `experiments/micro_benchmark`
has the recipe, trains further networks, and keeps 30 % of them, by a hash of the design, in a file of its own.
"""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, Row, ShortTraining, Unusable
from archwright.errors import BadInput
from archwright.search import Config
from archwright.spaces.micro_lm import LAYER, MicroLmSpace

ORIGIN = "https://huggingface.co/datasets/Salesforce/wikitext"
LICENCE = "CC BY-SA (text), results of this project"
FILE, TABLES = "micro_lm.csv", Path(__file__).parent / "tables"
STEPS, SHORT = 1600, (50, 100)
BUDGETS = {"loss": STEPS, "loss_half": STEPS // 2, "loss_quarter": STEPS // 4, "loss_eighth": STEPS // 8}
"""Targets by the steps after which they were measured."""
SEEDS = (0, 1)
USUAL, SLOWER = 1.0, 0.5
CAUTION = (
    "networks of 40,000 to 400,000 parameters after 1.6M words: what holds here need not hold for large ones; "
    "short trainings are the beginnings of the same runs"
)
Runs = dict[tuple[int, float], dict[int, Mapping[str, str]]]
"""Lines of a network by (seed, learning rate), then by steps."""


def load_micro_lm(folder: Path, variant: str = "trained") -> BenchmarkTable:
    """Losses with their sign changed; a network without both seeds is missing."""
    space, designs = MicroLmSpace(), dict[str, Runs]()
    for line in read_lines(folder / FILE):
        run = designs.setdefault(line["design"], {}).setdefault((int(line["seed"]), float(line["rate"])), {})
        run[int(line["steps"])] = line
    rows, missing = list[Row](), list[Missing]()
    for design, runs in designs.items():
        try:
            rows.append(read_row(design, runs, space))
        except Unusable as why:
            missing.append(Missing(design, str(why)))
    if not rows:
        why_none = f"{missing[0].id}: {missing[0].reason}" if missing else "it is empty"
        raise BadInput(
            f"{folder / FILE} has no usable network ({why_none}); train some with experiments/micro_benchmark."
        )
    return BenchmarkTable(
        "micro-lm",
        variant,
        space,
        tuple(rows),
        tuple(missing),
        target="loss",
        targets=tuple(BUDGETS),
        licence=LICENCE,
        caution=CAUTION,
        derived=tuple(BUDGETS)[1:],
    )


def read_lines(path: Path) -> list[dict[str, str]]:
    """The lines of the file with numbers in their places; BadInput for a file that is something else."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
    except FileNotFoundError as error:
        raise BadInput(f"{path} must be a file of the benchmark, got none; leave --data out.") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} must be a CSV file, got: {error}; leave --data out.") from error
    for number, line in enumerate(lines, start=2):
        try:
            design, loss = line["design"].split(), float(line["loss"])
            sizes = (int(line["seed"]), float(line["rate"]), int(line["steps"]), int(line["parameters"]))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadInput(f"{path} line {number} is not laid out as a result ({error}); leave --data out.") from error
        if len(design) < 2 or not math.isfinite(loss) or min(sizes[:3]) < 0 or not float(line["seconds"]) >= 0:
            raise BadInput(f"{path} line {number} must name a design and its loss, got {line['design']!r}, {loss}.")
    return lines


def read_row(design: str, runs: Runs, space: MicroLmSpace) -> Row:
    """One network; Unusable where a seed is missing or a training was cut off."""
    config = read_design(design, space)
    usual = [runs.get((seed, USUAL), {}) for seed in SEEDS]
    if any(steps not in run for run in usual for steps in (*SHORT, *BUDGETS.values())):
        raise Unusable("it was not trained with both seeds so far")
    losses = {steps: [float(run[steps]["loss"]) for run in usual] for steps in (*SHORT, *BUDGETS.values())}
    return Row(
        id=design,
        config=space.canonical(config),
        trained={name: -sum(losses[steps]) / len(SEEDS) for name, steps in BUDGETS.items()},
        published={name: float(usual[0][STEPS][name]) for name in ("parameters", "nonembedding")},
        cell=f"{config['layers']}x{config['hidden']}",
        runs={f"seed {seed}": -loss for seed, loss in zip(SEEDS, losses[STEPS], strict=True)},
        short=tuple(ShortTraining(n, -losses[n][0], float(usual[0][n]["seconds"])) for n in SHORT),
    )


def read_design(design: str, space: MicroLmSpace) -> Config:
    """Of a name such as 2x48 SA/SDP:2:large LT/DCT:4:small."""
    shape, *layers = design.split()
    try:
        depth, width = map(int, shape.split("x"))
        config: Config = {"layers": depth, "hidden": width}
        for place, layer in enumerate(layers):
            operation, heads, size = layer.split(":")
            values = zip(LAYER, (operation, int(heads), size), strict=True)
            config |= {f"{name}.{place}": value for name, value in values}
        if depth != len(layers):
            raise Unusable(f"{len(layers)} layers are named, of {depth}")
        space.check(config)
    except (ValueError, BadInput) as error:
        raise Unusable(str(error)) from error
    return config


MICRO_LM = Benchmark(
    "micro-lm",
    load_micro_lm,
    folder="micro-lm",
    origin=ORIGIN,
    licence=LICENCE,
    shipped=TABLES,
)
