"""A checkpoint becomes a super-network that computes the same, or one clear line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForTokenClassification,
    BertForMaskedLM,
    DebertaV2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    LlamaForCausalLM,
    OPTConfig,
    PreTrainedConfig,
    PreTrainedModel,
    T5Config,
)

from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput
from archwright.networks.families import FAMILIES
from archwright.networks.load import (
    default_pooling,
    freeze_embeddings,
    load_saved_network,
    load_supernet,
    max_length_of,
    network_class,
)
from archwright.networks.pruned import PrunedForSequenceClassification
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import LayerSpec, nonembedding_parameters, parameters
from tests.tiny import (
    BATCHES,
    BY_QUERIES,
    DECODERS,
    ENCODERS,
    LABELS,
    STOCK,
    randomise,
    saved_classifier,
    shared_tiny,
    stock_classifier,
    text_batch,
    tiny,
    tiny_batch,
)

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
UNUSUAL_DECODERS = {
    "gpt2": {
        "activation_function": "relu",
        "layer_norm_epsilon": 0.03,
        "n_inner": None,
        "n_positions": 31,
        "scale_attn_weights": False,
        "resid_pdrop": 0.21,
    },
    "llama-groups": {
        "hidden_act": "gelu",
        "rms_norm_eps": 0.02,
        "max_position_embeddings": 31,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 300.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16,
        },
    },
    "qwen3": {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0}, "attention_dropout": 0.2},
    "mistral": {"hidden_act": "relu", "sliding_window": 5, "rms_norm_eps": 0.04},
}
SLIM = (LayerSpec(2, (1, 3)), LayerSpec(0, 0), LayerSpec(0, 4))


def logits(model: PreTrainedModel, name: str) -> torch.Tensor:
    with torch.no_grad():
        return model(**tiny_batch(name, texts=4, length=9).inputs).logits


@pytest.mark.covering
@pytest.mark.parametrize("labels", [LABELS, ("no", "yes"), ()], ids=["three", "two", "regression"])
@pytest.mark.parametrize("name", STOCK)
def test_a_fine_tuned_checkpoint_gives_the_stock_answers(name: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    stock = saved_classifier(tmp_path, name, labels=labels)
    ours = load_supernet(str(tmp_path), labels=labels)
    assert not ours.training
    assert ours.config.pooling == ("last" if name in DECODERS else "cls")
    assert ours.config.id2label == stock.config.id2label
    assert ours.config.num_labels == max(1, len(labels))
    torch.testing.assert_close(logits(ours, name), logits(stock, name), rtol=0, atol=1e-6)


OTHER_HEADS = [
    *((name, "choice", AutoModelForMultipleChoice) for name in ENCODERS),
    *((name, "qa", AutoModelForQuestionAnswering) for name in STOCK if not name.startswith(("phi3", "gemma"))),
    *((name, "tokens", AutoModelForTokenClassification) for name in STOCK if name != "gemma3_text"),
    *((name, "lm", AutoModelForCausalLM) for name in DECODERS),
]


@pytest.mark.covering
@pytest.mark.parametrize(("name", "kind", "auto"), OTHER_HEADS)
def test_other_heads_give_the_stock_answers_too(name: str, kind: str, auto: type, tmp_path: Path) -> None:
    stock = stock_classifier(name, auto=auto, labels=("no", "yes"))
    stock.save_pretrained(tmp_path)
    grouping = "queries" if name in BY_QUERIES else "groups"
    labels = ("no", "yes") if kind == "tokens" else ()
    ours = load_supernet(str(tmp_path), kind=kind, labels=labels, grouping=grouping)
    assert type(ours) is network_class(kind)
    assert (ours.config.kind, ours.config.grouping) == (kind, grouping)
    inputs = dict(BATCHES[kind](name, texts=4, length=9).inputs)
    inputs.pop("context_mask", None)
    with torch.no_grad():
        expected, found = stock(**inputs), ours(**inputs)
    real = inputs["attention_mask"].bool()
    for key in {"qa": ("start_logits", "end_logits")}.get(kind, ("logits",)):
        a, b = (answer[key][real] if kind in ("qa", "tokens") else answer[key] for answer in (found, expected))
        torch.testing.assert_close(a, b, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", UNUSUAL_DECODERS)
def test_unusual_settings_of_decoders_survive(name: str, tmp_path: Path) -> None:
    stock = stock_classifier(name, auto=AutoModelForCausalLM, **UNUSUAL_DECODERS[name])
    stock.save_pretrained(tmp_path / "stock")
    ours = load_supernet(str(tmp_path / "stock"), kind="lm")
    small = extract(ours, SLIM)
    batch = text_batch(name, length=9).inputs
    for place, model in enumerate((ours, small)):
        model.save_pretrained(tmp_path / str(place))
        again = load_saved_network(tmp_path / str(place))
        assert torch.equal(again(**batch).logits, model(**batch).logits)
        for config in (model.config.stock(), again.config.stock()):
            unusual = {k: v for k, v in UNUSUAL_DECODERS[name].items() if v is not None}
            assert all(getattr(config, key) == value for key, value in unusual.items())
    torch.testing.assert_close(ours(**batch).logits, stock(**batch).logits, rtol=0, atol=2e-5)
    assert dropouts(ours.backbone) == dropouts(stock.base_model)


def test_gpt2_without_a_number_of_units_has_four_times_its_width(tmp_path: Path) -> None:
    saved_classifier(tmp_path, "gpt2", auto=AutoModelForCausalLM, n_inner=None)
    assert read_anatomy(load_supernet(str(tmp_path), kind="lm").config).units == 64


def test_the_way_to_a_stock_state_and_back_changes_nothing() -> None:
    for name in ("gpt2", "llama", "bert"):
        model, family = shared_tiny(name), FAMILIES[STOCK[name].model_type]
        state = model.backbone.state_dict()
        stock = AutoModel.from_config(STOCK[name]).double().eval()
        stock.load_state_dict(family.to_stock(state), strict=name != "bert")  # BERT's has a pooler too
        again = family.from_stock(family.to_stock(state), model.config.backbone)
        assert again.keys() == state.keys()
        assert all(torch.equal(again[key], state[key]) for key in state)
        inputs = tiny_batch(name).inputs
        torch.testing.assert_close(
            stock(**inputs).last_hidden_state, model.backbone(**inputs).last_hidden_state, rtol=0, atol=1e-9
        )


def test_a_checkpoint_writes_as_its_generation_config_says(tmp_path: Path) -> None:
    stock = stock_classifier("llama-groups", auto=AutoModelForCausalLM)
    stock.generation_config.max_new_tokens = 4
    stock.save_pretrained(tmp_path / "stock")
    ours = load_supernet(str(tmp_path / "stock"), kind="lm")
    ids = text_batch("llama-groups", texts=1).inputs["input_ids"]
    assert torch.equal(ours.generate(ids), stock.generate(ids))
    small = extract(ours, SLIM)
    small.save_pretrained(tmp_path / "small")
    for model in (small, load_saved_network(tmp_path / "small")):
        assert model.generation_config.max_new_tokens == 4
        assert model.generation_config.eos_token_id == 2


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


@pytest.mark.covering
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
    assert not torch.equal(one.head.out.weight, other.head.out.weight)
    batch = tiny_batch(name).inputs
    with torch.no_grad():
        torch.testing.assert_close(
            one.backbone(**batch).last_hidden_state, bare.eval()(**batch).last_hidden_state, rtol=0, atol=1e-5
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


def encoder(folder: Path) -> None:
    BertForMaskedLM(STOCK["bert"]).save_pretrained(folder)


def classifier(folder: Path) -> None:
    saved_classifier(folder, "llama")


def bare(folder: Path) -> None:
    GPT2Model(STOCK["gpt2"]).save_pretrained(folder)


HEADLESS: dict[str, Callable[[Path], None]] = {"encoder": encoder, "classifier": classifier, "bare": bare}


@pytest.mark.parametrize("made", HEADLESS.values(), ids=HEADLESS)
def test_language_modelling_needs_a_language_modelling_head(made: Callable[[Path], None], tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(BadInput, match="language-modelling head") as failure:
        load_supernet(str(tmp_path), kind="lm")
    assert "\n" not in str(failure.value)
    assert load_supernet(str(tmp_path), labels=LABELS).config.kind == "classification"


def test_missing_output_embeddings_are_missed_only_where_they_are_not_tied(tmp_path: Path) -> None:
    def without_head(folder: Path) -> None:
        change_tensors(lambda t: {k: v for k, v in t.items() if k != "lm_head.weight"})(folder)

    GPT2LMHeadModel(STOCK["gpt2"]).save_pretrained(tmp_path / "tied")
    LlamaForCausalLM(STOCK["llama"]).save_pretrained(tmp_path / "free")
    without_head(tmp_path / "tied")
    without_head(tmp_path / "free")
    load_supernet(str(tmp_path / "tied"), kind="lm")
    with pytest.raises(BadInput, match="lm_head") as failure:
        load_supernet(str(tmp_path / "free"), kind="lm")
    assert "\n" not in str(failure.value)


def test_the_first_token_of_a_decoder_is_no_summary(tmp_path: Path) -> None:
    bare(tmp_path)
    with pytest.raises(BadInput, match="last or mean"):
        load_supernet(str(tmp_path), labels=LABELS, pooling="cls")
    assert load_supernet(str(tmp_path), labels=LABELS).config.pooling == "last"
    assert load_supernet(str(tmp_path), labels=LABELS, pooling="mean").config.pooling == "mean"


def test_cross_attention_is_refused(tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(**{**STOCK["gpt2"].to_dict(), "add_cross_attention": True})).save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="cross-attention"):
        load_supernet(str(tmp_path), kind="lm")


@pytest.mark.parametrize("name", STOCK)
def test_there_is_room_for_as_many_tokens_as_positions(name: str) -> None:
    room = max_length_of(shared_tiny(name))
    counts_real = ("roberta", "xlm-roberta", "camembert", "mpnet")  # from behind their padding id, 1
    assert room == (22 if name in counts_real else 24)
    ids = torch.full((1, room), 5)
    shared_tiny(name)(input_ids=ids)


@pytest.mark.parametrize(("name", "kind"), [("electra", "qa"), ("gpt2", "lm"), ("llama", "lm"), ("qwen2", "lm")])
def test_frozen_embeddings_get_no_gradient(name: str, kind: str) -> None:
    model = tiny(name, kind=kind)
    freeze_embeddings(model)
    model(**BATCHES[kind](name).inputs).logits.sum().backward()
    frozen = {id(p) for p in model.parameters() if not p.requires_grad}
    assert frozen
    for parameter in model.parameters():
        assert (parameter.grad is None) == (id(parameter) in frozen)
    of = read_anatomy(model.config)
    counted = parameters(of, of.full) - nonembedding_parameters(of, of.full)
    assert sum(p.numel() for p in model.parameters() if id(p) in frozen) == counted
    freeze_embeddings(model, False)
    assert all(p.requires_grad for p in model.parameters())


def test_two_gguf_files_are_one_too_many(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(BadInput, match=r"one \.gguf file, got 2"):
        load_supernet(str(tmp_path), kind="lm")
    (tmp_path / "b.gguf").unlink()
    with pytest.raises(BadInput) as failure:
        load_supernet(str(tmp_path), kind="lm")
    assert "\n" not in str(failure.value)


@pytest.mark.slow
def test_smollm2_in_its_gguf_file(smollm2: Path) -> None:
    """135M parameters, tied; the published sizes: 30 layers, 9 query heads in 3 groups, 1536 units, width 576."""
    source = str(smollm2)
    model, tokenizer = load_supernet(source, kind="lm"), load_tokenizer(source)
    of = read_anatomy(model.config)
    assert (of.layers, of.heads, of.units, of.width, of.full_layers[0].features) == (30, 3, 1536, 576, 3 * 64)
    assert parameters(of, of.full) == sum(p.numel() for p in model.parameters()) == 134_515_008
    assert nonembedding_parameters(of, of.full) == 134_515_008 - 49_152 * 576
    ids = tokenizer("The capital of France is", return_tensors="pt").input_ids
    assert "Paris" in tokenizer.decode(model.generate(ids, max_new_tokens=3, do_sample=False)[0])
    half = extract(model, (LayerSpec((0, 2), 768),) * 30)
    with torch.no_grad(), subnetwork(model, (LayerSpec((0, 2), 768),) * 30):
        torch.testing.assert_close(model(ids).logits, half(ids).logits, rtol=0, atol=1e-4)


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


@pytest.mark.parametrize("config", [T5Config(), OPTConfig()], ids=["t5", "opt"])
def test_another_family_is_refused_with_those_that_work(config: PreTrainedConfig, tmp_path: Path) -> None:
    config.save_pretrained(tmp_path)
    families = ", ".join(sorted(FAMILIES))
    with pytest.raises(BadInput, match=families) as failure:
        load_supernet(str(tmp_path), labels=LABELS)
    assert config.model_type in str(failure.value)
    assert "\n" not in str(failure.value)


REFUSED = {
    "groups": (AlbertConfig(num_hidden_groups=2), "one shared layer, got 2 groups of 1"),
    "convolution": (DebertaV2Config(relative_attention=True, conv_kernel_size=3), "without a convolution"),
    "absolute": (DebertaV2Config(), "with relative_attention"),
    "both ways": (Gemma3TextConfig(use_bidirectional_attention=True), "use_bidirectional_attention"),
}


@pytest.mark.parametrize(("config", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_a_family_cannot_be_is_one_clear_line(config: PreTrainedConfig, reason: str, tmp_path: Path) -> None:
    config.save_pretrained(tmp_path)
    with pytest.raises(BadInput, match=f"{reason}.*; choose") as failure:
        load_supernet(str(tmp_path), labels=LABELS)
    assert "\n" not in str(failure.value)


def test_modernbert_says_whether_its_head_reads_the_mean(tmp_path: Path) -> None:
    stock = saved_classifier(tmp_path, "modernbert", classifier_pooling="mean")
    ours = load_supernet(str(tmp_path), labels=LABELS)
    assert ours.config.pooling == "average"
    torch.testing.assert_close(logits(ours, "modernbert"), logits(stock, "modernbert"), rtol=0, atol=1e-5)


def test_a_missing_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere") as failure:
        load_supernet(str(tmp_path / "nowhere"), labels=LABELS)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("name", STOCK)
def test_a_saved_network_comes_back(name: str, tmp_path: Path) -> None:
    model = tiny(name, pooling="mean", kind="lm" if name in DECODERS else "classification").float()
    for network in (model, extract(model, SLIM), extract(model, (LayerSpec(0, 0),) * 3)):
        network.save_pretrained(tmp_path)
        again = load_saved_network(tmp_path)
        assert not again.training
        assert again.config.layers == network.config.layers
        assert torch.equal(logits(again, name), logits(network, name))


@pytest.mark.parametrize("damage", [cut_weights(900), change_tensors(lambda t: dict(list(t.items())[1:]))])
def test_a_damaged_saved_network_is_one_clear_line(damage: Callable[[Path], None], tmp_path: Path) -> None:
    tiny("bert").float().save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(BadInput) as failure:
        load_saved_network(tmp_path)
    assert "\n" not in str(failure.value)
