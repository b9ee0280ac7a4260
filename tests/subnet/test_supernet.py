"""A training step with a fixed teacher: whose loss counts how much, and that no sub-network outweighs the others."""

import numpy as np
import torch

from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import LayerSpec
from archwright.subnet.strategies import STRATEGIES, SubnetDraws, SubnetUpdate
from archwright.subnet.supernet import FixedTeacher, plain_update, supernet_update
from archwright.training.losses import distillation, task_loss
from tests.tiny import tiny, tiny_batch

WHOLE, HALF, SMALL = ((LayerSpec(h, u),) * 3 for h, u in ((4, 10), (2, 5), (1, 2)))
DRAW = SubnetDraws(WHOLE, SMALL, lambda rng, progress: HALF, lambda rng: HALF)
BATCH = tiny_batch("bert", seed=1, texts=4)


def distil(logits: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    return 4 * distillation(logits, answers, 2.0)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def step(model: torch.nn.Module, specs: tuple[object, ...], teacher: FixedTeacher, clip: float | None) -> None:
    update = supernet_update(
        model,
        DRAW,
        lambda draw, rng, progress: [SubnetUpdate(spec, True) for spec in specs],
        loss=task_loss,
        distil=distil,
        teacher=teacher,
        clip=clip,
    )
    update(BATCH, np.random.default_rng(0), 0.5)


def test_labels_and_teacher_have_half_each() -> None:
    model, answers = tiny("bert"), tiny("bert", seed=1)(**BATCH.inputs).logits.detach()
    step(model, (WHOLE, HALF), FixedTeacher(lambda batch: answers, distil), None)
    found = gradients(model)
    model.zero_grad()
    for spec in (WHOLE, HALF):
        with subnetwork(model, spec):
            logits = model(**BATCH.inputs).logits
            loss = 0.5 * torch.nn.functional.cross_entropy(logits, BATCH.targets)
            soft, target = torch.log_softmax(logits / 2, -1), torch.softmax(answers / 2, -1)
            loss = loss + 0.5 * 4 * (target * (target.log() - soft)).sum(-1).mean()
            loss.backward()
    torch.testing.assert_close(found, gradients(model))


def test_every_sub_network_is_clipped_by_itself() -> None:
    model, answers = tiny("bert"), tiny("bert", seed=1)(**BATCH.inputs).logits.detach()
    teacher, clip = FixedTeacher(lambda batch: answers, distil), 0.05
    expected: dict[str, torch.Tensor] = {}
    for spec in (SMALL, HALF, WHOLE):
        model.zero_grad()
        step(model, (spec,), teacher, None)
        assert float(torch.nn.utils.clip_grad_norm_(model.parameters(), clip)) > clip
        for name, gradient in gradients(model).items():
            expected[name] = expected.get(name, 0) + gradient
    model.zero_grad()
    step(model, (SMALL, HALF, WHOLE), teacher, clip)
    torch.testing.assert_close(gradients(model), expected)


def test_gradients_of_earlier_batches_stay() -> None:
    model, answers = tiny("bert"), tiny("bert", seed=1)(**BATCH.inputs).logits.detach()
    teacher = FixedTeacher(lambda batch: answers, distil)
    step(model, (HALF,), teacher, 0.05)
    once = gradients(model)
    step(model, (HALF,), teacher, 0.05)
    torch.testing.assert_close(gradients(model), {name: 2 * gradient for name, gradient in once.items()})


def test_strategy_teacher_has_the_whole_network_in_a_quarter_of_the_steps() -> None:
    rng = np.random.default_rng(0)
    steps = [STRATEGIES["teacher"](DRAW, rng, 0.5) for _ in range(2000)]
    assert all([update.spec for update in updates][-3:] == [SMALL, HALF, HALF] for updates in steps)
    assert all(update.distil for updates in steps for update in updates)
    assert 0.22 < np.mean([len(updates) == 4 for updates in steps]) < 0.28


def test_a_network_alone_learns_from_a_teacher_too() -> None:
    model, answers = tiny("bert"), tiny("bert", seed=1)(**BATCH.inputs).logits.detach()
    plain_update(model, loss=task_loss, teacher=FixedTeacher(lambda batch: answers, distil))(
        BATCH, np.random.default_rng(0), 0.0
    )
    alone = gradients(model)
    model.zero_grad()
    step(model, (WHOLE,), FixedTeacher(lambda batch: answers, distil), None)
    torch.testing.assert_close(alone, gradients(model))
