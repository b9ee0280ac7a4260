"""Groups of parameters, their learning rates, and AdamW with the numbers of the schedule."""

import pytest
import torch
from torch import nn

from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.loop import train_network
from archwright.training.optimizer import build_optimizer, parameter_groups, rate_factors, set_rates
from archwright.training.schedule import Schedule
from tests.tiny import tiny
from tests.training.cases import CASES, NLU, both, mlm_network
from tests.training.pair import without_dropout


def of(factors: dict[str, float], part: str) -> set[float]:
    found = {round(factor, 9) for name, factor in factors.items() if part in name}
    assert found
    return found


@pytest.mark.parametrize("name", ["bert", "distilbert", "electra-narrow"])
def test_learning_rates_fall_from_the_head_to_the_embeddings(name: str) -> None:
    """As ELECTRA's fine-tuning has it: with three layers the exponents are 5 (embeddings), 4, 3, 2, and 0 (head)."""
    factors = rate_factors(tiny(name), 0.8)
    assert of(factors, "embeddings") == {round(0.8**5, 9)}
    assert [of(factors, f"layer.{place}.") for place in range(3)] == [{round(0.8**k, 9)} for k in (4, 3, 2)]
    assert of(factors, "head") == {1.0}


def test_networks_of_the_spaces_too() -> None:
    factors = rate_factors(mlm_network(NLU), 0.5)
    assert of(factors, "encoder.embeddings") == {0.5**5} and of(factors, "head.") == {1.0}
    assert [of(factors, f"layers.{place}.") for place in range(3)] == [{0.5**4}, {0.5**3}, {0.5**2}]
    whole = rate_factors(nn.ModuleDict({"student": mlm_network(NLU), "projections": nn.Linear(2, 2)}), 0.5)
    assert of(whole, "projections") == {1.0} and of(whole, "student.encoder.layers.0.") == {0.5**4}


def test_without_layer_decay_all_learn_alike() -> None:
    assert set(rate_factors(nn.Linear(2, 2), 1.0).values()) == {1.0}
    assert len(parameter_groups(tiny("bert"), 0.01, 1.0)) == 2
    with pytest.raises(ValueError, match="list of layers"):
        rate_factors(nn.Linear(2, 2), 0.8)


def test_every_parameter_is_in_one_group_with_its_rate() -> None:
    model, schedule = tiny("bert"), Schedule(steps=10, learning_rate=0.5, warmup=0.2, layer_decay=0.8)
    optimizer = build_optimizer(model, schedule)
    assert set_rates(optimizer, 0, schedule) == 0.25
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    grouped = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(grouped) == len(set(grouped)) == len(list(model.parameters()))
    factors = rate_factors(model, 0.8)
    assert all(rates[id(p)] == pytest.approx(0.25 * factors[name]) for name, p in model.named_parameters())


def test_betas_and_eps_are_those_of_the_schedule() -> None:
    """One number, two steps with gradients 1 and 3, by hand."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    slopes = iter((1.0, 3.0))

    def update(*_: object) -> float:
        (model.weight.sum() * next(slopes)).backward()
        return 0.0

    schedule = Schedule(
        steps=2, learning_rate=0.1, warmup=0.0, weight_decay=0.0, clip=100.0, betas=(0.5, 0.8), eps=0.25
    )
    train_network(model, lambda _: [0], update, schedule, seed=0)
    weight, mean, square = 1.0, 0.0, 0.0
    for step, slope in enumerate((1.0, 3.0), 1):
        mean, square = 0.5 * mean + 0.5 * slope, 0.8 * square + 0.2 * slope**2
        weight -= 0.1 * (mean / (1 - 0.5**step)) / ((square / (1 - 0.8**step)) ** 0.5 + 0.25)
    assert float(model.weight.detach()) == pytest.approx(weight, rel=1e-6)


def test_accumulated_batches_are_one_large_batch() -> None:
    found = []
    for accumulate in (1, 2):
        case = CASES["masked"](SINGLE_PROCESS)
        data = case.batches if accumulate == 2 else [both(*case.batches[:2]), both(*case.batches[2:])]
        schedule = Schedule(steps=4, learning_rate=1e-2, accumulate=accumulate)
        train_network(without_dropout(case.model), lambda _, data=data: data, case.update, schedule, seed=0)
        found.append(case.model.state_dict())
    assert all(torch.allclose(value, found[1][name], rtol=1e-7, atol=1e-9) for name, value in found[0].items())
