"""ELECTRA (Clark et al. 2020): a small generator fills in hidden tokens, the discriminator says which were replaced."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from archwright.data.batching import Batch
from archwright.data.encoding import NO_TARGET
from archwright.data.text.masking import ELECTRA
from archwright.errors import BadInput
from archwright.random_streams import STUDENT_WEIGHTS
from archwright.random_streams import generator as random_generator
from archwright.spaces.checkpoints import space_of_model
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update, tokens_of
from archwright.training.losses import targets_in, task_loss
from archwright.training.objectives.heads import masked_token_logits
from archwright.training.objectives.pretraining import (
    Losses,
    evaluate_losses,
    load_corpus,
    masked_epochs,
    pretraining_plan,
)
from archwright.training.plan import TrainingContext, TrainingObjective, TrainingPlan
from archwright.training.students import checkpoint_source, load_student

GENERATOR = "generator"
"""Folder of the generator inside a run folder."""
LOSS_WEIGHTS = (1.0, 50.0)
"""Of the generator's loss and of the discriminator's, as published."""


def plan_electra(context: TrainingContext) -> TrainingPlan:
    """Generator and discriminator learn together and share the table of tokens."""
    corpus, recipe = load_corpus(context), context.recipe
    discriminator, weights = corpus.network, (1.0, recipe.discriminator_weight)
    generator = load_generator(context, discriminator).to(context.device)
    both = share_embeddings(generator, discriminator)
    batches, validation = masked_epochs(context, corpus, ELECTRA)

    def losses(batch: Batch, rng: np.random.Generator) -> Losses:
        both_losses = electra_losses(generator, discriminator, batch, rng, SINGLE_PROCESS)
        (generator_loss, detection_loss), tokens = map(float, both_losses), int(batch.inputs["attention_mask"].sum())
        return {
            "loss": (weights[0] * generator_loss + weights[1] * detection_loss, tokens),
            "generator_loss": (generator_loss, targets_in(batch)),
            "discriminator_loss": (detection_loss, tokens),
        }

    return pretraining_plan(
        context,
        corpus,
        model=both,
        extra_networks={GENERATOR: generator},
        batches=batches,
        update=electra_update(generator, discriminator, weights=weights, group=context.group),
        evaluate=partial(evaluate_losses, both, validation, losses),
        facts={"generator_parameters": sum(p.numel() for p in generator.parameters())},
    )


OBJECTIVE = TrainingObjective("electra", "pretraining", plan_electra, head="electra")


def load_generator(context: TrainingContext, discriminator: Any) -> Any:
    """The generator that was trained with this discriminator; else a new one of the same architecture.

    Every width and number of heads of a new one is the discriminator's times the recipe's `generator_size`.
    """
    model, seed = context.config.student.model, context.seed
    folder = Path(checkpoint_source(model)).parent / GENERATOR if model else None
    if folder is not None and (folder / "config.json").is_file():
        return load_student(str(folder), "mlm", seed=seed)
    space = space_of_model(discriminator.config.model_type)
    plan = None if space is None else space.generator_plan(discriminator.config, context.recipe.generator_size)
    if space is None or plan is None:
        name = type(discriminator.config).__name__
        raise BadInput(f"ELECTRA needs a network of the spaces with an encoder, got {name}.")
    return space.plan_network(plan, generator=random_generator(seed, STUDENT_WEIGHTS, 1))


def share_embeddings(generator: Any, discriminator: Any) -> nn.ModuleDict:
    """Both as one module to train, with one table of tokens; the generator's own table is gone."""
    generator.set_input_embeddings(discriminator.get_input_embeddings())
    return nn.ModuleDict({"discriminator": discriminator, "generator": generator})


def electra_update(
    generator: Any,
    discriminator: Any,
    *,
    weights: tuple[float, float] = LOSS_WEIGHTS,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Update:
    """A step of both networks; the loss is the weighted sum. Batches are masked as for `mlm_update`.

    The generator learns from the hidden tokens alone: no gradient goes through what it draws.
    """

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        # Every process draws its own tokens; the first one those of a process alone.
        draws = rng if group.first else np.random.default_rng((*rng.integers(2**32, size=4), group.rank))
        batch = batch.to(discriminator.device)
        generator_loss, detection_loss = electra_losses(generator, discriminator, batch, draws, group)
        loss = weights[0] * generator_loss + weights[1] * detection_loss
        loss.backward()
        return loss.detach()

    return update


def electra_losses(
    generator: Any, discriminator: Any, batch: Any, rng: np.random.Generator, group: ProcessGroup
) -> tuple[torch.Tensor, torch.Tensor]:
    """The generator's, of the hidden tokens, and the discriminator's, of which tokens the generator replaced."""
    hidden = batch.targets != NO_TARGET
    logits = masked_token_logits(generator, batch.inputs, hidden)
    generator_loss = task_loss(logits, batch.targets[hidden], group)
    filled, replaced = fill_in(batch, sample_tokens(logits, rng))
    inputs = {**batch.inputs, "input_ids": filled}
    return generator_loss, replaced_token_loss(discriminator, inputs, replaced, group)


@torch.no_grad()
def sample_tokens(logits: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """One token per row of rows x vocabulary, each with its probability.

    The token at which the summed probabilities pass a random number: one number per row instead of one per logit.
    """
    sums = logits.float().softmax(-1).cumsum(-1)
    draws = torch.from_numpy(rng.random((len(logits), 1), dtype=np.float32)).to(logits.device)
    return torch.searchsorted(sums, draws * sums[:, -1:], right=True)[:, 0].clamp(max=logits.shape[-1] - 1)


def fill_in(batch: Any, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids with these tokens where some were hidden, and whether each is another than the original's."""
    hidden = batch.targets != NO_TARGET
    ids = batch.inputs["input_ids"].clone()
    ids[hidden] = tokens
    return ids, hidden & (ids != batch.targets)


def replaced_token_loss(
    network: Any, inputs: dict[str, torch.Tensor], replaced: torch.Tensor, group: ProcessGroup
) -> torch.Tensor:
    """Mean over all tokens that are not padding of the binary cross-entropy of `replaced`."""
    logits: torch.Tensor = network(**inputs).logits
    mask = inputs.get("attention_mask")
    real = torch.ones_like(replaced) if mask is None else mask.bool()
    losses = binary_cross_entropy_with_logits(logits, replaced.to(logits.dtype), reduction="none")
    return losses.masked_fill(~real, 0.0).sum() / group.count(real.sum(), tokens_of)
