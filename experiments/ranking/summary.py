"""One CSV per ranking, out of what `archwright rank BENCHMARK --json FILE` wrote.

    python experiments/ranking/summary.py nas-bert.json lts-gpt2.json nas-bench-nlp.json

Written beside this file; the columns are those of the report, with commit, seed and hardware.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MACHINE = ("commit", "cpu", "cores", "torch")


def main() -> None:
    for name in sys.argv[1:]:
        document = json.loads(Path(name).read_text())
        rows = [row_of(row, document) for row in document["rows"]]
        with open(HERE / f"{document['benchmark']}-{document['variant']}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def row_of(row: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Numbers with four digits; what is missing with its reason."""
    plain = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
    missing = {"missing": row["missing"]["count"], "reason": row["missing"]["reason"]}
    made = {"seed": document["seed"], "loss": document["loss"], "target": document["target"]}
    return {**plain, **missing, **made, **{name: document["environment"][name] for name in MACHINE}}


if __name__ == "__main__":
    main()
