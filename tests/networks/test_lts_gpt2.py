"""GPT-2 of LiteTransformerSearch: a causal language model as Hugging Face has them, with the roles a probe asks for."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2Model

from archwright.errors import BadInput
from archwright.networks.lts_adaptive import clusters
from archwright.networks.lts_gpt2 import LtsGpt2Config, LtsGpt2ForCausalLM, build_lts_gpt2, count, meta_network

SMALL: dict[str, Any] = {"n_head": [2, 4, 1], "d_inner": [20, 11, 33], "d_model": 16, "n_positions": 24}
VOCABULARY: dict[str, Any] = {"n_token": 50, "cutoffs": [20, 35, 90]}
ENDS: dict[str, dict[str, Any]] = {
    "one softmax": {"d_embed": 16, "n_token": 30},
    "one softmax, projected": {"d_embed": 8, "n_token": 30},
    "clusters of equal vectors": {"d_embed": 16, **VOCABULARY},
    "clusters of equal vectors, projected": {"d_embed": 8, **VOCABULARY},
    "factor 2": {"d_embed": 16, "div_val": 2, **VOCABULARY},
    "factor 4": {"d_embed": 32, "div_val": 4, **VOCABULARY},
    "untied": {"d_embed": 8, "div_val": 2, "tie_weight": False, "tie_projs": [False] * 3, **VOCABULARY},
    "tied": {"d_embed": 8, "div_val": 2, "tie_projs": [True] * 3, **VOCABULARY},
}


def network(ends: str = "factor 2", seed: int = 0) -> LtsGpt2ForCausalLM:
    config = LtsGpt2Config(**SMALL, **ENDS[ends])
    return build_lts_gpt2(config, torch.Generator().manual_seed(seed))


def disturbed(of: LtsGpt2ForCausalLM) -> LtsGpt2ForCausalLM:
    """With large weights everywhere, biases too, so that nothing is hidden by a zero."""
    generator = torch.Generator().manual_seed(7)
    for parameter in of.parameters():
        nn.init.normal_(parameter.data, std=0.4, generator=generator)
    return of.double()


def tokens(of: LtsGpt2ForCausalLM, rows: int = 3, length: int = 12) -> torch.Tensor:
    return torch.randint(of.config.n_token, (rows, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("ends", ENDS)
def test_logits_are_log_probabilities_of_every_token_and_every_weight_learns(ends: str) -> None:
    model = disturbed(network(ends))
    ids = tokens(model)
    answer = model(ids, labels=ids)
    assert answer.logits.shape == (3, 12, model.config.n_token)
    assert torch.allclose(answer.logits.exp().sum(-1), torch.ones(3, 12, dtype=torch.float64))
    expected = nn.functional.cross_entropy(answer.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert torch.allclose(answer.loss, expected)
    answer.loss.backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()] == []


@pytest.mark.parametrize("ends", ENDS)
def test_the_loss_alone_is_the_same_loss_with_the_same_gradients(ends: str) -> None:
    model = disturbed(network(ends))
    ids = tokens(model)
    labels = ids.masked_fill(ids % 7 == 3, -100)
    whole, alone = model(ids, labels=labels).loss, model(ids, labels=labels, loss_alone=True)
    assert alone.logits is None
    assert torch.allclose(alone.loss, whole)
    weights = list(model.parameters())
    for one, other in zip(
        torch.autograd.grad(whole, weights, retain_graph=True), torch.autograd.grad(alone.loss, weights), strict=True
    ):
        assert torch.allclose(one, other)


@pytest.mark.parametrize("ends", ENDS)
def test_the_future_changes_nothing_before_it(ends: str) -> None:
    model = disturbed(network(ends))
    ids = tokens(model)
    other = ids.clone()
    other[:, 7:] = (other[:, 7:] + 3) % model.config.n_token
    one, two = model(ids).logits, model(other).logits
    assert torch.allclose(one[:, :7], two[:, :7], rtol=1e-5, atol=1e-6)
    assert not torch.equal(one[:, 7], two[:, 7])


def test_layers_compute_what_gpt2_computes() -> None:
    """Transformers' own GPT-2 with the same weights, fed the same embeddings, is the reference."""
    config = LtsGpt2Config(n_head=[4, 4], d_inner=[24, 24], d_model=16, d_embed=16, n_token=30, n_positions=24)
    ours = disturbed(build_lts_gpt2(config, torch.Generator().manual_seed(0)))
    shape = GPT2Config(n_embd=16, n_head=4, n_inner=24, n_layer=2, vocab_size=30, n_positions=24)
    theirs = GPT2Model(shape).double().eval()
    with torch.no_grad():
        for new, old in zip(theirs.h, ours.layers, strict=True):
            of = old.attention
            new.attn.c_attn.weight.copy_(torch.cat([of.query.weight, of.key.weight, of.value.weight]).T)
            new.attn.c_attn.bias.copy_(torch.cat([of.query.bias, of.key.bias, of.value.bias]))
            pairs = ((new.attn.c_proj, of.mix), (new.mlp.c_fc, old.ffn.up), (new.mlp.c_proj, old.ffn.down))
            for target, source in pairs:
                target.weight.copy_(source.weight.T)
                target.bias.copy_(source.bias)
            new.ln_1.load_state_dict(old.attention_norm.state_dict())
            new.ln_2.load_state_dict(old.ffn_norm.state_dict())
        theirs.ln_f.load_state_dict(ours.norm.state_dict())
        theirs.wpe.weight.copy_(ours.embeddings.positions.weight)
        ids = tokens(ours)
        expected = theirs(inputs_embeds=ours.embeddings.tokens.tables[0].weight[ids] * 4).last_hidden_state
        assert torch.allclose(ours(ids).last_hidden_state, expected)


