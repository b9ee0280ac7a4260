"""A network as `train` and `design` have it, as a Hugging Face checkpoint with one file for all of its code."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from archwright.exporting.bundle import bundled
from archwright.networks.cells import CellForCausalLM
from archwright.networks.families import FAMILIES
from archwright.networks.flexibert import FlexiBertModel, FlexiBertNetwork
from archwright.networks.lts_gpt2 import LtsGpt2ForCausalLM
from archwright.networks.nlu import NluModel, NluNetwork
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import STOCK_HEADS

MODELING = "modeling_archwright"
"""Name of the file with the code, without its ending."""
Served = Mapping[str, type]
"""Auto classes of transformers, and the class of ours that each of them gives."""


def pruned_serves(network: PreTrainedModel) -> Served:
    return {STOCK_HEADS[network.config.kind].auto.__name__: type(network)}


def causal_serves(network: PreTrainedModel) -> Served:
    return {"AutoModelForCausalLM": type(network)}


def body_serves(network: PreTrainedModel) -> Served:
    return {"AutoModel": type(network)}


PRETRAINED = {"mlm": "AutoModelForMaskedLM", "electra": "AutoModelForPreTraining"}
"""The auto class of a network by the loss it was pre-trained with."""


def encoder_serves(body: type) -> Callable[[PreTrainedModel], Served]:
    def serves(network: PreTrainedModel) -> Served:
        loss = network.config.loss
        return {"AutoModel": body} | ({PRETRAINED[loss]: type(network)} if loss in PRETRAINED else {})

    return serves


SERVES: dict[type, Callable[[PreTrainedModel], Served]] = {
    PrunedNetwork: pruned_serves,
    NluNetwork: encoder_serves(NluModel),
    FlexiBertNetwork: encoder_serves(FlexiBertModel),
    NluModel: body_serves,
    FlexiBertModel: body_serves,
    LtsGpt2ForCausalLM: causal_serves,
    CellForCausalLM: causal_serves,
}
"""What the networks of the project, and those derived from them, are for transformers."""


def served(network: PreTrainedModel) -> Served:
    """The auto classes by which a network of the project is loaded; none for one of another's."""
    found = next((serves for kind, serves in SERVES.items() if isinstance(network, kind)), None)
    return {} if found is None else {"AutoConfig": type(network.config), **found(network)}


def save_trained(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: Path) -> None:
    """A folder that `from_pretrained` and `pipeline` load where the project is not installed.

    With `trust_remote_code=True` for a network of the project, whose code is beside its weights; a stock network is
    saved as it is. Like `save_pretrained` it writes file by file: whoever may be killed writes beside and renames.
    """
    network.save_pretrained(folder)
    classes = served(network)
    if classes:
        (folder / f"{MODELING}.py").write_text(code_of(network, list(classes.values())), encoding="utf-8")
        add_to_config(folder, {"auto_map": {auto: f"{MODELING}.{ours.__name__}" for auto, ours in classes.items()}})
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def code_of(network: PreTrainedModel, classes: Sequence[type]) -> str:
    """One file with these classes; of all families a pruned network needs its own."""
    if not isinstance(network, PrunedNetwork):
        return bundled(classes)
    model_type = network.config.backbone["model_type"]
    return bundled(classes, registries={"FAMILIES": {model_type: FAMILIES.target(model_type)}})


def add_to_config(folder: Path, more: Mapping[str, Any]) -> None:
    config = folder / "config.json"
    values = json.loads(config.read_text(encoding="utf-8")) | more
    config.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
