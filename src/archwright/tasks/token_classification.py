"""Token classification: a tag per word, such as the names in a sentence."""

import re
from collections.abc import Sequence

from archwright.tasks.kind import Reference, TaskKind

MARKED = re.compile(r"([BIESLU])-(.+)", re.IGNORECASE)
"""A tag that says where its span begins or goes on, and its type: B-LOC."""
OUTSIDE = "O"


def marks_spans(tags: Sequence[str]) -> bool:
    """Whether the tags say where spans begin and go on: all are O or have a prefix, some have one."""
    inside = [tag for tag in tags if tag.upper() != OUTSIDE]
    return bool(inside) and all(MARKED.fullmatch(tag) for tag in inside)


KIND = TaskKind(
    metric="entity_f1",  # token_accuracy where tags mark no spans
    network=Reference("archwright.networks.pruned:PrunedForTokenClassification"),
    stock_head=Reference("archwright.networks.stock_heads:TOKEN_CLASSIFICATION"),
    export=Reference("archwright.exporting.kinds:TOKEN_CLASSIFICATION"),
    outputs=Reference("archwright.subnet.anatomy:tag_outputs"),
    scores=Reference("archwright.training.evaluation:tag_scores"),
    judged_by=("token_accuracy",),
    aliases={"f1": "entity_f1", "accuracy": "token_accuracy"},
    load=Reference("archwright.data.tasks.sentences:load_sentences"),
    recognise=Reference("archwright.data.tasks.sentences:are_sentences"),
    answer=Reference("archwright.compression.answering:answer_tags"),
    compare=Reference("archwright.compression.differences:compare_tags"),
    asked=("Sentence, with blanks between its words", ""),
)
