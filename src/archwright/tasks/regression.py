"""Regression: a number per text or pair of texts."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="spearman",
    network=Reference("archwright.networks.pruned:PrunedForSequenceClassification"),
    stock_head=Reference("archwright.networks.stock_heads:REGRESSION"),
    export=Reference("archwright.exporting.kinds:LABELS"),
    outputs=Reference("archwright.subnet.anatomy:score_outputs"),
    scores=Reference("archwright.training.evaluation:label_scores"),
    per_row=True,
    metrics=("pearson", "spearman"),
    judged_by=("pearson",),
    answer=Reference("archwright.compression.answering:answer_label"),
    compare=Reference("archwright.compression.differences:compare_numbers"),
    asked=("Text", "Second text, for tasks about pairs"),
)
