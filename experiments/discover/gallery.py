"""The gallery of found proxies: what goes into the package, and the page docs/gallery.md with its pictures.

    python experiments/discover/gallery.py entries results      # src/archwright/proxies/formulas/discovered.json
    python experiments/discover/gallery.py counts               # what each formula counts, into the same file
    python experiments/discover/gallery.py page runs/gallery    # docs/gallery.md, docs/gallery/*.svg
    python experiments/discover/gallery.py page runs/gallery found_projections    # ranked again: only this one

`results` holds what `archwright discover ... --json` wrote, by the names in picks.json; `runs/gallery` keeps scores.
Proxies that are not ranked again keep the numbers that the page has.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

import archwright as aw
from archwright.configs.scoring import BenchmarkOptions, RecordingOptions
from archwright.discovery.context import load_rows
from archwright.discovery.disguise import check_formulas, checked_branches, explain
from archwright.discovery.pipeline import provenance
from archwright.parallel.pool import LocalPool
from archwright.proxies.formulas.discovered import SCHEMA
from archwright.proxies.formulas.formula import parse
from archwright.random_streams import CHECKED_NETWORKS

HERE = Path(__file__).parent
PAGE_BENCHMARKS = ("nas-bert", "lts-gpt2", "nas-bench-nlp")
"""Those that the page has columns of."""
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "archwright" / "proxies" / "formulas" / "discovered.json"
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "gallery"
NUMBERS = ("formula", "json", "size", "train", "held_out", "within_cells", "kendall_b", "verdict", "n")
MEASURES = {"held_out": "spearman", "within_cells": "within_cells", "kendall_b": "kendall_b"}
SIDE, GAP, TOP = 190, 30, 24
DASH = "-"


def entries(results: Path) -> None:
    """One entry of the package for every pick: name, file, size of the formula in it, and what it means."""
    picks = json.loads((HERE / "picks.json").read_text())
    made = [entry_of(pick, json.loads((results / f"{pick['result']}.json").read_text())) for pick in picks]
    PACKAGE.write_text(json.dumps(made, indent=1) + "\n")


def entry_of(pick: Mapping[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    (best,) = [one for one in document["best"] if one["formula"] == pick["formula"]]
    told = {"schema": SCHEMA, "name": pick["name"], "summary": pick["summary"], "meaning": pick["meaning"]}
    made = provenance(document)
    made.pop("folds")  # the same for the same data and seed
    return {**told, **{key: best[key] for key in NUMBERS}, "provenance": {**made, "inputs": document["inputs"]}}


def counts() -> None:
    """What the statistics of each formula are, on networks of the benchmark it was found on."""
    found = json.loads(PACKAGE.read_text())
    for benchmark in dict.fromkeys(entry["provenance"]["benchmark"] for entry in found):
        entries_here = [entry for entry in found if entry["provenance"]["benchmark"] == benchmark]
        rows, setup = load_rows(BenchmarkOptions(benchmark), RecordingOptions(), ())
        by_network = dict(zip(rows.networks, rows.rows, strict=True))
        requests = [replace(setup.request(by_network[name].config), proxies={}) for name in sorted(by_network)]
        rng = np.random.default_rng((entries_here[0]["provenance"]["seed"], CHECKED_NETWORKS))
        checks = check_formulas([entry["formula"] for entry in entries_here], requests, LocalPool(), rng=rng)
        for entry, formula in zip(entries_here, checks["formulas"] or [None] * len(entries_here), strict=True):
            own = {str(branch) for branch in checked_branches([parse(entry["formula"])])}
            statistics = [one for one in checks["statistics"] if one["statistic"] in own]
            entry["counts"] = {"statistics": statistics, "formulas": [formula] if formula and own else []}
    PACKAGE.write_text(json.dumps(found, indent=1) + "\n")


def page(scores: Path, *only: str) -> None:
    found = json.loads(PACKAGE.read_text())
    names = only or tuple(entry["name"] for entry in found)
    ranked = {name: aw.rank(benchmark=name, proxies=names, ablation=False, out=scores) for name in PAGE_BENCHMARKS}
    documents = {name: one.as_json() for name, one in ranked.items()}
    PICTURES.mkdir(exist_ok=True)
    tables = written_tables()
    for entry in found:
        if entry["name"] in names:
            (PICTURES / f"{entry['name']}.svg").write_text(picture(entry["name"], documents))
            tables[entry["name"]] = benchmark_rows(entry, documents)
    PAGE.write_text("\n".join([head(found), *(chapter(entry, tables[entry["name"]]) for entry in found)]))


def written_tables() -> dict[str, str]:
    """Rows by benchmark that the page has now, by proxy."""
    chapters = re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {name: "\n".join(re.findall(r"^\| (?!benchmark).*$", text, flags=re.MULTILINE)) for name, text in chapters}


def benchmark_rows(entry: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> str:
    on = {name: judged(entry, name, document) for name, document in documents.items()}
    return "\n".join(row(name, of, found=name == entry["provenance"]["benchmark"]) for name, of in on.items())


def judged(entry: Mapping[str, Any], name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Cross-fitted where it was found, on all rows elsewhere; the reason where it does not exist."""
    if entry["provenance"]["benchmark"] == name:
        return {key: entry[key] for key in MEASURES}
    (row,) = [row for row in document["rows"] if row["proxy"] == entry["name"]]
    if row["missing"]["count"] or row["spearman"] is None:
        return {"missing": f"{row['missing']['count']} of {document['n']} rows: {row['missing']['reason']}"}
    ends = {"value": "", "low": "_low", "high": "_high"}
    return {key: {end: row[f"{of}{tail}"] for end, tail in ends.items()} for key, of in MEASURES.items()}


