"""A Hugging Face checkpoint as a super-network."""

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from huggingface_hub.utils import logging as hub_logging
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel
from transformers.utils import cached_file, logging

from archwright.errors import BadInput
from archwright.networks.pruned import FAMILIES, POOLINGS, PrunedConfig, PrunedForSequenceClassification

UNREADABLE = (
    *(OSError, ValueError, RuntimeError, LookupError, TypeError, ArithmeticError, EOFError),
    *(pickle.UnpicklingError, struct.error, SafetensorError, StrictDataclassError),
)
"""What transformers raises, depending on the way in which a checkpoint is damaged."""

logging.set_verbosity_error()  # its warnings about missing heads are no news: the head is ours
logging.disable_progress_bar()
hub_logging.set_verbosity_error()  # an address that does not answer is told in our own line


def load_supernet(
    source: str, *, labels: tuple[str, ...], pooling: str | None = None, seed: int = 0, keep_head: bool | None = None
) -> PrunedForSequenceClassification:
    """The checkpoint, whole, with a head for these labels (none: regression), its own if it has one, else new.

    A checkpoint's own head reads the first token, so `keep_head` (default: whenever there is one) means pooling "cls".
    """
    config = stock_config(source)
    fitted = has_head(config, labels) if keep_head is None else keep_head
    if fitted and pooling not in (None, "cls"):
        raise BadInput(f"pooling must be cls for a checkpoint with its own head, got {pooling!r}; leave --pooling out.")
    stock = load_stock(source, AutoModelForSequenceClassification if fitted else AutoModel)
    pruned = supernet_config(config, labels=labels, pooling="cls" if fitted else pooling or default_pooling(source))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PrunedForSequenceClassification(pruned)
    backbone = stock.base_model if fitted else stock
    model.backbone.load_state_dict({k: v for k, v in backbone.state_dict().items() if not k.startswith("pooler.")})
    if fitted:
        model.head.dense.load_state_dict(stock.get_submodule(pruned.family.head_dense).state_dict())
        model.head.out.load_state_dict(stock.get_submodule(pruned.family.head_out).state_dict())
    return model.float().eval()


def supernet_config(config: AutoConfig, *, labels: tuple[str, ...], pooling: str) -> PrunedConfig:
    """The config of the whole, unpruned network with a head for these labels."""
    family = FAMILIES[config.model_type]
    backbone = {key: value for key, value in config.to_diff_dict().items() if key in config.to_dict()}
    backbone = {**{k: config.to_dict()[k] for k in size_keys(config)}, **backbone, "model_type": config.model_type}
    backbone.pop("dtype", None)  # says how the weights were stored; it would build a half-precision encoder
    names = dict(enumerate(labels)) if labels else {0: "score"}
    return PrunedConfig(
        backbone=backbone,
        layers=[[backbone[family.heads], backbone[family.units]]] * backbone[family.depth],
        pooling=pooling,
        id2label=names,
        label2id={name: i for i, name in names.items()},
        problem_type="single_label_classification" if labels else "regression",
        pad_token_id=config.pad_token_id,
    )


def size_keys(config: AutoConfig) -> list[str]:
    """Keys that must be written even when they equal the family's default, because counts are read from them."""
    family = FAMILIES[config.model_type]
    names = [family.width, family.heads, family.units, family.depth, "vocab_size", "max_position_embeddings"]
    return [*names, *(name for name in ("type_vocab_size", "embedding_size") if hasattr(config, name))]


def stock_config(source: str) -> AutoConfig:
    """The checkpoint's config, or one clear line on what is wrong with it."""
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except UNREADABLE as error:
        raise BadInput(
            f"model must be a folder with config.json and weights or a hub id, got {source!r}: {first_line(error)}"
        ) from error
    if config.model_type not in FAMILIES:
        raise BadInput(
            f"model family must be one of {', '.join(sorted(FAMILIES))}, got {config.model_type!r} from {source!r}; "
            "choose a checkpoint of one of these families."
        )
    return config


def load_stock(source: str, auto: Any) -> PreTrainedModel:
    return read_weights(source, auto, way_out="download the checkpoint again", trust_remote_code=False)


def read_weights(source: str | Path, auto: Any, *, way_out: str, **safe: bool) -> PreTrainedModel:
    """The network in `source` with all of its tensors from there, or one clear line; only a pooler may be missing."""
    try:
        model, found = auto.from_pretrained(source, dtype=torch.float32, output_loading_info=True, **safe)
    except UNREADABLE as error:
        raise BadInput(f"the weights in {source} cannot be read ({first_line(error)}); {way_out}.") from error
    missing = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise BadInput(f"the weights in {source} lack {len(missing)} tensors such as {missing[0]!r}; {way_out}.")
    return model


def has_head(config: AutoConfig, labels: tuple[str, ...]) -> bool:
    """Whether the checkpoint was already fine-tuned for as many labels as the task has."""
    trained = any(name.endswith("ForSequenceClassification") for name in config.architectures or ())
    return trained and config.num_labels == max(1, len(labels))


def default_pooling(source: str) -> str:
    """How the checkpoint was trained to pool: sentence encoders say so in a file, all others use the first token."""
    described = described_pooling(source)
    try:
        mean = described is not None and json.loads(described.read_text()).get("pooling_mode_mean_tokens")
    except (ValueError, AttributeError) as error:
        raise BadInput(f"{described} must be a JSON object ({first_line(error)}); download it again.") from error
    return "mean" if mean else next(iter(POOLINGS))


def described_pooling(source: str) -> Path | None:
    """The file in which a sentence encoder says how it pools, in a folder or on the hub."""
    found = cached_file(
        source,
        "1_Pooling/config.json",
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else Path(found)


def first_line(error: BaseException) -> str:
    """The message on one line; what matters is often on the second of its lines."""
    return (" ".join(str(error).split()) or type(error).__name__)[:200]


def saved_network(folder: Path) -> PrunedForSequenceClassification:
    """A network of ours that was saved before, or one clear line."""
    return read_weights(folder, PrunedForSequenceClassification, way_out="delete the folder and run again").eval()
