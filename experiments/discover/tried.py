"""Every configuration of `archwright discover` that was tried, with what it is worth on rows kept away.

    python experiments/discover/tried.py results/*.json

`results` holds what `archwright discover BENCHMARK ... --json FILE` wrote. Written beside this file: tried.csv, one row
per configuration (the best formula of each, failures too), with commit, seed and hardware.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ASKED = ("benchmark", "search", "unary", "reduction", "factor", "fitness", "seed")
MEASURES = ("held_out", "within_cells", "kendall_b")
ENDS = ("value", "low", "high")
MACHINE = ("cpu", "cores", "torch")


def main() -> None:
    rows = [row_of(json.loads(Path(name).read_text())) for name in sys.argv[1:]]
    rows.sort(key=lambda row: (row["benchmark"], row["search"], -row["held_out"]))
    with open(HERE / "tried.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def row_of(document: dict[str, Any]) -> dict[str, Any]:
    """Numbers with four digits."""
    best = document["best"][0]
    asked = {name: document.get(name, False) for name in ASKED} | {"inputs": " ".join(document["inputs"])}
    numbers = {f"{key}_{end}".removesuffix("_value"): best[key][end] for key in MEASURES for end in ENDS}
    told = {name: None if value is None else round(value, 4) for name, value in numbers.items()}
    own = {"train": round(best["train"]["spearman"], 4), "train_within": round(best["train"]["within_cells"] or 0, 4)}
    found = {"formula": best["formula"], "size": best["size"], **own, **told}
    counts = {name: document[name] for name in ("formulas_total", "formulas_canonical", "formulas_valid", "n")}
    machine = {name: document["environment"].get(name) for name in MACHINE}
    return {**asked, **found, **counts, "commit": document["commit"], **machine}


if __name__ == "__main__":
    main()
