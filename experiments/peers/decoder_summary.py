"""The table of the decoder comparison: test perplexity of SmolLM2 on WikiText-2 by size."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.peers.job import SLACK, read_job

SIZES = (90, 80, 50)
CALIBRATED = "-calibrated"
"""Ends the name of a network that was pruned but not trained."""


def write_decoder_summary(runs: Path, here: Path) -> None:
    """decoder.csv (one row per network) and decoder.md, if the comparison was run."""
    rows = [row for file in sorted(runs.glob("lm/seed-*/*/networks.json")) for row in network_rows(file)]
    if not rows:
        return
    with open(here / "decoder.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (here / "decoder.md").write_text("\n".join(table(rows)) + "\n")


def network_rows(file: Path) -> list[dict[str, Any]]:
    job = read_job(file.parent / "job.json")
    document = json.loads(file.read_text())
    return [
        {
            "method": job.method + (", calibration only" if network["name"].endswith(CALIBRATED) else ""),
            "seed": job.seed,
            "network": network["name"],
            "share": round(network["share"], 4),
            "perplexity": round(network["perplexity"], 2),
            "steps": network.get("steps"),
            "minutes": job.minutes,
            "clock": job.clock,
            "threads": job.threads,
            "commit": job.commit,
            "cpu": job.cpu,
            "peer_version": document.get("version"),
        }
        for network in document["networks"]
    ]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Mean perplexity over seeds of the largest network within each size."""
    minutes = " or ".join(sorted({f"{row['minutes']:g}" for row in rows}))
    whole = [row["perplexity"] for row in rows if row["network"] == "original"] or [np.nan]
    lines = ["## SmolLM2, WikiText-2, blocks of 128", ""]
    lines += [
        f"Test perplexity; {minutes} minutes per method for all sizes; untrained original {np.mean(whole):.1f}.",
        "",
    ]
    lines += ["| method | " + " | ".join(f"{size} %" for size in SIZES) + " |", "|---" * (1 + len(SIZES)) + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [mean_perplexity([row for row in rows if row["method"] == method], size) for size in SIZES]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def mean_perplexity(rows: list[dict[str, Any]], size: float) -> str:
    picked = []
    for seed in sorted({row["seed"] for row in rows}):
        fitting = [row for row in rows if row["seed"] == seed and 100 * row["share"] <= size + SLACK]
        picked += [max(fitting, key=lambda row: row["share"])["perplexity"]] if fitting else []
    return f"{np.mean(picked):.1f}" if picked else "-"
