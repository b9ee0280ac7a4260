"""Real-valued masks: against explicit least squares, whole forward passes, and cases that can be done by hand."""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
from archwright.subnet.importance import evaluating
from archwright.subnet.pruning.baselines import prune_by_fisher
from archwright.subnet.pruning.fisher import rearrange_masks, search_masks
from archwright.subnet.pruning.gradients import Reader, mask_gradients
from archwright.subnet.pruning.streams import record_streams
from archwright.subnet.pruning.tuning import DAMPING, TunedSubnet, fit_factors, fold, tune_masks
from archwright.subnet.spec import LayerSpec, SubnetSpec, count, positions
from archwright.subnet.supernet import plain_update
from archwright.training.loop import train_network
from archwright.training.losses import task_loss
from archwright.training.schedule import Schedule
from tests.tiny import BATCHES, BY_QUERIES, DECODERS, STOCK, TinyBatch, shared_tiny, tiny, tiny_batch

PARTS: SubnetSpec = (LayerSpec((0, 2), (1, 4, 5, 9)), LayerSpec(0, 6), LayerSpec((1, 2, 3), (0, 3, 7)))
HOLES: SubnetSpec = (LayerSpec((1,), (2, 3)), LayerSpec(0, 0), LayerSpec(3, 0))


def kind_of(name: str) -> str:
    return "lm" if name in DECODERS else "classification"


def batches_of(name: str, *, seed: int = 0, texts: int = 6) -> list[TinyBatch]:
    return [BATCHES[kind_of(name)](name, seed=seed + s, texts=texts) for s in range(2)]


def layers_of(network: PrunedNetwork) -> nn.ModuleList:
    return network.backbone.get_submodule(network.config.family.layers)


def ones(spec: SubnetSpec) -> TunedSubnet:
    return TunedSubnet(spec, tuple((1.0,) * count(p.heads) for p in spec), tuple((1.0,) * count(p.units) for p in spec))


def random_values(spec: SubnetSpec, seed: int = 0) -> TunedSubnet:
    rng = np.random.default_rng(seed)
    heads, units = (tuple(tuple(rng.normal(1, 1, count(p[i])).tolist()) for p in spec) for i in (0, 1))
    return TunedSubnet(spec, heads, units)


def test_a_fit_by_hand() -> None:
    """Two units that write to different outputs: (r - 1)^2 and (2 r - 4)^2, each damped by the same."""
    linear = nn.Linear(2, 2, bias=False).double()
    linear.weight.data = torch.tensor([[1.0, 0.0], [0.0, 2.0]]).double()
    reads, lacking = torch.tensor([[1.0, 1.0]]).double(), torch.tensor([[1.0, 4.0]]).double()
    factors = fit_factors(Reader(linear, torch.arange(2), 2), [(reads, lacking)])
    pull = DAMPING * (1 + 4) / 2
    assert factors.tolist() == pytest.approx([1 + 1 / (1 + pull), 1 + 8 / (4 + pull)])


@pytest.mark.parametrize("owners", [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 1, 2, 3, 4, 5]])
def test_a_fit_is_the_explicit_least_squares_solution(owners: list[int]) -> None:
    generator, parts = torch.Generator().manual_seed(1), max(owners) + 1
    linear = nn.Linear(6, 4).double()
    linear.weight.data = torch.randn(4, 6, generator=generator).double()
    pairs = [tuple(torch.randn(5, n, generator=generator).double() for n in (6, 4)) for _ in range(3)]
    columns = []
    for part in range(parts):
        mask = torch.tensor([float(owner == part) for owner in owners]).double()
        columns.append(torch.cat([((reads * mask) @ linear.weight.T).flatten() for reads, _ in pairs]))
    matrix, wanted = torch.stack(columns, 1).detach(), torch.cat([lacking.flatten() for _, lacking in pairs])
    pull = (DAMPING * matrix.square().sum(0).mean()).sqrt()
    damped = torch.cat([matrix, pull * torch.eye(parts).double()])
    expected = 1 + torch.linalg.lstsq(damped, torch.cat([wanted, torch.zeros(parts).double()])[:, None]).solution[:, 0]
    with torch.no_grad():
        found = fit_factors(Reader(linear, torch.tensor(owners), parts), pairs)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("lacks", "expected"), [(8.5, False), (9.5, True), (-10.5, False), (-11.5, True)])
