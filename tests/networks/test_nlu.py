"""NLU networks: what they answer, what padding does, what a probe finds, and that they save and train."""

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModel

from archwright.networks import load  # noqa: F401  it registers our classes
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.network import FlexiBertModel, FlexiBertNetwork
from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.network import (
    BLOCKS,
    HEADS,
    NluModel,
    NluNetwork,
    build_block,
    build_embeddings,
    build_nlu,
)

torch.set_num_threads(1)
ROWS, TIME, VOCABULARY, HEAD_COUNT = 3, 12, 50, 4
LAYERS = [["base", 24], ["mobile", 40], ["mobile", 8], ["base", 8]]


def config_of(**given: object) -> NluConfig:
    sizes = {"layers": LAYERS, "hidden_size": 32, "heads": HEAD_COUNT, "embedding_size": 16, "vocab_size": VOCABULARY}
    return NluConfig(**{**sizes, "max_position_embeddings": TIME, **given})


def network_of(*, seed: int = 0, **given: object) -> NluNetwork:
    return build_nlu(config_of(**given), generator=torch.Generator().manual_seed(seed))


def tokens(seed: int = 0, time: int = TIME) -> torch.Tensor:
    return torch.randint(VOCABULARY, (ROWS, time), generator=torch.Generator().manual_seed(seed))


def lively(network: NluNetwork) -> NluNetwork:
    """With weights so large that every part, biases included, shows in the answer."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.2)
    return network


def heard(module: nn.Module, network: nn.Module, *given: object, **named: object) -> torch.Tensor:
    """What the module gives while the network runs."""
    calls: list[torch.Tensor] = []
    hook = module.register_forward_hook(lambda module, given, output: calls.append(output))
    network(*given, **named)
    hook.remove()
    (found,) = calls
    return found


def test_padding_of_a_row_changes_nothing_for_its_tokens() -> None:
    network, ids, lengths = lively(network_of().double()), tokens(), (12, 7, 1)
    mask = torch.tensor([[place < length for place in range(TIME)] for length in lengths])
    padded = network(ids, attention_mask=mask.long()).last_hidden_state
    for row, length in enumerate(lengths):
        alone = network(ids[row : row + 1, :length]).last_hidden_state[0]
        torch.testing.assert_close(padded[row, :length], alone)


def test_every_token_is_embedded_with_its_neighbours() -> None:
    network = lively(network_of())
    of, ids = network.encoder.embeddings, tokens(time=3)[:1]
    left, middle, right = of.tokens(ids)[0]
    zeros = torch.zeros_like(middle)
    rows = [torch.cat(parts) for parts in ((middle, left, zeros), (right, middle, left), (zeros, right, middle))]
    wide = of.projection(torch.stack(rows)) + of.positions.weight[:3] + of.segments.weight[1]
    segments = torch.ones_like(ids)
    torch.testing.assert_close(of(ids, segments=segments)[0], of.norm(wide))
    with torch.no_grad():
        one, other = (network(ids, token_type_ids=which).last_hidden_state for which in (segments, 0 * segments))
    assert not torch.allclose(one, other)


def written_out(layer: nn.Module, hidden: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
    """Attention and FFN by torch's own attention module, which packs queries, keys and values in one matrix."""
    of, width = layer.attention, layer.attention.width
    reference = nn.MultiheadAttention(width, HEAD_COUNT, kdim=32, vdim=32, batch_first=True).eval()
    with torch.no_grad():
        reference.in_proj_bias.copy_(torch.cat([of.query.bias, of.key.bias, of.value.bias]))
        reference.out_proj.load_state_dict(of.output.state_dict())
        weights = [of.query.weight, of.key.weight, of.value.weight]
        given = nn.functional.multi_head_attention_forward(
            *(part.transpose(0, 1) for part in (hidden @ weights[0].T, hidden, hidden)),
            width,
            HEAD_COUNT,
            None,
            reference.in_proj_bias,
            None,
            None,
            False,
            0.0,
            reference.out_proj.weight,
            reference.out_proj.bias,
            training=False,
            use_separate_proj_weight=True,
            q_proj_weight=torch.eye(width),
            k_proj_weight=weights[1],
            v_proj_weight=weights[2],
        )[0].transpose(0, 1)
        mixed = of.norm(given + stream)
        return layer.ffn.norm(layer.ffn.down(nn.functional.gelu(layer.ffn.up(mixed))) + mixed)


def test_a_base_block_is_bert() -> None:
    layer, hidden = lively(build_block(config_of(), 0, "base-24", seed=0)), torch.randn(2, 5, 32)
    with torch.no_grad():
        torch.testing.assert_close(layer(hidden), written_out(layer, hidden, hidden))


