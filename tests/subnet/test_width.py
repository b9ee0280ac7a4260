"""A smaller hidden width: which channels stay, and what the repair is worth."""

import pytest
import torch

from archwright.errors import BadInput
from archwright.networks.embeddings import factorize_embeddings
from archwright.networks.families import FAMILIES
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.width import keep_channels
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, parameters
from archwright.subnet.width import channel_scores, narrow_network, repair_width, stream_norms
from archwright.training.losses import task_loss
from tests.tiny import ENCODERS, TinyBatch, tiny, tiny_batch

WIDTH, CHANNELS = 16, torch.tensor([0, 2, 3, 5, 6, 8, 9, 11, 12, 15])
SPEC = (LayerSpec(2, (1, 4, 7)), LayerSpec(0, 5), LayerSpec((0, 3), 0))


def logits(network: PrunedNetwork, batch: TinyBatch) -> torch.Tensor:
    with torch.no_grad():
        answer: torch.Tensor = network(**batch.inputs).logits
    return answer


NARROW = [name for name, config in ENCODERS.items() if FAMILIES[config.model_type].can_narrow]


def calibration(name: str) -> list[TinyBatch]:
    return [tiny_batch(name, seed=seed, texts=16, length=12) for seed in range(8)]


@pytest.mark.parametrize("rank", [None, 5])
@pytest.mark.parametrize("name", NARROW)
def test_masked_sliced_and_extracted_are_the_same_network(name: str, rank: int | None) -> None:
    if rank is not None and name == "electra-narrow":
        pytest.skip("its table has 6 columns")
    model = keep_channels(tiny(name), CHANNELS)
    if rank is not None:
        factorize_embeddings(model, rank, torch.ones(40))
    batch = tiny_batch(name)
    with masked_subnetwork(model, SPEC):
        masked = logits(model, batch)
    with subnetwork(model, SPEC):
        sliced = logits(model, batch)
    small = extract(model, SPEC)
    for answer in (sliced, logits(small, batch)):
        torch.testing.assert_close(answer, masked, rtol=0, atol=1e-9)
    assert sum(p.numel() for p in small.parameters()) == parameters(read_anatomy(model.config), SPEC)
    assert small.config.width == len(CHANNELS)


@pytest.mark.parametrize("name", NARROW)
def test_it_is_saved_and_loaded(name: str, tmp_path: object) -> None:
    model = keep_channels(tiny(name).float(), CHANNELS)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    torch.testing.assert_close(logits(again, tiny_batch(name)), logits(model, tiny_batch(name)), rtol=0, atol=1e-6)


def test_every_tensor_of_the_stream_keeps_these_channels() -> None:
    wide = tiny()
    narrow = keep_channels(wide, CHANNELS)
    before, after = wide.state_dict(), narrow.state_dict()
    query, mix = (f"backbone.encoder.layer.1.attention.{path}.weight" for path in ("self.query", "output.dense"))
    torch.testing.assert_close(after[query], before[query][:, CHANNELS])
    torch.testing.assert_close(after[mix], before[mix][CHANNELS])
    torch.testing.assert_close(after["head.dense.weight"], before["head.dense.weight"][CHANNELS][:, CHANNELS])
    tables = [name for name in before if "embeddings" in name and before[name].dim() == 2]
    assert all(after[name].shape[1] == len(CHANNELS) for name in tables) and len(tables) == 3


def test_scores_are_those_of_a_mask_over_the_channel() -> None:
    """Against the gradient of one mask that multiplies the output of every norm, text by text."""
    model, batch = tiny(), tiny_batch()
    mask = torch.ones(WIDTH, dtype=torch.float64, requires_grad=True)
    hooks = [
        model.get_submodule(path).register_forward_hook(lambda m, x, out: out * mask) for path, _ in stream_norms(model)
    ]
    wanted = torch.zeros(WIDTH, dtype=torch.float64)
    for text in range(len(batch.targets)):
        one = {name: tensor[text : text + 1] for name, tensor in batch.inputs.items()}
        loss = task_loss(model(**one).logits, batch.targets[text : text + 1])
        wanted += torch.autograd.grad(loss, mask)[0].square() / len(batch.targets)
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(channel_scores(model, [batch], task_loss), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "pooling"), [("bert", "mean"), ("bert", "cls"), ("distilbert", "cls"), ("electra", "cls")]
)
def test_the_repair_brings_answers_back(name: str, pooling: str) -> None:
    """On texts that it was not fitted to."""
    wide, batches, other = tiny(name, pooling=pooling), calibration(name), tiny_batch(name, seed=99, texts=32)
    with torch.no_grad():  # channels that can be foretold from others, as in trained networks
        for parameter in wide.parameters():
            parameter *= 0.5
    cut = keep_channels(wide, CHANNELS)
    repaired = keep_channels(wide, CHANNELS)
    repair_width(repaired, wide, CHANNELS, batches)
    apart = [float((logits(each, other) - logits(wide, other)).square().mean()) for each in (cut, repaired)]
    assert apart[1] < 0.8 * apart[0]
    assert narrow_network(wide, 12, batches, task_loss).config.width == 12


@pytest.mark.parametrize(
    ("name", "width", "words"),
    [
        ("bert", 16, "--width must be 1 to 15, below the checkpoint's 16, got 16"),
        ("gpt2", 8, "--width is for the encoders"),
        ("modernbert", 8, "--width is for the encoders"),
        ("deberta-v2", 8, "--width is for the encoders"),
    ],
)
def test_refusals(name: str, width: int, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        keep_channels(tiny(name), torch.arange(width))