def test_a_fit_that_grows_too_large_is_not_made(lacks: float, expected: bool) -> None:
    linear = nn.Linear(2, 1, bias=False).double()
    linear.weight.data = torch.tensor([[1.0, 1.0]]).double()
    reads, lacking = torch.eye(2).double() * 100, torch.tensor([[lacks], [0.5]]).double() * 100
    factors = fit_factors(Reader(linear, torch.arange(2), 2), [(reads, lacking)])
    assert (factors.tolist() == [1.0, 1.0]) is expected


def test_a_part_that_gives_nothing_stays_as_it_is() -> None:
    linear = nn.Linear(2, 3).double()
    factors = fit_factors(Reader(linear, torch.arange(2), 2), [(torch.zeros(4, 2).double(), torch.ones(4, 3).double())])
    assert factors.tolist() == [1.0, 1.0]


@contextmanager
def multiplied(network: PrunedNetwork, name: str, found: TunedSubnet) -> Iterator[None]:
    """The whole network with every head and unit multiplied by its factor, those that are gone by zero."""
    family = network.config.family
    with ExitStack() as undo:
        for place, layer in enumerate(layers_of(network)):
            for path, part, values in (
                (family.mix, found.spec[place].heads, found.head_values[place]),
                (family.down, found.spec[place].units, found.unit_values[place]),
            ):
                linear = layer.get_submodule(path)
                factors = torch.zeros(4 if path == family.mix else 10).double()
                factors[list(positions(part))] = torch.tensor(values, dtype=torch.float64)
                if path == family.mix:
                    size = linear.in_features // (8 if name in BY_QUERIES else 4)
                    factors = factors[[c // size % 4 for c in range(linear.in_features)]]
                hook = linear.register_forward_pre_hook(lambda _, args, f=factors: (args[0] * f,))
                undo.callback(hook.remove)
        yield


@pytest.mark.parametrize("name", STOCK)
def test_folding_is_multiplying(name: str) -> None:
    network, batch = shared_tiny(name, None, kind_of(name)), batches_of(name)[0]
    found = random_values((LayerSpec((0, 2), (1, 4)), LayerSpec((3,), 6), LayerSpec((1, 2), (0, 9))))
    folded = fold(network, found)
    with torch.no_grad():
        logits = folded(**batch.inputs).logits
        with multiplied(network, name, found):
            expected = network(**batch.inputs).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-8)
    assert sum(p.numel() for p in folded.parameters()) == sum(
        p.numel() for p in extract(network, found.spec).parameters()
    )


@pytest.mark.covering
@pytest.mark.parametrize("spec", [PARTS, HOLES])
@pytest.mark.parametrize("name", ["bert", "distilbert", "gpt2", "llama-groups"])
def test_factors_of_one_change_nothing(name: str, spec: SubnetSpec) -> None:
    network, batch = shared_tiny(name, None, kind_of(name)), batches_of(name)[0]
    with torch.no_grad():
        found, expected = (m(**batch.inputs).logits for m in (fold(network, ones(spec)), extract(network, spec)))
    assert torch.equal(found, expected)


def after_sublayer(network: PrunedNetwork, place: int, part: int, batches: list[TinyBatch]) -> torch.Tensor:
    """The residual stream after the attention (0) or FFN (1) of a layer, by a whole forward pass, without padding.

    Of Gemma it is what the sub-layer adds to it, before that is normed.
    """
    family, layer, seen = network.config.family, layers_of(network)[place], []
    norms = (family.ffn_norm, "") if family.norms_first else (family.attention_norm, family.ffn_norm)
    norms = (family.attention_out_norm or norms[0], family.ffn_out_norm or norms[1])
    last = not norms[part]
    if last:
        hook = layer.register_forward_hook(lambda _, args, out: seen.append(out[0] if isinstance(out, tuple) else out))
    else:
        hook = layer.get_submodule(norms[part]).register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with torch.no_grad():
        for batch in batches:
            network(**batch.inputs)
    hook.remove()
    return torch.cat([x[b.inputs["attention_mask"] > 0] for x, b in zip(seen, batches, strict=True)])


def cut(found: TunedSubnet, upto: int) -> TunedSubnet:
    """The same, but only the first so many sub-layers tuned."""
    plain = ones(found.spec)
    pairs = [(2 * i < upto, 2 * i + 1 < upto) for i in range(len(found.spec))]
    heads = tuple(f if a else p for (a, _), f, p in zip(pairs, found.head_values, plain.head_values, strict=True))
    units = tuple(f if b else p for (_, b), f, p in zip(pairs, found.unit_values, plain.unit_values, strict=True))
    return TunedSubnet(found.spec, heads, units)


@pytest.mark.covering
@pytest.mark.parametrize("spec", [PARTS, HOLES], ids=["parts", "holes"])
@pytest.mark.parametrize("name", STOCK)
def test_every_fit_brings_its_own_stream_closer_to_the_original(name: str, spec: SubnetSpec) -> None:
    network, batches = shared_tiny(name, None, kind_of(name)), batches_of(name)
    found = tune_masks(network, spec, record_streams(network, batches))
    left = [place for place, part in enumerate(spec) if any(map(count, part))]
    for step in range(2 * len(spec)):
        place, part = divmod(step, 2)
        if not count(spec[place][part]):
            continue
        wanted = after_sublayer(network, place, part, batches)
        before, after = (
            float(
                (after_sublayer(fold(network, cut(found, n)), left.index(place), part, batches) - wanted).square().sum()
            )
            for n in (step, step + 1)
        )
        values = (found.head_values, found.unit_values)[part][place]
        assert after < before or set(values) == {1.0}


def test_a_removed_twin_is_made_up_for() -> None:
    """Two equal units: without one of them the other counts twice and nothing is missing."""
    network, batches = tiny("bert", pooling="mean"), batches_of("bert")
    family, layer = network.config.family, layers_of(network)[1]
    with torch.no_grad():
        up, down = layer.get_submodule(family.up), layer.get_submodule(family.down)
        up.weight[7], up.bias[7], down.weight[:, 7] = up.weight[3], up.bias[3], down.weight[:, 3]
    spec = (LayerSpec(4, 10), LayerSpec(4, (0, 1, 2, 3, 4, 5, 6, 8, 9)), LayerSpec(4, 10))
    found = tune_masks(network, spec, record_streams(network, batches))
    expected = [1.0] * 3 + [2.0] + [1.0] * 5
    assert found.unit_values[1] == pytest.approx(expected, abs=0.1)  # the damping pulls a little
    pruned, folded = (reconstruction_error(network, m, batches) for m in (extract(network, spec), fold(network, found)))
    assert folded < 0.01 * pruned


def test_the_whole_network_needs_no_factors() -> None:
    for name in ("roberta", "qwen3"):
        network, batches = shared_tiny(name, None, kind_of(name)), batches_of(name)
        found = tune_masks(network, read_anatomy(network.config).full, record_streams(network, batches))
        assert np.allclose(np.concatenate([np.concatenate(found.head_values), np.concatenate(found.unit_values)]), 1)


def test_streams_are_recorded_on_some_of_the_batches_when_there_are_many() -> None:
    network = shared_tiny("bert")
    batches = [tiny_batch("bert", seed=s, texts=4) for s in range(12)]
    tokens = sum(int(b.inputs["attention_mask"].sum()) for b in batches)
    assert len(record_streams(network, batches, tokens=tokens // 3).calls) == 4
    assert len(record_streams(network, batches, tokens=10 * tokens).calls) == 12


def test_tuning_leaves_no_trace() -> None:
    network, batches = tiny("llama", kind="lm").train(), batches_of("llama")
    weights = copy.deepcopy(network.state_dict())
    first, second = (prune_by_fisher(network, batches, task_loss, (0.4, 0.7), length=7) for _ in range(2))
    assert first == second
    assert list(first) == [0.4, 0.7]
    recording = record_streams(network, batches)
    assert tune_masks(network, first[0.4], recording) == tune_masks(network, first[0.4], recording)
    assert network.training
    assert all(torch.equal(value, weights[key]) for key, value in network.state_dict().items())
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in network.modules())


@torch.no_grad()
def reconstruction_error(network: PrunedNetwork, pruned: PrunedNetwork, batches: list[TinyBatch]) -> float:
    """Squared distance from the original's answers, as a share of their own squared length; lower is better."""
    distance = length = 0.0
    with evaluating(network), evaluating(pruned):
        for batch in batches:
            original, answers = (model(**batch.inputs).logits.double() for model in (network, pruned))
            distance += float((answers - original).square().sum())
            length += float(original.square().sum())
    return distance / length


def own_answers(network: PrunedNetwork, name: str, seed: int) -> list[TinyBatch]:
    """Batches whose targets are the network's own answers with noise: the loss is the reconstruction error."""
    rng = torch.Generator().manual_seed(seed)
    found = []
    for batch in [tiny_batch(name, seed=seed + 100 * s, texts=24) for s in range(3)]:
        with torch.no_grad():
            answers = network(**batch.inputs).logits.squeeze(-1)
        found.append(TinyBatch(batch.inputs, answers + torch.randn(24, generator=rng)))
    return found


def phase_errors(network: PrunedNetwork, batches: list[TinyBatch], tests: list[TinyBatch], alpha: float) -> list[float]:
    """Reconstruction errors of a random mask and after each of the three phases, on other texts."""
    of, gradients = read_anatomy(network.config), mask_gradients(network, batches, task_loss)
    shuffled = type(gradients)(*([torch.rand_like(g[:1]) for g in part] for part in (gradients.heads, gradients.units)))
    first = search_masks(of, gradients, alpha, length=7)
    (second,) = rearrange_masks([first], gradients)
    third = fold(network, tune_masks(network, second, record_streams(network, batches)))
    networks = [extract(network, search_masks(of, shuffled, alpha, length=7)), extract(network, first)]
    return [reconstruction_error(network, m, tests) for m in (*networks, extract(network, second), third)]


def test_every_phase_lowers_the_reconstruction_error_of_tiny_networks() -> None:
    """With a tenth of the FLOPs gone: the Fisher information is about small changes, and a tiny network has few parts.

    With more gone, rearranging tiny networks helps as often as not.
    """
    errors = []
    for seed in range(24):
        name = ("bert", "distilbert")[seed % 2]
        network = tiny(name, pooling="mean", labels=(), seed=seed)
        tests = [tiny_batch(name, seed=1000 + seed, texts=48, labels=1)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            errors.append(phase_errors(network, own_answers(network, name, seed), tests, 0.9))
    random, first, second, third = np.mean(np.log(errors), axis=0)
    assert random > first > second > third


@pytest.mark.slow
def test_every_phase_lowers_the_reconstruction_error_of_a_trained_network(minilm: Path, data_dir: Path) -> None:
    """On training rows of SST-2 that were used neither for training nor for pruning."""
    lines = [line.rsplit("\t", 1) for line in (data_dir / "glue/SST-2/train.tsv").read_text().splitlines()[1:1921]]
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    batches = []
    for start in range(0, 1920, 16):
        rows = lines[start : start + 16]
        inputs = tokenizer(
            [text for text, _ in rows], padding=True, truncation=True, max_length=48, return_tensors="pt"
        )
        batches.append(TinyBatch(dict(inputs), torch.tensor([int(label) for _, label in rows])))
    network = load_supernet(str(minilm), labels=("bad", "good"))
    train_network(
        network, lambda epoch: batches[:64], plain_update(network, loss=task_loss), Schedule(steps=64), seed=0
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        random, first, second, third = phase_errors(network, batches[64:96], batches[96:], 0.7)
    assert random > first > second > third
