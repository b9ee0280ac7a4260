"""Documents of `archwright rank` and `archwright score` made of synthetic numbers: 300 architectures, 45 proxies."""

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
COUNTS = ("parameters", "parameters_nonembedding", "flops", "depth", "depth_width", "random", "linear_10_labels")
FAMILIES = (
    "synaptic_saliency",
    "synaptic_diversity",
    "activation_distance",
    "jacobian_covariance",
    "jacobian_cosine",
    "large_noise_jacobian_covariance",
    "more_noised_jacobian_cosine",
    "attention_confidence",
    "softmax_confidence",
    "head_importance",
)
SINGLE = (
    "w_pca",
    "v_pca",
    "w_pca_nonembedding",
    "grad_norm",
    "snip",
    "grasp",
    "fisher",
    "synflow",
    "logsynflow",
    "plain",
    "nwot",
    "dss",
    "lpzero_flexibert",
    "lpzero_flexibert_layers",
    "eznas",
    "hidden_covariance",
    "evolved_1",
    "hidden_covariance_inputs",
)
VERDICTS = ("noise", "only restates depth and width", "adds information beyond depth and width")


def ranks(values: Floats) -> Floats:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found: Floats = (ends - (counts - 1) / 2)[places]
    return found


def rho(one: Floats, two: Floats) -> float:
    both = np.isfinite(one) & np.isfinite(two)
    return float(np.corrcoef(ranks(one[both]), ranks(two[both]))[0, 1])


def rank_document(n: int = 300, seed: int = 0) -> dict[str, Any]:
    """Everything a ranking can hold; depth and width explain most, `attention_confidence` is missing on some."""
    rng = np.random.default_rng(seed)
    depth, width = rng.choice([2, 4], n), rng.choice([128, 256], n)
    fine = rng.normal(size=n)
    trained = 58 + 2.6 * depth + 0.014 * width + 0.5 * fine + rng.normal(0, 0.5, n)
    parameters = (30522 * width + depth * width**2 * rng.choice([4, 8, 12], n)).astype(int)
    scores = all_scores(depth, width, fine, parameters, rng)
    cells = np.array([f"{d}x{w}" for d, w in zip(depth, width, strict=True)])
    rows = [row(name, values, trained, parameters, cells, scores["depth_width"]) for name, values in scores.items()]
    return {
        "schema": "archwright/rank/1",
        "benchmark": "nas-bert",
        "n": n,
        "variant": "trained",
        "target": "glue",
        "seed": 0,
        "noise_ceiling": {"kind": "twins", "value": 0.93, "within_cells": 0.75, "n_pairs": 123},
        "rows": rows,
        "architectures": [
            {
                "id": str(at),
                "trained": float(trained[at]),
                "cell": str(cells[at]),
                "depth": int(depth[at]),
                "width": int(width[at]),
                "parameters": int(parameters[at]),
                "scores": {
                    name: float(values[at]) if np.isfinite(values[at]) else None for name, values in scores.items()
                },
            }
            for at in range(n)
        ],
        **studies(rng),
        "environment": {"commit": "abc1234", "python": "3.11.9", "torch": "2.13.0", "cores": 2},
        "notes": ["OpenWebText, which the papers used, is not at hand; the text is WikiText-2."],
    }


