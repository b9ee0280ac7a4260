"""Our scores beside those that the authors of a benchmark published for the same rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archwright.statistics.ranks import kendall, spearman

if TYPE_CHECKING:
    from archwright.scoring.ranking import RankedRows

Values = NDArray[np.float64]
LEAST_ROWS = 20
Repeats = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]

NOISE = "back-propagates ones through a LayerNorm, whose true gradient is zero: the published values are rounding noise"
TEXT = "our batch is WikiText-2, theirs OpenWebText"
SOFTMAX = "theirs also takes a softmax over the features of Fourier and cosine layers"
NAS_BERT = {
    "Number of Parameters": ("parameters", "exact under variant published"),
    "Synaptic Diversity": ("synaptic_diversity", NOISE),
    "Synaptic Diversity Normalized": ("synaptic_diversity_normalised", NOISE),
    "Synaptic Saliency": ("synaptic_saliency_published", NOISE),
    "Synaptic Saliency Normalized": ("synaptic_saliency_published_normalised", NOISE),
    "Activation Distance": ("activation_distance_published", "the published sum grows from row to row"),
    "Activation Distance Normalized": ("activation_distance_published_normalised", TEXT),
    "Jacobian Score": ("jacobian_covariance", NOISE),
    "Jacobian Score Normalized": ("jacobian_cosine", f"really the cosine; {NOISE}"),
    "Head Importance": ("head_importance_published", NOISE),
    "Head Importance Normalized": ("head_importance_published_normalised", NOISE),
    "Head Confidence": ("attention_confidence_published", TEXT),
    "Head Confidence Normalized": ("attention_confidence_published_normalised", TEXT),
    "Head Softmax Confidence": ("softmax_confidence_published", SOFTMAX),
    "Head Softmax Confidence Normalized": ("softmax_confidence_published_normalised", SOFTMAX),
}
PTB = "our batch is WikiText-2 and the vocabulary that of the batch, theirs Penn Treebank"
NAS_BENCH_NLP = {
    "Activation Distance": ("activation_distance", PTB),
    "Synaptic Saliency": ("synaptic_saliency", PTB),
    "Jacobian Covariance": ("jacobian_covariance", PTB),
    "Jacobian Cosine": ("jacobian_cosine", PTB),
    "Large Noise Jacobian": ("large_noise_jacobian", PTB),
    "Large Noise Jacobian Cosine": ("large_noise_jacobian_cosine", PTB),
    "More Noised Jacobian": ("more_noised_jacobian", PTB),
    "More Noised Jacobian Cosine": ("more_noised_jacobian_cosine", PTB),
    "Hidden Synaptic Saliency": ("hidden_saliency", f"not defined in the paper, ours is sum |h dL/dh|; {PTB}"),
    "Layer 1 Hidden Covariance": ("hidden_covariance_entering_1", PTB),
    "Layer 2 Hidden Covariance": ("hidden_covariance_entering_2", PTB),
    "Layer 3 Hidden Covariance": ("hidden_covariance_entering_3", PTB),
}
AFTER = f"the state after each step instead of before it; {PTB}"
LAYERS = tuple((f"Layer {layer} Hidden Covariance", f"hidden_covariance_{layer}", AFTER) for layer in (1, 2, 3))
METRICS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "nas-bert": tuple((metric, *ours) for metric, ours in NAS_BERT.items()),
    "nas-bench-nlp": (*((metric, *ours) for metric, ours in NAS_BENCH_NLP.items()), *LAYERS),
}
"""Published column, our proxy, and what may differ; a column can have two readings."""


def parity(field: "RankedRows") -> list[dict[str, Any]] | None:
    """How each published column agrees with our proxy, and how both do on the same rows; None without any column."""
    rows = [entry for given in METRICS.get(field.benchmark.name, ()) if (entry := compared(field, *given))]
    return rows or None


def published_ablation(benchmark: str, repeats: Repeats) -> dict[str, Any] | None:
    """The authors' repeats by the names of our proxies, as `ablation` gives ours; None without any."""
    if not repeats:
        return None
    ids = sorted(set.intersection(*(set(rows) for rows in repeats.values())))
    found: dict[str, Any] = {"ids": ids}
    for kind, rows in repeats.items():
        found[kind] = {
            proxy: [[one.get(metric, np.nan) for one in rows[row]] for row in ids]
            for metric, proxy, _ in METRICS.get(benchmark, ())
            if all(metric in one for row in ids for one in rows[row])
        }
    return found


def compared(field: "RankedRows", metric: str, proxy: str, note: str) -> dict[str, Any] | None:
    """One published column; None when it is not in the files or we did not compute the proxy."""
    theirs = np.array([row.published.get(metric, np.nan) for row in field.rows])
    ours = field.scores.get(proxy)
    if ours is None or (both := np.isfinite(theirs) & np.isfinite(ours)).sum() < LEAST_ROWS:
        return None
    one, two, truth = ours[both], theirs[both], field.truth[both]
    return {
        "metric": metric, "proxy": proxy, "n": int(both.sum()), "note": note,
        "spearman": correlation(spearman, one, two),
        "our_spearman": correlation(spearman, one, truth),
        "published_spearman": correlation(spearman, two, truth),
        "our_kendall_b": correlation(kendall, one, truth),
        "published_kendall_b": correlation(kendall, two, truth),
    }  # fmt: skip


def correlation(statistic: Callable[[Values, Values], float], one: Values, two: Values) -> float | None:
    """None where one side is constant."""
    return statistic(one, two) if np.ptp(one) and np.ptp(two) else None
