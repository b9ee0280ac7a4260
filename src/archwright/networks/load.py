"""A Hugging Face checkpoint as a super-network."""

import json
import pickle
import struct
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import cached_file

from archwright.checksums import verify_checksums
from archwright.errors import BadInput
from archwright.logs import quiet_libraries
from archwright.networks.cells.model import CellConfig
from archwright.networks.embeddings import LowRankEmbedding
from archwright.networks.families import FAMILIES, UNSUPPORTED
from archwright.networks.flexibert.network import FlexiBertModel
from archwright.networks.lts_gpt2 import LtsGpt2Config
from archwright.networks.nlu.network import NluModel
from archwright.networks.pruned import POOLINGS, PrunedConfig, PrunedNetwork, first_token
from archwright.networks.stock_heads import has_head, stock_head
from archwright.tasks import TASK_KINDS

UNREADABLE = (
    *(OSError, ValueError, RuntimeError, LookupError, TypeError, ArithmeticError, EOFError, ImportError),
    *(pickle.UnpicklingError, struct.error, SafetensorError, StrictDataclassError),
)
"""What transformers raises, depending on the way in which a checkpoint is damaged."""

HEAD_DEVIATION = 0.02
"""Standard deviation of the weights of a new head."""

# A config that is registered is read by its own class, whatever code lies beside it. A pruned network is not: with the
# code beside it transformers runs that code, so that an export can be tried as others will load it.
for config_class in (CellConfig, LtsGpt2Config, FlexiBertModel.config_class, NluModel.config_class):
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
for body_class in (FlexiBertModel, NluModel):
    AutoModel.register(body_class.config_class, body_class, exist_ok=True)


def network_class(kind: str) -> type[PrunedNetwork]:
    """The network for a kind of task."""
    network: type[PrunedNetwork] = TASK_KINDS[kind].network.load()
    return network


def load_supernet(
    source: str,
    *,
    kind: str = "classification",
    labels: tuple[str, ...] = (),
    pooling: str | None = None,
    grouping: str = "groups",
    seed: int = 0,
    keep_head: bool | None = None,
    dtype: torch.dtype = torch.float32,
) -> PrunedNetwork:
    """The checkpoint, whole, with a head for this kind of task, its own if it has one, else new.

    A classification without labels is a regression. A checkpoint's own head reads one token, so `keep_head` (default:
    whenever there is one) means pooling "cls" for an encoder and "last" for a decoder. Weights that safetensors store
    in `dtype` are not copied: they are the file itself, mapped into memory, until they are changed.
    """
    config = stock_config(source)
    check_kind(config, kind, pooling, source)
    wanted = has_head(config, labels, kind) if keep_head is None else keep_head
    fitted = wanted or network_class(kind).can_generate()
    own, head = FAMILIES[config.model_type].own_pooling(config), stock_head(kind)
    if fitted and pooling not in (None, own):
        raise BadInput(f"pooling must be {own} for a checkpoint with its own head, got {pooling!r}; leave it out.")
    if head.read_encoder is None:
        pooling, sentence = own if fitted else pooling or default_pooling(source, own), None
    else:
        encoder = head.read_encoder(source, pooling, own)
        pooling, sentence = encoder.pooling, encoder.config
    pruned = supernet_config(config, kind=kind, labels=labels, pooling=pooling, grouping=grouping)
    pruned.sentence = sentence
    stock = load_stock(source, head.auto if fitted else AutoModel, config, dtype)
    network, low = network_class(pruned.kind), dtype != torch.float32
    if low and not fitted:
        return put_weights(empty_with_head(network, pruned, seed, dtype), stock, fitted=False).eval()
    if fitted:  # nothing is drawn
        with torch.device("meta"):
            model = network(pruned)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = network(pruned)
    return put_weights(model, stock, fitted=fitted).eval()


def empty_with_head(network: type[PrunedNetwork], config: PrunedConfig, seed: int, dtype: torch.dtype) -> PrunedNetwork:
    """A network without weights but for those of its new head: a large body is not drawn to be thrown away."""
    with torch.device("meta"):
        model = network(config)
    draws = torch.Generator().manual_seed(seed)
    for name, head in model.named_children():
        if name != "backbone":
            head.to_empty(device="cpu").to(dtype)
            for key, parameter in head.named_parameters():
                with torch.no_grad():
                    norm = isinstance(head.get_submodule(key.rpartition(".")[0]), nn.LayerNorm)
                    if parameter.dim() > 1:
                        parameter.normal_(std=HEAD_DEVIATION, generator=draws)
                    else:
                        parameter.fill_(1.0 if norm and key.endswith("weight") else 0.0)
    return model


