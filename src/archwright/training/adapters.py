"""A PEFT adapter (LoRA and its relatives) as the whole checkpoint that it belongs to."""

import hashlib
import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors import safe_open

from archwright.data.public_data import resolve_model
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput
from archwright.logs import logger, silence_libraries
from archwright.networks.load import UNREADABLE, first_line
from archwright.store import atomic_folder

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
CLASSES = {
    "SEQ_CLS": "AutoPeftModelForSequenceClassification",
    "TOKEN_CLS": "AutoPeftModelForTokenClassification",
    "QUESTION_ANS": "AutoPeftModelForQuestionAnswering",
    "CAUSAL_LM": "AutoPeftModelForCausalLM",
    "FEATURE_EXTRACTION": "AutoPeftModelForFeatureExtraction",
}
"""What peft calls a task, and the class of peft that loads an adapter for it."""
HEADS = ("classifier.weight", "score.weight", "classifier.out_proj.weight")
"""Ends of the names of a head's last matrix, whose rows are the labels."""


def checkpoint_of(model: str) -> str:
    """The folder or hub id of a whole checkpoint; of an adapter's folder that of the merged one, made once."""
    source = resolve_model(model)
    folder = Path(source)
    if not (folder / CONFIG).is_file() or (folder / "config.json").is_file():
        return source
    return str(merge_adapter(folder))


def merge_adapter(folder: Path) -> Path:
    """The base model with the adapter's changes in its weights, below the user's cache; BadInput says how without peft.

    The folder is named after the adapter's content: another adapter is merged anew, the same one is not.
    """
    config = read_adapter(folder)
    name = CLASSES.get(str(config.get("task_type")), "AutoPeftModel")
    if find_spec("peft") is None:
        raise BadInput(
            f"--model {folder} is a {config.get('peft_type', 'PEFT')} adapter of "
            f"{config['base_model_name_or_path']}, not a checkpoint; pip install 'archwright[peft]', or merge it: "
            f"peft.{name}.from_pretrained({str(folder)!r}).merge_and_unload().save_pretrained(FOLDER)."
        )
    merged = cache_folder() / content_key(folder)
    if not (merged / "config.json").is_file():
        import peft

        try:
            with silence_libraries():
                network = getattr(peft, name).from_pretrained(str(folder), **head_size(folder)).merge_and_unload()
                tokenizer = find_tokenizer(folder, config["base_model_name_or_path"])
        except (*UNREADABLE, AttributeError) as error:
            raise BadInput(f"the adapter in {folder} cannot be merged ({first_line(error)}).") from error
        with atomic_folder(merged) as place, silence_libraries():
            network.save_pretrained(place)
            if tokenizer is not None:
                tokenizer.save_pretrained(place)
    logger.warning("%s is an adapter: it was merged with %s", folder, config["base_model_name_or_path"])
    return merged


def read_adapter(folder: Path) -> dict[str, Any]:
    """What the adapter says about itself; its base at the least."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return {**config, "base_model_name_or_path": str(config["base_model_name_or_path"])}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadInput(f"{folder / CONFIG} must name its base model ({first_line(error)}); save it again.") from error


def head_size(folder: Path) -> dict[str, int]:
    """How many labels the adapter's own head has; nothing where it has none."""
    if not (folder / WEIGHTS).is_file():
        return {}
    with safe_open(folder / WEIGHTS, "np") as tensors:
        names = [name for name in list(tensors.keys()) if name.endswith(HEADS) and "lora_" not in name]
        return {"num_labels": int(tensors.get_slice(names[0]).get_shape()[0])} if names else {}


def find_tokenizer(folder: Path, base: str) -> Any:
    """The adapter's own tokenizer, else that of its base; None where neither has one."""
    for source in (str(folder), base):
        with suppress(BadInput):
            return load_tokenizer(source)
    return None


def content_key(folder: Path) -> str:
    """A short name for the adapter's content."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where merged checkpoints lie."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "archwright" / "merged"
