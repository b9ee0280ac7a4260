"""The one-shot super-network: its paths are the ordinary networks, and training one leaves the others alone."""

from pathlib import Path

import pytest
import torch
from torch import nn

from archwright.errors import BadInput, Failed
from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.network import build_nlu
from archwright.networks.nlu.supernet import (
    NluSupernet,
    NluSupernetConfig,
    build_nlu_supernet,
    extract_path,
    extract_path_body,
    path,
)

torch.set_num_threads(1)
WORDS = ("mobile-8", "mobile-16", "base-8", "base-16")
SIZES = {"hidden_size": 16, "heads": 2, "embedding_size": 8, "vocab_size": 30, "max_position_embeddings": 10}
ONE = {"block.0": "base-16", "block.1": "mobile-8", "block.2": "mobile-16"}
OTHER = {"block.0": "base-16", "block.1": "base-8", "block.2": "mobile-16"}
IDS = torch.randint(30, (4, 10), generator=torch.Generator().manual_seed(0))


def supernet_of(seed: int = 0) -> NluSupernet:
    config = NluSupernetConfig([WORDS] * 3, **SIZES)
    return build_nlu_supernet(config, generator=torch.Generator().manual_seed(seed))


def trained(supernet: NluSupernet, design: dict[str, str], optimizer: torch.optim.Optimizer) -> None:
    with path(supernet, design):
        loss = supernet(IDS, IDS, loss_alone=True).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def test_every_path_is_the_untrained_network_of_the_seed() -> None:
    supernet = supernet_of(5)
    for design in (ONE, OTHER):
        layers = [BlockPlan.read(word) for word in design.values()]
        network = build_nlu(NluConfig(layers, **SIZES), generator=torch.Generator().manual_seed(5))
        with torch.no_grad(), path(supernet, design):
            assert torch.equal(supernet(IDS).logits, network(IDS).logits)


def test_a_path_taken_out_answers_as_it_did_inside() -> None:
    supernet = supernet_of().train()
    optimizer = torch.optim.AdamW(supernet.parameters(), lr=1e-2)
    for design in (ONE, OTHER, ONE):
        trained(supernet, design, optimizer)
    supernet.eval()
    with torch.no_grad(), path(supernet, ONE):
        inside = supernet(IDS, IDS)
    with torch.no_grad():
        outside = extract_path(supernet, ONE)(IDS, IDS)
        body = extract_path_body(supernet.encoder, ONE)(IDS)
    torch.testing.assert_close(outside.logits, inside.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(outside.loss, inside.loss, rtol=0, atol=1e-6)
    torch.testing.assert_close(body.last_hidden_state, inside.last_hidden_state, rtol=0, atol=1e-6)


def test_what_is_taken_out_has_weights_of_its_own() -> None:
    supernet = supernet_of()
    network = extract_path(supernet, ONE)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    assert supernet.encoder.layers[0].blocks["base-16"].ffn.up.weight.any()
    assert supernet.encoder.embeddings.tokens.weight.any()


def test_training_touches_the_active_path_alone() -> None:
    supernet = supernet_of().train()
    optimizer = torch.optim.AdamW(supernet.parameters(), lr=1e-2, weight_decay=0.1)
    trained(supernet, OTHER, optimizer)  # leaves moments behind that must not move what rests afterwards
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    trained(supernet, ONE, optimizer)
    changed = {name for name, value in supernet.state_dict().items() if not torch.equal(value, before[name])}
    active = tuple(f"encoder.layers.{place}.blocks.{ONE[f'block.{place}']}." for place in range(3))
    assert changed
    assert all(name.startswith((*active, "encoder.embeddings.", "head.")) for name in changed)
    assert all(any(name.startswith(prefix) for name in changed) for prefix in active)


def test_a_path_ends_with_its_block_also_on_error() -> None:
    supernet = supernet_of()
    with pytest.raises(Failed, match="one path at a time"):
        supernet(IDS)
    with path(supernet, ONE):
        with path(supernet, OTHER):
            inner = supernet(IDS).logits
        outer = supernet(IDS).logits
    assert not torch.equal(inner, outer)
    with pytest.raises(ZeroDivisionError), path(supernet, ONE):
        _ = 1 / 0
    with pytest.raises(Failed):
        supernet(IDS)


def test_a_block_that_is_not_there_is_refused_before_anything_changes() -> None:
    supernet = supernet_of()
    with (
        pytest.raises(BadInput, match=r"block\.2 must be one of mobile-8, .* got 'base-99'"),
        path(supernet, {**ONE, "block.2": "base-99"}),
    ):
        pass
    assert supernet.encoder.layers[0].active is None


def test_a_path_may_run_under_another_head() -> None:
    class Sorted(nn.Module):
        def __init__(self, body: nn.Module):
            super().__init__()
            self.body, self.out = body, nn.Linear(16, 3)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.out(self.body(ids).last_hidden_state[:, 0])

    supernet = supernet_of()
    model = Sorted(supernet.encoder)
    with torch.no_grad(), path(model, ONE):
        inside = model(IDS)
    model.body = extract_path_body(supernet.encoder, ONE)
    torch.testing.assert_close(model(IDS), inside, rtol=0, atol=1e-6)


def test_roles_are_those_of_the_path() -> None:
    supernet = supernet_of()
    with path(supernet, ONE):
        units = [layer.pre_activation.out_features for layer in supernet.roles().layers]
    assert units == [16, 8, 16]


def test_it_is_saved_with_all_its_blocks(tmp_path: Path) -> None:
    supernet = supernet_of()
    supernet.save_pretrained(tmp_path)
    again = NluSupernet.from_pretrained(tmp_path)
    with torch.no_grad(), path(supernet, ONE), path(again, ONE):
        assert torch.equal(again(IDS).logits, supernet(IDS).logits)
