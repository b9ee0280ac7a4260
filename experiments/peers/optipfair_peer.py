"""Peer optipfair (Apache 2.0) on SmolLM2: narrower GLU layers, or fewer layers, then fine-tuning on WikiText-2.

`optipfair-width` prunes units by the package's data-driven score (weights times activations on calibration blocks);
`optipfair-depth` removes the layers that change their input least. Perplexities are recorded after pruning alone
(calibration only) and after fine-tuning; the minutes are shared by the sizes.
"""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import optipfair
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, PreTrainedModel

from experiments.peers.job import Job, TimeBudget, job_from_arguments

LEARNING_RATE = 1e-4
BATCH_SIZE = 4
CALIBRATION_BLOCKS = 64
EPOCHS = 1


def prune_and_finetune(job: Job) -> None:
    budget, source = TimeBudget.of(job, original=False), job.facts()["pretrained"]
    train, test = (np.load(job.rows / f"{name}.npz") for name in ("train", "test"))
    networks, losses, whole = [], {}, None
    for done, size in enumerate(job.sizes):
        model = load_decoder(source)
        if whole is None:
            whole = prunable_parameters(model)
            losses["original"] = block_losses(model, test)
            networks.append(describe(model, whole, "original", losses))
        with budget.spending():
            prune(model, job, size / 100, calibration(train, job.seed))
        for name in (f"{size}%-calibrated", f"{size}%"):
            steps = 0
            if not name.endswith("calibrated"):
                steps = finetune(model, train, budget, seconds=budget.share(len(job.sizes) - done), seed=job.seed)
            losses[name] = block_losses(model, test)
            networks.append(describe(model, whole, name, losses, steps=steps))
    job.save(networks, losses, version=version("optipfair"))


def load_decoder(source: str) -> PreTrainedModel:
    """The checkpoint in float32, also where its folder holds a single GGUF file, as that of the package does."""
    packed = sorted(Path(source).glob("*.gguf"))
    options = {"gguf_file": packed[0].name} if packed else {}
    return AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, **options).eval()


def prunable_parameters(model: PreTrainedModel) -> int:
    """All but the embeddings, which the output shares."""
    return sum(p.numel() for p in model.parameters()) - model.get_input_embeddings().weight.numel()


def describe(model: PreTrainedModel, whole: int, name: str, losses: dict[str, Any], **more: Any) -> dict[str, Any]:
    size, layers = model.config.head_dim, model.model.layers
    return {
        "name": name,
        "share": prunable_parameters(model) / whole,
        "layers": [[each.self_attn.k_proj.out_features // size, each.mlp.up_proj.out_features] for each in layers],
        "perplexity": float(np.exp(losses[name].mean())),
        **more,
    }


def calibration(blocks: Any, seed: int) -> "DataLoader[dict[str, torch.Tensor]]":
    """Some training blocks as the package reads them."""
    chosen = np.random.default_rng((seed, 5)).permutation(len(blocks["ids"]))[:CALIBRATION_BLOCKS]
    rows: list[Any] = [{"input_ids": torch.from_numpy(ids)} for ids in blocks["ids"][chosen]]
    return DataLoader(rows, batch_size=BATCH_SIZE)


def prune(model: PreTrainedModel, job: Job, share: float, blocks: "DataLoader[dict[str, torch.Tensor]]") -> None:
    """To this share of the parameters outside of the embeddings, by the package's own functions."""
    surplus, layers = (1 - share) * prunable_parameters(model), model.model.layers
    if job.method == "optipfair-depth":
        scores = optipfair.analyze_layer_importance(model, blocks, show_progress=False)
        number = round(surplus / sum(p.numel() for p in layers[0].parameters()))
        chosen = sorted(sorted(scores, key=scores.__getitem__)[:number])
        optipfair.prune_model(model, pruning_type="DEPTH", layer_indices=chosen, show_progress=False)
    else:
        units = sum(p.numel() for layer in layers for p in layer.mlp.parameters())
        optipfair.prune_model(
            model,
            pruning_type="MLP_GLU",
            neuron_selection_method="MAW",
            pruning_percentage=100 * surplus / units,
            dataloader=blocks,
            show_progress=False,
        )


def finetune(model: PreTrainedModel, blocks: Any, budget: TimeBudget, *, seconds: float, seed: int) -> int:
    """The steps done until the seconds or an epoch are over; embeddings stay, as in `archwright compress`."""
    model.get_input_embeddings().requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=0.01, fused=True)
    order = list(epoch(len(blocks["ids"]), np.random.default_rng((seed, 4))))
    ids, targets = blocks["ids"], blocks["targets"]
    begun, step, most = budget.spent, 0, EPOCHS * len(order)
    model.train()
    while (progress := max(step / most, (budget.spent - begun) / max(seconds, 1e-9))) < 1:
        with budget.spending():
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min(max(progress, 1 / most) / 0.1, (1 - progress) / 0.9, 1.0)
            rows = order[step % len(order)]
            logits = model(input_ids=torch.from_numpy(ids[rows]), use_cache=False).logits
            nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(targets[rows]).flatten()).backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
    model.eval()
    return step


def epoch(number: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    order = rng.permutation(number)
    return (order[start : start + BATCH_SIZE] for start in range(0, number - BATCH_SIZE + 1, BATCH_SIZE))


def block_losses(model: PreTrainedModel, blocks: Any) -> np.ndarray:
    """Mean loss per token of every block."""
    losses = []
    with torch.inference_mode():
        for ids, targets in zip(blocks["ids"], blocks["targets"], strict=True):
            logits = model(input_ids=torch.from_numpy(ids[None]), use_cache=False).logits[0]
            losses.append(float(nn.functional.cross_entropy(logits, torch.from_numpy(targets))))
    return np.array(losses)


if __name__ == "__main__":
    prune_and_finetune(job_from_arguments())
