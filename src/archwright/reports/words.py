"""The plain sentences and commands that page and terminal share."""

import math
import shlex
from collections.abc import Mapping
from typing import Any

from archwright.reports.measures import DASH, SPACE, Measure, measure_of, percent

HALF = 0.5


def title(result: Mapping[str, Any]) -> str:
    return f"{result['model']}, shrunk for {result['task']}"


def half_size(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The front member with the lowest validation error among those of at most half the non-embedding parameters.

    Chosen on validation data only; its test error is reported, never used to choose.
    """
    small = [member for member in result["front"] if _known(member, "nonembedding_share", most=HALF)]
    judged = [member for member in small if _known(member, "validation_error")]
    return min(judged, key=lambda member: float(member["validation_error"]), default=None)


def judged_by(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """The error both networks have: test when there is a test set, validation otherwise."""
    both = _known(member, "test_error") and _known(result["original"], "test_error")
    return "test_error" if both else "validation_error"


def loss(result: Mapping[str, Any], member: Mapping[str, Any]) -> float | None:
    """What is lost against the original, as the metric measures it (0.01: a point, or 1 %); positive is worse."""
    key = judged_by(result, member)
    if not (_known(member, key) and _known(result["original"], key)):
        return None
    return measure_of(result).lost(float(member[key]), float(result["original"][key]))


def headline(result: Mapping[str, Any]) -> str:
    """The best sub-network of at most half the size, spoken plainly."""
    if not result["front"]:
        return "The search found no sub-network on the front yet."
    member = half_size(result)
    if member is None:
        return "No sub-network on the front has half of the non-embedding parameters or fewer."
    kept = f"{percent(member['nonembedding_share'])} of the non-embedding parameters"
    lost = loss(result, member)
    if lost is None:
        return f"The best sub-network of half the size or less keeps {kept}; the original has no error to compare with."
    return _compared(kept, lost, measure_of(result), _errors(result, member))


def _compared(kept: str, lost: float, measure: Measure, errors: str) -> str:
    amount = f"{abs(lost) * 100:.1f} {measure.unit}"
    if lost > measure.near:
        best = f"the best keeps {kept} and loses {amount}, {errors}"
        return f"At half the size or less no sub-network stays within {measure.near_words}: {best}."
    if lost <= 0:
        return f"A sub-network with {kept} is no worse than the original: {errors}."
    return f"A sub-network with {kept} stays within {measure.near_words} of the original: it loses {amount}, {errors}."


def _errors(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    key, measure = judged_by(result, member), measure_of(result)
    split, _, _ = key.partition("_")
    return (
        f"{split} {measure.word} {measure.show(member[key], 1)} instead of {measure.show(result['original'][key], 1)}"
    )


def commands(result: Mapping[str, Any], member: Mapping[str, Any]) -> dict[str, str]:
    """The command lines that pick and export this member, quoted for a shell."""
    run, trial = (
        shlex.quote(str(result.get("folder") or result.get("run", "RUN"))),
        shlex.quote(str(member.get("trial"))),
    )
    export = f"archwright export {run} --trial {trial} --to compact"
    if not _known(member, "nonembedding_share"):
        return {"export": export}
    share = math.ceil(float(member["nonembedding_share"]) * 10_000) / 100  # rounded up, so that this member still fits
    return {"select": f"archwright select {run} --params {share:g}%", "export": export}


def preview_headline(preview: Mapping[str, Any]) -> str:
    total, fixed = preview["parameters"], preview["embedding_parameters"]
    if not total or fixed is None:
        return "The sizes of this model are not known."
    left = f"the smallest reachable network has {count(preview['smallest_parameters'])}"
    return f"{count(total)} parameters, {percent(fixed / total, 1)} of them embeddings that stay; {left}."


def count(value: float | None) -> str:
    """With a unit prefix and three digits: 22.7 M."""
    if value is None:
        return DASH
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:#.3g}".rstrip(".") + SPACE + unit
    return f"{value:.3g}"


def _known(network: Mapping[str, Any], key: str, *, most: float = math.inf) -> bool:
    value = network.get(key)
    return isinstance(value, int | float) and math.isfinite(value) and value <= most
