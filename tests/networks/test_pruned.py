"""The pruned encoder as a Hugging Face model: round trips, shapes, pooling, loss."""

from pathlib import Path

import pytest
import torch
from torch import nn

from archwright.networks.load import supernet_config
from archwright.networks.pruned import FAMILIES, POOLINGS, PrunedConfig, PrunedForSequenceClassification
from archwright.subnet.extract import extract
from archwright.subnet.keep import Keep, LayerKeep
from tests.tiny import LABELS, STOCK, shared_tiny, tiny, tiny_batch

KEEPS: dict[str, Keep] = {
    "whole": (LayerKeep(4, 10),) * 3,
    "slim": (LayerKeep((1, 2), (0, 4, 9)), LayerKeep(1, 0), LayerKeep(0, 3)),
    "one layer": (LayerKeep(0, 0), LayerKeep(3, 5), LayerKeep(0, 0)),
    "none": (LayerKeep(0, 0),) * 3,
}


def test_every_family_is_tried() -> None:
    assert {config.model_type for config in STOCK.values()} == set(FAMILIES)


@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", STOCK)
def test_saving_and_loading_changes_nothing(name: str, pooling: str, keep: Keep, tmp_path: Path) -> None:
    small = extract(shared_tiny(name, pooling), keep)
    small.save_pretrained(tmp_path)
    again, report = PrunedForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert not again.training
    assert again.dtype == torch.float64
    batch = tiny_batch(name)
    assert torch.equal(again(**batch.inputs).logits, small(**batch.inputs).logits)
    for key in ("backbone", "layers", "pooling", "id2label", "label2id", "problem_type", "pad_token_id"):
        assert getattr(again.config, key) == getattr(small.config, key), key


@pytest.mark.parametrize("name", STOCK)
def test_an_extracted_network_has_only_what_is_left(name: str) -> None:
    small = extract(shared_tiny(name, "cls"), KEEPS["slim"])
    family = small.config.family
    first, second, third = small.backbone.get_submodule(family.layers)
    assert small.config.layers == [[2, 3], [1, 0], [0, 3]]
    assert first.get_submodule(family.query).weight.shape == (8, 16)
    assert first.get_submodule(family.mix).weight.shape == (16, 8)
    assert first.get_submodule(family.up).weight.shape == (3, 16)
    assert not [n for n, _ in second.named_parameters() if n.startswith((family.up, family.down, family.ffn_norm))]
    assert not [n for n, _ in third.named_parameters() if n.startswith(("attention", family.attention_norm))]
    assert len(extract(shared_tiny(name, "cls"), KEEPS["one layer"]).backbone.get_submodule(family.layers)) == 1


def test_no_pooler_is_left_over() -> None:
    for name in STOCK:
        assert not [key for key in shared_tiny(name, "cls").state_dict() if "pooler" in key]


def test_the_head_ignores_padding_and_averages_the_rest() -> None:
    hidden = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    found = POOLINGS["mean"](hidden, mask)
    for row, expected in zip(found, (hidden[0, :2].mean(0), hidden[1].mean(0)), strict=True):
        centred = expected - expected.mean()
        torch.testing.assert_close(row, centred / centred.square().mean().sqrt(), rtol=0, atol=1e-9)
    assert torch.equal(POOLINGS["cls"](hidden, mask), hidden[:, 0])
    assert torch.isfinite(POOLINGS["mean"](hidden, torch.zeros(2, 4))).all()


@pytest.mark.parametrize("name", STOCK)
def test_a_missing_attention_mask_means_no_padding(name: str) -> None:
    model, batch = shared_tiny(name, "mean"), tiny_batch(name, texts=1)
    ids = batch.inputs["input_ids"]
    assert torch.equal(model(input_ids=ids).logits, model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits)


def test_labels_give_a_loss() -> None:
    batch = tiny_batch("bert")
    model = shared_tiny("bert", "cls")
    answer = model(**batch.inputs, labels=batch.targets)
    assert torch.equal(answer.loss, nn.functional.cross_entropy(answer.logits, batch.targets))
    assert model(**batch.inputs).loss is None
    regression = tiny("bert", labels=())
    targets = torch.tensor([0.5, -1.0, 2.0])
    answer = regression(**batch.inputs, labels=targets)
    assert float(answer.loss.detach()) == pytest.approx(float((answer.logits[:, 0] - targets).square().mean().detach()))


@pytest.mark.parametrize("name", STOCK)
def test_the_config_says_what_the_network_is(name: str) -> None:
    config = supernet_config(STOCK[name], labels=LABELS, pooling="mean")
    assert config.layers == [[4, 10]] * 3
    assert (config.id2label, config.label2id) == ({0: "bad", 1: "fair", 2: "good"}, {"bad": 0, "fair": 1, "good": 2})
    assert (config.pooling, config.problem_type) == ("mean", "single_label_classification")
    assert config.pad_token_id == STOCK[name].pad_token_id
    stock = config.stock()
    skipped = {"architectures", "id2label", "label2id", "transformers_version", "dtype", "_name_or_path"}
    assert {k: v for k, v in stock.to_dict().items() if k not in skipped} == {
        k: v for k, v in STOCK[name].to_dict().items() if k not in skipped
    }
    assert PrunedConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()


def test_regression_has_one_output() -> None:
    config = supernet_config(STOCK["bert"], labels=(), pooling="cls")
    assert (config.num_labels, config.problem_type) == (1, "regression")
