"""Token classification: a tag per word, such as the names in a sentence."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="entity_f1",  # token_accuracy where tags mark no spans
    network=Reference("archwright.networks.pruned:PrunedForTokenClassification"),
    stock_head=Reference("archwright.networks.stock_heads:TOKEN_CLASSIFICATION"),
    export=Reference("archwright.exporting.kinds:TOKEN_CLASSIFICATION"),
    outputs=Reference("archwright.subnet.anatomy:tag_outputs"),
    scores=Reference("archwright.training.evaluation:tag_scores"),
    load=Reference("archwright.data.tasks.sentences:load_sentences"),
    recognise=Reference("archwright.data.tasks.sentences:are_sentences"),
)
