"""Statistics of chains: against plain evaluation in double, on hard tensors, with roles missing."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from archwright.benchmarks.nas_bert import load_nas_bert
from archwright.probe import Probe, record
from archwright.proxies.formulas.formula import Branch, Formula, Unscored
from archwright.proxies.formulas.inputs import EXTENDED, FORMULA_INPUTS, INPUTS, required_passes, required_roles
from archwright.proxies.formulas.kernels import BLOCK
from archwright.proxies.formulas.operations import BINARY, UNARY, Chain
from archwright.proxies.formulas.simplification import ZERO, all_chains, canonical_chain
from archwright.proxies.formulas.statistics import ChainTree, statistics
from tests.probe.toy import COUNTS, toy, toy_batch

NAMES = [name for name in UNARY if name != "prune"]
PAIRS = list(product(NAMES, repeat=2))


def literal(tensor: torch.Tensor, chain: Chain) -> float:
    """One operation after the other in double, then the mean."""
    x = tensor.double()
    for name in chain:
        x = UNARY[name].apply(x)
    return float(x.mean())


def agree(found: float, wanted: float, *, rel: float, scale: float = 1e-9) -> bool:
    if not math.isfinite(wanted):
        return True  # the canonical chain may do without the overflow
    return math.isclose(found, wanted, rel_tol=rel, abs_tol=scale)


@pytest.fixture(scope="module")
def probe() -> Probe:
    return record(toy(), toy_batch(), counts=COUNTS, passes=("forward", "loss", "inputs"), loss="electra")


@pytest.fixture(scope="module")
def flexibert(data_dir: Path) -> Probe:
    """A small row of the benchmark, as it was really trained, on random tokens."""
    benchmark = load_nas_bert(data_dir / "nas-bert", "trained")
    config = min((row.config for row in benchmark.rows), key=lambda c: benchmark.space.counts(c).nonembedding)
    generator = torch.Generator().manual_seed(0)
    network = benchmark.space.network(config, generator=generator, vocabulary=50, loss="electra")
    batch = {name: torch.randint(0, high, (4, 16), generator=generator) for name, high in
             (("input_ids", 50), ("labels", 2))}  # fmt: skip
    counts = benchmark.space.counts(config)
    needed = {"passes": required_passes(EXTENDED), "keep": required_roles(EXTENDED)}
    return record(network, batch, counts=counts, loss="electra", **needed)


def by_hand(probe: Probe, name: str, chain: Chain, layer: int) -> float:
    parts = FORMULA_INPUTS[name].find(probe, probe.layers[layer])
    return float(np.mean([literal(part.read(), chain) for part in parts]))


def test_every_pair_on_the_toy_is_what_plain_evaluation_gives(probe: Probe) -> None:
    found = statistics(probe, PAIRS)
    assert found.shape == (6, len(PAIRS), 2) and found.dtype == np.float64
    for place, layer in product(range(6), range(2)):
        for at, chain in enumerate(PAIRS):
            assert agree(found[place, at, layer], by_hand(probe, INPUTS[place], chain, layer), rel=1e-6), (
                INPUTS[place], chain, canonical_chain(chain),
            )  # fmt: skip


@pytest.mark.parametrize("length", [1, 3, 4, 5])
def test_random_chains_of_any_length_on_the_toy(probe: Probe, length: int) -> None:
    rng = np.random.default_rng(length)
    chains = [tuple(rng.choice(NAMES, length).tolist()) for _ in range(150)]
    found = statistics(probe, chains, EXTENDED)
    for (place, name), (at, chain) in product(enumerate(EXTENDED), enumerate(chains)):
        wanted = by_hand(probe, name, canonical_chain(chain), 1)
        if abs(wanted) < 1e15:
            assert agree(found[place, at, 1], wanted, rel=1e-5, scale=1e-7), (name, chain, canonical_chain(chain))


def test_every_pair_on_a_real_network_in_single_precision(flexibert: Probe) -> None:
    found = statistics(flexibert, PAIRS)
    for (place, name), (at, chain) in product(enumerate(INPUTS), enumerate(PAIRS)):
        wanted = by_hand(flexibert, name, chain, 1)
        noise = "inverse" in chain or (name == "G" and chain[0] in ("average", "norm_sum"))
        assert noise or agree(found[place, at, 1], wanted, rel=1e-4), (name, chain, canonical_chain(chain))


def test_statistics_and_measure_are_one(flexibert: Probe, probe: Probe) -> None:
    rng = np.random.default_rng(0)
    chains = [(), *all_chains(2)]
    for seen in (probe, flexibert):
        table = statistics(seen, chains, EXTENDED)
        for _ in range(60):
            left, right = (
                Branch(EXTENDED[rng.integers(len(EXTENDED))], chains[rng.integers(len(chains))]) for _ in "ab"
            )
            formula = Formula(left, right, list(BINARY)[rng.integers(4)], ["sum", "mean"][rng.integers(2)])
            x, y = (table[EXTENDED.index(b.input), chains.index(b.canonical().chain)] for b in (left, right))
            terms = BINARY[formula.binary].apply(x, y)
            if np.isfinite(terms).all():
                assert formula.measure(seen) == pytest.approx(getattr(np, formula.reduction)(terms), rel=1e-12)
            else:
                with pytest.raises(Unscored):
                    formula.measure(seen)


TENSORS: dict[str, Callable[[torch.Generator], torch.Tensor]] = {
    "normal": lambda g: torch.randn(40, 30, generator=g),
    "zeros": lambda g: torch.zeros(5, 4),
    "huge": lambda g: torch.randn(20, 9, generator=g) * 1e30,
    "tiny": lambda g: torch.randn(20, 9, generator=g) * 1e-30,
    "small": lambda g: torch.randn(20, 9, generator=g) * 1e-8,
    "constant": lambda g: torch.full((6, 7), 0.1),
    "negative": lambda g: -torch.rand(30, 3, generator=g) - 0.1,
    "nearly constant": lambda g: 5 + torch.randn(30, 30, generator=g) * 1e-5,
    "one row": lambda g: torch.randn(1, 12, generator=g),
    "one number": lambda g: torch.randn(1, generator=g),
    "mixed": lambda g: torch.randn(8, 4, 5, 3, generator=g).pow(9),
    "many blocks": lambda g: torch.randn(300, 3 * BLOCK // 300 + 7, generator=g).mT,
}


@pytest.mark.parametrize("name", TENSORS)
def test_hard_tensors_give_numbers_or_infinity(name: str) -> None:
    tensor = TENSORS[name](torch.Generator().manual_seed(1))
    chains = all_chains(2)
    found = ChainTree(chains).numbers(tensor)
    assert not np.isnan(found).any()
    again = ChainTree(chains).numbers(tensor)
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("name", TENSORS)
def test_hard_tensors_are_right(name: str) -> None:
    tensor = TENSORS[name](torch.Generator().manual_seed(1))
    chains = all_chains(2)
    for chain, number in zip(chains, ChainTree(chains).numbers(tensor), strict=True):
        wanted = literal(tensor, chain)
        if "inverse" not in chain and abs(wanted) < 1e300:
            assert agree(number, wanted, rel=2e-4, scale=1e-6 * abs(wanted) + 1e-9), chain


def test_what_algebra_makes_constant_is_constant() -> None:
    """Rounding noise around a constant would be ranked."""
    chains: list[Chain] = [("zscore",), ("zscore", "square"), ("zscore", "std"), ("zscore", "frobenius"), ("softmax",),
                           ("softmax", "l1"), ("minmax", "minmax"), ("average", "softmax")]  # fmt: skip
    for seed in range(3):
        tensor = torch.randn(50, 40, generator=torch.Generator().manual_seed(seed)) * 3 + 1
        zero, one, also, root, share, columns, _, single = ChainTree(chains).numbers(tensor)
        assert (zero, one, also, root, share, columns, single) == (0, 1, 1, math.sqrt(2000), 1 / 50, 40, 1)


def test_a_layer_without_the_role_is_nan_and_an_overflow_is_infinite(probe: Probe) -> None:
    first, second = probe.layers
    partly = replace(probe, layers=(replace(first, probabilities=None), second), memo={})
    found = statistics(partly, [("sqrt",), ("prune", "log"), ("square", "inverse", "exp")], ["S", "W"])
    assert np.isnan(found[0, 0, 0]) and np.isfinite(found[0, 0, 1])
    assert np.isnan(found[:, 1]).all()
    assert np.isposinf(found[1, 2]).any()


def test_a_formula_counts_the_layers_that_have_both(probe: Probe) -> None:
    first, second = probe.layers
    partly = replace(probe, layers=(replace(first, probabilities=None), second), memo={})
    both = Formula(Branch("A", ("frobenius",)), Branch("S", ("std",)), "mul")
    norm, spread = by_hand(probe, "A", ("frobenius",), 1), by_hand(probe, "S", ("std",), 1)
    assert both.measure(partly) == pytest.approx(norm * spread, rel=1e-12)
    neither = replace(probe, layers=tuple(replace(layer, probabilities=None) for layer in probe.layers), memo={})
    with pytest.raises(Unscored, match="No layer of this network has S"):
        both.measure(neither)


def test_inputs_of_the_whole_network_join_every_layer(probe: Probe) -> None:
    found = statistics(probe, [("l1",), ()], ["J", "n_parameters", "n_depth"])
    assert found[0, 0, 0] == found[0, 0, 1] == pytest.approx(float(probe.inputs.abs().sum()), rel=1e-12)
    assert found[1].tolist() == [[1000.0, 1000.0]] * 2 and found[2, 1].tolist() == [2.0, 2.0]


def test_element_by_element_products_express_snip(probe: Probe) -> None:
    """What LPZero's own space cannot: the sum of |w g| over linears, here averaged over those of a layer."""
    found = statistics(probe, [("l1",)], ["WG", "AdA"])
    snip = [np.mean([float((w.value * w.gradient).abs().sum()) for w in layer.linears]) for layer in probe.layers]
    fisher = [float((s.value * s.gradient).abs().sum()) for layer in probe.layers for s in layer.activations]
    np.testing.assert_allclose(found[:, 0], [snip, fisher], rtol=1e-12)


def test_a_shared_tensor_is_looked_at_once(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(ChainTree, "numbers", lambda self, tensor: looked.append(tensor) or np.zeros(len(self.ends)))
    statistics(probe, [("l1",)], ["W", "Wa", "Wf", "J"])
    assert len(looked) == len(probe.linears) + 1


def test_zero_is_never_worked_out() -> None:
    assert ChainTree([ZERO]).numbers(torch.randn(3, 3)).tolist() == [0.0]
