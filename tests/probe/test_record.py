"""`record` sees what happens inside a network and leaves it as it was."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from archwright.errors import BadInput
from archwright.networks.roles import LayerRoles, Roles
from archwright.probe import LOSSES, PASSES, ROLES, Probe, Signal, record
from tests.probe.toy import BATCH, COUNTS, HEADS, TIME, UNITS, WIDTH, Answer, Toy, toy, toy_batch


def recorded(network: Any, *passes: str, **options: Any) -> Probe:
    generator = torch.Generator().manual_seed(3)
    given = {"counts": COUNTS, "loss": "electra", "generator": generator, "passes": passes} | options
    return record(network, toy_batch(), **given)


def signals(probe: Probe) -> Iterator[tuple[str, Signal]]:
    for layer in probe.layers:
        for role in ROLES:
            found = getattr(layer, role)
            yield from ((role, s) for s in (found if isinstance(found, tuple) else [found]) if s is not None)


def state_of(network: nn.Module) -> dict[str, Any]:
    """Everything a probe might leave changed."""
    return {
        "values": {name: tensor.clone() for name, tensor in network.state_dict().items()},
        "training": [module.training for module in network.modules()],
        "hooks": [
            len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in network.modules()
        ],
        "flags": [parameter.requires_grad for parameter in network.parameters()],
        "gradients": [parameter.grad for parameter in network.parameters()],
        "places": [parameter.data_ptr() for parameter in network.parameters()],
    }


def same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    values = zip(before.pop("values").values(), after.pop("values").values(), strict=True)
    return all(torch.equal(one, other) for one, other in values) and before == after


def mixed_flags(network: Toy) -> Toy:
    """As a user might hand one over: partly in training mode, partly frozen."""
    network.train()
    network.layers[0].eval()
    network.embeddings.weight.requires_grad_(False)
    return network


@pytest.mark.parametrize("name", PASSES)
def test_the_network_is_left_as_it_was(name: str) -> None:
    network = mixed_flags(toy())
    before = state_of(network)
    assert not recorded(network, name).failures
    assert same(before, state_of(network))


@pytest.mark.parametrize("name", PASSES)
def test_the_network_is_left_as_it_was_when_it_breaks_on_the_way(name: str) -> None:
    class Broken(Toy):
        def forward(self, *given: Any, **named: Any) -> Answer:
            super().forward(*given, **named)
            raise RuntimeError("broken on purpose\nand more")

    network = mixed_flags(Broken())
    before = state_of(network)
    probe = recorded(network, name)
    assert "broken on purpose" in probe.failures[name] and "and more" not in probe.failures[name]
    assert same(before, state_of(network))


def test_every_role_is_recorded_in_its_shape() -> None:
    shapes = {
        "output": (BATCH, TIME, WIDTH),
        "pre_activation": (BATCH, TIME, UNITS),
        "activations": (BATCH, TIME, UNITS),
        "projections": (BATCH, TIME, WIDTH),
        "context": (BATCH, TIME, WIDTH),
        "probabilities": (BATCH, HEADS, TIME, TIME),
    }
    found = list(signals(recorded(toy(), "forward")))
    assert len(found) == 2 * (len(ROLES) + 2)
    assert all(tuple(signal.value.shape) == shapes[role] for role, signal in found)
    assert all(signal.gradient is None for _, signal in found)


def test_the_loss_pass_gives_the_same_forward_values_with_gradients() -> None:
    alone, both = recorded(toy(), "forward"), recorded(toy(), "forward", "loss")
    for (role, one), (_, other) in zip(signals(alone), signals(both), strict=True):
        assert torch.equal(one.value, other.value) and not other.value.requires_grad
        assert (other.gradient is not None) == (role in ("output", "activations", "context"))


def test_gradients_are_those_of_an_ordinary_backward_pass() -> None:
    network, batch = toy().eval(), toy_batch()
    probe = recorded(network, "loss")
    network(**batch).loss.backward()
    for weight, parameter in zip(probe.parameters, network.parameters(), strict=True):
        torch.testing.assert_close(weight.gradient, parameter.grad)
    assert probe.layers[0].attention[0].gradient is probe.parameters[1].gradient


def test_the_gradient_at_the_embeddings_agrees_with_differences() -> None:
    network, batch = toy().eval(), toy_batch()
    probe, step = recorded(network, "inputs"), 1e-6
    base = network.embeddings(batch["input_ids"]).detach()

    def loss(embeddings: torch.Tensor) -> float:
        hidden = embeddings
        for layer in network.layers:
            hidden = layer(hidden)
        logits = network.head(hidden).squeeze(-1)
        return functional.binary_cross_entropy_with_logits(logits, batch["labels"].double()).item()

    for place in [(0, 0, 0), (1, 3, 2), (2, 4, 3)]:
        shift = torch.zeros_like(base)
        shift[place] = step
        assert probe.inputs is not None
        assert float(probe.inputs[place]) == pytest.approx(
            (loss(base + shift) - loss(base - shift)) / 2 / step, abs=1e-8
        )


def test_inputs_alone_and_with_the_loss_are_the_same() -> None:
    alone, both = recorded(toy(), "inputs"), recorded(toy(), "inputs", "loss")
    torch.testing.assert_close(alone.inputs, both.inputs)
    assert alone.parameters[0].gradient is None


def test_only_what_is_kept_is_held() -> None:
    probe = recorded(toy(), "forward", keep=("context",))
    assert {role for role, _ in signals(probe)} == {"context"}
    assert probe.layers[0].ffn_input is None


def counted(network: Toy, *passes: str) -> int:
    """How often the network is run."""
    runs = 0

    def note(*_: Any) -> None:
        nonlocal runs
        runs += 1

    handle = network.layers[0].register_forward_hook(note)
    assert not recorded(network, *passes).failures
    handle.remove()
    return runs


@pytest.mark.parametrize(
    ("passes", "runs"),
    [
        (("forward",), 1),
        (("loss",), 1),
        (("forward", "loss", "inputs"), 1),
        (("forward", "loss", "inputs", "noise"), 4),
        (("inputs",), 2),
        (("forward", "inputs"), 2),
        (("loss", "synflow"), 2),
        (tuple(PASSES), 6),
    ],
)
def test_every_pass_runs_once(passes: tuple[str, ...], runs: int) -> None:
    assert counted(toy(), *passes) == runs


def test_forward_runs_nothing_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a backward pass ran")

    monkeypatch.setattr(torch.autograd, "grad", never)
    monkeypatch.setattr(torch.autograd, "backward", never)
    seen = []
    network = toy()
    network.layers[0].register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    recorded(network, "forward")
    assert seen == [False]
    with pytest.raises(AssertionError, match="a backward pass ran"):
        recorded(network, "loss")


def test_recording_repeats_and_another_seed_differs() -> None:
    one, again = recorded(toy(), *PASSES), recorded(toy(), *PASSES)
    other = recorded(toy(), *PASSES, generator=torch.Generator().manual_seed(4))
    assert one.draw == again.draw != other.draw
    for level, found in one.noisy.items():
        assert torch.equal(found, again.noisy[level]) and not torch.equal(found, other.noisy[level])
    assert one.inputs is not None and again.inputs is not None and torch.equal(one.inputs, again.inputs)


def test_which_passes_are_wanted_changes_no_random_number() -> None:
    assert recorded(toy(), "forward").draw == recorded(toy(), *PASSES).draw
    few, many = recorded(toy(), "noise"), recorded(toy(), *PASSES)
    torch.testing.assert_close(few.noisy[10.0], many.noisy[10.0])


def test_no_rounding_noise_flows_through_attention_probabilities() -> None:
    network = toy().float()
    with torch.no_grad():
        network.layers[0].up.weight.mul_(1e6)
    probe = recorded(network, "synflow")
    for layer in probe.layers:
        query, key, value, mix = (float((w.flow * w.value.abs()).sum()) for w in layer.attention)  # type: ignore[operator]
        assert query == key == 0 and value > 0 and mix > 0


def test_the_flow_takes_double_precision_where_single_overflows() -> None:
    network = toy().float()
    with torch.no_grad():
        network.layers[0].up.weight.mul_(1e20)
        network.layers[1].up.weight.mul_(1e20)
    flow = recorded(network, "synflow").layers[0].ffn[0].flow
    assert flow is not None and flow.dtype == torch.float64 and bool(flow.isfinite().all())


def test_a_flow_beyond_double_precision_is_a_failure_with_a_reason() -> None:
    network = toy()
    with torch.no_grad():
        network.layers[0].up.weight.mul_(1e200)
        network.layers[1].up.weight.mul_(1e200)
    assert "overflows" in recorded(network, "synflow").failures["synflow"]


class Cell(nn.Module):
    """A recurrent layer: its linear and its activation are called once per step."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.activation, self.whole = nn.Linear(2 * WIDTH, WIDTH), nn.Tanh(), nn.Identity()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        state, states = hidden.new_zeros(len(hidden), WIDTH), []
        for step in hidden.unbind(1):
            state = self.activation(self.linear(torch.cat([step, state], dim=-1)))
            states.append(state)
        return self.whole(torch.stack(states, dim=1))