def put_weights(model: PrunedNetwork, stock: PreTrainedModel, *, fitted: bool) -> PrunedNetwork:
    """Ours with the stock network's own tensors, and those of its head if it is `fitted`."""
    config = model.config
    backbone = stock.base_model if fitted else stock
    state = {k: v for k, v in backbone.state_dict().items() if not k.startswith("pooler.")}
    ours_state = config.family.from_stock(state, config.backbone)  # GPT-2's matrices lie the other way round
    model.backbone.load_state_dict({name: tensor.contiguous() for name, tensor in ours_state.items()}, assign=True)
    put_unsaved_buffers(model.backbone, backbone)
    for ours, theirs in stock_head(config.kind).paths(config.family).items() if fitted else ():
        if theirs:
            model.get_submodule(ours).load_state_dict(stock.get_submodule(theirs).state_dict(), assign=True)
    model.tie_weights()
    if model.can_generate() and stock.can_generate():
        model.generation_config = stock.generation_config
    return model


def put_unsaved_buffers(model: nn.Module, other: nn.Module) -> None:
    """What no state dict has, such as the speeds of rotations, as the other network has it."""
    saved = other.state_dict()
    for name, buffer in other.named_buffers():
        if name not in saved:  # otherwise it is loaded already
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, buffer.clone())


def supernet_config(
    config: AutoConfig,
    *,
    kind: str = "classification",
    labels: tuple[str, ...] = (),
    pooling: str | None = None,
    grouping: str = "groups",
) -> PrunedConfig:
    """The config of the whole, unpruned network with a head for this kind of task."""
    family = FAMILIES[config.model_type]
    settings = config.to_dict()
    backbone = {key: value for key, value in config.to_diff_dict().items() if key in settings}
    backbone = {**{key: settings[key] for key in size_keys(config)}, **backbone, "model_type": config.model_type}
    backbone.pop("dtype", None)  # says how the weights were stored; it would build a half-precision network
    if family.stock:
        backbone[family.units] = backbone[family.units] or 4 * backbone[family.width]  # GPT-2 leaves it out
    if kind == "classification" and not labels:
        kind = "regression"
    whole = PrunedConfig(
        backbone=backbone,
        kind=kind,
        pooling=pooling or family.own_pooling(config),
        grouping=grouping,
        problem_type=stock_head(kind).problem_type,
        tie_word_embeddings=bool(getattr(config, "tie_word_embeddings", False)),
        **{key: getattr(config, key, None) for key in ("pad_token_id", "bos_token_id", "eos_token_id")},
        **output_names(labels or stock_head(kind).output_names),
    )
    whole.places = list(range(whole.depth))
    whole.layers = [whole.whole_sizes(place) for place in whole.places]
    return whole


def output_names(labels: tuple[str, ...]) -> dict[str, Any]:
    """Names of the outputs for a config; nothing where they have none."""
    names = dict(enumerate(labels))
    return {"id2label": names, "label2id": {name: i for i, name in names.items()}} if names else {}


def size_keys(config: AutoConfig) -> list[str]:
    """Keys that must be written even when they equal the family's default, because counts are read from them."""
    family = FAMILIES[config.model_type]
    names = [family.width, family.heads, family.units, family.depth, family.plan, family.max_length, "vocab_size"]
    others = (family.key_heads, family.head_size, "type_vocab_size", "embedding_size", "inner_size", "layer_types")
    settings = config.to_dict()
    return [name for name in (*names, *others) if name in settings]


@quiet_libraries()
def stock_config(source: str) -> AutoConfig:
    """The checkpoint's config, or one clear line on what is wrong with it."""
    if has_our_head(source):
        raise BadInput(
            f"a super-network is made of a network without a head of ours, got {source!r}; "
            "choose the network that it was fine-tuned from."
        )
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False, **gguf_option(source))
    except UNREADABLE as error:
        raise BadInput(
            f"model must be a folder with config.json and weights or a hub id, got {source!r}: {first_line(error)}"
        ) from error
    if config.model_type not in FAMILIES:
        reason = UNSUPPORTED.get(config.model_type)
        raise BadInput(
            f"model family must be one of {', '.join(sorted(FAMILIES))}, got {config.model_type!r} from {source!r}"
            f"{f', {reason}' if reason else ''}; choose a checkpoint of one of these families."
        )
    heads = getattr(config, FAMILIES[config.model_type].heads, None)
    if heads is not None and heads < 1:
        raise BadInput(f"the config in {source} must have at least 1 attention head, got {heads}; download it again.")
    if getattr(config, "add_cross_attention", False):
        raise BadInput(f"{source} must be a network without cross-attention; choose another checkpoint.")
    complaint = FAMILIES[config.model_type].complaint(config)
    if complaint:
        raise BadInput(f"{source} {complaint}; choose another checkpoint.")
    return config


