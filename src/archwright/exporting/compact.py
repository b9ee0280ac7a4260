"""A network with its real, small tensors: a Hugging Face checkpoint with one file for all of its code."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from archwright.exporting.bundle import bundle_classes
from archwright.exporting.exportable import find_exportable
from archwright.exporting.formats import ExportFormat
from archwright.exporting.kinds import plain_logits, task_export
from archwright.networks.families import FAMILIES
from archwright.networks.pruned import PrunedNetwork

MODELING = "modeling_archwright"
"""Name of the file with the code, without its ending."""


def save_checkpoint(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: Path) -> None:
    """A folder that `from_pretrained` and `pipeline` load where the project is not installed.

    With `trust_remote_code=True` for a network of the project, whose code is beside its weights; a stock network is
    saved as it is. Like `save_pretrained` it writes file by file: whoever may be killed writes beside and renames.
    """
    network.save_pretrained(folder)
    record = find_exportable(network)
    if record is not None:
        classes = {"AutoConfig": type(network.config), **record.auto_classes(network)}
        registries = {}
        if isinstance(network, PrunedNetwork):  # of all families it needs its own
            model_type = network.config.backbone["model_type"]
            registries = {"FAMILIES": {model_type: FAMILIES.target(model_type)}}
        code = bundle_classes(list(classes.values()), registries=registries)
        (folder / f"{MODELING}.py").write_text(code, encoding="utf-8")
        file = folder / "config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        config["auto_map"] = {auto: f"{MODELING}.{ours.__name__}" for auto, ours in classes.items()}
        file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def load_compact(folder: Path, kind: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The checkpoint by its own copy of the code, not by the project's, which transformers would prefer here.

    The class is that of the network with its head, or of the body where there is none.
    """
    auto_map = json.loads((folder / "config.json").read_text(encoding="utf-8"))["auto_map"]
    heads = [place for auto, place in auto_map.items() if auto not in ("AutoConfig", "AutoModel")]
    network_class: Any = get_class_from_dynamic_module(heads[0] if heads else auto_map["AutoModel"], folder)
    return run_logits(network_class.from_pretrained(folder), task_export(kind).answer)


def run_logits(
    model: PreTrainedModel, answer: Callable[[Callable[..., Any], Mapping[str, Tensor]], Tensor] = plain_logits
) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """The network as a function from inputs to its answer, without gradients."""
    model.eval()

    def run(inputs: Mapping[str, Tensor]) -> Tensor:
        with torch.inference_mode():
            return answer(model, inputs)

    return run


COMPACT = ExportFormat(
    write=lambda network, folder, batch: save_checkpoint(network, None, folder),
    load=load_compact,
    trust=", trust_remote_code=True",
    otherwise="check that the reference is the network that was extracted",
)
