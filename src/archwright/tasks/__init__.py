"""Kinds of tasks: what a network answers. One file per kind, one record with all that the program must know of it.

Loads no torch, and imports no other room: what lives above is named in the records and imported when it is used.
"""

from archwright.registry import Lazy, Registry
from archwright.tasks.kind import TaskKind

FILES = "archwright.tasks"
TASK_KINDS: Registry[TaskKind] = Registry(
    "kind of task",
    {
        "classification": Lazy(f"{FILES}.classification:KIND", "one of several classes"),
        "multi-label": Lazy(f"{FILES}.multi_label:KIND", "any number of labels per text"),
        "regression": Lazy(f"{FILES}.regression:KIND", "a number"),
        "choice": Lazy(f"{FILES}.multiple_choice:KIND", "one of several texts"),
        "qa": Lazy(f"{FILES}.question_answering:KIND", "a part of a text"),
        "tokens": Lazy(f"{FILES}.token_classification:KIND", "a tag per word: names, parts of speech"),
        "lm": Lazy(f"{FILES}.language_modelling:KIND", "the next token"),
        "embeddings": Lazy(f"{FILES}.embeddings:KIND", "a vector per text, as the original has it"),
    },
    group=FILES,
)
