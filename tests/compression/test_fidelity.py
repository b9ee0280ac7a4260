"""Honesty of the shared weights: which sub-networks, which weights they start from, what is not done twice."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.finetuning import finetune
from archwright.compression.methods import load_evaluator
from archwright.compression.order import load_reordered_network
from archwright.compression.studies import fidelity
from archwright.compression.studies.fidelity import (
    correlations,
    draw_subnets,
    measure_fidelity,
    measure_pair,
    supernet_epochs,
)
from archwright.compression.validation import validate_fidelity
from archwright.configs.compress import CompressConfig, FidelityOptions
from archwright.configs.options import make_config
from archwright.errors import BadInput
from archwright.search import largest
from archwright.spaces.subnetwork import subnet_space
from archwright.store import RunFolder
from archwright.subnet.extract import extract
from archwright.subnet.spec import sizes
from archwright.training.losses import task_loss
from tests.compression.runs import compressed


@pytest.fixture
def evaluator(run: Any, tmp_path: Path) -> SubnetEvaluator:
    """A copy of the finished run, to work in."""
    shutil.copytree(run.folder.path, tmp_path / "run")
    return load_evaluator(RunFolder(tmp_path / "run"))


def with_options(evaluator: SubnetEvaluator, k: int, epochs: float | None = None) -> SubnetEvaluator:
    """The same for so many sub-networks."""
    context = evaluator.context
    config = replace(context.config, fidelity=FidelityOptions(honesty=k, honesty_epochs=epochs))
    return replace(evaluator, context=replace(context, config=config))


class Trainer:
    """Stands in for the fine-tuning: notes what it is given, and may be interrupted."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen: list[dict[str, torch.Tensor]] = []
        self.epochs: list[float] = []
        self.stop_after = stop_after

    def __call__(self, task_data: Any, network: Any, settings: Any, *, epochs: float) -> Any:
        if len(self.seen) == self.stop_after:
            raise KeyboardInterrupt
        assert settings.epochs == epochs
        self.seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        self.epochs.append(epochs)
        return network


def test_the_drawn_networks_are_different_and_not_empty(evaluator: SubnetEvaluator) -> None:
    few, many = draw_subnets(evaluator.space, 4, 0), draw_subnets(evaluator.space, 12, 0)
    assert many[:4] == few, "asking for more keeps those of before"
    keeps = [evaluator.space.build(config) for config in many]
    assert len(set(keeps)) == 12 and all(any(map(any, sizes(keep))) for keep in keeps)
    assert draw_subnets(evaluator.space, 4, 7) != few and draw_subnets(evaluator.space, 0, 0) == []


def test_a_space_may_be_too_small(evaluator: SubnetEvaluator) -> None:
    layers = subnet_space("layer", evaluator.space.anatomy)
    assert len(draw_subnets(layers, 7, 0)) == 7  # 3 layers: 8 sub-networks, one of them empty
    with pytest.raises(BadInput, match=r"at most 7, .*got 8"):
        draw_subnets(layers, 8, 0)


def test_a_pair_is_of_shared_and_of_own_weights(evaluator: SubnetEvaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer()
    monkeypatch.setattr(fidelity, "finetune", trainer)
    config = largest(evaluator.space.choices)
    part = evaluator.space.build(config)
    inherited, _, share = measure_pair(evaluator, config, 2.0)
    assert inherited == evaluator.context.task_data.error(
        extract(evaluator.network, part), evaluator.context.task_data.validation
    )
    assert share == 1.0 and trainer.epochs == [2.0]
    wanted = extract(load_reordered_network(evaluator.context), part).state_dict()
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in trainer.seen[0].items())
    shared = extract(evaluator.network, part).state_dict()
    assert any(not torch.equal(tensor, shared[name]) for name, tensor in trainer.seen[0].items())


def test_own_weights_are_really_trained(evaluator: SubnetEvaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Any] = []
    monkeypatch.setattr(fidelity, "finetune", lambda *args, **more: trained.append(finetune(*args, **more)))
    _, alone, _ = measure_pair(evaluator, largest(evaluator.space.choices), 6.0)
    assert alone == evaluator.context.task_data.error(trained[0], evaluator.context.task_data.validation)
    with torch.no_grad():
        before, after = (
            sum(
                float(task_loss(network(**b.inputs).logits, b.targets))
                for b in evaluator.context.task_data.training(16, stream=0)(0)
            )
            for network in (load_reordered_network(evaluator.context).eval(), trained[0].eval())
        )
    assert after < before
    frozen = [name for name, parameter in trained[0].named_parameters() if not parameter.requires_grad]
    assert frozen and all("embeddings" in name for name in frozen), "the run's own settings: embeddings stay"


