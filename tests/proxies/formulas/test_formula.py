"""Formulas: forms that read back, canonical forms that score the same, and what the paper's table rejects."""

import json
import math
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from archwright.errors import BadInput
from archwright.probe import Probe, record
from archwright.proxies.formulas.formula import Branch, Formula, Unscored, from_json, parse
from archwright.proxies.formulas.inputs import COUNTS as NUMBERS
from archwright.proxies.formulas.inputs import EXTENDED, INPUTS
from archwright.proxies.formulas.operations import BINARY, UNARY
from archwright.proxies.formulas.pruning_rules import TABLE_6, reject
from archwright.proxies.formulas.python_source import python_source
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.proxies.formulas.simplification import Operand, all_chains, canonical_chain
from archwright.spaces.formulas import CURVES
from tests.probe.toy import COUNTS, toy, toy_batch

EQUATION_2 = "sum(square(inverse(H)) + log_softmax(frobenius(A)))"


@pytest.fixture(scope="module")
def probe() -> Probe:
    return record(toy(), toy_batch(), counts=COUNTS, passes=("forward", "loss", "inputs"), loss="electra")


def random_formula(rng: np.random.Generator, inputs: tuple[str, ...] = EXTENDED, *, most: int = 3) -> Formula:
    left, right = (
        Branch(str(rng.choice(inputs)), tuple(rng.choice(list(UNARY), rng.integers(0, most + 1)).tolist()))
        for _ in "ab"
    )
    count = Branch(str(rng.choice(NUMBERS)), CURVES[rng.integers(len(CURVES))]) if rng.random() < 0.3 else None
    return Formula(left, right, str(rng.choice(list(BINARY))), str(rng.choice(list(REDUCTIONS))), count)


def score(formula: Formula, probe: Probe) -> float | None:
    try:
        return formula.measure(probe)
    except Unscored:
        return None


def executed(formula: Formula, probe: Probe) -> float:
    """What its Python source gives."""
    namespace: dict[str, object] = {}
    exec(python_source(formula, "found"), namespace)
    number: float = namespace["found"](probe)  # type: ignore[operator]
    return number


@pytest.mark.parametrize("seed", range(40))
def test_text_and_json_read_back(seed: int) -> None:
    formula = random_formula(np.random.default_rng(seed))
    assert parse(str(formula)) == formula
    assert parse(str(formula.canonical())) == formula.canonical()
    assert from_json(json.loads(json.dumps(formula.as_json()))) == formula


def test_the_published_formula_in_all_forms(probe: Probe) -> None:
    formula = parse(EQUATION_2)
    assert str(formula) == EQUATION_2
    assert formula.left == Branch("H", ("inverse", "square"))
    assert formula.right == Branch("A", ("frobenius", "log_softmax"))
    assert formula.latex() == (
        r"\sum_{l} \left( \left(\frac{1}{\theta_H}\right)^2 + "
        r"\log\operatorname{softmax}(\left\|\theta_A\right\|_F) \right)"
    )
    assert formula.size == 7 and formula.passes == ("forward",) and set(formula.roles) == {"projections", "activations"}
    assert executed(formula, probe) == pytest.approx(formula.measure(probe), rel=1e-9)


def test_it_is_the_listed_proxy_of_the_paper(probe: Probe) -> None:
    from archwright.proxies import PROXIES

    assert parse(EQUATION_2).measure(probe) == pytest.approx(PROXIES["lpzero_flexibert"].measure(probe), rel=1e-12)


def test_one_branch_alone_reads_without_the_other(probe: Probe) -> None:
    formula = parse("sum(sqrt(A) - prune(W))").canonical()
    assert str(formula) == "sum(sqrt(A))" and parse("sum(sqrt(A))") == formula
    assert formula.inputs == ("A",) and formula.size == 2
    assert formula.measure(probe) == parse("sum(prune(J) - sqrt(A))").measure(probe)


