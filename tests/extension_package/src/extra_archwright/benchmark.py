"""A benchmark: encoders of our space that were trained, as results.csv with depth, width, widening and accuracy."""

import csv
from pathlib import Path

from archwright.benchmarks import Benchmark, BenchmarkTable, Row
from archwright.errors import BadInput
from extra_archwright.space import EVEN_ENCODER

LICENCE = "CC-BY-4.0"
ORIGIN = "https://example.org/even-results"


def read(folder: Path, variant: str) -> BenchmarkTable:
    file = folder / "results.csv"
    if not file.is_file():
        raise BadInput(f"{folder} must hold results.csv, got none; download it from {ORIGIN}.")
    rows = []
    for number, line in enumerate(csv.DictReader(file.read_text(encoding="utf-8").splitlines())):
        config = {name: int(line[name]) for name in EVEN_ENCODER.choices}
        EVEN_ENCODER.check(config)
        trained = {"accuracy": float(line["accuracy"])}  # higher is better
        rows.append(Row(str(number), config, trained, published={}, cell=f"{config['depth']}x{config['width']}"))
    return BenchmarkTable(
        name="even-results",
        variant=variant,
        space=EVEN_ENCODER.with_variant(None),
        rows=tuple(rows),
        missing=(),
        target="accuracy",
        targets=("accuracy",),
        licence=LICENCE,
    )


EVEN_RESULTS = Benchmark(
    "even-results",
    read,
    folder="even-results",
    origin=ORIGIN,
    licence=LICENCE,
    description="BERT encoders with layers that are all alike, accuracy after fine-tuning",
)
