"""FlexiBERT networks: what they answer, what padding does, what a probe finds, and that they save and train."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
import torch
from scipy.fft import dctn
from torch import nn

from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.mixers import MIXERS, cosine, fourier
from archwright.networks.flexibert.network import HEADS, FlexiBertNetwork, build_flexibert, flexibert_counts

torch.set_num_threads(1)
ROWS, TIME, VOCABULARY, WIDTH = 3, 12, 50, 32
LAYERS = tuple((operation, 4, (24, 20, 20), bare) for operation, bare in product(MIXERS, (False, True)))


def config_of(layers: Sequence[Sequence[object]] = LAYERS, **given: object) -> FlexiBertConfig:
    sizes = {"hidden_size": WIDTH, "embedding_size": 16, "vocab_size": VOCABULARY, "max_position_embeddings": TIME}
    return FlexiBertConfig(layers, **{**sizes, **given})


def network_of(layers: Sequence[Sequence[object]] = LAYERS, *, seed: int = 0, **given: object) -> FlexiBertNetwork:
    return build_flexibert(config_of(layers, **given), generator=torch.Generator().manual_seed(seed))


def tokens(seed: int = 0, time: int = TIME) -> torch.Tensor:
    return torch.randint(VOCABULARY, (ROWS, time), generator=torch.Generator().manual_seed(seed))


def lively(network: FlexiBertNetwork) -> FlexiBertNetwork:
    """With weights so large that operators, biases included, show in the answer."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.2)
    return network


def each_operation() -> list[Sequence[object]]:
    return list(LAYERS)


@pytest.mark.parametrize("layer", each_operation(), ids=str)
def test_padding_of_a_row_changes_nothing_for_its_tokens(layer: Sequence[object]) -> None:
    network, ids, lengths = lively(network_of([layer, layer]).double()), tokens(), (12, 7, 1)
    mask = torch.tensor([[place < length for place in range(TIME)] for length in lengths])
    padded = network(ids, attention_mask=mask.long()).last_hidden_state
    for row, length in enumerate(lengths):
        alone = network(ids[row : row + 1, :length]).last_hidden_state[0]
        torch.testing.assert_close(padded[row, :length], alone)


@pytest.mark.parametrize("layer", each_operation(), ids=str)
def test_what_stands_in_the_padding_does_not_matter(layer: Sequence[object]) -> None:
    network, ids = lively(network_of([layer, layer])), tokens()
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    other = torch.where(mask == 1, ids, (ids + 5) % VOCABULARY)
    labels = torch.randint(2, ids.shape)
    one, same = (network(given, labels, attention_mask=mask) for given in (ids, other))
    torch.testing.assert_close(one.last_hidden_state[mask == 1], same.last_hidden_state[mask == 1])
    torch.testing.assert_close(one.loss, same.loss)


@pytest.mark.parametrize("operation", list(MIXERS))
def test_every_operation_mixes_tokens(operation: str) -> None:
    network, ids = lively(network_of([(operation, 2, (16,))])), tokens()
    changed = ids.clone()
    changed[:, 0] = (changed[:, 0] + 1) % VOCABULARY
    before, after = (network(given).last_hidden_state[:, 1] for given in (ids, changed))
    assert (before - after).abs().max() > 1e-4


def test_operations_differ() -> None:
    answers = [lively(network_of([(operation, 2, (16,))]))(tokens()).last_hidden_state for operation in MIXERS]
    assert all((one - other).abs().max() > 1e-3 for i, one in enumerate(answers) for other in answers[:i])


def test_attention_by_hand() -> None:
    network = lively(network_of([("SA/SDP", 2, (16,))]))
    mixer, hidden = network.encoder.layers[0].mixer, torch.randn(ROWS, TIME, WIDTH)
    expected = []
    for part in (slice(0, 16), slice(16, 32)):
        query, key, value = (linear(hidden)[..., part] for linear in (mixer.query, mixer.key, mixer.value))
        expected.append(torch.softmax(query @ key.mT / 4, -1) @ value)
    torch.testing.assert_close(mixer(hidden, None), torch.cat(expected, -1))


def test_multiplicative_attention_is_plain_attention_where_its_matrix_is_one() -> None:
    plain, other = (network_of([(name, 2, (16,))]) for name in ("SA/SDP", "SA/WMA"))
    other.load_state_dict(plain.state_dict(), strict=False)
    nn.init.eye_(other.encoder.layers[0].mixer.weight.weight)
    torch.testing.assert_close(plain(tokens()).last_hidden_state, other(tokens()).last_hidden_state)