class Recurrent(Toy):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Cell(), Cell()])

    def roles(self) -> Roles:
        layers = [
            LayerRoles(output=c.whole, recurrent=(c.linear,), activations=(c.activation,))  # type: ignore[arg-type, list-item]
            for c in self.layers
        ]
        return Roles(self.embeddings, layers)


def test_what_is_called_once_per_step_is_recorded_over_time() -> None:
    probe = recorded(Recurrent(), "loss")
    for layer in probe.layers:
        (activation,), output = layer.activations, layer.output
        assert output is not None and torch.equal(activation.value, output.value)
        assert activation.gradient is not None and activation.gradient.shape == (BATCH, TIME, WIDTH)
    last = probe.layers[-1]
    assert last.output is not None and last.activations[0].gradient is not None and last.output.gradient is not None
    torch.testing.assert_close(last.activations[0].gradient[:, -1], last.output.gradient[:, -1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"passes": ("los",)}, "no pass 'los'"),
        ({"loss": "published_"}, "no loss 'published_'"),
        ({"keep": ("heads",)}, "no role 'heads'"),
        ({"passes": ("noise",), "generator": None}, "needs a generator"),
    ],
)
def test_bad_input(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        record(toy(), toy_batch(), **({"counts": COUNTS, "loss": "electra"} | options))


def test_a_network_without_the_head_of_the_loss() -> None:
    class Headless(Toy):
        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None) -> Answer:
            return super().forward(input_ids)

    with pytest.raises(BadInput, match="no loss for these labels"):
        recorded(Headless(), "loss")


def test_the_published_loss_is_the_sum_of_the_last_hidden_state() -> None:
    network, batch = toy().eval(), toy_batch()
    assert torch.equal(LOSSES["published"](network, batch), network(batch["input_ids"]).last_hidden_state.sum())


def test_ones_through_a_layer_norm_leave_rounding_noise_only() -> None:
    """The demonstration of docs/proxies.md: the published gradient metrics of FlexiBERT are rounding noise."""
    norm, sizes = nn.LayerNorm(256), {}
    hidden = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))
    weight = torch.randn(256, 256, generator=torch.Generator().manual_seed(1)) / 16
    for dtype in (torch.float32, torch.float64):
        w = weight.to(dtype, copy=True).requires_grad_()
        for power in (1, 3):
            output = norm.to(dtype)(hidden.to(dtype) @ w)
            (gradient,) = torch.autograd.grad((output**power).sum(), [w])
            sizes[power, dtype] = float((w * gradient).abs().sum().detach())
    assert sizes[1, torch.float32] > 1e6 * sizes[1, torch.float64]  # ones: what is left depends on the precision
    assert sizes[3, torch.float32] == pytest.approx(sizes[3, torch.float64], rel=1e-4)  # a cube: it does not
