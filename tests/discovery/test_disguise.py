"""Statistics that are counts in disguise are recognised, others are not."""

import numpy as np
import pytest

from archwright.discovery.disguise import (
    LayerCheck,
    checked_branches,
    describe_formula,
    describe_statistic,
    explain,
    fit_closed_form,
)
from archwright.proxies.formulas.formula import parse

RNG = np.random.default_rng(0)
HEADS, WEIGHTS = RNG.choice([2.0, 4.0, 8.0], size=60), RNG.integers(1000, 9000, size=60).astype(float)
COUNTS = {"l_heads": HEADS, "l_weights": WEIGHTS, "n_depth": np.full(60, 4.0)}


def test_a_power_of_a_count() -> None:
    form = fit_closed_form(22.6 * np.sqrt(HEADS) * (1 + 0.001 * RNG.random(60)), COUNTS)
    assert form is not None and form.kind == "power" and form.exponents == {"l_heads": 0.5}
    assert form.error < 0.002 and str(form) == "22.6 * l_heads^0.5"


def test_a_product_of_two_and_below_zero() -> None:
    form = fit_closed_form(-3.0 * HEADS / WEIGHTS, COUNTS)
    assert form is not None and form.exponents == {"l_heads": 1.0, "l_weights": -1.0} and form.error < 1e-9
    assert form.scale == pytest.approx(-3)


def test_logarithms_of_counts() -> None:
    form = fit_closed_form(1.5 + 2 * np.log(WEIGHTS), COUNTS)
    assert form is not None and form.kind == "logarithm" and form.error < 1e-9 and str(form) == "1.5 +2 log(l_weights)"


def test_noise_is_no_count() -> None:
    form = fit_closed_form(RNG.random(60) + 0.1, COUNTS)
    assert form is not None and form.error > 0.3
    assert fit_closed_form(np.append(HEADS[:-1], np.inf), COUNTS) is None


def layers(values: np.ndarray, half: np.ndarray) -> tuple[list[LayerCheck], list[LayerCheck]]:
    counts = {"frobenius(S)": {name: column.tolist() for name, column in COUNTS.items()}}
    made = [LayerCheck({"frobenius(S)": side.tolist()}, counts, {"sum(S)": 1.0}) for side in (values, half)]
    return made[:1], made[1:]


def test_the_batch_is_told() -> None:
    values = np.sqrt(HEADS)
    told = describe_statistic("frobenius(S)", *layers(values, values / np.sqrt(2)))
    assert told["count"] and told["depends_on_batch"] and told["with_half_the_texts"] == pytest.approx(0.7071, abs=1e-4)
    line = explain(told)
    assert "is 1 * l_heads^0.5 within" in line and "a count in disguise" in line and "(x 0.707 with half" in line
    still = describe_statistic("frobenius(S)", *layers(values, values))
    assert not still["depends_on_batch"] and explain(still).endswith("does not depend on the batch.")
    noise = describe_statistic("frobenius(S)", *layers(values * (1 + RNG.random(60)), values))
    assert not noise["count"] and "is no count" in explain(noise)
    constant = describe_statistic("frobenius(S)", *layers(np.full(60, 3.0), np.full(60, 3.0)))
    assert constant["constant"] and "is 3 within 0 %: the same in all layers" in explain(constant)
    missing = describe_statistic("frobenius(S)", *layers(np.append(np.nan, values[1:]), values))
    assert missing["layers"] == 59 and missing["count"]


def test_whether_the_batch_changes_the_ranks() -> None:
    def checks(*scores: float) -> list[LayerCheck]:
        return [LayerCheck({}, {}, {"sum(S)": score}) for score in scores]

    assert describe_formula("sum(S)", checks(1, 2, 3), checks(2, 4, 6))["batch_spearman"] == pytest.approx(1)
    assert describe_formula("sum(S)", checks(1, 2, 3), checks(6, 4, 2))["batch_spearman"] == pytest.approx(-1)
    assert describe_formula("sum(S)", checks(1, np.nan), checks(2, 1))["batch_spearman"] is None


def test_counts_are_not_checked_and_signs_do_not_matter() -> None:
    formulas = [parse("sum(log(l_heads) + negate(W)) * n_depth"), parse("sum(W - n_width)")]
    assert [str(branch) for branch in checked_branches(formulas)] == ["W"]
