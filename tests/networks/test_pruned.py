"""The pruned network as a Hugging Face model: round trips, shapes, groupings, pooling, losses."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.modernbert.modeling_modernbert import ModernBertRotaryEmbedding

from archwright.networks.families import FAMILIES
from archwright.networks.families.family import GROUPINGS, AttentionShape
from archwright.networks.load import supernet_config
from archwright.networks.pruned import POOLINGS, PrunedConfig
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.designed import DESIGNED
from tests.tiny import (
    BATCHES,
    CONFIGS,
    DECODERS,
    ENCODERS,
    LABELS,
    ORIGINAL,
    STOCK,
    choice_batch,
    shared_tiny,
    span_batch,
    text_batch,
    tiny,
    tiny_batch,
)

KEEPS: dict[str, SubnetSpec] = {
    "whole": (LayerSpec(4, 10),) * 3,
    "slim": (LayerSpec((1, 2), (0, 4, 9)), LayerSpec(1, 0), LayerSpec(0, 3)),
    "one layer": (LayerSpec(0, 0), LayerSpec(3, 5), LayerSpec(0, 0)),
    "none": (LayerSpec(0, 0),) * 3,
}
ASKED = [
    *((name, "classification", pooling) for name in ENCODERS for pooling in ("cls", "mean")),
    *((name, "lm", None) for name in DECODERS),
    *((name, "classification", None) for name in DECODERS),
    *(("distilbert", "choice", None), ("qwen2-queries", "choice", None)),
    *(("electra-narrow", "qa", None), ("gpt2", "qa", None)),
    *(("roberta", "tokens", None), ("llama-groups", "tokens", None)),
]
"""Network, kind of task, pooling."""


def test_every_family_is_tried() -> None:
    assert {config.model_type for config in (*CONFIGS.values(), *DESIGNED.values())} == set(FAMILIES)


@pytest.mark.covering
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize(("name", "kind", "pooling"), ASKED)
def test_saving_and_loading_changes_nothing(
    name: str, kind: str, pooling: str | None, keep: SubnetSpec, tmp_path: Path
) -> None:
    small = extract(shared_tiny(name, pooling, kind), keep)
    small.save_pretrained(tmp_path)
    again, report = type(small).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert not again.training
    assert again.dtype == torch.float64
    batch = BATCHES[kind](name)
    # not to the last bit: a loaded tensor may lie at another address, for which some processors round otherwise
    assert torch.allclose(again(**batch.inputs).logits, small(**batch.inputs).logits, rtol=1e-12, atol=1e-12)
    assert again.config.to_dict() == {**small.config.to_dict(), "_name_or_path": str(tmp_path)}
    assert sum(p.numel() for p in again.parameters()) == sum(p.numel() for p in small.parameters())


@pytest.mark.parametrize("name", DECODERS)
def test_output_embeddings_are_the_input_embeddings_exactly_where_the_checkpoint_says_so(
    name: str, tmp_path: Path
) -> None:
    small = extract(shared_tiny(name, None, "lm"), KEEPS["slim"])
    small.save_pretrained(tmp_path)
    tied = DECODERS[name].tie_word_embeddings
    for model in (shared_tiny(name, None, "lm"), small, type(small).from_pretrained(tmp_path)):
        words = model.backbone.get_input_embeddings()
        assert (model.lm_head.weight is words.weight) == tied
        assert model.get_output_embeddings() is model.lm_head
    assert ("lm_head.weight" in load_file(tmp_path / "model.safetensors")) == (not tied)


def test_a_head_is_a_group_or_a_query_of_every_group() -> None:
    """By hand, for SmolLM2's nine query heads in three groups, and for four in two."""
    nine, four = AttentionShape(groups=3, queries=3, size=64), AttentionShape(groups=2, queries=2, size=4)
    groups, queries = GROUPINGS["groups"], GROUPINGS["queries"]
    assert (groups.units(nine), queries.units(nine)) == (3, 3)
    assert groups.query_heads(nine, [0, 1]) == [0, 1, 2, 3, 4, 5]
    assert groups.key_heads(nine, [0, 1]) == [0, 1]
    assert queries.query_heads(nine, [0, 1]) == [0, 1, 3, 4, 6, 7]
    assert queries.key_heads(nine, [0, 1]) == [0, 1, 2]
    assert groups.query_heads(four, [1]) == [2, 3]
    assert groups.key_heads(four, [1]) == [1]
    assert queries.query_heads(four, [1]) == [1, 3]
    assert (groups.with_units(nine, 2), queries.with_units(nine, 2)) == (
        AttentionShape(2, 3, 64),
        AttentionShape(3, 2, 64),
    )
    assert (groups.with_units(nine, 2).inner, groups.with_units(nine, 2).key_inner) == (384, 128)
    assert (queries.with_units(nine, 2).inner, queries.with_units(nine, 2).key_inner) == (384, 192)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_without_shared_keys_a_head_is_a_head(grouping: str) -> None:
    for name in ("bert", "gpt2", "llama"):
        config = supernet_config(STOCK[name], labels=LABELS, grouping=grouping)
        assert config.layers == [[4, 10]] * 3
        assert config.attention(0, 3) == AttentionShape(groups=3, queries=1, size=4)