def test_the_softmax_is_torchs_adaptive_softmax() -> None:
    """With a neutral first projection and no biases within the later clusters, which torch does not have."""
    model = disturbed(network("factor 2"))
    head, embedding = model.head, model.embeddings.tokens
    reference = nn.AdaptiveLogSoftmaxWithLoss(16, 50, [20, 35], div_value=2, head_bias=True).double()
    with torch.no_grad():
        head.projections["0"].weight.copy_(torch.eye(16))
        head.bias[20:] = 0
        reference.head.weight.copy_(torch.cat([embedding.rows(0), head.choose.weight]))
        reference.head.bias.copy_(torch.cat([head.bias[:20], head.choose.bias]))
        for place, (narrow, out) in enumerate(reference.tail, start=1):
            narrow.weight.copy_(embedding.projection(place).T)
            out.weight.copy_(embedding.rows(place))
        hidden = torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        assert torch.allclose(head(hidden, embedding), reference.log_prob(hidden))


def test_embeddings_of_clusters_are_their_vectors_projected_and_scaled() -> None:
    model = disturbed(network("factor 4"))
    of = model.embeddings.tokens
    assert clusters(model.config) == [(0, 20, 32), (20, 35, 8), (35, 50, 2)]
    for token, place in ((0, 0), (19, 0), (20, 1), (34, 1), (35, 2), (49, 2)):
        row = of.rows(place)[token - of.clusters[place].start]
        projection = of.projection(place)
        assert projection is not None
        assert torch.allclose(of(torch.tensor([[token]]))[0, 0], projection @ row * 4)


def test_a_cache_and_padding_on_the_left_change_no_word() -> None:
    model = disturbed(network())
    ids = tokens(model, length=5)
    expected = model.generate(ids, max_new_tokens=8, do_sample=False, use_cache=False)
    assert expected.shape == (3, 13)
    assert torch.equal(model.generate(ids, max_new_tokens=8, do_sample=False), expected)
    padded, mask = nn.functional.pad(ids, (2, 0)), nn.functional.pad(torch.ones_like(ids), (2, 0))
    written = model.generate(padded, attention_mask=mask, max_new_tokens=8, do_sample=False)
    assert torch.equal(written[:, 2:], expected)


def test_a_saved_network_is_the_same_network(tmp_path: Path) -> None:
    model = disturbed(network("untied")).float()
    ids = tokens(model)
    model.save_pretrained(tmp_path)
    again = LtsGpt2ForCausalLM.from_pretrained(tmp_path)
    assert not again.training
    assert torch.equal(again(ids).logits, model(ids).logits)
    assert again.config.n_head == [2, 4, 1]
    assert again.config.num_hidden_layers == 3


