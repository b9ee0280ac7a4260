"""Networks to pre-train: built from a design, or loaded to go on from."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from archwright.configs import training as to
from archwright.errors import BadInput
from archwright.networks.load import UNREADABLE, first_line, load_saved_network
from archwright.networks.pruned import PrunedConfig
from archwright.random_streams import STUDENT_WEIGHTS, generator
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace, change_plan, read_configs
from archwright.spaces.checkpoints import space_of_model
from archwright.training.adapters import checkpoint_of

MODEL = "model"
"""Folder of the trained network inside a run folder."""
CAUSAL_HEAD = "lm"
"""Head of networks in which a token sees those before it alone."""


@dataclass(frozen=True)
class StudentDesign:
    """An architecture."""

    space: ArchitectureSpace
    config: Config
    plan: Any = None
    """A Hugging Face config in place of it, for what lies outside the space."""


def student_design(student: to.StudentOptions) -> StudentDesign | None:
    """The architecture asked for; None when weights are to go on from. BadInput unless exactly one is named."""
    given = {"--design": student.design, "--config": student.config, "--model": student.model}
    named = [option for option, value in given.items() if value is not None]
    if len(named) != 1:
        raise BadInput(f"give one of {', '.join(given)}, got {', '.join(named) or 'none of them'}.")
    if student.scaled_up and student.design is None:
        raise BadInput("--scaled-up needs --design, the file of an `archwright design --scale-up`.")
    if student.model is not None:
        return None
    if student.design is not None:
        return read_design(student.design, larger=student.scaled_up)
    if student.space is None or student.config is None:
        raise BadInput("--config needs --space, the space it is a config of.")
    configs = read_configs(student.config)
    if len(configs) != 1:
        raise BadInput(f"--config must hold one config to train, {student.config} has {len(configs)}.")
    design = StudentDesign(ARCHITECTURES[student.space].with_variant(student.variant), configs[0])
    design.space.check(design.config)
    return design


def read_design(file: Path, *, larger: bool = False) -> StudentDesign:
    """The architecture that `archwright design` wrote."""
    try:
        document = json.loads(file.read_text("utf-8"))
        name, config = document["space"], document["config"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise BadInput(f"--design must be a design.json of `archwright design`, got {file} ({error!r}).") from error
    if name not in ARCHITECTURES or not isinstance(config, dict):
        raise BadInput(f"--design must name one of the spaces {', '.join(ARCHITECTURES)}, {file} has {name!r}.")
    plan = scaled_up_plan(document, file) if larger else None
    design = StudentDesign(ARCHITECTURES[name].with_variant(document.get("variant")), config, plan)
    design.space.check(design.config)
    return design


def scaled_up_plan(document: Any, file: Path) -> Any:
    """What `design --scale-up` made of the design."""
    try:
        values = dict(document["scaled_up"]["config"])
        space = space_of_model(values["model_type"])
        if space is None:
            raise KeyError(values["model_type"])
        return space.classes[0].config_class(**values)
    except (KeyError, TypeError, ValueError) as error:
        way = "run `archwright design` with --scale-up 2, or leave --scaled-up out"
        raise BadInput(f"{file} has no larger architecture ({error!r}); {way}.") from error


def build_student(design: StudentDesign, head: str, *, vocabulary: int, seed: int) -> Any:
    """The untrained network with this head, BadInput when the space has no such head."""
    if head not in design.space.losses:
        known = ", ".join(design.space.losses)
        raise BadInput(f"networks of {design.space.name} learn by {known} or from a teacher, not by {head}.")
    draws = generator(seed, STUDENT_WEIGHTS)
    if design.plan is not None:
        words = {"vocab_size": vocabulary} | ({"loss": head} if hasattr(design.plan, "loss") else {})
        return design.space.plan_network(change_plan(design.plan, words), generator=draws)
    return design.space.network(design.config, generator=draws, vocabulary=vocabulary, loss=head)


def checkpoint_source(model: str) -> str:
    """Where the weights are: of a run folder of `train` the model inside it."""
    inside = Path(model) / MODEL
    return str(inside) if (inside / "config.json").is_file() else checkpoint_of(model)


STOCK: dict[str, Any] = {"mlm": AutoModelForMaskedLM, "lm": AutoModelForCausalLM}
"""Stock networks by head; there is none for ELECTRA, whose generator would be missing."""


def load_student(source: str, head: str, *, seed: int) -> Any:
    """The network in a folder or on the hub, with this head; where it had another one the head is new."""
    try:
        config = read_config(source)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = student_class(config, head, source).from_pretrained(source, config=config, dtype=torch.float32)
    except UNREADABLE as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"--model must be a folder or hub id of a network, got {source!r}: {first_line(error)}"
        ) from error
    return network


def read_config(source: str) -> Any:
    """The config of a checkpoint, ours or another's."""
    try:
        kind = json.loads((Path(source) / "config.json").read_text()).get("model_type")
    except (OSError, ValueError):
        kind = None
    if (space := space_of_model(kind)) is not None:
        return space.classes[0].config_class.from_pretrained(source)
    return AutoConfig.from_pretrained(source, trust_remote_code=False)  # else it may ask on the terminal


def student_class(config: Any, head: str, source: str) -> Any:
    """The class that gives the network of this config this head."""
    if (space := space_of_model(config.model_type)) is not None:
        causal = not hasattr(config, "loss") or config.loss == CAUSAL_HEAD
        if causal != (head == CAUSAL_HEAD):
            raise BadInput(f"{source} is {'a causal network' if causal else 'an encoder'}: it cannot learn by {head}.")
        if not causal:
            config.loss = head
        return space.classes[0]
    # transformers has a causal head for encoders, too, and only warns.
    encoder = config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)
    if head == CAUSAL_HEAD and encoder:
        raise BadInput(f"{source} is an encoder, whose tokens see the next ones: it cannot learn by {head}.")
    if head not in STOCK:
        raise BadInput(f"{head} needs a network of the spaces, as `train` wrote it, got {config.model_type!r}.")
    return STOCK[head]


def is_pruned_checkpoint(source: str) -> bool:
    """Whether this is the folder of a network that was fine-tuned or pruned here."""
    try:
        values = json.loads((Path(source) / "config.json").read_text())
    except (OSError, ValueError):
        return False
    return bool(values.get("model_type") == PrunedConfig.model_type)


def load_teacher(source: str) -> Any:
    """A teacher without head: a stock encoder, or the body of a network that was fine-tuned here."""
    try:
        if is_pruned_checkpoint(source):
            return load_saved_network(Path(source)).backbone.float().eval()
        return AutoModel.from_pretrained(source, dtype=torch.float32, trust_remote_code=False).eval()
    except UNREADABLE as error:
        raise BadInput(
            f"--teacher must be a folder or hub id of an encoder, got {source!r}: {first_line(error)}"
        ) from error
