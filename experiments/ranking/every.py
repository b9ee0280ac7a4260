"""Every proxy on every benchmark that was ranked, with its place there: one table out of the CSVs beside this file.

    python experiments/ranking/every.py

Reads BENCHMARK-VARIANT.csv (all proxies, of `summary.py`) and travel.csv (closed forms on all rows, which win where
both have a proxy). Writes every.csv: Spearman and place by benchmark, how many benchmarks have it, its worst place as a
share of the proxies there, and `above`: on how many it is above the parameters. Empty where nobody ranked it.
"""

import csv
from pathlib import Path

HERE = Path(__file__).parent
Table = dict[str, float]
"""Spearman by proxy."""


def main() -> None:
    tables = read_tables()
    places = {name: place_proxies(table) for name, table in tables.items()}
    proxies = sorted({proxy for table in tables.values() for proxy in table})
    rows = [row_of(proxy, tables, places) for proxy in proxies]
    rows.sort(key=lambda row: (-int(row["benchmarks"]), float(row["worst_place"])))
    with open(HERE / "every.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} proxies; " + ", ".join(f"{name} {len(table)}" for name, table in tables.items()))


def read_tables() -> dict[str, Table]:
    """By benchmark and variant; a proxy without a Spearman correlation there is left out."""
    tables: dict[str, Table] = {}
    for path in sorted(HERE.glob("*-*.csv")):
        tables[path.stem] = {row["proxy"]: float(row["spearman"]) for row in read(path) if row["spearman"]}
    for row in read(HERE / "travel.csv"):
        if row["spearman"]:
            tables.setdefault(f"{row['benchmark']}-{row['variant']}", {})[row["proxy"]] = float(row["spearman"])
    return tables


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def place_proxies(table: Table) -> dict[str, int]:
    """1 for the best."""
    order = sorted(table, key=lambda proxy: -table[proxy])
    return {proxy: place for place, proxy in enumerate(order, start=1)}


def row_of(proxy: str, tables: dict[str, Table], places: dict[str, dict[str, int]]) -> dict[str, str]:
    row = {"proxy": proxy}
    there = [name for name, table in tables.items() if proxy in table]
    for name, table in tables.items():
        row[name] = f"{table[proxy]:.4f}" if proxy in table else ""
        row[f"{name} place"] = str(places[name][proxy]) if proxy in table else ""
    shares = [places[name][proxy] / len(tables[name]) for name in there]
    above = sum(tables[name][proxy] > tables[name]["parameters"] for name in there)
    return row | {"benchmarks": str(len(there)), "above": str(above), "worst_place": f"{max(shares):.3f}"}


if __name__ == "__main__":
    main()