def told(of: Mapping[str, Any] | None) -> str:
    if not of or of["value"] is None:
        return DASH
    return f"{of['value']:.3f} ({of['low']:.2f} to {of['high']:.2f})"


def head(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        f"| [`{entry['name']}`](#{entry['name']}) | `{entry['formula']}` | {entry['provenance']['benchmark']} "
        f"| {told(entry['held_out'])} | {told(entry['within_cells'])} | {told(entry['kendall_b'])} |"
        for entry in found
    ]
    return (HERE / "gallery_head.md").read_text() + "\n".join(rows) + "\n"


def counted(entry: Mapping[str, Any]) -> str:
    """What `check_formulas` found, as a list."""
    if "counts" not in entry:
        return "- Not measured; `python experiments/discover/gallery.py counts` does."
    checks = entry["counts"]
    lines = [f"- {explain(one)}" for one in checks["statistics"]]
    for one in checks["formulas"]:
        if one["batch_spearman"] is not None:
            lines.append(
                f"- With half of the texts it ranks 16 networks with Spearman {one['batch_spearman']:.3f} to this."
            )
    return "\n".join(lines) or "- It is made of counts, and looks at no text."


def chapter(entry: Mapping[str, Any], rows: str) -> str:
    formula, made = parse(entry["formula"]), entry["provenance"]
    splits = made.get("fold_seeds", 1)
    there = (PICTURES / f"{entry['name']}.svg").exists()
    shown = f"![scores against trained results](gallery/{entry['name']}.svg)" if there else "(no picture yet)"
    crossed = "one split, which flatters" if splits == 1 else f"means over {splits} splits"
    return f"""## {entry["name"]}

    {formula}

$${formula.latex()}$$

{entry["meaning"]} Size {entry["size"]}; passes: {", ".join(formula.passes) or "none"}.

What it counts, as measured:

{counted(entry)}

{shown}

| benchmark | Spearman | within cells | Kendall tau-b |
|---|---|---|---|
{rows}

Found on {made["benchmark"]} ({made["variant"]}, {made["n"]} rows, fitness {made["fitness"]}, {made["unary"]} unary per
branch, seed {made["seed"]}; cross-fitted: {crossed}); on the rows it was chosen on
Spearman {entry["train"]["spearman"]:.3f}, within cells
{entry["train"]["within_cells"]:.3f}.
"""


def row(name: str, of: Mapping[str, Any], *, found: bool) -> str:
    if "missing" in of:
        return f"| {name} | missing for {of['missing']} | | |"
    return f"| {name}{' (cross-fitted)' if found else ''} | {' | '.join(told(of[key]) for key in MEASURES)} |"


def picture(proxy: str, documents: Mapping[str, Mapping[str, Any]]) -> str:
    """A panel per benchmark: rank of the score to the right, rank of the trained result upwards."""
    width, height = len(documents) * (SIDE + GAP) + GAP, SIDE + 2 * TOP + 12
    panels = [panel(proxy, name, of, GAP + at * (SIDE + GAP)) for at, (name, of) in enumerate(documents.items())]
    style = "<style>text{font:11px sans-serif;fill:#666}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{style}{"".join(panels)}</svg>\n'


def panel(proxy: str, name: str, document: Mapping[str, Any], left: int) -> str:
    rows = [one for one in document["architectures"] if one["scores"].get(proxy) is not None]
    frame = f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#bbb"/>'
    words = f'<text x="{left}" y="{TOP - 8}">{name}</text>'
    axis = f'<text x="{left}" y="{TOP + SIDE + 16}">rank of the score, up: rank of the trained result</text>'
    if len(rows) < 2:
        return frame + words + f'<text x="{left + 70}" y="{TOP + SIDE // 2}">missing</text>'
    sides = [np.array([one["scores"][proxy] for one in rows]), np.array([one["trained"] for one in rows])]
    x, y = (6 + (SIDE - 12) * (rankdata(side) - 1) / (len(rows) - 1) for side in sides)
    dots = "".join(f"M{left + a:.0f} {TOP + SIDE - b:.0f}h0" for a, b in zip(x, y, strict=True))
    line = 'stroke-width="4" stroke-linecap="round" stroke-opacity=".6"'
    return frame + words + axis + f'<path d="{dots}" stroke="#3b6fb6" {line}/>'


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "entries":
        entries(Path(arguments[0]))
    elif command == "counts":
        counts()
    else:
        page(Path(arguments[0]), *arguments[1:])
