"""A pruned network with its real, small tensors and the file that describes it."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from archwright.networks import pruned
from archwright.networks.pruned import PrunedConfig, PrunedForSequenceClassification

MODELING = "modeling_archwright"
AUTO_MAP = {
    "AutoConfig": f"{MODELING}.{PrunedConfig.__name__}",
    "AutoModelForSequenceClassification": f"{MODELING}.{PrunedForSequenceClassification.__name__}",
}


def write_compact(network: PrunedForSequenceClassification, folder: Path) -> None:
    network.save_pretrained(folder)
    shutil.copyfile(pruned.__file__, folder / f"{MODELING}.py")
    config = folder / "config.json"
    values = json.loads(config.read_text(encoding="utf-8")) | {"auto_map": AUTO_MAP}
    config.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def load_compact(folder: Path) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The checkpoint by its own copy of the modeling file, not by the project's."""
    return logits_of(AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True))


def logits_of(model: PreTrainedModel) -> Callable[[Mapping[str, Tensor]], Tensor]:
    model.eval()

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.inference_mode():
            logits: Tensor = model(**inputs).logits
        return logits

    return run