def test_a_mobile_block_has_a_narrow_stream_and_reads_the_wide_state() -> None:
    layer, hidden = lively(build_block(config_of(), 0, "mobile-24", seed=0)), torch.randn(2, 5, 32)
    assert layer.attention.query.weight.shape == (8, 32)
    assert layer.ffn.up.weight.shape == (24, 8)
    with torch.no_grad():
        stream = layer.narrow_norm(layer.narrow(hidden))
        wide = layer.widen(written_out(layer, hidden, stream)) + hidden
        torch.testing.assert_close(layer(hidden), layer.widen_norm(wide))


@pytest.mark.parametrize("masked", (False, True))
def test_one_kernel_and_step_by_step_say_the_same(masked: bool) -> None:
    network, ids = lively(network_of()), tokens()
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    given = {"attention_mask": mask} if masked else {}
    attention = network.encoder.layers[1].attention
    with torch.no_grad():
        fast = network(ids, **given).last_hidden_state
        probabilities = heard(attention.probabilities, network, ids, **given)
    slow = network(ids, **given).last_hidden_state  # a graph in evaluation
    assert probabilities.shape == (ROWS, HEAD_COUNT, TIME, TIME)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-5)


def test_the_kernel_is_taken_unless_somebody_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    network, ids = network_of(layers=LAYERS[:1]), tokens()
    attention, taken = network.encoder.layers[0].attention, []
    at_once = attention.at_once
    monkeypatch.setattr(attention, "at_once", lambda *given: taken.append(1) or at_once(*given))

    def used() -> bool:
        taken.clear()
        network(ids)
        return bool(taken)

    assert not used()  # a probe's graph
    with torch.no_grad():
        assert used()
        hook = attention.probabilities.register_forward_hook(lambda *given: None)
        assert not used()
        hook.remove()
    network.train()
    assert not used()  # dropped probabilities on a CPU
    attention.lost.p = 0.0
    assert used()


def test_gradients_of_both_ways_agree() -> None:
    network, ids = lively(network_of(dropout=0.0)).train(), tokens()
    labels = torch.randint(VOCABULARY, ids.shape, generator=torch.Generator().manual_seed(1))
    weights = list(network.parameters())
    fast = torch.autograd.grad(network(ids, labels).loss, weights, allow_unused=True)
    slow = torch.autograd.grad(network.eval()(ids, labels).loss, weights, allow_unused=True)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_dropout_acts_in_training_alone() -> None:
    network, ids = network_of(), tokens()
    assert torch.equal(network(ids).last_hidden_state, network(ids).last_hidden_state)
    network.train()
    assert not torch.equal(network(ids).last_hidden_state, network(ids).last_hidden_state)


def test_an_exported_graph_serves_rows_of_any_length_with_and_without_padding() -> None:
    body, ids = lively(network_of()).encoder, tokens(time=7)
    rows, time = torch.export.Dim("rows", min=2, max=64), torch.export.Dim("time", min=2, max=TIME)
    shapes = ({0: rows, 1: time},) * 3
    with torch.no_grad():
        given = (ids, torch.ones_like(ids), torch.zeros_like(ids))
        graph = torch.export.export(body, given, dynamic_shapes=shapes, strict=False).module()
        for length in (TIME, 3):
            ids = torch.randint(VOCABULARY, (5, TIME), generator=torch.Generator().manual_seed(3))
            mask = (torch.arange(TIME) < length).long().expand(5, -1)
            one, other = (run(ids, mask, 0 * ids).last_hidden_state for run in (body, graph))
            torch.testing.assert_close(one[:, :length], other[:, :length])


def test_roles_are_complete() -> None:
    network, ids = network_of(), tokens()
    for (_, units), width, layer in zip(LAYERS, (32, 8, 8, 32), network.roles().layers, strict=True):
        assert heard(layer.output, network, ids).shape == (ROWS, TIME, 32)
        assert heard(layer.pre_activation, network, ids).shape == (ROWS, TIME, units)
        assert heard(layer.activations[0], network, ids).shape == (ROWS, TIME, units)
        assert heard(layer.context, network, ids).shape == (ROWS, TIME, width)
        assert heard(layer.mixed, network, ids).shape == (ROWS, TIME, width)
        assert [heard(part, network, ids).shape for part in layer.projections] == [(ROWS, TIME, width)] * 3
        sums = heard(layer.probabilities, network, ids).sum(-1)
        torch.testing.assert_close(sums, torch.ones(ROWS, HEAD_COUNT, TIME))


def test_every_linear_of_a_layer_has_a_role() -> None:
    for layer in network_of().encoder.layers:
        roles = layer.roles()
        linears = [module for module in layer.modules() if isinstance(module, nn.Linear)]
        assert sorted(map(id, (*roles.attention, *roles.ffn))) == sorted(map(id, linears))


