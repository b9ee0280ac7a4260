"""A pruned network with its real, small tensors and the file that describes it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from archwright.exporting.kinds import KINDS, plain_logits
from archwright.exporting.trained import save_trained


def write_compact(network: PreTrainedModel, folder: Path) -> None:
    save_trained(network, None, folder)


def load_compact(folder: Path, kind: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The checkpoint by its own copy of the code, not by the project's, which transformers would prefer here."""
    return logits_of(own_class(folder).from_pretrained(folder), KINDS[kind].answer)


def own_class(folder: Path) -> Any:
    """The class in the folder for the network with its head, or for the body where there is none."""
    served = json.loads((folder / "config.json").read_text(encoding="utf-8"))["auto_map"]
    heads = [place for auto, place in served.items() if auto not in ("AutoConfig", "AutoModel")]
    return get_class_from_dynamic_module(heads[0] if heads else served["AutoModel"], folder)


def logits_of(
    model: PreTrainedModel, answer: Callable[[Callable[..., Any], Mapping[str, Tensor]], Tensor] = plain_logits
) -> Callable[[Mapping[str, Tensor]], Tensor]:
    model.eval()

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.inference_mode():
            return answer(model, inputs)

    return run
