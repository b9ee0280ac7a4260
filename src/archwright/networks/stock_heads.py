"""The stock heads of every kind of task: which class has them, where they are, and whether a checkpoint brings one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
)

from archwright.networks.families.family import Family
from archwright.networks.sentence_encoder import SentenceEncoder, read_sentence_encoder
from archwright.tasks import TASK_KINDS


@dataclass(frozen=True)
class StockHead:
    """A kind of task as stock checkpoints know it."""

    auto: Any
    """The class that loads one."""
    endings: tuple[str, ...]
    """How the names of such classes end."""
    paths: Callable[[Family], dict[str, str]]
    """Modules of our head and where the stock network has them; families without a module have an empty path."""
    fits: Callable[[PreTrainedConfig, tuple[str, ...]], bool]
    """Whether a checkpoint's head has as many outputs as these labels need."""
    unnamed: tuple[str, ...] = ()
    """What a checkpoint that names no class, such as a GGUF file, is taken for."""
    problem_type: str | None = None
    """What transformers calls the task in a config."""
    output_names: tuple[str, ...] = ()
    """Of the outputs where a task has no labels."""
    some: bool = False
    """Whether rows may lack some of the classes that a checkpoint knows."""
    read_encoder: Callable[[str, str | None, str], SentenceEncoder] | None = None
    """Source, the pooling a user asks for and the family's own -> how vectors are made of texts, for networks that have
    no head; None: a head reads what --pooling or the checkpoint says."""


def text_head(family: Family, dense: str, out: str) -> dict[str, str]:
    """Where a stock head of two linears keeps them, and a norm between them if the family has one."""
    return {"head.dense": dense, "head.out": out, **({"head.norm": family.head_norm} if family.head_norm else {})}


def token_head_paths(family: Family, out: str) -> dict[str, str]:
    """The same of a head that reads every token: one linear, unless the family has the head of texts there."""
    return text_head(family, family.head_dense, family.head_out) if family.token_head else {"head.out": out}


CLASSIFICATION = StockHead(
    auto=AutoModelForSequenceClassification,
    endings=("ForSequenceClassification",),
    paths=lambda family: text_head(family, family.head_dense, family.head_out),
    fits=lambda config, labels: config.num_labels == max(1, len(labels)),
    problem_type="single_label_classification",
)
MULTI_LABEL = replace(
    CLASSIFICATION,
    problem_type="multi_label_classification",
    fits=lambda config, labels: is_multi_label(config) and config.num_labels >= len(labels),
    some=True,
)
REGRESSION = replace(CLASSIFICATION, problem_type="regression", output_names=("score",))
MULTIPLE_CHOICE = StockHead(
    auto=AutoModelForMultipleChoice,
    endings=("ForMultipleChoice",),
    paths=lambda family: text_head(family, family.choice_dense, "classifier"),
    fits=lambda config, labels: True,  # one score per choice
)
QUESTION_ANSWERING = StockHead(
    auto=AutoModelForQuestionAnswering,
    endings=("ForQuestionAnswering",),
    paths=lambda family: token_head_paths(family, "qa_outputs"),
    fits=lambda config, labels: config.num_labels == 2,
)
TOKEN_CLASSIFICATION = StockHead(
    auto=AutoModelForTokenClassification,
    endings=("ForTokenClassification",),
    paths=lambda family: token_head_paths(family, family.token_out),
    fits=lambda config, labels: config.num_labels >= len(labels),
    some=True,
)
LANGUAGE_MODELLING = StockHead(
    auto=AutoModelForCausalLM,
    endings=("ForCausalLM", "LMHeadModel"),
    paths=lambda family: {"lm_head": "lm_head"},
    fits=lambda config, labels: True,
    unnamed=("ForCausalLM",),
)

EMBEDDINGS = StockHead(
    auto=AutoModel,
    endings=("Model",),
    paths=lambda family: {},
    fits=lambda config, labels: True,
    read_encoder=read_sentence_encoder,
)


def is_multi_label(config: Any) -> bool:
    """Whether a checkpoint's outputs are labels of which a text may have several."""
    return getattr(config, "problem_type", None) == "multi_label_classification"


def stock_head(kind: str) -> StockHead:
    """The stock head of a kind of task."""
    head: StockHead = TASK_KINDS[kind].stock_head.load()
    return head


def has_head(config: PreTrainedConfig, labels: tuple[str, ...], kind: str = "classification") -> bool:
    """Whether the checkpoint was already trained for this kind of task, with as many outputs as the labels need."""
    head = stock_head(kind)
    trained = any(name.endswith(head.endings) for name in config.architectures or head.unnamed)
    return trained and head.fits(config, labels)