@pytest.mark.parametrize("kind", ORIGINAL, ids=lambda kind: kind.__name__)
def test_what_these_tests_compute_more_exactly_is_the_same_in_float32(kind: type[nn.Module]) -> None:
    """tests/tiny.py changes stock modules so that they compute in float64 where the network is in float64."""
    generator = torch.Generator().manual_seed(0)
    if "Norm" in kind.__name__:
        module, inputs = kind(8), (torch.randn(2, 3, 8, generator=generator),)
        nn.init.normal_(module.weight, generator=generator)
    else:
        typed = kind in (Gemma3RotaryEmbedding, ModernBertRotaryEmbedding)
        module = kind(STOCK["gemma3_text" if typed else "llama"])
        inputs = (torch.randn(2, 5, 8, generator=generator), torch.arange(5)[None], *["full_attention"] * typed)
    for ours, theirs in zip(module.forward(*inputs), ORIGINAL[kind](module, *inputs), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", STOCK)
def test_an_extracted_network_has_only_what_is_left(name: str) -> None:
    small = extract(shared_tiny(name), KEEPS["slim"])
    family, shape, width = small.config.family, small.config.attention(0, 2), small.config.backbone[family_width(name)]
    first, second, third = small.backbone.get_submodule(family.layers)
    assert small.config.layers == [[2, 3], [1, 0], [0, 3]]
    assert first.get_submodule(family.query).weight.shape == (shape.inner, width)
    assert first.get_submodule(family.key).weight.shape == (shape.key_inner, width)
    assert first.get_submodule(family.mix).weight.shape == (width, shape.inner)
    assert first.get_submodule(family.up).weight.shape == (3, width)
    assert shape.inner < shared_tiny(name).config.whole(0).attention.inner
    assert not [n for n, _ in second.named_parameters() if n.startswith((family.up, family.down, family.ffn_norm))]
    gone = ("attention", "attn", "self_attn", family.attention_norm)
    assert not [n for n, _ in third.named_parameters() if n.startswith(gone)]
    single = extract(shared_tiny(name), KEEPS["one layer"])
    assert len(single.backbone.get_submodule(family.layers)) == 1
    assert (single.config.layers, single.config.places) == ([[3, 5]], [1])


def family_width(name: str) -> str:
    return FAMILIES[STOCK[name].model_type].width


@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_windows_go_with_their_layers(name: str) -> None:
    types = DECODERS[name].layer_types
    assert len(set(types)) == 2
    once = extract(shared_tiny(name, None, "lm"), (LayerSpec(0, 0), LayerSpec(1, 1), LayerSpec(1, 0)))
    assert once.backbone.config.layer_types == types[1:]
    twice = extract(once, (LayerSpec(0, 0), LayerSpec(1, 0)))
    assert twice.backbone.config.layer_types == types[2:]
    assert twice.config.places == [2]


def test_no_pooler_is_left_over() -> None:
    for name in STOCK:
        assert not [key for key in shared_tiny(name).state_dict() if "pooler" in key]


def test_the_head_ignores_padding_and_averages_the_rest() -> None:
    hidden = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    found = POOLINGS["mean"](hidden, mask)
    for row, expected in zip(found, (hidden[0, :2].mean(0), hidden[1].mean(0)), strict=True):
        centred = expected - expected.mean()
        torch.testing.assert_close(row, centred / centred.square().mean().sqrt(), rtol=0, atol=1e-9)
    assert torch.equal(POOLINGS["cls"](hidden, mask), hidden[:, 0])
    assert torch.isfinite(POOLINGS["mean"](hidden, torch.zeros(2, 4))).all()
    left = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 0]])
    assert torch.equal(POOLINGS["last"](hidden, mask), hidden[[0, 1], [1, 3]])
    assert torch.equal(POOLINGS["last"](hidden, left), hidden[[0, 1], [3, 2]])


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
    assert regression.config.kind == "regression"
    answer = regression(**batch.inputs, labels=targets)
    assert float(answer.loss.detach()) == pytest.approx(float((answer.logits[:, 0] - targets).square().mean().detach()))


