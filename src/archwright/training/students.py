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
from archwright.networks.embedded import resolve_model
from archwright.networks.load import UNREADABLE, first_line
from archwright.random_streams import generator
from archwright.search import Config
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace, change_plan
from archwright.spaces.checkpoints import space_of_model
from archwright.spaces.config_files import read_configs
from archwright.training.objectives import CAUSAL

MODEL, GENERATOR = "model", "generator"
"""Folders of the trained network, and of ELECTRA's generator, inside a run folder."""
WEIGHTS = 11
"""Place that needs random numbers of its own."""


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
        return written_design(student.design, larger=student.scaled_up)
    if student.space is None or student.config is None:
        raise BadInput("--config needs --space, the space it is a config of.")
    configs = read_configs(student.config)
    if len(configs) != 1:
        raise BadInput(f"--config must hold one config to train, {student.config} has {len(configs)}.")
    return checked(StudentDesign(ARCHITECTURES[student.space].with_variant(student.variant), configs[0]))


def written_design(file: Path, *, larger: bool = False) -> StudentDesign:
    """What `archwright design` found."""
    try:
        found = json.loads(file.read_text("utf-8"))
        name, config = found["space"], found["config"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise BadInput(f"--design must be a design.json of `archwright design`, got {file} ({error!r}).") from error
    if name not in ARCHITECTURES or not isinstance(config, dict):
        raise BadInput(f"--design must name one of the spaces {', '.join(ARCHITECTURES)}, {file} has {name!r}.")
    plan = larger_plan(found, file) if larger else None
    return checked(StudentDesign(ARCHITECTURES[name].with_variant(found.get("variant")), config, plan))


def larger_plan(found: Any, file: Path) -> Any:
    """What `design --scale-up` made of the design."""
    try:
        values = dict(found["scaled_up"]["config"])
        space = space_of_model(values["model_type"])
        if space is None:
            raise KeyError(values["model_type"])
        return space.classes[0].config_class(**values)
    except (KeyError, TypeError, ValueError) as error:
        way = "run `archwright design` with --scale-up 2, or leave --scaled-up out"
        raise BadInput(f"{file} has no larger architecture ({error!r}); {way}.") from error


def checked(design: StudentDesign) -> StudentDesign:
    design.space.check(design.config)
    return design


def build_student(design: StudentDesign, head: str, *, vocabulary: int, seed: int) -> Any:
    """The untrained network with this head, BadInput when the space has no such head."""
    if head not in design.space.losses:
        known = ", ".join(design.space.losses)
        raise BadInput(f"networks of {design.space.name} learn by {known} or from a teacher, not by {head}.")
    draws = generator(seed, WEIGHTS)
    if design.plan is not None:
        words = {"vocab_size": vocabulary} | ({"loss": head} if hasattr(design.plan, "loss") else {})
        return design.space.plan_network(change_plan(design.plan, words), generator=draws)
    return design.space.network(design.config, generator=draws, vocabulary=vocabulary, loss=head)


def checkpoint_source(model: str) -> str:
    """Where the weights are: of a run folder of `train` the model inside it."""
    inside = Path(model) / MODEL
    return str(inside) if (inside / "config.json").is_file() else resolve_model(model)


STOCK: dict[str, Any] = {"mlm": AutoModelForMaskedLM, "lm": AutoModelForCausalLM}
"""Stock networks by head; there is none for ELECTRA, whose generator would be missing."""


def load_student(source: str, head: str, *, seed: int) -> Any:
    """The network in a folder or on the hub, with this head; where it had another one the head is new."""
    try:
        config = config_in(source)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = class_for(config, head, source).from_pretrained(source, config=config, dtype=torch.float32)
    except UNREADABLE as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"--model must be a folder or hub id of a network, got {source!r}: {first_line(error)}"
        ) from error
    return network


def config_in(source: str) -> Any:
    """The config of a checkpoint, ours or another's."""
    try:
        kind = json.loads((Path(source) / "config.json").read_text()).get("model_type")
    except (OSError, ValueError):
        kind = None
    if (space := space_of_model(kind)) is not None:
        return space.classes[0].config_class.from_pretrained(source)
    return AutoConfig.from_pretrained(source, trust_remote_code=False)  # else it may ask on the terminal


def is_new(source: str, head: str) -> bool:
    """Whether the network of our spaces in this folder learnt with another head."""
    return bool(getattr(config_in(source), "loss", head) != head)


def class_for(config: Any, head: str, source: str) -> Any:
    """The class that gives the network of this config this head."""
    if (space := space_of_model(config.model_type)) is not None:
        causal = not hasattr(config, "loss") or config.loss in CAUSAL
        if causal != (head in CAUSAL):
            raise BadInput(f"{source} is {'a causal network' if causal else 'an encoder'}: it cannot learn by {head}.")
        if not causal:
            config.loss = head
        return space.classes[0]
    if head in CAUSAL and sees_ahead(config):
        raise BadInput(f"{source} is an encoder, whose tokens see the next ones: it cannot learn by {head}.")
    if head not in STOCK:
        raise BadInput(f"{head} needs a network of the spaces, as `train` wrote it, got {config.model_type!r}.")
    return STOCK[head]


def sees_ahead(config: Any) -> bool:
    """Whether a stock network is an encoder; transformers has a causal head for those, too, and only warns."""
    return config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)


def load_teacher(source: str) -> Any:
    """A teacher without head."""
    try:
        return AutoModel.from_pretrained(source, dtype=torch.float32, trust_remote_code=False).eval()
    except UNREADABLE as error:
        raise BadInput(
            f"--teacher must be a folder or hub id of an encoder, got {source!r}: {first_line(error)}"
        ) from error


def generator_beside(source: str, *, seed: int) -> Any:
    """The generator that was trained with this discriminator; None where it is not there."""
    folder = Path(source).parent / GENERATOR
    return load_student(str(folder), "mlm", seed=seed) if (folder / "config.json").is_file() else None


def generator_for(network: Any, *, size: float, seed: int) -> Any:
    """ELECTRA's generator: the same architecture, every width and number of heads times `size`."""
    space = space_of_model(network.config.model_type)
    plan = None if space is None else space.generator_plan(network.config, size)
    if space is None or plan is None:
        raise BadInput(f"ELECTRA needs a network of the spaces with an encoder, got {type(network.config).__name__}.")
    return space.plan_network(plan, generator=generator(seed, WEIGHTS, 1))


def room_for(network: Any) -> int | None:
    """How many tokens a row may have; None for as many as one likes."""
    return getattr(network.config, "max_position_embeddings", None)
