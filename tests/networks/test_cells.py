"""Networks of recurrent cells: against a plain loop over nodes, as Hugging Face models, and while training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import leaky_relu

from archwright.errors import BadInput
from archwright.networks.cells.model import CellConfig, CellForCausalLM, build_cells
from archwright.networks.cells.recipe import Recipe, check_recipe, order, states_of

LSTM: Recipe = {
    "i": {"op": "linear", "input": ["x", "h_prev_0"]},
    "j": {"op": "linear", "input": ["x", "h_prev_0"]},
    "f": {"op": "linear", "input": ["x", "h_prev_0"]},
    "o": {"op": "linear", "input": ["x", "h_prev_0"]},
    "i_act": {"op": "activation_tanh", "input": ["i"]},
    "j_act": {"op": "activation_sigm", "input": ["j"]},
    "f_act": {"op": "activation_sigm", "input": ["f"]},
    "o_act": {"op": "activation_sigm", "input": ["o"]},
    "h_new_0": {"op": "elementwise_prod", "input": ["h_new_1_act", "o_act"]},
    "kept": {"op": "elementwise_prod", "input": ["f_act", "h_prev_1"]},
    "added": {"op": "elementwise_prod", "input": ["i_act", "j_act"]},
    "h_new_1": {"op": "elementwise_sum", "input": ["kept", "added"]},
    "h_new_1_act": {"op": "activation_tanh", "input": ["h_new_1"]},
}
EVERYTHING: Recipe = {
    "still": {"op": "linear", "input": ["x"]},
    "still_act": {"op": "activation_leaky_relu", "input": ["still"]},
    "gate": {"op": "linear", "input": ["h_prev_2", "still_act", "x"]},
    "gate_act": {"op": "activation_sigm", "input": ["gate"]},
    "twice": {"op": "linear", "input": ["h_prev_0", "h_prev_0", "h_new_2"]},
    "h_new_0": {"op": "blend", "input": ["gate_act", "twice", "h_prev_1"]},
    "h_new_1": {"op": "activation_tanh", "input": ["gate"]},
    "h_new_2": {"op": "elementwise_sum", "input": ["gate_act", "still_act"]},
    "unused": {"op": "linear", "input": ["h_prev_0", "x"]},
}
FORWARD: Recipe = {"h_new_0": {"op": "linear", "input": ["x"]}}
RECIPES = {"lstm": LSTM, "everything": EVERYTHING, "no memory": FORWARD}
RULES: dict[str, Any] = {
    "elementwise_sum": lambda a, b: a + b,
    "elementwise_prod": lambda a, b: a * b,
    "blend": lambda gate, a, b: gate * a + (1 - gate) * b,
    "activation_tanh": torch.tanh,
    "activation_sigm": torch.sigmoid,
    "activation_leaky_relu": leaky_relu,
}


def small(recipe: Recipe, **changes: Any) -> CellForCausalLM:
    sizes = {"vocab_size": 11, "embedding_size": 5, "hidden_size": 7} | changes
    return build_cells(CellConfig(recipe=recipe, **sizes), torch.Generator().manual_seed(0)).double()


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(11, shape, generator=torch.Generator().manual_seed(seed))


def plain(network: CellForCausalLM, ids: torch.Tensor) -> torch.Tensor:
    """Logits by calling every linear at every step."""
    hidden = network.embeddings(ids)
    for layer in network.layers:
        state = [hidden.new_zeros(len(ids), layer.units) for _ in range(states_of(layer.recipe))]
        outputs = []
        for x in hidden.unbind(1):
            state = plain_step(layer, x, state)
            outputs.append(state[0])
        hidden = torch.stack(outputs, 1)
    return network.decoder(hidden)


def plain_step(layer: Any, x: torch.Tensor, state: list[torch.Tensor]) -> list[torch.Tensor]:
    values = {"x": x} | {f"h_prev_{k}": value for k, value in enumerate(state)}
    for name in order(layer.recipe):
        node = layer.recipe[name]
        inputs = [values[source] for source in node["input"]]
        if f"{name}_" in layer.linears:
            pairs = zip(layer.linears[f"{name}_"], inputs, strict=True)
            values[name] = sum(linear(value) for linear, value in pairs)
        else:
            values[name] = RULES[node["op"]](*inputs)
    return [values[f"h_new_{k}"] for k in range(len(state))]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_logits_are_those_of_a_plain_loop(recipe: Recipe) -> None:
    network, ids = small(recipe), tokens(3, 6)
    torch.testing.assert_close(network(ids).logits, plain(network, ids))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_first_and_second_derivatives_are_those_of_a_plain_loop(recipe: Recipe) -> None:
    network, ids = small(recipe), tokens(3, 6)
    found = derivatives(network, network(ids).logits)
    expected = derivatives(network, plain(network, ids))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def derivatives(network: nn.Module, logits: torch.Tensor) -> list[torch.Tensor | None]:
    weights = list(network.parameters())
    loss = logits[:, :-1].square().logsumexp(-1).mean()  # the last step has no say, as in a language model
    first = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
    product = sum((g * g.detach()).sum() for g in first if g is not None)
    second = torch.autograd.grad(product, weights, allow_unused=True, retain_graph=True)
    again = torch.autograd.grad(loss, weights, allow_unused=True)
    return [*(g.detach() if g is not None else None for g in first), *second, *again]


def test_gradients_of_the_embeddings_alone_leave_later_ones_right() -> None:
    network, ids = small(LSTM), tokens(3, 6)
    loss = network(ids, labels=ids).loss
    torch.autograd.grad(loss, [network.embeddings.weight], retain_graph=True)
    loss.backward()
    expected = small(LSTM)
    expected(ids, labels=ids).loss.backward()
    for ours, theirs in zip(network.parameters(), expected.parameters(), strict=True):
        assert ours.grad is not None and theirs.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_the_loss_is_that_of_the_next_token() -> None:
    network, ids = small(LSTM), tokens(2, 5)
    answer = network(ids, labels=ids)
    expected = nn.functional.cross_entropy(answer.logits[:, :-1].reshape(-1, 11), ids[:, 1:].reshape(-1))
    torch.testing.assert_close(answer.loss, expected)
    assert answer.last_hidden_state.shape == (2, 5, 5)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_carried_states_go_on_where_the_text_was_cut(recipe: Recipe) -> None:
    network, ids = small(recipe), tokens(3, 8)
    first = network(ids[:, :3])
    second = network(ids[:, 3:], state=first.state)
    torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), network(ids).logits)
    assert not any(value.requires_grad for layer in first.state for value in layer)


def test_every_input_of_a_linear_has_a_weight_also_of_unused_ones() -> None:
    network = small(EVERYTHING, num_hidden_layers=1, tie_word_embeddings=False)
    shapes = [tuple(p.shape) for p in network.layers[0].parameters()]
    assert shapes.count((7, 5)) == 3
    assert shapes.count((7, 7)) == 6
    assert shapes.count((7,)) == 4


def test_with_tied_embeddings_the_last_layer_is_as_wide_as_they_are() -> None:
    network = small(LSTM)
    assert [layer.units for layer in network.layers] == [7, 7, 5]
    assert network.decoder.weight is network.embeddings.weight
    assert network.decoder.bias.abs().sum() == 0
    assert [layer.units for layer in small(LSTM, tie_word_embeddings=False).layers] == [7, 7, 7]


def test_initial_weights_repeat_and_stay_within_their_bounds() -> None:
    one, other = small(LSTM), small(LSTM)
    third = build_cells(one.config, torch.Generator().manual_seed(1)).double()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.embeddings.weight, third.embeddings.weight)
    for layer in one.layers:
        largest = max(float(p.detach().abs().max()) for p in layer.parameters())
        assert 0.9 * layer.units**-0.5 < largest <= layer.units**-0.5
    assert float(one.embeddings.weight.detach().abs().max()) <= 0.1


def test_saved_and_loaded_it_answers_the_same(tmp_path: Path) -> None:
    network, ids = small(EVERYTHING), tokens(2, 4)
    network.save_pretrained(tmp_path)
    loaded = CellForCausalLM.from_pretrained(tmp_path, dtype=torch.float64)
    assert loaded.config.recipe == EVERYTHING
    assert loaded.decoder.weight is loaded.embeddings.weight
    assert torch.equal(loaded.eval()(ids).logits, network(ids).logits)


def test_built_the_usual_way_it_has_the_same_kind_of_weights() -> None:
    network = CellForCausalLM(CellConfig(recipe=LSTM, vocab_size=11, embedding_size=5, hidden_size=7))
    assert float(network.embeddings.weight.detach().abs().max()) <= 0.1
    assert float(network.layers[0].linears["i_"][0].bias.detach().abs().sum()) > 0


@pytest.mark.parametrize("kind", ["embedding", "input", "hidden", "output", "weight"])
def test_each_dropout_works_while_training_only(kind: str) -> None:
    off = {f"{other}_dropout": 0.0 for other in ("embedding", "input", "hidden", "output", "weight")}
    network, ids = small(LSTM, **off | {f"{kind}_dropout": 0.5}), tokens(4, 6)
    expected = network(ids).logits
    torch.manual_seed(0)
    assert not torch.equal(network.train()(ids).logits, expected)
    assert torch.equal(network.eval()(ids).logits, expected)
    assert torch.equal(small(LSTM, **off).train()(ids).logits, expected)


def test_unit_dropout_is_the_same_at_all_steps() -> None:
    network = small(LSTM, hidden_dropout=0.0, output_dropout=0.5, weight_dropout=0.0, input_dropout=0.0).train()
    zeros = network(tokens(4, 6)).last_hidden_state == 0
    assert zeros.any()
    assert torch.equal(zeros, zeros[:, :1].expand_as(zeros))


def test_roles_give_the_states_and_activations_of_every_layer() -> None:
    network, ids = small(EVERYTHING), tokens(3, 6)
    roles, heard = network.roles(), {}
    taps = [tap for layer in roles.layers for tap in (layer.output, *layer.activations)]
    for tap in taps:
        tap.register_forward_hook(lambda module, given, output: heard.setdefault(module, []).append(output))
    answer = network(ids, labels=ids)
    assert [len(layer.recurrent) for layer in roles.layers] == [9, 9, 9]
    assert torch.equal(heard[roles.layers[-1].output][0], answer.last_hidden_state)
    assert [heard[layer.output][0].shape[-1] for layer in roles.layers] == [7, 7, 5]
    still, gate, _ = (heard[tap] for tap in roles.layers[0].activations)
    assert [tuple(value.shape) for value in still] == [(3, 6, 7)]
    assert [tuple(value.shape) for value in gate] == [(3, 7)] * 6
    gradients = torch.autograd.grad(answer.loss, [still[0], *gate[:-1]])
    assert all(float(gradient.abs().sum()) > 0 for gradient in gradients)


def test_a_tiny_language_model_learns() -> None:
    sizes = {"vocab_size": 7, "embedding_size": 16, "num_hidden_layers": 1, "input_dropout": 0.1}
    network = small(LSTM, **sizes).float().train()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    text = torch.arange(7).repeat(40).reshape(4, 70)
    torch.manual_seed(0)
    losses, state = [], None
    for step in range(30):
        piece = text[:, 14 * (step % 5) :][:, :14]
        answer = network(piece, labels=piece, state=state if step % 5 else None)
        optimizer.zero_grad()
        answer.loss.backward()
        optimizer.step()
        losses.append(float(answer.loss.detach()))
        state = answer.state
    assert losses[-1] < 0.7 * losses[0]


def node(op: str, *inputs: str) -> dict[str, Any]:
    return {"op": op, "input": list(inputs)}


BAD: dict[str, Any] = {
    "must name its nodes": [],
    "a node's name must be a word": {"x": node("linear", "h_prev_0")},
    "must have op and input": {"h_new_0": {"op": "linear"}},
    "h_new_0 has the op 'conv'; choose from linear": {"h_new_0": node("conv", "x")},
    "h_new_0 must have 3 inputs, got 2": {"h_new_0": node("blend", "h_prev_0", "h_prev_0")},
    "h_new_0 must have 1 or 2 or 3 inputs, got 4": {"h_new_0": node("linear", *["x"] * 4)},
    "h_new_0 reads x, whose width": {"h_new_0": node("activation_tanh", "x")},
    "must have a list of names": {"h_new_0": {"op": "linear", "input": "x"}},
    "reads 'h_prev_1', which is neither": {"h_new_0": node("linear", "x", "h_prev_1")},
    "reads 'y', which is neither": {"h_new_0": node("linear", "x", "y")},
    "got none": {"node_0": node("linear", "x")},
    "got h_new_1": {"h_new_1": node("linear", "x")},
    "without a gap, got h_new_0, h_new_2": {f"h_new_{k}": node("linear", "x") for k in (0, 2)},
    "up to h_new_2": {f"h_new_{k}": node("linear", "x") for k in range(4)},
    "no circle, got": {"a": node("linear", "b"), "b": node("linear", "a"), "h_new_0": node("linear", "x", "a")},
}


@pytest.mark.parametrize(("reason", "recipe"), BAD.items(), ids=BAD)
def test_what_is_no_recipe_is_refused(reason: str, recipe: Any) -> None:
    with pytest.raises(BadInput, match=reason) as raised:
        check_recipe(recipe)
    assert "\n" not in str(raised.value)


def test_nodes_may_be_called_like_methods() -> None:
    recipe = {"pop": node("linear", "x", "h_prev_0"), "h_new_0": node("activation_tanh", "pop")}
    assert small(recipe)(tokens(2, 3)).logits.shape == (2, 3, 11)