def test_choices_spans_and_words_give_a_loss() -> None:
    batch, model = choice_batch("bert"), shared_tiny("bert", None, "choice")
    answer = model(**batch.inputs, labels=batch.targets)
    assert torch.equal(answer.loss, nn.functional.cross_entropy(answer.logits, batch.targets))
    batch, model = span_batch("gpt2"), shared_tiny("gpt2", None, "qa")
    start, end = batch.targets.T
    answer = model(**batch.inputs, start_positions=start, end_positions=end)
    by_hand = (
        nn.functional.cross_entropy(answer.logits[:, 0], start) + nn.functional.cross_entropy(answer.logits[:, 1], end)
    ) / 2
    torch.testing.assert_close(answer.loss, by_hand)
    batch, model = text_batch("llama"), shared_tiny("llama", None, "lm")
    answer = model(**batch.inputs, labels=batch.inputs["input_ids"])
    by_hand = nn.functional.cross_entropy(answer.logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-100)
    torch.testing.assert_close(answer.loss, by_hand)


def test_tokens_that_cannot_be_the_answer_are_ruled_out() -> None:
    model, batch = shared_tiny("distilbert", None, "qa"), span_batch("distilbert")
    answer = model(**batch.inputs)
    allowed = (batch.inputs["attention_mask"] * batch.inputs["context_mask"]).bool()
    assert (answer.logits.transpose(1, 2)[~allowed] == -1e4).all()
    assert (answer.logits.transpose(1, 2)[allowed].abs() < 1e3).all()
    assert torch.equal(answer.logits, torch.stack([answer.start_logits, answer.end_logits], 1))
    everywhere = model(**{k: v for k, v in batch.inputs.items() if k != "context_mask"}).logits
    assert torch.equal(everywhere.transpose(1, 2)[allowed], answer.logits.transpose(1, 2)[allowed])
    assert ((everywhere == -1e4).sum(1) == 2 * (1 - batch.inputs["attention_mask"])).all()


@pytest.mark.parametrize("name", STOCK)
def test_the_config_says_what_the_network_is(name: str) -> None:
    config = supernet_config(STOCK[name], labels=LABELS, pooling="mean")
    assert [units for _, units in config.layers] == [10] * 3
    assert (config.id2label, config.label2id) == ({0: "bad", 1: "fair", 2: "good"}, {"bad": 0, "fair": 1, "good": 2})
    assert (config.pooling, config.problem_type) == ("mean", "single_label_classification")
    assert (config.kind, config.grouping, config.places) == ("classification", "groups", [0, 1, 2])
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