def all_scores(
    depth: Floats, width: Floats, fine: Floats, parameters: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    n = len(depth)
    found: dict[str, Floats] = {
        "parameters": parameters.astype(float),
        "parameters_nonembedding": parameters - 30522.0 * width,
        "flops": parameters * 128.0 * depth,
        "depth": depth.astype(float),
        "depth_width": depth * 1000.0 + width,
        "random": rng.random(n),
        "linear_10_labels": depth + width / 200 + rng.normal(0, 1.2, n),
    }
    for place, name in enumerate(FAMILIES):
        base = 0.3 * place / len(FAMILIES) * fine + rng.normal(0, 0.4, n)
        found[name] = np.exp(base) * depth
        found[f"{name}_normalised"] = np.exp(base)
    for place, name in enumerate(SINGLE):
        mix = 0.6 - place * 0.03
        found[name] = mix * depth + mix * width / 200 + mix * fine / 2 + rng.normal(0, 0.2 + 0.1 * place, n)
    found["w_pca"] = found["w_pca"] * 1e8 + 2e9
    found["attention_confidence"][: n // 11] = np.nan
    return found


def row(name: str, values: Floats, trained: Floats, parameters: Floats, cells: Any, both: Floats) -> dict[str, Any]:
    value, seen = rho(values, trained), np.isfinite(values)
    usable = [cell for cell in np.unique(cells) if np.ptp(values[(cells == cell) & seen]) > 0]
    within = float(np.mean([rho(values[cells == cell], trained[cells == cell]) for cell in usable])) if usable else None
    numbers = {
        "spearman": value,
        "kendall_b": value * 0.8,
        "kendall_a": value * 0.72,
        "weighted_tau": value * 0.83,
        "within_cells": within,
        "minus_parameters": value - rho(parameters.astype(float), trained),
        "minus_depth_width": value - rho(both, trained),
    }
    bounded = {
        f"{key}_{end}": None if v is None else v + step
        for key, v in numbers.items()
        for end, step in (("low", -0.04), ("high", 0.03))
    }
    gaps = int((~seen).sum())
    return {
        "proxy": name,
        "origin": "count"
        if name in COUNTS
        else "discovered"
        if name.startswith("evolved")
        else "own"
        if "inputs" in name
        else "published",
        "gradient_free": name in COUNTS or "pca" in name,
        "n": int(seen.sum()),
        "missing": {"count": gaps, "reason": "no self-attention" if gaps else ""},
        **numbers,
        **bounded,
        "partial_given_parameters": value * 0.6,
        "correlation_with_parameters": rho(values, parameters.astype(float)),
        "precision_at_10pct": abs(value) * 0.7,
        "regret_at_10": 0.4,
        "top10_spearman": 0.1,
        "icc_seeds": 0.4 if "confidence" in name else 0.99,
        "icc_batches": 0.98,
        "seconds_per_architecture": 0.05,
        "peak_memory_mb": 312.0,
        "verdict": VERDICTS[0 if abs(value) < 0.3 else 2 if (within or 0) > 0.25 else 1],
    }


def studies(rng: np.random.Generator) -> dict[str, Any]:
    ids = [str(7 * place) for place in range(10)]
    boxes = {
        kind: {name: [[float(at + rng.normal(0, 0.4)) for _ in range(10)] for at in range(10)] for name in names}
        for kind in ("seeds", "batches")
        for names in [("w_pca", "synaptic_saliency", "head_importance")]
    }
    published = {kind: {name: values for name, values in of.items() if name != "w_pca"} for kind, of in boxes.items()}
    etas = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999]
    powers = [0, 0.5, 1, 1.5, 2]
    paper = {"table": "Table 3", "proxy": "synaptic_saliency", "statistic": "spearman", "note": ""}
    return {
        "xray": [
            {"choice": choice, "value": value, "n": 150, "mean": 66.0 + place, "share": 0.5, "top_share": 0.2 * place}
            for choice, values in {
                "layers": (2, 4),
                "hidden": (128, 256),
                "operator 1": ("attention", "dft", "span"),
                "heads 1": (2, 4),
            }.items()
            for place, value in enumerate(values)
        ],
        "ablation": {**boxes, "ids": ids},
        "published_ablation": {**published, "ids": ids},
        "published": [
            {"paper": "W-PCA", **paper, "table": "Table 1", "value": 0.266},
            {"paper": "LPZero", **paper, "value": 0.157, "note": "absolute value"},
            {"paper": "LPZero", **paper, "proxy": "w_pca", "statistic": "kendall", "value": 0.513},
        ],
        "parity": [
            {
                "metric": "Synaptic Saliency",
                "proxy": "synaptic_saliency_published",
                "spearman": 0.31,
                "n": 300,
                "note": "rounding noise",
            },
            {"metric": "Number of Parameters", "proxy": "parameters", "spearman": 1.0, "n": 300, "note": ""},
        ],
        "spectra": {
            "id": "12",
            "layers": [[float(2.0 ** (-k / (9 + layer))) for k in range(128)] for layer in range(4)],
        },
        "eta": [
            {"eta": eta, "spearman": 0.5 + 0.3 * eta, "within_cells": 0.3 * eta, "v_pca": 0.4 * eta} for eta in etas
        ],
        "powers": {"a": powers, "b": powers, "spearman": [[0.5 + 0.1 * a - 0.05 * b for b in powers] for a in powers]},
    }


def score_document(n: int = 5, proxies: int = 20) -> dict[str, Any]:
    names = [*SINGLE, *FAMILIES][:proxies]
    return {
        "schema": "archwright/score/1",
        "space": "flexibert",
        "variant": "trained",
        "n": n,
        "rows": [
            {
                "id": str(at),
                "config": {"layers": 2 + 2 * (at % 2), "hidden": 128, "operators": ["sdp", "dft"]},
                "counts": {"parameters": 4_000_000 + 1000 * at, "flops": 10**9},
                "scores": {name: None if at == 1 and not place else at + place / 3 for place, name in enumerate(names)},
                "missing": {names[0]: "no layer has attention"} if at == 1 else {},
                "seconds": 0.2,
            }
            for at in range(n)
        ],
        "environment": {"python": "3.11.9"},
    }
