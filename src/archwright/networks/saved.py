"""Networks of ours in a folder, whichever they are."""

import json
from pathlib import Path
from typing import Any

from transformers import AutoModel, PreTrainedModel

from archwright.errors import BadInput
from archwright.networks.cells import CellForCausalLM
from archwright.networks.flexibert import FlexiBertModel, FlexiBertNetwork
from archwright.networks.load import first_line, read_weights
from archwright.networks.lts_gpt2 import LtsGpt2ForCausalLM
from archwright.networks.nlu import NluModel, NluNetwork
from archwright.networks.pruned import HEADS

DESIGNED: tuple[Any, ...] = (
    NluModel,
    NluNetwork,
    FlexiBertModel,
    FlexiBertNetwork,
    LtsGpt2ForCausalLM,
    CellForCausalLM,
)
CLASSES: dict[str, Any] = {network.__name__: network for network in (*DESIGNED, *HEADS.values())}
"""By the name that a checkpoint has as its architecture."""
OURS = {network.config_class.model_type for network in CLASSES.values()}
WAY_OUT = "write it again with `archwright train`"


def loaded_network(folder: Path) -> PreTrainedModel:
    """The network that `train`, `select` or an export to compact wrote, in evaluation mode, or one clear line."""
    values = written_config(folder)
    kind = values.get("model_type")
    if kind not in OURS:
        raise BadInput(
            f"model_type must be one of {', '.join(sorted(OURS))}, got {kind!r} in {folder}; a network of another "
            "family is a checkpoint already, and `archwright compress` makes it smaller."
        )
    name = next(iter(values.get("architectures") or ()), None)
    if name not in CLASSES:
        raise BadInput(f"the config in {folder} names {name!r}, not one of {', '.join(CLASSES)}; {WAY_OUT}.")
    return read_weights(folder, CLASSES[name], way_out=WAY_OUT).eval()


def written_config(folder: Path) -> dict[str, Any]:
    """What config.json says."""
    try:
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"a network needs a folder with config.json and weights, got {folder} ({first_line(error)}); {WAY_OUT}."
        ) from error
    if not isinstance(values, dict):
        raise BadInput(f"{folder / 'config.json'} must be a JSON object; {WAY_OUT}.")
    return values


def any_network(source: str) -> PreTrainedModel:
    """A network of ours with its head, or the body of a checkpoint from elsewhere, in evaluation mode."""
    folder = Path(source)
    if (folder / "config.json").is_file() and written_config(folder).get("model_type") in OURS:
        return loaded_network(folder)
    return read_weights(source, AutoModel, way_out="choose a folder or hub id", trust_remote_code=False).eval()
