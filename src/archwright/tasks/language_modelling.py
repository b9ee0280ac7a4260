"""Language modelling: the next token of a text."""

from archwright.tasks.kind import Reference, TaskKind, TimeShares

KIND = TaskKind(
    metric="perplexity",
    network=Reference("archwright.networks.pruned:PrunedForCausalLM"),
    stock_head=Reference("archwright.networks.stock_heads:LANGUAGE_MODELLING"),
    export=Reference("archwright.exporting.kinds:LANGUAGE_MODELLING"),
    outputs=Reference("archwright.subnet.anatomy:token_outputs"),
    scores=Reference("archwright.training.evaluation:perplexity_scores"),
    export_batches=Reference("archwright.compression.export:block_batches"),
    evaluation_tokens=1024,  # every token has an output for each word of the vocabulary: 200 MB of them for 50,000
    batch_size=4,
    importance_tokens=4096,  # a pass forward and back takes a second for 128 of them
    importance_span=8,  # every token has a loss of its own, and so few texts are too few samples
    shares=TimeShares(original=0.25, training=0.5, candidates=0.2),  # repair gives more than few steps do
    distil_epochs=0.0,  # a step takes seconds
    answer=Reference("archwright.compression.answering:write_text"),
    compare=Reference("archwright.compression.differences:compare_losses"),
    asked=("Beginning of a text", ""),
)
