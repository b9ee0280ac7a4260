"""Sub-networks of bfloat16 weights: masked, sliced and extracted ones agree, and their sums are float32."""

import pytest
import torch

from archwright.networks.precision import Float32Arithmetic
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.importance import REDUCTIONS, mask_scores
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.baselines import prune_by_fisher
from archwright.subnet.pruning.gradients import mask_gradients
from archwright.subnet.pruning.streams import record_streams
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.training.losses import task_loss
from tests.tiny import TinyBatch, text_batch, tiny

SPECS: dict[str, SubnetSpec] = {
    "prefixes": (LayerSpec(2, 3), LayerSpec(4, 10), LayerSpec(1, 9)),
    "positions": (LayerSpec((1, 3), (0, 2, 9)), LayerSpec((3,), (4,)), LayerSpec(4, (1, 5))),
    "gone": (LayerSpec(0, 4), LayerSpec(0, 0), LayerSpec((0, 2), 0)),
}
ROUNDED, EXACT = 2**-4, 1e-4
"""Largest difference as a share of the largest logit: in bfloat16, where each of a dozen sums rounds to 2**-9, and of
the same weights in float32 arithmetic."""
NAMES = ("llama-groups", "llama-queries", "qwen2", "mistral")


def low(name: str) -> PrunedNetwork:
    """Float32 buffers, as a checkpoint's are, and bfloat16 weights."""
    network = tiny(name, kind="lm").float()
    for parameter in network.parameters():
        parameter.data = parameter.data.bfloat16()
    return network


def batches(name: str, count: int = 3) -> list[TinyBatch]:
    return [text_batch(name, seed=seed) for seed in range(count)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spec", SPECS)
@torch.no_grad()
def test_masked_sliced_and_extracted_agree(name: str, spec: str) -> None:
    network, batch = low(name), text_batch(name)
    small = extract(network, SPECS[spec])
    assert {parameter.dtype for parameter in small.parameters()} == {torch.bfloat16}
    assert all(b.dtype == torch.float32 for b in small.buffers() if b.is_floating_point())

    def answers() -> list[torch.Tensor]:
        with masked_subnetwork(network, SPECS[spec]):
            masked = network(**batch.inputs).logits
        with subnetwork(network, SPECS[spec]):
            sliced = network(**batch.inputs).logits
        return [masked, sliced, small(**batch.inputs).logits]

    for limit, logits in ((ROUNDED, answers()), (EXACT, in_float32(answers))):
        scale = max(1.0, float(logits[0].abs().max()))
        assert all(float((other - logits[0]).abs().max()) <= limit * scale for other in logits[1:])


def in_float32(answers: object) -> list[torch.Tensor]:
    with Float32Arithmetic():
        found: list[torch.Tensor] = answers()  # type: ignore[operator]
    assert all(logits.dtype == torch.float32 for logits in found)
    return found


def test_gradients_of_a_slice_reach_the_weights_in_their_precision() -> None:
    network, batch = low("llama-groups"), text_batch("llama-groups")
    with subnetwork(network, SPECS["prefixes"]):
        task_loss(network(**batch.inputs).logits, batch.targets).backward()
    weight = network.backbone.layers[0].mlp.up_proj.weight
    assert weight.grad is not None and weight.grad.dtype == torch.bfloat16
    assert bool(weight.grad[:3].any()) and not bool(weight.grad[3:].any())


@pytest.mark.parametrize("name", ["llama-groups", "qwen2"])
def test_fisher_information_is_summed_in_float32(name: str) -> None:
    network, rows = low(name), batches(name)
    scores = mask_scores(network, rows, task_loss, REDUCTIONS["fisher"], span=4)
    gradients = mask_gradients(network, rows, task_loss, span=4)
    wide = tiny(name, kind="lm")
    with torch.no_grad():
        for parameter, own in zip(wide.parameters(), network.parameters(), strict=True):
            parameter.copy_(own)
    exact = mask_scores(wide, rows, task_loss, REDUCTIONS["fisher"], span=4)
    for part, expected in zip(scores, exact, strict=True):
        assert {row.dtype for row in part} == {torch.float32}
        found, wanted = torch.cat(part).double(), torch.cat(expected)
        assert float((found - wanted).norm() / wanted.norm()) < 0.2  # gradients have three digits
    assert {row.dtype for row in (*gradients.heads, *gradients.units)} == {torch.float32}


@pytest.mark.parametrize("repair", REPAIRS)
def test_repairs_keep_the_precision_and_help(repair: str) -> None:
    name = "llama-groups"
    network, rows = low(name), batches(name, 12)
    specs = prune_by_fisher(network, rows, task_loss, [0.6], length=7, span=4)
    recording = record_streams(network, rows)
    small = REPAIRS[repair](network, specs[0.6], recording)
    assert {parameter.dtype for parameter in small.parameters()} == {torch.bfloat16}
    cut = extract(network, specs[0.6])

    @torch.no_grad()
    def distance(other: PrunedNetwork) -> float:
        pairs = [(network(**b.inputs).logits.float(), other(**b.inputs).logits.float()) for b in rows]
        return sum(float((one - two).square().mean()) for one, two in pairs)

    if repair == "least-squares":
        assert distance(small) < 0.8 * distance(cut)
    assert read_anatomy(small.config).layers <= 3
