"""What the table of FlexiBERT architectures says about itself: which choices ever had an effect, and what the published
gradient metrics measure.

    python experiments/nas_bert/facts.py [FOLDER_OF_NAS_BERT]

Takes some seconds; prints the tables of summary.md beside this file.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from archwright.benchmarks import BENCHMARKS, BenchmarkTable, Row
from archwright.data.public_data import public_data
from archwright.search import Config

Values = NDArray[np.float64]
HERE = Path(__file__).parent


def main() -> None:
    source = BENCHMARKS["nas-bert"]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else public_data("nas-bert", origin=source.origin, option="FOLDER")
    table = source.load(folder, "trained")
    published = source.load(folder, "published")
    text = "\n\n".join(
        (choices(table), by_layer(table), fourier(table), twins(table), rounding(published), growing(published))
    )
    (HERE / "summary.md").write_text(text + "\n")
    print(text)


def layers_of(config: Config) -> list[Config]:
    names = ("operation", "heads", "stack", "feed_forward")
    return [{name: config[f"{name}.{place}"] for name in names} for place in range(config["layers"])]


def share(holds: Callable[[Config], bool]) -> Callable[[Config], float]:
    """Part of the layers for which something holds."""
    return lambda config: float(np.mean([holds(layer) for layer in layers_of(config)]))


TRAITS: dict[str, Callable[[Config], float]] = {
    "self-attention operators": share(lambda layer: layer["operation"].startswith("SA")),
    "Fourier and cosine transforms": share(lambda layer: layer["operation"].startswith("LT")),
    "dynamic convolutions": share(lambda layer: layer["operation"].startswith("DSC")),
    "heads": lambda config: float(np.mean([layer["heads"] for layer in layers_of(config)])),
    "stacks of three": share(lambda layer: layer["stack"] == 3),
    "FFN width 1024 in stacks of three": share(lambda layer: layer["stack"] == 3 and layer["feed_forward"] == 1024),
    "FFN width 1024 in stacks of one": share(lambda layer: layer["stack"] == 1 and layer["feed_forward"] == 1024),
}


def choices(table: BenchmarkTable) -> str:
    """Correlation of every trait with GLUE, both less the mean of their (layers, hidden) cell."""
    truth = centred(table.rows, np.array([row.trained["glue"] for row in table.rows]))
    lines = [
        f"{len(table.rows)} rows, inside (layers, hidden) cells:",
        "",
        "| trait | r with GLUE | p |",
        "|---|---|---|",
    ]
    for name, trait in TRAITS.items():
        found = stats.pearsonr(centred(table.rows, np.array([trait(row.config) for row in table.rows])), truth)
        lines.append(f"| {name} | {found.statistic:+.2f} | {found.pvalue:.2g} |")
    return "\n".join(lines)


PER_LAYER: dict[str, Callable[[Config], float]] = {  # of a layer
    "stack of three FFN linears": lambda layer: float(layer["stack"] == 3),
    "twice the heads": lambda layer: float(np.log2(layer["heads"])),
}


def by_layer(table: BenchmarkTable) -> str:
    """Regression of GLUE on the traits of every layer at once, inside (layers, hidden) cells, for each depth.

    Means over layers, as above, let opposite effects of first and last layers cancel. Effects are in standard
    deviations of GLUE inside cells; t with errors clustered by network, as twins are not independent.
    """
    lines = [
        "The same layer by layer: least squares on all traits of all layers, all less the mean of their cell; effect "
        "in standard deviations of GLUE inside cells, t with errors clustered by network:",
        "",
        "| layers | trait | " + " | ".join(f"layer {place}" for place in range(4)) + " |",
        "|---|---|---|---|---|---|",
    ]
    for depth in (2, 4):
        rows = tuple(row for row in table.rows if row.config["layers"] == depth)
        truth = centred(rows, np.array([row.trained["glue"] for row in rows]))
        columns = np.column_stack(
            [
                centred(rows, np.array([trait(layers_of(row.config)[place]) for row in rows]))
                for trait in PER_LAYER.values()
                for place in range(depth)
            ]
        )
        networks = [str(sorted(table.space.canonical(row.config).items())) for row in rows]
        cells = len({row.cell for row in rows})
        effects, errors = clustered_regression(columns, truth / truth.std(), networks, cells)
        for index, name in enumerate(PER_LAYER):
            own = slice(index * depth, (index + 1) * depth)
            told = [f"{b:+.2f} (t {b / e:+.1f})" for b, e in zip(effects[own], errors[own], strict=True)]
            lines.append(f"| {depth} | {name} | " + " | ".join([*told, *[""] * (4 - depth)]) + " |")
    return "\n".join(lines)


def clustered_regression(columns: Values, truth: Values, clusters: list[str], absorbed: int) -> tuple[Values, Values]:
    """Least-squares effects and their standard errors, robust to clusters (Liang and Zeger 1986); `absorbed` means
    were taken off before."""
    inverse = np.linalg.inv(columns.T @ columns)
    effects = inverse @ columns.T @ truth
    residual = truth - columns @ effects
    names = np.array(clusters)
    sums = np.array([columns[names == name].T @ residual[names == name] for name in sorted(set(clusters))])
    rows, groups = len(truth), len(sums)
    scale = groups / (groups - 1) * (rows - 1) / (rows - columns.shape[1] - absorbed)
    covariance = scale * inverse @ sums.T @ sums @ inverse
    return effects, np.sqrt(np.diag(covariance))


def centred(rows: tuple[Row, ...], values: Values) -> Values:
    cells = np.array([row.cell for row in rows])
    return values - np.array([values[cells == cell].mean() for cell in cells])


def fourier(table: BenchmarkTable) -> str:
    """Networks described as pure transforms, beside those described as pure attention."""
    lines = ["| layers | described as | rows | GLUE |", "|---|---|---|---|"]
    for depth in (2, 4):
        for kind, words in (("LT", "Fourier and cosine only"), ("SA", "self-attention only")):
            pure = [row for row in table.rows if row.config["layers"] == depth and TRAIT_OF[kind](row.config) == 1]
            mean = f"{np.mean([row.trained['glue'] for row in pure]):.1f}" if pure else "none"
            lines.append(f"| {depth} | {words} | {len(pure)} | {mean} |")
    return "\n".join(lines)


TRAIT_OF = {"LT": TRAITS["Fourier and cosine transforms"], "SA": TRAITS["self-attention operators"]}


def twins(table: BenchmarkTable) -> str:
    """How many different networks the rows are, and how much two trainings of one differ."""
    groups: dict[str, list[float]] = {}
    for row in table.rows:
        groups.setdefault(str(sorted(table.space.canonical(row.config).items())), []).append(row.trained["glue"])
    repeated = [values for values in groups.values() if len(values) > 1]
    spread = np.sqrt(np.mean([np.var(values, ddof=1) for values in repeated]))
    return (
        f"{len(table.rows)} rows are {len(groups)} networks; {sum(map(len, repeated))} rows have a twin. "
        f"Two trainings of one network differ with a standard deviation of {spread:.2f} points of GLUE."
    )


def rounding(table: BenchmarkTable) -> str:
    """Ones through a LayerNorm, as the public script has it: |w g| over FFN linears, in single and double precision."""
    config = table.rows[0].config
    tokens = torch.randint(1000, (8, 64), generator=torch.Generator().manual_seed(0))
    losses = {"ones": lambda state: state.sum(), "cubes": lambda state: (state**3).sum()}
    lines = ["| back-propagated through the last hidden state | float32 | float64 |", "|---|---|---|"]
    for name, loss in losses.items():
        found = []
        for dtype in (torch.float32, torch.float64):
            network = table.space.network(config, generator=torch.Generator().manual_seed(0), vocabulary=1000)
            network = network.to(dtype)  # type: ignore[attr-defined]
            linears = [linear for layer in network.roles().layers for linear in layer.ffn]
            state = network(tokens).last_hidden_state
            gradients = torch.autograd.grad(loss(state), [linear.weight for linear in linears])
            pairs = zip(linears, gradients, strict=True)
            found.append(sum((linear.weight.detach() * gradient).abs().sum().item() for linear, gradient in pairs))
        lines.append(f"| {name} | {found[0]:.1e} | {found[1]:.1e} |")
    return f"Synaptic saliency of architecture {table.rows[0].id}:\n\n" + "\n".join(lines)


def growing(table: BenchmarkTable) -> str:
    """What the published sums were divided by: a count of modules, or one that was never set back."""
    lines = ["| published metric | sum / normalised, over all rows |", "|---|---|"]
    for metric in ("Head Confidence", "Synaptic Saliency", "Activation Distance"):
        pairs = [(row.published[metric], row.published[f"{metric} Normalized"]) for row in table.rows]
        counts = [total / mean for total, mean in pairs]
        lines.append(f"| {metric} | {min(counts):,.0f} to {max(counts):,.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
