"""Classification: one of several classes per text or pair of texts."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="accuracy",
    network=Reference("archwright.networks.pruned:PrunedForSequenceClassification"),
    stock_head=Reference("archwright.networks.stock_heads:CLASSIFICATION"),
    export=Reference("archwright.exporting.kinds:LABELS"),
    outputs=Reference("archwright.subnet.anatomy:classification_outputs"),
    scores=Reference("archwright.training.evaluation:label_scores"),
    per_row=True,
    metrics=("accuracy",),
    judged_by=("f1", "macro_f1", "matthews", "roc_auc"),
    aliases={"mcc": "matthews"},
    answer=Reference("archwright.compression.answering:answer_label"),
    compare=Reference("archwright.compression.differences:compare_classes"),
    asked=("Text", "Second text, for tasks about pairs"),
)