@pytest.mark.parametrize(
    "text", ["", "sum()", "sum(A + )", "sum(A ? W)", "sum(log(A + W)", "max(A + W)", "sum(A + Q)", "sum(f(A) + W)",
             "sum(log(A)) + W)", "sum(A+W)"]
)  # fmt: skip
def test_bad_text_is_one_line(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_bad_json_is_one_line() -> None:
    for data in ({}, {"left": 3}, {"left": {"input": "A", "chain": ["log"]}, "right": {"input": "A"}, "binary": "add"}):
        with pytest.raises(BadInput):
            from_json(data)


@pytest.mark.parametrize("seed", range(150))
def test_the_canonical_formula_scores_the_same_by_plain_python(seed: int, probe: Probe) -> None:
    """Against the source of the formula as it was written, which knows no canonical form."""
    formula = random_formula(np.random.default_rng(seed))
    if formula.empty:
        with pytest.raises(Unscored):
            formula.measure(probe)
        return
    canonical = formula.canonical()
    assert canonical.canonical() == canonical and canonical.size <= formula.size
    assert score(canonical, probe) == pytest.approx(score(formula, probe), rel=1e-9, nan_ok=True)
    plain = executed(formula, probe)
    if math.isfinite(plain) and abs(plain) < 1e12:
        assert formula.measure(probe) == pytest.approx(plain, rel=1e-6, abs=1e-8), str(formula)
        assert executed(canonical, probe) == pytest.approx(plain, rel=1e-6, abs=1e-8), str(canonical)


MERGED = [
    ("sum(norm_sum(A) + W)", "sum(A + average(W))"),
    ("sum(W + A)", "sum(A + W)"),
    ("sum(A * W)", "sum(A .* W)"),
    ("sum(A - negate(W))", "sum(A + W)"),
    ("sum(negate(A) + W)", "sum(W - A)"),
    ("sum(negate(A) * W)", "sum(A * negate(W))"),
    ("sum(negate(A) * negate(W))", "sum(A * W)"),
    ("sum(negate(W) - A)", "sum(negate(A) - W)"),
    ("sum(relu(S) + A)", "sum(A + abs(S))"),
    ("sum(relu(exp(A)) + W)", "sum(exp(A) + W)"),
    ("sum(sqrt(square(A)) + W)", "sum(abs(A) + W)"),
    ("sum(square(sqrt(A)) + W)", "sum(relu(A) + W)"),
    ("sum(log(exp(A)) + W)", "sum(A + W)"),
    ("sum(log(softmax(A)) + W)", "sum(log_softmax(A) + W)"),
    ("sum(softmax(log(A)) + W)", "sum(softmax(A) + W)"),
    ("sum(zscore(log(A)) + W)", "sum(minmax(std(A)) + W)"),
    ("sum(softmax(frobenius(A)) + W)", "sum(softmax(l1(A)) + W)"),
    ("sum(l1(square(A)) + W)", "sum(square(frobenius(A)) + W)"),
    ("sum(square(zscore(A)) + W)", "sum(std(zscore(A)) + W)"),
    ("sum(frobenius(l1(A)) + W)", "sum(l1(A) + W)"),
    ("sum(abs(n_depth) + W)", "sum(average(n_depth) + W)"),
]
APART = [
    ("sum(A - W)", "sum(W - A)"),
    ("sum(exp(log(A)) + W)", "sum(A + W)"),
    ("sum(A + W)", "mean(A + W)"),
    ("sum(inverse(inverse(A)) + W)", "sum(A + W)"),
    ("sum(square(A) + W)", "sum(square(average(A)) + W)"),
    ("sum(relu(A) + W)", "sum(A + W)"),
    ("sum(inverse(negate(A)) + W)", "sum(negate(inverse(A)) + W)"),
    ("sum(zscore(A) + W)", "sum(W)"),
]


@pytest.mark.parametrize(("one", "other"), MERGED)
def test_equal_formulas_are_one(one: str, other: str) -> None:
    assert parse(one) != parse(other) and parse(one).canonical() == parse(other).canonical()


@pytest.mark.parametrize(("one", "other"), APART)
def test_different_formulas_stay_apart(one: str, other: str) -> None:
    assert parse(one).canonical() != parse(other).canonical()


def test_canonical_chains_are_canonical_and_closed() -> None:
    """So that a table of all canonical chains has every formula of the space, whatever its inputs."""
    for unary in (1, 2):
        known = {*all_chains(unary), ("prune",)}
        for chain in product(UNARY, repeat=unary):
            for given in (Operand(), Operand(nonnegative=True), Operand(True, True), Operand(True, True, True)):
                found = canonical_chain(chain, given)
                assert canonical_chain(found, given) == found and len(found) <= unary
                assert found in known


def test_how_many_chains_are_left() -> None:
    assert [len(all_chains(unary)) for unary in (1, 2)] == [18, 210]


def test_table_6() -> None:
    assert len(TABLE_6) == 16
    effects = {effect: sum(row.effect == effect for row in TABLE_6) for effect in ("rejects", "merges", "none")}
    assert effects == {"rejects": 7, "merges": 2, "none": 7}
    assert all(bool(row.rejected) == (row.effect == "rejects") for row in TABLE_6)


@pytest.mark.parametrize(
    ("text", "word"),
    [("sum(exp(log(A)) + W)", "log, then exp"), ("sum(A + sqrt(square(W)))", "square, then sqrt"),
     ("sum(log(negate(A)) + W)", "negate, then log"), ("sum(sqrt(negate(A)) + W)", "negate, then sqrt"),
     ("sum(inverse(no_op(A)) + W)", "no_op, then inverse"), ("sum(prune(A) + prune(W))", "pruned"),
     ("sum(A + W)", None), ("sum(negate(log(A)) + W)", None), (EQUATION_2, None)],
)  # fmt: skip
def test_what_is_rejected(text: str, word: str | None) -> None:
    reason = reject(parse(text))
    assert reason is None if word is None else word in str(reason)


def test_with_one_operation_nothing_is_rejected() -> None:
    assert not any(
        reject(Formula(Branch("A", (one,)), Branch("W", (other,)), "add"))
        for one, other in product(UNARY, repeat=2) if (one, other) != ("prune", "prune")
    )  # fmt: skip


def test_a_formula_needs_what_it_looks_at(probe: Probe) -> None:
    forward = record(toy(), toy_batch(), passes=("forward",))
    assert parse("sum(A + W)").measure(forward) == pytest.approx(parse("sum(A + W)").measure(probe))
    with pytest.raises(BadInput, match="loss pass"):
        parse("sum(A + G)").measure(forward)
    with pytest.raises(Unscored, match="n_depth"):
        parse("sum(A * n_depth)").measure(forward)
    assert parse("sum(prune(G) + A)").passes == ("forward",)


def test_no_infinity_is_a_score(probe: Probe) -> None:
    with pytest.raises(Unscored, match="not finite"):
        parse("sum(exp(square(inverse(A))) + W)").measure(probe)


def test_reading_formulas_loads_no_torch() -> None:
    source = "import sys; from archwright.proxies.formulas.formula import parse; "
    source += f"parse({EQUATION_2!r}).canonical().latex(); "
    subprocess.run([sys.executable, "-c", source + "assert 'torch' not in sys.modules"], check=True)


def test_a_count_multiplies_the_score(probe: Probe) -> None:
    plain, times = parse("sum(A * W)"), parse("sum(A * W) * sqrt(n_width)")
    assert times.factor == Branch("n_width", ("sqrt",)) and times.size == plain.size + 3
    assert times.measure(probe) == pytest.approx(plain.measure(probe) * math.sqrt(COUNTS.width))
    assert parse("sum(A * n_width)").factor is None and parse("sum(sqrt(A) * n_width)").factor is None
    assert str(parse("sum(A) * n_width")) == "sum(A) * n_width"
    for wrong in ("sum(A) * W", "sum(A) * negate(n_width)", "sum(A) * prune(n_width)"):
        with pytest.raises(BadInput, match="A factor is a count"):
            parse(wrong)
    with pytest.raises(Unscored, match="n_depth"):
        parse("sum(A) * n_depth").measure(record(toy(), toy_batch(), passes=("forward",)))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_numbers_and_of_arrays_agree_and_turn_their_sign(name: str) -> None:
    reduction, rng = REDUCTIONS[name], np.random.default_rng(0)
    terms = rng.normal(size=7) * 10.0 ** rng.integers(-3, 4, size=7)
    present = rng.random(7) < 0.7
    (many,) = reduction.reduce_many(terms[None], present[None])
    alone = reduction.reduce(terms[present].tolist())
    assert float(many) == pytest.approx(alone)
    assert reduction.reduce((-terms[present]).tolist()) == pytest.approx(-alone)


def test_lpzeros_inputs() -> None:
    assert INPUTS == ("A", "J", "G", "H", "W", "S") == EXTENDED[:6]