def has_our_head(source: str) -> bool:
    """Whether this is the folder of a network that was fine-tuned or pruned here."""
    try:
        values = json.loads((Path(source) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and values.get("model_type") == PrunedConfig.model_type


def gguf_option(source: str) -> dict[str, str]:
    """Says which file to read when a folder holds one GGUF file instead of a checkpoint."""
    folder = Path(source)
    files = sorted(folder.glob("*.gguf")) if folder.is_dir() and not (folder / "config.json").exists() else []
    if len(files) > 1:
        raise BadInput(f"{source} must hold one .gguf file, got {len(files)}; put the others into another folder.")
    return {"gguf_file": files[0].name} if files else {}


def check_kind(config: AutoConfig, kind: str, pooling: str | None, source: str) -> None:
    """What a checkpoint of this family cannot be used for."""
    causal = FAMILIES[config.model_type].causal
    if network_class(kind).can_generate() and not (causal and has_head(config, (), kind)):
        raise BadInput(
            f"language modelling needs a decoder with a language-modelling head, got {source!r} "
            f"({(config.architectures or [config.model_type])[0]}); choose a checkpoint such as GPT-2 or SmolLM2."
        )
    if causal and pooling and POOLINGS[pooling] is first_token:
        raise BadInput(f"pooling must be last or mean for a decoder, whose first token sees no other, got {pooling!r}.")


def load_stock(source: str, auto: Any, config: AutoConfig, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The stock network; `config` saves reading a GGUF file once more, whose own progress is no news either."""
    how = {"config": config, "trust_remote_code": False, "dtype": dtype, **gguf_option(source)}
    with redirect_stderr(StringIO()) if gguf_option(source) else nullcontext():
        return read_weights(source, auto, way_out="download the checkpoint again", **how)


@quiet_libraries()
def read_weights(
    source: str | Path, auto: Any, *, way_out: str, dtype: torch.dtype | str = torch.float32, **how: Any
) -> PreTrainedModel:
    """The network in `source` with all of its tensors from there, or one clear line; only a pooler may be missing.

    With "auto" they have the precision that they are stored in.
    """
    try:
        model, found = auto.from_pretrained(source, dtype=dtype, output_loading_info=True, **how)
    except UNREADABLE as error:
        raise BadInput(f"the weights in {source} cannot be read ({first_line(error)}); {way_out}.") from error
    missing = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise BadInput(f"the weights in {source} lack {len(missing)} tensors such as {missing[0]!r}; {way_out}.")
    return model


def default_pooling(source: str, own: str = "cls") -> str:
    """How the checkpoint was trained to pool: sentence encoders say so in a file, all others as their family does."""
    described = described_pooling(source)
    try:
        mean = described is not None and json.loads(described.read_text()).get("pooling_mode_mean_tokens")
    except (ValueError, AttributeError) as error:
        raise BadInput(f"{described} must be a JSON object ({first_line(error)}); download it again.") from error
    return "mean" if mean else own


@quiet_libraries()
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


@quiet_libraries()
def load_saved_network(folder: Path) -> PrunedNetwork:
    """A network of ours that was saved before, its weights mapped from the file, or one clear line."""
    way_out = "delete the folder and run again"
    verify_checksums(folder, way_out=way_out)
    try:
        config = PrunedConfig.from_pretrained(folder)
    except UNREADABLE as error:
        raise BadInput(f"the config in {folder} cannot be read ({first_line(error)}); {way_out}.") from error
    if config.kind not in TASK_KINDS or config.backbone.get("model_type") not in FAMILIES:
        raise BadInput(f"the config in {folder} is not one of ours; {way_out}.")
    return read_weights(folder, network_class(config.kind), way_out=way_out, dtype="auto").eval()


def max_length_of(network: PrunedNetwork) -> int:
    """How many tokens a text may have: as many as there are positions."""
    family = network.config.family
    if not family.positions:
        return int(network.config.backbone[family.max_length])
    table = network.backbone.get_submodule(family.positions)
    return int(table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1))


def freeze_embeddings(network: PrunedNetwork, frozen: bool = True) -> None:
    """Whether training leaves as they are what no search can remove.

    These are the tables of word and position vectors, and a language model's output vectors. What widens the rows of a
    narrow table is small and always trained.
    """
    tables: list[nn.Module | None] = [network.backbone.get_submodule(path) for path in network.config.family.embeddings]
    for module in (*tables, network.get_output_embeddings()):
        if module is not None:
            module.requires_grad_(not frozen)
    for module in network.backbone.modules():
        if isinstance(module, LowRankEmbedding):
            module.projection.requires_grad_(True)
