"""A pruned network with its real, small tensors and the file that describes it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from archwright.export.kinds import plain_logits
from archwright.export.trained import save_trained
from archwright.networks.kinds import STOCK_HEADS
from archwright.networks.pruned import PrunedNetwork


def write_compact(network: PrunedNetwork, folder: Path) -> None:
    save_trained(network, None, folder)


def load_compact(folder: Path, kind: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The checkpoint by its own copy of the modeling file, not by the project's."""
    return logits_of(STOCK_HEADS[kind].auto.from_pretrained(folder, trust_remote_code=True))


def logits_of(
    model: PreTrainedModel, answer: Callable[[Callable[..., Any], Mapping[str, Tensor]], Tensor] = plain_logits
) -> Callable[[Mapping[str, Tensor]], Tensor]:
    model.eval()

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.inference_mode():
            return answer(model, inputs)

    return run
