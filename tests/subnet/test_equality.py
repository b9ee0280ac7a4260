"""Masked, sliced and extracted sub-networks compute the same, and it is what the hand-written network computes."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.search import Bits, Config
from archwright.search.choices import largest, middle, smallest
from archwright.spaces.subnetwork import SPACES, subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.slicing import FrozenSlice, SlicedLinear, masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, positions
from tests.subnet import oracle
from tests.tiny import BATCHES, DECODERS, ENCODERS, STOCK, TinyBatch, shared_tiny, tiny, tiny_batch

FEW = settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
Asked = tuple[str, str, str | None]
"""A network, the kind of its task, and how it pools."""
ASKED: list[Asked] = [
    *((name, "classification", pooling) for name in ENCODERS for pooling in ("cls", "mean")),
    *((name, "lm", None) for name in DECODERS),
]
OTHERS: list[Asked] = [
    ("bert", "classification", "last"),
    ("gpt2", "classification", "last"),
    ("llama-groups", "classification", "mean"),
    ("mistral", "classification", "last"),
    ("roberta", "choice", "cls"),
    ("qwen2-queries", "choice", "last"),
    ("electra-narrow", "qa", None),
    ("qwen3", "qa", None),
    ("modernbert", "qa", None),
    ("modernbert", "tokens", None),
    ("distilbert", "tokens", None),
    ("gpt2", "tokens", None),
    ("electra", "multi-label", "mean"),
    ("electra", "embeddings", "mean"),
    ("distilbert", "embeddings", "cls"),
    ("llama", "embeddings", "last"),
]
"""All kinds of tasks with an encoder and a decoder each."""
PRECISION = {True: 1e-4, False: 1e-5}
"""Of float32 by whether it is a decoder, as a share of the largest logit."""

ODD: dict[str, SubnetSpec] = {
    "prefixes": (LayerSpec(2, 3), LayerSpec(4, 10), LayerSpec(1, 9)),
    "positions": (LayerSpec((1, 3), (0, 2, 9)), LayerSpec((3,), (4,)), LayerSpec(4, (1, 5))),
    "no attention": (LayerSpec(0, 4), LayerSpec(0, (2, 3)), LayerSpec(0, 10)),
    "no ffn": (LayerSpec(3, 0), LayerSpec((0, 2), 0), LayerSpec(4, 0)),
    "layer gone": (LayerSpec(0, 0), LayerSpec((2,), (1, 7)), LayerSpec(0, 0)),
    "mixed": (LayerSpec((0, 3), 0), LayerSpec(0, 0), LayerSpec(0, (5, 8))),
    "nothing": (LayerSpec(0, 0),) * 3,
    "everything": (LayerSpec(4, 10),) * 3,
    "everything by name": (LayerSpec((0, 1, 2, 3), tuple(range(10))),) * 3,
    "one of each": (LayerSpec(1, 1),) * 3,
}


def masks_of(spec: SubnetSpec) -> oracle.Masks:
    return [(list(positions(part.heads)), list(positions(part.units))) for part in spec]


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    """Gradients by name, zeros where there are none, and the model left without any."""
    found = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters()}
    model.zero_grad()
    return found


def slope(logits: torch.Tensor) -> torch.Tensor:
    """A scalar of the logits whose gradient reaches all of them differently."""
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (logits * weights.to(logits.dtype)).sum()


def pass_back(model: nn.Module, batch: TinyBatch) -> torch.Tensor:
    logits = model(**batch.inputs).logits
    slope(logits).backward()
    return logits.detach()


def oracle_results(
    model: nn.Module, name: str, spec: SubnetSpec, batch: TinyBatch
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    state = {key: value.detach().clone().requires_grad_() for key, value in model.named_parameters()}
    config = model.config
    seen = oracle.run(state, name, masks_of(spec), batch.inputs, pooling=config.pooling, kind=config.kind)
    slope(seen.logits).backward()
    return seen.logits.detach(), {k: torch.zeros_like(v) if v.grad is None else v.grad for k, v in state.items()}


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=1e-9, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}"
        )


def assert_all_equal(model: PrunedNetwork, name: str, spec: SubnetSpec, batch: TinyBatch) -> None:
    """Logits and gradients of all four ways to run the sub-network, in float64."""
    logits, slopes = oracle_results(model, name, spec, batch)
    with masked_subnetwork(model, spec):
        by_mask = pass_back(model, batch)
    mask_slopes = gradients(model)
    with subnetwork(model, spec):
        by_slice = pass_back(model, batch)
    slice_slopes = gradients(model)
    with torch.no_grad(), subnetwork(model, spec):
        frozen = model(**batch.inputs).logits
    small = extract(model, spec)
    by_extract = pass_back(small, batch)
    for found in (by_mask, by_slice, frozen, by_extract):
        torch.testing.assert_close(found, logits, rtol=0, atol=1e-9)
    assert_close(mask_slopes, slopes)
    assert_close(slice_slopes, slopes)
    assert_close(gradients(small), oracle.small_tensors(slopes, name, masks_of(spec)))


@pytest.mark.covering
@pytest.mark.parametrize("spec", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_every_way_to_run_a_subnetwork_agrees_with_the_hand_written_one(asked: Asked, spec: SubnetSpec) -> None:
    name, kind, pooling = asked
    assert_all_equal(shared_tiny(name, pooling, kind), name, spec, BATCHES[kind](name))


@pytest.mark.covering
@pytest.mark.parametrize("odd", ["positions", "mixed", "nothing"])
@pytest.mark.parametrize("asked", OTHERS, ids=str)
def test_every_kind_of_task_agrees_with_the_hand_written_one(asked: Asked, odd: str) -> None:
    name, kind, pooling = asked
    assert_all_equal(shared_tiny(name, pooling, kind), name, ODD[odd], BATCHES[kind](name, texts=2))


def test_every_kind_of_task_is_tried() -> None:
    assert {kind for _, kind, _ in ASKED + OTHERS} == set(BATCHES)


def test_the_hand_written_network_can_tell_subnetworks_apart() -> None:
    model, batch = shared_tiny("bert", "cls"), tiny_batch("bert")
    logits = [
        oracle_results(model, "bert", spec, batch)[0] for name, spec in ODD.items() if name != "everything by name"
    ]
    gaps = [float((a - b).abs().max()) for i, a in enumerate(logits) for b in logits[:i]]
    assert min(gaps) > 1e-3


def configs(space_choices: dict[str, range | Bits]) -> st.SearchStrategy[Config]:
    """Any config, and more often than by chance one with first, last and empty values in it."""
    corners = st.sampled_from([smallest(space_choices), middle(space_choices), largest(space_choices)])
    return st.one_of(st.fixed_dictionaries({name: values(choice) for name, choice in space_choices.items()}), corners)


def values(choice: range | Bits) -> st.SearchStrategy[int | str]:
    if isinstance(choice, Bits):
        return st.lists(st.booleans(), min_size=choice.length, max_size=choice.length).map(
            lambda b: choice.pack(np.array(b))
        )
    return st.one_of(st.sampled_from((choice[0], choice[-1])), st.sampled_from(choice))


@st.composite
def cases(draw: st.DrawFn, name: str, space: str) -> tuple[PrunedNetwork, SubnetSpec, TinyBatch]:
    _, kind, pooling = draw(st.sampled_from([asked for asked in ASKED if asked[0] == name]))
    model = shared_tiny(name, pooling, kind)
    of = read_anatomy(model.config)
    order = draw(st.permutations(range(of.layers)))
    chosen = subnet_space(space, of, order)
    spec = chosen.build(draw(configs(chosen.choices)))
    texts, length = draw(st.integers(1, 4)), draw(st.integers(2, 9))
    return model, spec, BATCHES[kind](name, seed=draw(st.integers(0, 99)), texts=texts, length=length)


def equality_of(name: str, space: str, amount: settings) -> None:
    @amount
    @given(case=cases(name, space))
    def check(case: tuple[PrunedNetwork, SubnetSpec, TinyBatch]) -> None:
        model, spec, batch = case
        assert_all_equal(model, name, spec, batch)

    check()


@pytest.mark.covering
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", STOCK)
def test_random_configs_of_every_space_and_family_agree(name: str, space: str) -> None:
    equality_of(name, space, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", STOCK)
def test_many_random_configs_of_every_space_and_family_agree(name: str, space: str) -> None:
    equality_of(name, space, MANY)


@pytest.mark.covering
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", STOCK)
def test_float32_agrees_within_its_precision(name: str, space: str) -> None:
    kind = "lm" if name in DECODERS else "classification"
    model = tiny(name, pooling="mean", kind=kind).float()
    of = read_anatomy(model.config)
    chosen = subnet_space(space, of)
    batch = BATCHES[kind](name, texts=4, length=9)

    @FEW
    @given(config=configs(chosen.choices))
    def check(config: Config) -> None:
        spec = chosen.build(config)
        with torch.no_grad():
            logits = [run(model, spec, batch) for run in (masked_logits, sliced_logits, extracted_logits)]
        limit = PRECISION[name in DECODERS] * max(1.0, float(logits[0].abs().max()))
        assert all(float((x - logits[0]).abs().max()) <= limit for x in logits[1:])

    check()


Run = Callable[[PrunedNetwork, SubnetSpec, TinyBatch], torch.Tensor]


def masked_logits(model: PrunedNetwork, spec: SubnetSpec, batch: TinyBatch) -> torch.Tensor:
    with masked_subnetwork(model, spec):
        return model(**batch.inputs).logits


def sliced_logits(model: PrunedNetwork, spec: SubnetSpec, batch: TinyBatch) -> torch.Tensor:
    with subnetwork(model, spec):
        return model(**batch.inputs).logits


def extracted_logits(model: PrunedNetwork, spec: SubnetSpec, batch: TinyBatch) -> torch.Tensor:
    return extract(model, spec)(**batch.inputs).logits


@pytest.mark.parametrize("run", [masked_logits, sliced_logits, extracted_logits])
def test_padding_changes_nothing(run: Run) -> None:
    model, spec = shared_tiny("roberta", "mean"), ODD["positions"]
    short = tiny_batch("roberta", texts=1, length=4)
    ids = nn.functional.pad(short.inputs["input_ids"], (0, 5), value=1)
    padded = TinyBatch(
        {k: nn.functional.pad(v, (0, 5)) for k, v in short.inputs.items()} | {"input_ids": ids}, short.targets
    )
    torch.testing.assert_close(run(model, spec, padded), run(model, spec, short), rtol=0, atol=1e-9)


def test_with_gradients_linears_are_sliced_and_without_they_are_frozen() -> None:
    model = shared_tiny("bert", "cls")
    with subnetwork(model, ODD["positions"]):
        assert (
            sum(isinstance(m, SlicedLinear) for m in model.modules()) == 14
        )  # 6 of a layer; the last one keeps all heads
    with torch.no_grad(), subnetwork(model, ODD["positions"]):
        assert sum(isinstance(m, FrozenSlice) for m in model.modules()) == 14


def test_an_extracted_network_can_be_extracted_again() -> None:
    model, batch = shared_tiny("electra-narrow", "mean"), tiny_batch("electra-narrow")
    once = extract(model, (LayerSpec((0, 2, 3), 8), LayerSpec(0, 0), LayerSpec(2, (1, 2, 6))))
    twice = extract(once, (LayerSpec((1,), 0), LayerSpec(2, (0, 2))))
    direct = extract(model, (LayerSpec((2,), 0), LayerSpec(0, 0), LayerSpec(2, (1, 6))))
    torch.testing.assert_close(twice(**batch.inputs).logits, direct(**batch.inputs).logits, rtol=0, atol=1e-9)


def test_an_extracted_network_owns_its_tensors() -> None:
    model, batch = tiny("bert"), tiny_batch("bert")
    small = extract(model, ODD["everything"])
    before = small(**batch.inputs).logits
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(small(**batch.inputs).logits, before)
    assert all(p.requires_grad and p.is_leaf for p in small.parameters())
