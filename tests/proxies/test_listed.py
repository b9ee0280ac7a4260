"""What holds for every listed proxy, whatever it computes."""

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from archwright.errors import BadInput
from archwright.networks.roles import LayerRoles, Roles
from archwright.probe import PASSES, ROLES, Probe, record
from archwright.proxies import PROXIES, Unscored, passes_of, roles_of
from archwright.proxies.proxy import PASSES as PASS_NAMES
from archwright.proxies.proxy import ROLES as ALL_ROLES
from tests.probe.test_record import same, state_of
from tests.probe.toy import COUNTS, Toy, toy, toy_batch

ORIGINS = {"count", "published", "own", "discovered"}


class Deeper(Toy):
    """A third layer, for the proxies that name one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers.append(type(self.layers[0])())


def deeper(seed: int = 0) -> Toy:
    torch.manual_seed(seed)
    return Deeper()


def recorded(network: Any, passes: tuple[str, ...], *, seed: int = 3, **options: Any) -> Probe:
    generator = torch.Generator().manual_seed(seed)
    given = {"counts": COUNTS, "loss": "electra", "generator": generator} | options
    return record(network, toy_batch(), passes=passes, **given)


@pytest.mark.parametrize("name", PROXIES)
def test_finite_repeatable_and_the_network_left_alone(name: str) -> None:
    proxy, network = PROXIES[name], deeper()
    before = state_of(network)
    scores = [proxy.measure(recorded(network, proxy.passes, keep=proxy.roles)) for _ in range(2)]
    assert isinstance(scores[0], float) and torch.isfinite(torch.tensor(scores[0]))
    assert scores[0] == scores[1]
    assert same(before, state_of(network))


RANDOM = ("random", "small_noise_jacobian", "large_noise_jacobian_cosine", "more_noised_jacobian")


@pytest.mark.parametrize("name", RANDOM)
def test_another_seed_differs(name: str) -> None:
    one, other = (PROXIES[name].measure(recorded(deeper(), PROXIES[name].passes, seed=seed)) for seed in (3, 4))
    assert one != other


@pytest.mark.parametrize("name", [name for name, proxy in PROXIES.items() if proxy.gradient_free])
def test_gradient_free_proxies_run_nothing_backwards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a backward pass ran")

    monkeypatch.setattr(torch.autograd, "grad", never)
    monkeypatch.setattr(torch.autograd, "backward", never)
    PROXIES[name].measure(recorded(deeper(), PROXIES[name].passes))


def test_measuring_all_from_one_recording_gives_what_each_alone_gives() -> None:
    together = recorded(deeper(), passes_of(PROXIES.values()), keep=roles_of(PROXIES.values()))
    for name, proxy in PROXIES.items():
        alone = proxy.measure(recorded(deeper(), proxy.passes, keep=proxy.roles))
        assert proxy.measure(together) == pytest.approx(alone, rel=2e-3), name  # noise is drawn at float32 gradients


def test_the_list_is_well_formed() -> None:
    assert tuple(PASSES) == PASS_NAMES and ALL_ROLES == ROLES
    for name, proxy in PROXIES.items():
        assert proxy.name == name
        assert proxy.origin in ORIGINS and proxy.description, name
        assert set(proxy.passes) <= set(PASSES) and set(proxy.roles) <= set(ROLES), name
        assert proxy.citation or proxy.origin in ("count", "own"), name
        assert pickle.loads(pickle.dumps(proxy)) == proxy


def test_gradient_free_is_what_the_papers_say() -> None:
    free = {name for name, proxy in PROXIES.items() if proxy.gradient_free}
    assert {"w_pca", "v_pca", "nwot", "attention_confidence", "hidden_covariance_1", "parameters"} <= free
    assert not free & {"snip", "synflow", "jacobian_cosine", "grasp", "small_noise_jacobian", "synaptic_diversity"}


def test_the_list_is_light() -> None:
    code = "import sys, archwright.proxies; print('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "False", done.stderr


class Bare(Toy):
    """Layers of nothing but an identity: no role but the hidden state."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Identity() for _ in range(2))

    def roles(self) -> Roles:
        return Roles(self.embeddings, [LayerRoles(output=layer) for layer in self.layers])


NO_ROLE_NEEDED = (
    "scaling_law",
    "parameters",
    "nonembedding",
    "attention_parameters",
    "ffn_parameters",
    "flops",
    "depth",
    "depth_width",
    "random",
    "synaptic_saliency",
    "hidden_",
    "jacobian_",
    "small_noise",
    "large_noise",
    "more_noised",
)


@pytest.mark.parametrize("name", [n for n in PROXIES if not n.startswith(NO_ROLE_NEEDED) or "_published" in n])
def test_without_its_role_a_proxy_is_unscored_with_a_reason(name: str) -> None:
    with pytest.raises(Unscored, match=r"^\S.*\.$"):
        PROXIES[name].measure(recorded(Bare(), PROXIES[name].passes))


def test_a_layer_without_the_role_contributes_nothing() -> None:
    class Partly(Toy):
        def roles(self) -> Roles:
            first, second = super().roles().layers
            return Roles(self.embeddings, [LayerRoles(output=first.output, ffn=first.ffn), second])

    names = ["v_pca", "softmax_confidence", "head_importance", "synaptic_diversity"]
    torch.manual_seed(0)
    network = Partly()
    passes = ("forward", "loss")
    partly, whole = recorded(network, passes), recorded(as_toy(network), passes)
    for name in names:
        terms, all_terms = (list(PROXIES[name].terms(probe)) for probe in (partly, whole))
        assert terms == pytest.approx(all_terms[len(all_terms) // 2 :]), name


def as_toy(network: Toy) -> Toy:
    """The same weights with all roles."""
    other = Toy()
    other.load_state_dict(network.state_dict())
    return other


def test_without_counts_or_generator() -> None:
    probe = record(toy(), toy_batch())
    for name in ("parameters", "w_pca", "random"):
        with pytest.raises(Unscored, match="give record"):
            PROXIES[name].measure(probe)


def test_a_pass_that_was_not_recorded() -> None:
    with pytest.raises(BadInput, match="needs the loss pass"):
        PROXIES["snip"].measure(recorded(toy(), ("forward",)))


def test_a_pass_that_failed_is_the_reason() -> None:
    class Flowless(Toy):
        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
            if len(input_ids) == 1:
                raise RuntimeError("one example is too few")
            return super().forward(input_ids, labels)

    probe = recorded(Flowless(), ("loss", "synflow"))
    with pytest.raises(Unscored, match="synflow pass does not work on this network: one example is too few"):
        PROXIES["synflow"].measure(probe)
    assert PROXIES["snip"].measure(probe) > 0


@pytest.mark.parametrize("name", ["snip", "v_pca", "synaptic_diversity", "jacobian_covariance", "hidden_covariance_1"])
def test_what_is_not_finite_is_unscored(name: str) -> None:
    network = toy()
    with torch.no_grad():
        network.layers[0].query.weight.fill_(torch.nan)
    with pytest.raises(Unscored):
        PROXIES[name].measure(recorded(network, PROXIES[name].passes))


@pytest.mark.parametrize("name", ["jacobian_covariance", "jacobian_cosine", "hidden_covariance_inputs", "nwot"])
def test_one_example_is_not_enough_to_compare(name: str) -> None:
    proxy = PROXIES[name]
    probe = record(toy(), toy_batch(batch=1), passes=proxy.passes, loss="electra")
    if name == "nwot":
        assert proxy.measure(probe) > 0
        return
    with pytest.raises(Unscored, match="only one"):
        proxy.measure(probe)
