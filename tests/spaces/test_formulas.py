"""The space of formulas: as many as the paper counts, equal ones have one config, and configs build what they say."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.errors import BadInput
from archwright.proxies.formulas.formula import Branch, Formula
from archwright.search import enumerate_configs, sample
from archwright.spaces.formulas import FormulaSpace, parse_inputs, parse_reductions

SPACES = {unary: FormulaSpace(unary) for unary in (1, 2, 3)}


def test_as_many_as_the_paper_counts() -> None:
    sizes = [SPACES[unary].size() for unary in (1, 2)]
    assert [size["raw"] for size in sizes] == [26_460, 11_668_860]
    assert [size["canonical"] for size in sizes] == [13_546, 1_786_800]


@pytest.mark.parametrize("inputs", [("A", "J"), ("H", "S"), ("A", "W", "S")])
def test_different_formulas_are_counted_without_looking_at_all(inputs: tuple[str, ...]) -> None:
    space = FormulaSpace(1, inputs)
    configs = list(enumerate_configs(space.choices))
    found = {space.build(config).canonical() for config in configs}
    assert len(configs) == space.size()["raw"]
    assert len({formula for formula in found if not formula.empty}) == space.size()["canonical"]
    again = {tuple(space.canonical(config).items()) for config in configs}
    assert len(again) == len(found)


@given(st.sampled_from([1, 2, 3]), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_a_canonical_config_is_the_same_formula_and_stays(unary: int, seed: int) -> None:
    space = SPACES[unary]
    config = sample(space.choices, np.random.default_rng(seed))
    formula = space.build(config).canonical()
    assert formula.canonical() == formula
    canonical = space.canonical(config)
    assert space.build(canonical).canonical() == space.build(config).canonical()
    assert space.canonical(canonical) == canonical
    assert all(canonical[name] in values for name, values in space.choices.items())  # type: ignore[operator]


def test_chains_of_all_formulas_are_there() -> None:
    space = SPACES[2]
    chains = set(space.chains)
    rng = np.random.default_rng(0)
    for _ in range(300):
        for branch in space.sample(rng).active:
            chain = branch.canonical().chain
            assert chain in chains or (chain[-1] == "negate" and chain[:-1] in chains)


def test_a_difference_the_other_way_round_is_a_sum_with_a_sign() -> None:
    space = FormulaSpace(1)
    given = Formula(Branch("A", ("negate",)), Branch("J", ("abs",)), "add")
    assert str(given.canonical()) == "sum(abs(J) - A)"
    assert space.build(space.config(given.canonical())) == given


@pytest.mark.parametrize("unary", [0, -1, 6])
def test_bad_numbers_of_operations(unary: int) -> None:
    with pytest.raises(BadInput, match=f"--unary must be between 1 and 5 operations per branch, got {unary}"):
        FormulaSpace(unary)


def test_other_bad_input() -> None:
    with pytest.raises(BadInput, match="two different inputs"):
        FormulaSpace(1, ("A",))
    with pytest.raises(BadInput, match="1 unary operations per branch"):
        FormulaSpace(1).config(Formula(Branch("A", ("abs", "log")), Branch("J", ()), "add"))
    assert len(list(product(*FormulaSpace(1).choices.values()))) == 26_460  # type: ignore[arg-type]


def test_inputs_by_name() -> None:
    assert parse_inputs("lpzero") == ("A", "J", "G", "H", "W", "S") and parse_inputs("S, W") == ("W", "S")
    assert set(parse_inputs("forward")) == {"A", "H", "W", "S", "Wa", "Wf", "Z", "C", "P"}
    with pytest.raises(
        BadInput, match="--inputs must be one of lpzero, forward, extended, layers, positional, or names among"
    ):
        parse_inputs("W,Q")


def test_reductions_by_name() -> None:
    assert parse_reductions("sum") == ("sum",) and parse_reductions("falling, sum") == ("sum", "falling")
    assert parse_reductions("positional") == ("sum", "first", "last", "but_last", "rising", "falling")
    with pytest.raises(BadInput, match=r"--reduction must be among sum, mean, .* positional, all, got middle"):
        FormulaSpace(1, ("A", "S"), parse_reductions("sum,middle"))


def test_every_choice_of_a_space_with_reductions_reads_back() -> None:
    space = FormulaSpace(1, ("J", "W", "n_depth"), ("sum", "first", "rising", "falling"))
    assert space.choices["reduction"] == ("sum", "first", "rising", "falling")
    rng = np.random.default_rng(0)
    for _ in range(200):
        formula = space.sample(rng)
        written = space.config(formula.canonical())
        assert space.build(written).canonical() == formula.canonical()