def test_what_was_trained_is_not_trained_again(evaluator: SubnetEvaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "finetune", Trainer(stop_after=2))
    with pytest.raises(KeyboardInterrupt):
        measure_fidelity(with_options(evaluator, 4))
    trainer = Trainer()
    monkeypatch.setattr(fidelity, "finetune", trainer)
    found = measure_fidelity(with_options(evaluator, 4))
    assert len(trainer.seen) == 2 and len(found["pairs"]) == found["k"] == 4
    assert measure_fidelity(with_options(evaluator, 4)) == found and len(trainer.seen) == 2
    assert measure_fidelity(with_options(evaluator, 5))["pairs"][:4] == found["pairs"] and len(trainer.seen) == 3
    measure_fidelity(with_options(evaluator, 3, 0.5))  # another training altogether
    assert len(trainer.seen) == 6 and trainer.epochs[-1] == 0.5


def test_epochs_are_those_of_the_super_network(evaluator: SubnetEvaluator) -> None:
    assert supernet_epochs(evaluator.context) == 6.0
    plan = evaluator.context.run.note("plan")
    evaluator.context.run.note("plan", {**plan, "supernet": plan["supernet"] // 2})
    assert supernet_epochs(evaluator.context) == 3.0


def test_correlations_of_pairs() -> None:
    found = correlations([[0.1, 0.2, 1.0], [0.2, 0.3, 0.5], [0.3, 0.4, 0.2], [0.4, 0.5, 0.1]], seed=0)
    assert found["kendall"] == {"value": 1.0, "low": 1.0, "high": 1.0} and found["spearman"]["value"] == 1.0
    assert correlations([[0.1, 0.5, 1.0], [0.2, 0.5, 0.5]], seed=0) == {
        **(nothing := {"kendall": None, "spearman": None}),
        "size": nothing,
    }
    assert correlations([[0.1, 0.3, 1], [0.2, 0.2, 1], [0.3, 0.1, 1]], seed=0)["kendall"]["value"] == -1.0


def test_wrong_numbers_are_refused() -> None:
    validate_fidelity(FidelityOptions(), method="standard")
    validate_fidelity(FidelityOptions(3, 0.5), method="weight-sharing")
    for k, method, words in (
        (2, "weight-sharing", "at least 3 .*got 2"),
        (5, "standard", "--method standard; take weight-sharing"),
    ):
        with pytest.raises(BadInput, match=words):
            validate_fidelity(FidelityOptions(k), method=method)
    for values, words in (({"honesty": -1}, "not be negative, got -1"), ({"honesty_epochs": 0.0}, "above 0, got 0")):
        with pytest.raises(BadInput, match=words):
            make_config(CompressConfig, values)


def test_the_command_reports_it(tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, honesty=3, honesty_epochs=0.25).result["honesty"]
    assert (found["k"], found["epochs"], len(found["pairs"])) == (3, 0.25, 3)
    assert {"kendall", "spearman"} < set(found)


def test_the_command_refuses_before_anything_is_written(tmp_path: Path, given: dict[str, Any]) -> None:
    for options, words in (({"honesty": 2}, "got 2"), ({"honesty": 9, "space": "layer"}, "at most 7")):
        with pytest.raises(BadInput, match=words):
            compressed(tmp_path / "run", **given, **options)
        assert not (tmp_path / "run").exists()


def test_the_size_alone_stands_beside_the_shared_weights() -> None:
    pairs = [[0.3, 0.40, 0.1], [0.5, 0.30, 0.3], [0.2, 0.20, 0.6], [0.4, 0.10, 0.9]]  # larger is better, always
    found = correlations(pairs, 0)
    assert found["size"]["spearman"]["value"] == found["size"]["kendall"]["value"] == pytest.approx(1)
    assert found["spearman"]["value"] < 0.5
    assert correlations([[s, a, 0.5] for s, a, _ in pairs], 0)["size"]["spearman"] is None
