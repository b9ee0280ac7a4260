"""Networks of the spaces, and pruned ones, in a folder: which space has them, and how they are loaded."""

import json
from pathlib import Path
from typing import Any

from transformers import AutoModel, PreTrainedModel

from archwright.checksums import verify_checksums
from archwright.errors import BadInput
from archwright.networks.load import first_line, network_class, read_weights
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.tasks import TASK_KINDS

WAY_OUT = "write it again with `archwright train`"


def space_of_model(model_type: str | None) -> ArchitectureSpace | None:
    """The first space whose networks have this model_type; None for networks from elsewhere."""
    return next((space for space in ARCHITECTURES.values() if space.model_type == model_type), None)


def network_classes() -> dict[str, type[PreTrainedModel]]:
    """Our classes by the name that a checkpoint has as its architecture."""
    designed = [network for space in ARCHITECTURES.values() for network in space.classes]
    return {network.__name__: network for network in (*designed, *map(network_class, TASK_KINDS))}


def load_network(folder: Path) -> PreTrainedModel:
    """The network that `train`, `select` or an export to compact wrote, in evaluation mode, or one clear line."""
    values, classes = read_config(folder), network_classes()
    known = {network.config_class.model_type for network in classes.values()}
    model_type = values.get("model_type")
    if model_type not in known:
        raise BadInput(
            f"model_type must be one of {', '.join(sorted(known))}, got {model_type!r} in {folder}; a network of "
            "another family is a checkpoint already, and `archwright compress` makes it smaller."
        )
    name = next(iter(values.get("architectures") or ()), None)
    if name not in classes:
        raise BadInput(f"the config in {folder} names {name!r}, not one of {', '.join(classes)}; {WAY_OUT}.")
    verify_checksums(folder, way_out=f"{WAY_OUT}, or delete checksums.json if you changed the weights yourself")
    return read_weights(folder, classes[name], way_out=WAY_OUT).eval()


def load_any_network(source: str) -> PreTrainedModel:
    """A network of ours with its head, or the body of a checkpoint from elsewhere, in evaluation mode."""
    folder = Path(source)
    known = {network.config_class.model_type for network in network_classes().values()}
    if (folder / "config.json").is_file() and read_config(folder).get("model_type") in known:
        return load_network(folder)
    return read_weights(source, AutoModel, way_out="choose a folder or hub id", trust_remote_code=False).eval()


def read_config(folder: Path) -> dict[str, Any]:
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
