"""Every formula that runs over several splits into folds reported: of each size, and within one standard error.

    python -m experiments.discover.repeated results/*.json

`results` holds what `archwright discover ... --json FILE` wrote (commands: positional.sh). Written beside this file:
repeated.csv, with commit, seed and hardware; `folds` is how often the formula was the choice of a fold.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

from experiments.discover.tried import ENDS, MACHINE, MEASURES

HERE = Path(__file__).parent
ASKED = ("benchmark", "n", "unary", "reduction", "fitness", "seed", "formulas_canonical")


def main() -> None:
    documents = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    rows = [row for document in documents for row in rows_of(document)]
    with open(HERE / "repeated.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def rows_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The best, the best of smaller sizes, then the choice of one standard error; numbers with four digits."""
    asked = {name: document[name] for name in ASKED} | {"inputs": " ".join(document["inputs"])}
    made = {"commit": document["commit"], **{name: document["environment"].get(name) for name in MACHINE}}
    chosen = [("size", entry) for entry in document["best"]]
    chosen += [("one standard error", document["simplest"])] if document["simplest"] else []
    rows = []
    for rule, entry in chosen:
        numbers = {f"{key}_{end}".removesuffix("_value"): entry[key][end] for key in MEASURES for end in ENDS}
        told = {name: None if value is None else round(value, 4) for name, value in numbers.items()}
        folds = [fold["formula"] for fold in entry["formulas_of_folds"]]
        found = {
            "chosen_by": rule,
            "formula": entry["formula"],
            "size": entry["size"],
            "folds": f"{folds.count(entry['formula'])}/{len(folds)}",
            "splits": document["folds"]["seeds"],
            "train": round(entry["train"]["spearman"], 4),
            "verdict": entry["verdict"],
        }
        rows.append({**asked, **found, **told, **made})
    return rows


if __name__ == "__main__":
    main()
