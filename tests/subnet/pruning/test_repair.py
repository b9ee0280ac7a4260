"""Closed-form repair: against numpy's least squares on explicit matrices, and on every family."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoTokenizer

from archwright.networks.load import load_supernet
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.pruning import repair
from archwright.subnet.pruning.repair import (
    RIDGE,
    RIDGES,
    Gram,
    TokenGram,
    add_correction,
    best_ridge,
    repair_least_squares,
)
from archwright.subnet.pruning.streams import StreamComparison, record_streams, run_layer
from archwright.subnet.pruning.tuning import fold, tune_masks
from archwright.subnet.spec import LayerSpec, SubnetSpec, count
from tests.subnet.pruning.test_tuning import (
    HOLES,
    PARTS,
    after_sublayer,
    batches_of,
    kind_of,
    layers_of,
    reconstruction_error,
)
from tests.tiny import STOCK, TinyBatch, shared_tiny, tiny


@pytest.mark.parametrize("bias", [True, False])
def test_a_correction_is_what_numpy_finds_for_the_explicit_matrices(bias: bool) -> None:
    rng = np.random.default_rng(0)
    linear = nn.Linear(6, 4, bias=bias).double()
    before = copy.deepcopy(linear)
    batches = [(rng.normal(size=(n, 6)) + 1, rng.normal(size=(n, 4)), rng.normal(size=(n, 4))) for n in (7, 5, 9)]
    with torch.no_grad():
        add_correction(linear, [StreamComparison(*map(torch.tensor, batch)) for batch in batches], 0.3)
    reads, lacks, wanted = (np.concatenate(part) for part in zip(*batches, strict=True))
    weights = 1 / np.sqrt(np.square(wanted).mean(1, keepdims=True))  # tokens count by relative distance
    reads, lacking = reads * weights, lacks * weights
    pull = np.sqrt(0.3 * np.square(reads).sum(0).mean()) * np.eye(6)
    ones, zeros = (weights, np.zeros((6, 1))) if bias else (np.zeros((21, 0)), np.zeros((6, 0)))
    matrix = np.block([[reads, ones], [pull, zeros]])
    expected = np.linalg.lstsq(matrix, np.concatenate([lacking, np.zeros((6, 4))]), rcond=None)[0]
    added = (linear.weight - before.weight).detach().numpy().T
    np.testing.assert_allclose(added, expected[:6], rtol=1e-9, atol=1e-12)
    if bias:
        np.testing.assert_allclose((linear.bias - before.bias).detach().numpy(), expected[6], rtol=1e-9, atol=1e-12)


def test_a_linear_that_reads_nothing_gets_the_bias_alone() -> None:
    linear = nn.Linear(2, 3).double()
    before = copy.deepcopy(linear)
    with torch.no_grad():
        add_correction(linear, [StreamComparison(torch.zeros(4, 2).double(), *[torch.ones(4, 3).double()] * 2)], RIDGE)
    assert torch.equal(linear.weight, before.weight)
    torch.testing.assert_close(linear.bias - before.bias, torch.ones(3).double())


def test_the_ridge_is_the_best_of_all_on_a_valley() -> None:
    rng = np.random.default_rng(1)
    linear, truth = nn.Linear(30, 4, bias=False).double(), rng.normal(size=(30, 4)) / 10
    grams = [Gram(linear), Gram(linear)]
    for gram, tokens in zip(grams, (40, 200), strict=True):
        reads = rng.normal(size=(tokens, 30))
        lacks = reads @ truth + rng.normal(size=(tokens, 4))
        gram.add(StreamComparison(*map(torch.tensor, (reads, lacks, np.ones((tokens, 4))))))
    fitting, checking = grams
    assert best_ridge(fitting, checking) == min(RIDGES, key=lambda ridge: checking.error(fitting.solve(ridge)))


@pytest.mark.parametrize("bias", [True, False])
def test_equations_of_few_tokens_have_the_same_solution(bias: bool) -> None:
    """One equation per token or one per feature: the same weights, the same errors at other tokens, the same ridge."""
    rng = np.random.default_rng(2)
    linear = nn.Linear(30, 4, bias=bias).double()
    truth = rng.normal(size=(30, 4)) / 5
    pairs = [(Gram(linear), TokenGram(linear)) for _ in range(2)]
    for grams, counts in zip(pairs, ((7, 5), (6,)), strict=True):
        for tokens in counts:
            reads = rng.normal(size=(tokens, 30)) + 1
            lacks = reads @ truth + rng.normal(size=(tokens, 4)) / 10 + 3
            for gram in grams:
                gram.add(StreamComparison(*map(torch.tensor, (reads, lacks, rng.normal(size=(tokens, 4)) * 0 + 2))))
    (by_feature, by_token), (checking, few_checking) = pairs
    for ridge in RIDGES:
        torch.testing.assert_close(by_token.solve(ridge), by_feature.solve(ridge), rtol=1e-7, atol=1e-9)
        expected = checking.error(by_feature.solve(ridge))
        assert by_token.error_at(few_checking, ridge) == pytest.approx(expected, rel=1e-7)
    assert best_ridge(by_token, few_checking) == best_ridge(by_feature, checking)
    for mine, other in ((by_feature, checking), (by_token, few_checking)):
        mine.merge(other)
    torch.testing.assert_close(by_token.solve(0.1), by_feature.solve(0.1), rtol=1e-7, atol=1e-9)
    assert by_token.tokens == by_feature.tokens == 18


def test_few_tokens_need_no_matrix_of_all_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer tokens than features no sums over tokens are made, whose size is features squared."""
    monkeypatch.setattr(repair, "Gram", None)
    linear, rng = nn.Linear(40, 3), np.random.default_rng(0)
    batches = [[rng.normal(size=(5, 40)), *(rng.normal(size=(5, 3)) for _ in range(2))] for _ in range(5)]
    before = linear.weight.clone()
    with torch.no_grad():
        add_correction(linear, [StreamComparison(*(torch.tensor(x).float() for x in batch)) for batch in batches], None)
    assert not torch.equal(linear.weight, before)


