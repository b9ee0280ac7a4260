"""What searches found, as a table: found.csv beside this file, a row per search.

    archwright design --space nlu-tiny --seeds 5 --json seeds.json
    archwright design --space nlu-tiny --compare-proxies --population 20 --generations 10 --json compared.json
    archwright design --space nlu-tiny --method spos --teacher none --task glue/SST-2 --data DATA/glue/SST-2 \
        --steps 400 --batch-size 16 --learning-rate 1e-4 --population 20 --generations 10 --json spos.json
    archwright design --space nlu-large --population 20 --generations 10 --json large.json
    archwright design --space nlu-large --json whole.json
    python experiments/design/found.py seeds.json compared.json spos.json large.json whole.json
"""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> None:
    rows = [row for file in sys.argv[1:] for row in rows_of(json.loads(Path(file).read_text()))]
    with open(HERE / "found.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def rows_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One per proxy where proxies were compared, else one per seed."""
    common = {name: document[name] for name in ("space", "sampler", "population", "generations")}
    made = {name: document["environment"][name] for name in ("commit", "cpu")}
    for of in document["proxies_compared"] or document["against"][document["sampler"]]:
        yield {
            **common,
            "by": of.get("proxy") or ", ".join(document["proxies"]),
            "seed": document["seed"] + of.get("repeat", 0),
            "parameters": of.get("parameters") or of["counts"]["parameters"],
            "score": of["score"],
            "distinct": of["distinct"],
            "latency_ms": of["latency_ms"]["median"] if "latency_ms" in of else "",
            "core_seconds": of.get("core_seconds", ""),
            "layers": " ".join(layer["label"].replace(" ", "-") for layer in of["layers"]),
            **made,
        }


if __name__ == "__main__":
    main()