def test_span_convolution_by_hand() -> None:
    network = lively(network_of([("DSC/5", 4, (16,))]))
    mixer, hidden = network.encoder.layers[0].mixer, torch.randn(1, TIME, WIDTH)
    weights = mixer.kernel(mixer.span(mixer.near(hidden.mT).mT) * mixer.query(hidden))[0]
    values, place = mixer.values(hidden)[0], 1  # its window begins one token before the text
    expected = []
    for head in range(2):
        share = torch.softmax(weights[place, 5 * head : 5 * head + 5], 0)
        expected.append(share[1:] @ values[:4, 8 * head : 8 * head + 8])
    convolved = mixer(hidden, None)[0, place, WIDTH // 2 :]
    torch.testing.assert_close(convolved, torch.cat(expected))


def test_transforms_against_definitions() -> None:
    rows = torch.randn(2, 3, 7, 8, dtype=torch.float64)
    expected = torch.from_numpy(dctn(rows.numpy(), axes=(-2, -1)))
    torch.testing.assert_close(cosine(rows), expected)
    places = (torch.arange(size, dtype=torch.float64) for size in (7, 8))
    time, features = (torch.exp(-2j * torch.pi / len(place) * torch.outer(place, place)) for place in places)
    torch.testing.assert_close(fourier(rows), (time @ rows.to(torch.complex128) @ features).real)


@pytest.mark.parametrize("loss", list(HEADS))
def test_a_network_survives_its_folder(tmp_path: Path, loss: str) -> None:
    network = network_of(loss=loss)
    network.save_pretrained(tmp_path)
    again = FlexiBertNetwork.from_pretrained(tmp_path).eval()
    assert again.config.plans == network.config.plans
    state = again.state_dict()
    assert state.keys() == network.state_dict().keys()
    assert all(torch.equal(weight, state[name]) for name, weight in network.state_dict().items())
    assert torch.equal(network(tokens()).logits, again(tokens()).logits)


@pytest.mark.parametrize("loss", ["electra", "mlm"])
def test_training_lowers_the_loss_and_reaches_every_weight(loss: str) -> None:
    network, ids = network_of(LAYERS[::2], loss=loss).train(), tokens()
    labels = torch.where(ids < 25, ids % 2, -100)
    optimizer, losses = torch.optim.AdamW(network.parameters(), lr=3e-3), []
    for _ in range(60):
        optimizer.zero_grad()
        losses.append(network(ids, labels).loss)
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.7 * losses[0]
    assert all(weight.grad is not None for weight in network.parameters())


def test_losses_by_hand() -> None:
    ids, labels = tokens(), torch.full((ROWS, TIME), -100)
    labels[0, :3] = torch.tensor([1, 0, 1])
    replaced, masked = (lively(network_of(loss=loss))(ids, labels) for loss in ("electra", "mlm"))
    chance = torch.sigmoid(replaced.logits[0, :3])
    expected = -torch.stack([chance[0], 1 - chance[1], chance[2]]).log().mean()
    torch.testing.assert_close(replaced.loss, expected)
    assert replaced.logits.shape == (ROWS, TIME)
    assert masked.logits.shape == (ROWS, TIME, VOCABULARY)
    rows = masked.logits[0, :3].log_softmax(-1)
    torch.testing.assert_close(masked.loss, -(rows[0, 1] + rows[1, 0] + rows[2, 1]) / 3)


def test_the_gradient_of_the_published_loss_is_zero_but_for_rounding() -> None:
    network = network_of(LAYERS[:2], loss="published").double()
    network(tokens(), tokens()).loss.backward()
    assert max(weight.grad.abs().max() for weight in network.parameters() if weight.grad is not None) > 0
    inside = network.encoder.layers[0].ffn.stack[0].weight.grad
    assert inside.abs().max() < 1e-10


def test_dropout_only_when_training() -> None:
    network = network_of()
    assert torch.equal(network(tokens()).logits, network(tokens()).logits)
    network.train()
    assert not torch.equal(network(tokens()).logits, network(tokens()).logits)


def test_drawn_weights() -> None:
    network = network_of([("SA/WMA", 2, (256,)), ("DSC/9", 2, (256,))], hidden_size=128)
    for module in network.modules():
        for name, weight in module.named_parameters(recurse=False):
            if isinstance(module, nn.LayerNorm) or name == "bias":
                assert torch.equal(weight, torch.full_like(weight, float(name == "weight")))
            elif weight.numel() > 500:
                assert weight.std().item() == pytest.approx(0.02, rel=0.15)
                assert abs(weight.mean().item()) < 0.003


def test_seeds_repeat_and_differ_and_do_not_touch_the_global_one() -> None:
    before = torch.get_rng_state()
    one, same, other = (network_of(seed=seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(weight, same[name]) for name, weight in one.items())
    assert not torch.equal(one["encoder.embeddings.tokens.weight"], other["encoder.embeddings.tokens.weight"])


def test_layers_do_not_depend_on_the_vocabulary() -> None:
    small, large = (network_of(vocab_size=size).encoder.layers.state_dict() for size in (10, 1000))
    assert all(torch.equal(weight, large[name]) for name, weight in small.items())


@pytest.mark.parametrize("layer", each_operation(), ids=str)
def test_counts_are_those_of_the_network(layer: Sequence[object]) -> None:
    config = config_of([layer, layer])
    encoder, counts = build_flexibert(config, generator=torch.Generator()).encoder, flexibert_counts(config)
    tables = sum(table.weight.numel() for table in encoder.modules() if isinstance(table, nn.Embedding))
    assert counts.parameters == sum(weight.numel() for weight in encoder.parameters())
    assert counts.nonembedding == counts.parameters - tables
    assert counts.ffn == 2 * (32 * 24 + 24 + 24 * 20 + 20 + 20 * 20 + 20 + 20 * 32 + 32)
    assert (counts.depth, counts.width) == (2, 32)


def test_operations_of_a_plain_layer_by_hand() -> None:
    counts = flexibert_counts(config_of([("SA/SDP", 2, (64,))]))
    assert counts.attention == 4 * (32 * 32 + 32)
    assert counts.flops == 2 * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 2 * 64 * 32  # linears; scores and context of 64 tokens


class Heard:
    """What modules gave, by module."""

    def __init__(self, modules: Sequence[nn.Module | None]):
        self.given: dict[nn.Module, torch.Tensor] = {}
        self.hooks = [module.register_forward_hook(self.hear) for module in modules if module is not None]

    def hear(self, module: nn.Module, _: object, given: torch.Tensor) -> None:
        self.given[module] = given


@pytest.mark.parametrize("operation", list(MIXERS))
def test_every_role_is_heard_in_its_shape(operation: str) -> None:
    network = network_of([(operation, 4, (24, 20, 20))])
    roles = network.roles()
    (layer,) = roles.layers
    parts = [roles.embeddings, layer.output, layer.pre_activation, *layer.activations, *layer.projections]
    heard = Heard([*parts, layer.context, layer.probabilities])
    hidden = network(tokens()).last_hidden_state
    assert torch.equal(heard.given[layer.output], hidden)
    assert heard.given[roles.embeddings].shape == heard.given[layer.context].shape == (ROWS, TIME, WIDTH)
    assert [heard.given[part].shape[-1] for part in layer.activations] == [24, 20, 20]
    assert heard.given[layer.pre_activation].shape == (ROWS, TIME, 24)
    assert all(heard.given[part].shape[:2] == (ROWS, TIME) for part in layer.projections)
    if layer.probabilities is not None:
        probabilities = heard.given[layer.probabilities]
        assert probabilities.shape == (ROWS, layer.heads // (2 if "DSC" in operation else 1), TIME, TIME)
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(probabilities.shape[:-1]))


@pytest.mark.parametrize("bare", (False, True))
def test_mixed_is_what_the_ffn_is_given(bare: bool) -> None:
    network = lively(network_of([("SA/SDP", 4, (24,), bare)]))
    (layer,), given = network.roles().layers, []
    layer.pre_activation.register_forward_pre_hook(lambda module, inputs: given.append(inputs[0]))
    heard = Heard([layer.mixed])
    network(tokens())
    assert torch.equal(heard.given[layer.mixed], given[0])


@pytest.mark.parametrize(
    ("operation", "projections", "linears"),
    [("SA/SDP", 3, 4), ("SA/WMA", 4, 5), ("LT/DFT", 1, 2), ("LT/DCT", 1, 2), ("DSC/5", 3, 6), ("DSC/9", 3, 6)],
)
def test_how_many_modules_have_a_role(operation: str, projections: int, linears: int) -> None:
    (layer,) = network_of([(operation, 4, (24,))]).roles().layers
    assert (len(layer.projections), len(layer.attention), len(layer.ffn)) == (projections, linears, 2)
    assert (layer.probabilities is None) == operation.startswith("LT")
