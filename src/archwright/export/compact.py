"""A pruned network with its real, small tensors and the file that describes it."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from archwright.export.kinds import plain_logits
from archwright.networks import pruned
from archwright.networks.kinds import STOCK_HEADS
from archwright.networks.pruned import PrunedConfig, PrunedNetwork

MODELING = "modeling_archwright"


def write_compact(network: PrunedNetwork, folder: Path) -> None:
    network.save_pretrained(folder)
    shutil.copyfile(pruned.__file__, folder / f"{MODELING}.py")
    config = folder / "config.json"
    values = json.loads(config.read_text(encoding="utf-8")) | {"auto_map": auto_map(network)}
    config.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def auto_map(network: PrunedNetwork) -> dict[str, str]:
    """Which class of the modeling file serves which auto class."""
    auto: str = STOCK_HEADS[network.config.kind].auto.__name__
    served = {"AutoConfig": PrunedConfig.__name__, auto: type(network).__name__}
    return {auto: f"{MODELING}.{ours}" for auto, ours in served.items()}


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