def test_dropout_works_in_training_alone() -> None:
    model = network()
    ids = tokens(model)
    assert torch.equal(model(ids).logits, model(ids).logits)
    model.train()
    torch.manual_seed(0)
    assert not torch.equal(model(ids).logits, model(ids).logits)
    assert model.layers[0].dropout.p == 0.1


def test_weights_come_from_the_generator() -> None:
    one, same, other = network(seed=0), network(seed=0), network(seed=1)
    weights = [dict(model.named_parameters()) for model in (one, same, other)]
    drawn = [name for name, weight in weights[0].items() if weight.std() > 0]
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())
    assert not any(torch.equal(weights[0][name], weights[2][name]) for name in drawn)


def test_first_weights_have_the_published_scales() -> None:
    config = LtsGpt2Config(n_head=[2, 2], d_inner=[256, 256], d_model=128, d_embed=64, div_val=2, n_token=500)
    for model in (build_lts_gpt2(config, torch.Generator().manual_seed(0)), LtsGpt2ForCausalLM(config)):
        layer = model.layers[1]
        stds = {layer.ffn.up: 0.02, layer.attention.key: 0.02, layer.ffn.down: 0.01, layer.attention.mix: 0.01}
        stds |= {model.embeddings.tokens.projections[0]: 0.01, model.embeddings.positions: 0.02}
        for module, std in stds.items():
            assert float(module.weight.detach().std()) == pytest.approx(std, rel=0.05)
        assert not layer.ffn.up.bias.any()
        assert layer.ffn_norm.weight.eq(1).all()


def test_labels_of_minus_100_are_left_out() -> None:
    model = disturbed(network())
    ids = tokens(model, rows=1)
    labels = ids.clone()
    labels[:, 6:] = -100
    assert torch.allclose(model(ids, labels=labels).loss, model(ids[:, :6], labels=ids[:, :6]).loss)


def test_a_row_that_is_too_long_is_refused_in_one_line() -> None:
    model = network()
    with pytest.raises(BadInput, match=r"^a row has at most 24 tokens, got 25; "):
        model(tokens(model, length=25))


def heard(model: LtsGpt2ForCausalLM, modules: dict[str, nn.Module]) -> dict[str, torch.Tensor]:
    """What modules gave in one pass."""
    found: dict[str, torch.Tensor] = {}
    for name, module in modules.items():
        module.register_forward_hook(lambda _, __, output, name=name: found.__setitem__(name, output))
    found["answer"] = model(tokens(model)).last_hidden_state
    return found


def test_roles_give_what_they_promise() -> None:
    model = disturbed(network())
    roles = model.roles()
    layer = roles.layers[1]
    assert layer.pre_activation and layer.context and layer.probabilities
    modules: dict[str, nn.Module] = {"embeddings": roles.embeddings, "output": layer.output, "up": layer.pre_activation}
    modules |= {"activation": layer.activations[0], "context": layer.context, "probabilities": layer.probabilities}
    modules |= {f"projection{n}": module for n, module in enumerate(layer.projections)} | {"last": model.norm}
    found = heard(model, modules)
    for name in ("embeddings", "output", "context", "projection0", "projection1", "projection2"):
        assert found[name].shape == (3, 12, 16)
    assert found["up"].shape == found["activation"].shape == (3, 12, 11)
    assert torch.equal(found["activation"], nn.functional.gelu(found["up"], approximate="tanh"))
    assert found["probabilities"].shape == (3, layer.heads, 12, 12) == (3, 4, 12, 12)
    assert torch.allclose(found["probabilities"].sum(-1), torch.ones(3, 4, 12, dtype=torch.float64))
    assert not found["probabilities"].triu(1).any()
    assert torch.equal(found["last"], found["answer"])


def test_roles_name_all_weights_of_the_layers() -> None:
    model = network()
    sizes = model.sizes()
    layers = model.roles().layers
    assert sum(count(linear) for layer in layers for linear in layer.attention) == sizes["Attn"]
    assert sum(count(linear) for layer in layers for linear in layer.ffn) == sizes["FFN"]


def test_sizes_need_no_memory() -> None:
    shape = meta_network(LtsGpt2Config(n_head=[8] * 16, d_inner=[4096] * 16, d_model=1024, d_embed=512))
    assert {weight.device.type for weight in shape.parameters()} == {"meta"}
    assert shape.sizes()["Attn"] == 16 * 4 * (1024 * 1024 + 1024)
