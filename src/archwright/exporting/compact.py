"""A network with its real, small tensors: a Hugging Face checkpoint with one file for all of its code."""

import json
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

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

    The class is that of the network with its head, or of the body where there is none. The code is run from the folder:
    transformers would copy it to the user's cache of modules, which may be read-only and keeps it for good.
    """
    auto_map = json.loads((folder / "config.json").read_text(encoding="utf-8"))["auto_map"]
    heads = [place for auto, place in auto_map.items() if auto not in ("AutoConfig", "AutoModel")]
    name = (heads[0] if heads else auto_map["AutoModel"]).partition(".")[2]
    network_class: Any = getattr(run_module(folder / f"{MODELING}.py"), name)
    return run_logits(network_class.from_pretrained(folder), task_export(kind).answer)


def run_module(file: Path) -> ModuleType:
    """The module in this file, under a name of its own; leaves no compiled copy beside it."""
    source = file.read_text(encoding="utf-8")
    module = ModuleType(f"{MODELING}_{sha256(source.encode()).hexdigest()[:16]}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # where dataclasses look for the names in their annotations
    exec(compile(source, str(file), "exec"), module.__dict__)
    return module


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
    keeps_bfloat16=True,
    trust=", trust_remote_code=True",
    otherwise="check that the reference is the network that was extracted",
)
