"""A checkpoint becomes a super-network that computes the same, or one clear line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertForMaskedLM, GPT2Config, PreTrainedModel, T5Config

from archwright.errors import BadInput
from archwright.networks.load import default_pooling, load_supernet, saved_network
from archwright.networks.pruned import PrunedForSequenceClassification
from archwright.subnet.extract import extract
from archwright.subnet.keep import LayerKeep
from tests.tiny import LABELS, STOCK, randomise, saved_classifier, stock_classifier, tiny, tiny_batch

UNUSUAL = {
    "bert": {
        "hidden_act": "relu",
        "layer_norm_eps": 0.03,
        "type_vocab_size": 3,
        "pad_token_id": 7,
        "classifier_dropout": 0.31,
    },
    "roberta": {"hidden_act": "gelu_new", "layer_norm_eps": 0.02, "pad_token_id": 4, "hidden_dropout_prob": 0.27},
    "distilbert": {"activation": "relu", "sinusoidal_pos_embds": True, "dropout": 0.23, "seq_classif_dropout": 0.37},
    "electra-narrow": {"hidden_act": "silu", "layer_norm_eps": 0.05, "attention_probs_dropout_prob": 0.17},
}
SLIM = (LayerKeep(2, (1, 3)), LayerKeep(0, 0), LayerKeep(0, 4))


def logits(model: PreTrainedModel, name: str) -> torch.Tensor:
    with torch.no_grad():
        return model(**tiny_batch(name, texts=4, length=9).inputs).logits


@pytest.mark.parametrize("labels", [LABELS, ("no", "yes"), ()], ids=["three", "two", "regression"])
@pytest.mark.parametrize("name", STOCK)
def test_a_fine_tuned_checkpoint_gives_the_stock_answers(name: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    stock = saved_classifier(tmp_path, name, labels=labels)
    ours = load_supernet(str(tmp_path), labels=labels)
    assert not ours.training
    assert ours.config.pooling == "cls"
    assert ours.config.id2label == stock.config.id2label
    assert ours.config.num_labels == max(1, len(labels))
    torch.testing.assert_close(logits(ours, name), logits(stock, name), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_settings_survive(name: str, tmp_path: Path) -> None:
    stock = stock_classifier(name, **UNUSUAL[name], max_position_embeddings=31)
    stock.save_pretrained(tmp_path / "stock")
    ours = load_supernet(str(tmp_path / "stock"), labels=LABELS)
    small = extract(ours, SLIM)
    for model in (ours, small):
        model.save_pretrained(tmp_path / str(id(model)))
        again = PrunedForSequenceClassification.from_pretrained(tmp_path / str(id(model)))
        assert torch.equal(logits(again, name), logits(model, name))
        for config in (model.config.stock(), again.config.stock()):
            assert all(getattr(config, key) == value for key, value in UNUSUAL[name].items())
            assert config.max_position_embeddings == 31
    torch.testing.assert_close(logits(ours, name), logits(stock, name), rtol=0, atol=1e-6)
    assert dropouts(ours.backbone) == dropouts(stock.base_model)
    assert ours.head.dropout.p == {"bert": 0.31, "roberta": 0.27, "distilbert": 0.37, "electra-narrow": 0.1}[name]


def dropouts(model: torch.nn.Module) -> list[float]:
    return [m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", STOCK)
def test_a_half_precision_checkpoint_becomes_a_whole_float32_network(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    stock = stock_classifier(name).to(dtype)
    stock.save_pretrained(tmp_path / "half")
    ours = load_supernet(str(tmp_path / "half"), labels=LABELS)
    torch.testing.assert_close(logits(ours, name), logits(stock.float(), name), rtol=0, atol=1e-6)
    small = extract(ours, SLIM)
    small.save_pretrained(tmp_path / "small")
    again = PrunedForSequenceClassification.from_pretrained(tmp_path / "small")
    assert {p.dtype for m in (ours, small, again) for p in m.parameters()} == {torch.float32}
    assert torch.equal(logits(again, name), logits(small, name))


@pytest.mark.parametrize("name", STOCK)
def test_a_bare_checkpoint_gets_a_seeded_head(name: str, tmp_path: Path) -> None:
    bare = AutoModel.from_config(STOCK[name])
    randomise(bare, 2)
    bare.save_pretrained(tmp_path)
    before = torch.random.get_rng_state()
    one, same, other = (load_supernet(str(tmp_path), labels=LABELS, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(logits(one, name), logits(same, name))
    assert not torch.equal(one.head.dense.weight, other.head.dense.weight)
    batch = tiny_batch(name).inputs
    with torch.no_grad():
        torch.testing.assert_close(
            one.backbone(**batch).last_hidden_state, bare.eval()(**batch).last_hidden_state, rtol=0, atol=1e-6
        )


def test_a_head_for_other_labels_is_replaced(tmp_path: Path) -> None:
    stock = saved_classifier(tmp_path, "bert")
    ours = load_supernet(str(tmp_path), labels=("no", "yes"), pooling="mean")
    assert ours.config.num_labels == 2
    assert ours.config.id2label == {0: "no", 1: "yes"}
    assert ours.config.pooling == "mean"
    assert not torch.equal(ours.head.dense.weight, stock.bert.pooler.dense.weight)
    anew = load_supernet(str(tmp_path), labels=LABELS, keep_head=False)
    assert not torch.equal(anew.head.out.weight, stock.classifier.weight)


def test_a_trained_head_reads_the_first_token(tmp_path: Path) -> None:
    saved_classifier(tmp_path, "bert")
    with pytest.raises(BadInput, match="pooling"):
        load_supernet(str(tmp_path), labels=LABELS, pooling="mean")


def test_a_language_model_serves_without_its_missing_pooler(tmp_path: Path) -> None:
    BertForMaskedLM(STOCK["bert"]).save_pretrained(tmp_path)
    assert load_supernet(str(tmp_path), labels=LABELS).config.num_labels == 3


def test_pooling_is_what_the_checkpoint_says(tmp_path: Path) -> None:
    assert default_pooling(str(tmp_path)) == "cls"
    (tmp_path / "1_Pooling").mkdir()
    described = tmp_path / "1_Pooling" / "config.json"
    described.write_text(json.dumps({"pooling_mode_mean_tokens": False}))
    assert default_pooling(str(tmp_path)) == "cls"
    described.write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    assert default_pooling(str(tmp_path)) == "mean"
    for broken in ("{", "[]"):
        described.write_text(broken)
        with pytest.raises(BadInput, match="1_Pooling"):
            default_pooling(str(tmp_path))


def test_minilm_is_a_sentence_encoder(minilm: Path) -> None:
    assert default_pooling(str(minilm)) == "mean"


def change_config(**changes: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return damage


def cut_weights(size: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:size])

    return damage


def change_tensors(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        weights = folder / "model.safetensors"
        save_file(change(load_file(weights)), weights, metadata={"format": "pt"})

    return damage


def write_config(content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / "config.json").write_bytes(content) and None


def junk_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"no pickle at all")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "no config": lambda folder: (folder / "config.json").unlink(),
    "config is no json": write_config(b"{ oops"),
    "config is a list": write_config(b"[1, 2]"),
    "config is empty": write_config(b"{}"),
    "config is binary": write_config(b"\xff\xfe\x00"),
    "unknown model type": change_config(model_type="nonsense"),
    "depth is a word": change_config(num_hidden_layers="three"),
    "no vocabulary": change_config(vocab_size=None),
    "heads do not divide": change_config(num_attention_heads=5),
    "no heads": change_config(num_attention_heads=0),
    "unknown activation": change_config(hidden_act="nope"),
    "other width": change_config(intermediate_size=11),
    "more layers than weights": change_config(num_hidden_layers=4),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "empty weights": cut_weights(0),
    "truncated header": cut_weights(900),
    "truncated tail": cut_weights(-64),
    "one tensor missing": change_tensors(
        lambda t: {k: v for k, v in t.items() if k != "bert.encoder.layer.1.output.dense.bias"}
    ),
    "no pooler under its head": change_tensors(lambda t: {k: v for k, v in t.items() if "pooler" not in k}),
    "tensors of another network": change_tensors(lambda t: {f"other.{k}": v for k, v in t.items()}),
    "no pickle": junk_pickle,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_one_clear_line(damage: Callable[[Path], None], tmp_path: Path) -> None:
    saved_classifier(tmp_path, "bert")
    damage(tmp_path)
    with pytest.raises(BadInput) as failure:
        load_supernet(str(tmp_path), labels=LABELS)
    assert "\n" not in str(failure.value)
    assert str(tmp_path) in str(failure.value)


@pytest.mark.parametrize("config", [T5Config(), GPT2Config()], ids=["t5", "gpt2"])
def test_another_family_is_refused_with_those_that_work(config: T5Config | GPT2Config, tmp_path: Path) -> None:
    config.save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="bert, distilbert, electra, roberta") as failure:
        load_supernet(str(tmp_path), labels=LABELS)
    assert config.model_type in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_missing_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere") as failure:
        load_supernet(str(tmp_path / "nowhere"), labels=LABELS)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("name", STOCK)
def test_a_saved_network_comes_back(name: str, tmp_path: Path) -> None:
    model = tiny(name, pooling="mean").float()
    for network in (model, extract(model, SLIM), extract(model, (LayerKeep(0, 0),) * 3)):
        network.save_pretrained(tmp_path)
        again = saved_network(tmp_path)
        assert not again.training
        assert again.config.layers == network.config.layers
        assert torch.equal(logits(again, name), logits(network, name))


@pytest.mark.parametrize("damage", [cut_weights(900), change_tensors(lambda t: dict(list(t.items())[1:]))])
def test_a_damaged_saved_network_is_one_clear_line(damage: Callable[[Path], None], tmp_path: Path) -> None:
    tiny("bert").float().save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(BadInput) as failure:
        saved_network(tmp_path)
    assert "\n" not in str(failure.value)
