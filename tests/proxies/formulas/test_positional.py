"""Formulas that know where a layer stands: counts of layers, sums over linears, reductions by position."""

import json
import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn

from archwright.probe import Probe, record
from archwright.proxies import PROXIES, Unscored
from archwright.proxies.formulas.formula import from_json, parse
from archwright.proxies.formulas.inputs import LAYERS, POSITIONAL
from archwright.proxies.formulas.python_source import python_source
from archwright.proxies.formulas.reductions import REDUCTIONS
from tests.probe.toy import COUNTS, Toy, ToyLayer, toy_batch


class Uneven(Toy):
    """Three layers, the middle one with a third FFN linear."""

    def __init__(self) -> None:
        super().__init__()
        self.layers.append(ToyLayer())
        self.layers[1].down = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 4))

    def roles(self) -> Any:
        from dataclasses import replace

        plain = [layer.roles() for layer in (self.layers[0], self.layers[2])]
        middle = self.layers[1].roles()
        deeper = replace(middle, ffn=(self.layers[1].up, *self.layers[1].down))
        return replace(super().roles(), layers=[plain[0], deeper, plain[1]])


@pytest.fixture(scope="module")
def probe() -> Probe:
    torch.manual_seed(0)
    network = Uneven().double()
    return record(network, toy_batch(), counts=COUNTS, passes=("forward", "loss"), loss="electra")


ATTENTION, FFN, STACK = 4 * 16, 2 * 24, 2 * 24 + 36
"""Weights: query, key, value, output; 4 to 6 to 4; and 6 to 6 between them."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(l_heads)", 6),
        ("sum(l_linears)", 6 + 7 + 6),
        ("sum(l_linears_but_last_ffn)", 6 + 7 + 4),
        ("sum(l_weights)", 3 * ATTENTION + 2 * FFN + STACK),
        ("sum(l_attention)", 3 * ATTENTION),
        ("sum(l_ffn)", 2 * FFN + STACK),
        ("sum(l_weights_but_last_ffn)", 3 * ATTENTION + FFN + STACK),
        ("sum(l_width)", 12),
        ("sum(l_inner)", 18),
        ("first(l_linears)", 6),
        ("last(l_linears_but_last_ffn)", 4),
        ("but_last(l_ffn)", FFN + STACK),
        ("but_last(l_ffn + l_attention)", 2 * ATTENTION + FFN + STACK),
        ("rising(l_ffn)", FFN / 3 + 2 * STACK / 3 + FFN),
        ("falling(l_linears_but_last_ffn)", 6 + 2 / 3 * 7 + 4 / 3),
        ("sum(log(l_heads) + log(l_weights))", math.log(2 * 112) + math.log(2 * 148) + math.log(2 * 112)),
        ("rising(n_depth)", 2 * (1 / 3 + 2 / 3 + 1)),
    ],
)
def test_by_hand(text: str, expected: float, probe: Probe) -> None:
    assert parse(text).measure(probe) == pytest.approx(expected, rel=1e-12)


def test_reach_is_a_formula_of_the_space(probe: Probe) -> None:
    formula = parse("sum(log(l_heads) + log(l_weights_but_last_ffn))")
    expected = math.log(2 * 112) + math.log(2 * 148) + math.log(2 * 64)
    assert PROXIES["reach"].measure(probe) == pytest.approx(expected) == formula.measure(probe)


def test_sums_keep_the_number_of_linears(probe: Probe) -> None:
    """Means lose it."""
    for name, number in (("W", (6, 7, 6)), ("Wf", (2, 3, 2)), ("Wa", (4, 4, 4)), ("H", (3, 3, 3))):
        means = [parse(f"{place}(l1({name}))").measure(probe) for place in ("first", "last")]
        sums = [parse(f"{place}(l1({name}_sum))").measure(probe) for place in ("first", "last")]
        assert sums == pytest.approx([mean * count for mean, count in zip(means, (number[0], number[2]), strict=True)])
    whole, part = (parse(f"last(l1({name}))").measure(probe) for name in ("W_but_last_ffn_sum", "Wa_sum"))
    assert whole == pytest.approx(part)


@pytest.mark.parametrize(("name", "reduction"), [*product(POSITIONAL, ["sum"]), *product(["l_ffn"], REDUCTIONS)])
def test_all_forms_say_the_same(name: str, reduction: str, probe: Probe) -> None:
    formula = parse(f"{reduction}(log({name}) + abs(Wa))") if name != "Wa" else parse(f"{reduction}(log(Wa))")
    assert parse(str(formula)) == formula == from_json(json.loads(json.dumps(formula.as_json())))
    assert formula.latex().count("{") == formula.latex().count("}") and parse(str(formula.canonical()))
    space: dict[str, Any] = {}
    exec(python_source(formula), space)
    assert space["proxy"](probe) == pytest.approx(formula.measure(probe), rel=1e-9)
    assert formula.canonical().measure(probe) == pytest.approx(formula.measure(probe), rel=1e-12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sum(abslog(l_heads))", "sum(log(l_heads))"),
        ("sum(abs(l_ffn) * W)", "sum(W * relu(l_ffn))"),
        ("first(n_depth)", "last(n_depth)"),
        ("largest(J + n_width)", "mean(n_width + J)"),
        ("rising(n_depth)", "falling(n_depth)"),
        ("sum(abslog(log(l_heads)))", "sum(abslog(abs(log(l_heads))))"),
    ],
)
def test_equal_formulas_are_one(one: str, other: str) -> None:
    assert parse(one).canonical() == parse(other).canonical()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("first(W)", "last(W)"),
        ("sum(W)", "sum(W_sum)"),
        ("sum(abslog(W))", "sum(log(W))"),
        ("but_last(l_ffn)", "sum(l_ffn)"),
        ("rising(W * n_depth)", "falling(W * n_depth)"),
    ],
)
def test_different_formulas_stay_apart(one: str, other: str) -> None:
    assert parse(one).canonical() != parse(other).canonical()


def test_all_but_the_last_needs_two_layers() -> None:
    class Shallow(Toy):
        def __init__(self) -> None:
            super().__init__()
            self.layers = self.layers[:1]

    seen = record(Shallow().double(), toy_batch(), counts=COUNTS, passes=())
    assert parse("first(l_heads)").measure(seen) == 2
    with pytest.raises(Unscored, match="but_last needs 2 layers, got 1"):
        parse("but_last(l_heads)").measure(seen)


def test_counts_of_layers_need_no_pass() -> None:
    for name in LAYERS:
        assert parse(f"sum(log({name}))").passes == () == parse(f"sum({name})").roles