def test_what_a_low_precision_cannot_hold_is_not_said_to_be_added() -> None:
    linear = nn.Linear(6, 4, bias=True).bfloat16()
    before, rng = copy.deepcopy(linear), np.random.default_rng(0)
    batch = [rng.normal(size=(30, 6)), *(rng.normal(size=(30, 4)) for _ in range(2))]
    with torch.no_grad():
        added = add_correction(linear, [StreamComparison(*(torch.tensor(x).float() for x in batch))], 0.1)
    assert added.dtype == torch.float32
    torch.testing.assert_close(added[:6].mT, (linear.weight.float() - before.weight.float()).detach())
    torch.testing.assert_close(added[6], (linear.bias.float() - before.bias.float()).detach())


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_decoder_goes_on_with_what_its_repaired_layers_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream after a layer is not computed a second time: the same as by running the repaired layer again."""
    network, batches = shared_tiny(name, None, "lm"), batches_of(name)
    full = read_anatomy(network.config).full
    spec = (LayerSpec(1, 3), *full[1:])
    recording = record_streams(network, batches)
    fast = repair_least_squares(network, spec, recording, ridge=0.1)
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(repair, "put_back", lambda like, real, stream: seen.append(stream) or like)
    repair_least_squares(network, spec, recording, ridge=0.1)
    call, layer = recording.calls[0], fast.placed_layers()[0].layer.eval()
    with torch.no_grad():
        again = run_layer(layer, call.hidden, call.given[0]).flatten(0, -2)[call.real]
    torch.testing.assert_close(seen[0], again, rtol=1e-5, atol=1e-6)


@pytest.mark.covering
@pytest.mark.parametrize("name", STOCK)
def test_the_whole_network_stays_as_it_is(name: str) -> None:
    network, batches = shared_tiny(name, None, kind_of(name)), batches_of(name)
    whole = repair_least_squares(network, read_anatomy(network.config).full, record_streams(network, batches))
    state = network.state_dict()
    assert all(torch.allclose(value, state[key], rtol=0, atol=1e-6) for key, value in whole.state_dict().items())


def repaired_upto(network: PrunedNetwork, spec: SubnetSpec, batches: list[TinyBatch], place: int) -> PrunedNetwork:
    """Layers from `place` on as they were cut, those before it as repaired."""
    repaired, plain = repair_least_squares(network, spec, record_streams(network, batches)), extract(network, spec)
    left = sum(any(map(count, part)) for part in spec[:place])
    for number, layer in enumerate(layers_of(plain)):
        if number < left:
            layer.load_state_dict(layers_of(repaired)[number].state_dict())
    return plain


@pytest.mark.covering
@pytest.mark.parametrize("spec", [PARTS, HOLES], ids=["parts", "holes"])
@pytest.mark.parametrize("name", STOCK)
def test_every_repair_brings_its_own_stream_closer_to_the_original(name: str, spec: SubnetSpec) -> None:
    """After the last sub-layer of a layer, given that all layers before it are repaired; heads or units may be gone."""
    network, batches = shared_tiny(name, None, kind_of(name)), batches_of(name)
    left = [place for place, part in enumerate(spec) if any(map(count, part))]
    for place in left:
        part = 1 if count(spec[place].units) else 0
        wanted = after_sublayer(network, place, part, batches)
        before, after = (
            float((after_sublayer(cut, left.index(place), part, batches) - wanted).square().sum())
            for cut in (repaired_upto(network, spec, batches, n) for n in (place, place + 1))
        )
        assert after < before


def test_a_whole_matrix_makes_up_for_more_than_a_factor() -> None:
    """A removed unit that is the sum of two others: no factor per unit can say so, a matrix can."""
    network, batches = tiny("gpt2", kind="lm"), batches_of("gpt2")
    family, layer = network.config.family, layers_of(network)[1]
    with torch.no_grad():  # in the linear part of the activation the last unit is the sum of the first two
        up, down = layer.get_submodule(family.up), layer.get_submodule(family.down)
        up.weight *= 1e-4
        up.bias *= 1e-4
        up.weight[9], up.bias[9] = up.weight[0] + up.weight[1], up.bias[0] + up.bias[1]
        down.weight *= 1e4
    spec = (LayerSpec(4, 10), LayerSpec(4, 9), LayerSpec(4, 10))
    recording = record_streams(network, batches)
    masked = fold(network, tune_masks(network, spec, recording))
    repaired = repair_least_squares(network, spec, recording, ridge=1e-9)
    mask, matrix = (reconstruction_error(network, m, batches) for m in (masked, repaired))
    assert matrix < 1e-3 * mask


def test_repair_leaves_no_trace() -> None:
    network, batches = tiny("llama", kind="lm").train(), batches_of("llama")
    weights, recording = copy.deepcopy(network.state_dict()), record_streams(network, batches)
    first, second = (repair_least_squares(network, HOLES, recording) for _ in range(2))
    assert all(torch.equal(value, second.state_dict()[key]) for key, value in first.state_dict().items())
    assert network.training and first.training
    assert all(torch.equal(value, weights[key]) for key, value in network.state_dict().items())
    assert not any(m._forward_pre_hooks or m._forward_hooks for net in (network, first) for m in net.modules())


def test_fewer_tokens_than_units_are_said(caplog: pytest.LogCaptureFixture) -> None:
    network, batches = shared_tiny("bert"), batches_of("bert", texts=1)[:1]
    tokens = int(batches[0].inputs["attention_mask"].sum())
    assert tokens < 10
    repaired = repair_least_squares(network, PARTS, record_streams(network, batches))
    assert f"{tokens} calibration tokens for up to 6 units" in caplog.text or tokens >= 6
    assert all(torch.isfinite(p).all() for p in repaired.parameters())
    caplog.clear()
    repair_least_squares(network, PARTS, record_streams(network, batches_of("bert")))
    assert not caplog.records


def sentences(minilm: Path, data_dir: Path, count: int) -> list[TinyBatch]:
    """Rows of SST-2 in batches of 16."""
    lines = [
        line.rsplit("\t", 1) for line in (data_dir / "glue/SST-2/train.tsv").read_text().splitlines()[1 : count + 1]
    ]
    tokenizer, batches = AutoTokenizer.from_pretrained(minilm), []
    for start in range(0, count, 16):
        rows = lines[start : start + 16]
        inputs = tokenizer([text for text, _ in rows], padding=True, return_tensors="pt")
        batches.append(TinyBatch(dict(inputs), torch.tensor([int(label) for _, label in rows])))
    return batches


@pytest.mark.slow
def test_the_stream_of_minilm_comes_closer_than_with_mask_tuning(minilm: Path, data_dir: Path) -> None:
    """On sentences that were not used for the repair: after every sub-layer than without, after the last than with
    mask tuning."""
    batches = sentences(minilm, data_dir, 640)
    network = load_supernet(str(minilm), labels=("bad", "good")).eval()
    recording, held_out = record_streams(network, batches[:32]), batches[32:]
    spec = tuple(LayerSpec(6, 768) for _ in range(6))
    masked = fold(network, tune_masks(network, spec, recording))
    networks = (extract(network, spec), masked, repair_least_squares(network, spec, recording))
    for place in range(6):
        for part in range(2):
            wanted = after_sublayer(network, place, part, held_out)
            none, mask, matrix = (
                float((after_sublayer(m, place, part, held_out) - wanted).square().sum()) for m in networks
            )
            assert matrix < none
    assert matrix < mask < none