def test_mixed_is_what_the_ffn_is_given() -> None:
    network, ids = lively(network_of()), tokens()
    for layer in network.encoder.layers:
        given: list[torch.Tensor] = []
        hook = layer.ffn.register_forward_pre_hook(lambda module, inputs, given=given: given.append(inputs[0]))
        mixed = heard(layer.roles().mixed, network, ids)
        hook.remove()
        assert torch.equal(mixed, given[0])


@pytest.mark.parametrize("loss", HEADS)
def test_the_loss_alone_is_the_loss(loss: str) -> None:
    network, ids = lively(network_of(loss=loss)), tokens()
    mask, labels = torch.ones_like(ids), torch.randint(2, ids.shape, generator=torch.Generator().manual_seed(2))
    mask[1, 7:], labels[:, ::3] = 0, -100
    whole = network(ids, labels, attention_mask=mask)
    alone = network(ids, labels, attention_mask=mask, loss_alone=True)
    assert alone.logits is None and whole.logits is not None
    nothing = network(ids, attention_mask=mask, loss_alone=True)
    assert nothing.logits is None and nothing.loss is None
    assert torch.equal(nothing.last_hidden_state, whole.last_hidden_state)
    torch.testing.assert_close(alone.loss, whole.loss)


@pytest.mark.parametrize("loss", HEADS)
def test_a_few_steps_lower_the_loss(loss: str) -> None:
    network, ids = network_of(loss=loss, dropout=0.0).train(), tokens()
    labels = ids % 2
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    losses = []
    for _ in range(40):
        value = network(ids, labels, loss_alone=True).loss
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_saved_and_loaded_it_answers_the_same(tmp_path: Path) -> None:
    network, ids = lively(network_of()), tokens()
    network.save_pretrained(tmp_path)
    again = NluNetwork.from_pretrained(tmp_path)
    assert again.config.plans == [BlockPlan(*layer) for layer in LAYERS]
    assert torch.equal(again(ids).logits, network(ids).logits)


def test_bodies_are_known_to_transformers(tmp_path: Path) -> None:
    network, ids = lively(network_of()), tokens()
    flexible = FlexiBertNetwork(FlexiBertConfig([("SA/SDP", 2, (8,)), ("DSC/5", 2, (8, 8))], 32, 16, VOCABULARY)).eval()
    for folder, one in (("nlu", network), ("flexibert", flexible)):
        one.save_pretrained(tmp_path / folder)
        body = AutoModel.from_pretrained(tmp_path / folder)
        assert isinstance(body, (FlexiBertModel, NluModel))
        answer = body(ids, output_hidden_states=True)
        assert torch.equal(answer.last_hidden_state, one(ids).last_hidden_state)
        assert len(answer.hidden_states) == 1 + len(one.config.layers)
        assert torch.equal(answer.hidden_states[-1], answer.last_hidden_state)


def test_assembled_of_parts_it_is_the_network_bit_by_bit() -> None:
    config, ids = config_of(), tokens()
    network = network_of(seed=7)
    hidden = build_embeddings(config, seed=7)(ids)
    for place, (kind, units) in enumerate(LAYERS):
        part, whole = build_block(config, place, f"{kind}-{units}", seed=7), network.encoder.layers[place]
        assert part.state_dict().keys() == whole.state_dict().keys()
        assert all(torch.equal(part.state_dict()[name], value) for name, value in whole.state_dict().items())
        hidden = part(hidden)
    assert torch.equal(hidden, network(ids).last_hidden_state)


def test_weights_follow_from_seed_place_and_block() -> None:
    config = config_of()
    first = build_block(config, 0, "base-24", seed=0)
    assert torch.equal(first.ffn.up.weight, build_block(config, 0, "base-24", seed=0).ffn.up.weight)
    for other in (build_block(config, 1, "base-24", seed=0), build_block(config, 0, "base-24", seed=1)):
        assert not torch.equal(first.ffn.up.weight, other.ffn.up.weight)
    assert not torch.equal(
        first.attention.query.weight, build_block(config, 0, "base-8", seed=0).attention.query.weight
    )
    assert first.ffn.up.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not first.ffn.up.bias.any()


def test_common_beginnings_are_the_same_and_the_vocabulary_changes_nothing_else() -> None:
    one, other = network_of(), network_of(layers=[*LAYERS[:2], ["base", 8]], vocab_size=20, loss="electra")
    for name, value in other.encoder.state_dict().items():
        same = not name.startswith(("layers.2.", "embeddings.tokens"))
        if same:
            assert torch.equal(value, one.encoder.state_dict()[name]), name


def test_the_body_alone_has_the_names_of_the_network() -> None:
    body = NluModel(config_of())
    assert body.state_dict().keys() == network_of().encoder.state_dict().keys()
    assert set(BLOCKS) == {"base", "mobile"}
