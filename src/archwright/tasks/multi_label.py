"""Multi-label classification: any number of labels per text, each a yes or no of its own."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="micro_f1",
    network=Reference("archwright.networks.pruned:PrunedForSequenceClassification"),
    stock_head=Reference("archwright.networks.stock_heads:MULTI_LABEL"),
    export=Reference("archwright.exporting.kinds:MULTI_LABEL"),
    outputs=Reference("archwright.subnet.anatomy:classification_outputs"),
    scores=Reference("archwright.training.evaluation:label_set_scores"),
    per_row=True,
    independent=True,
    judged_by=("macro_f1", "roc_auc", "accuracy"),
    aliases={"f1": "micro_f1"},
    load=Reference("archwright.data.tasks.label_sets:load_label_sets"),
    recognise=Reference("archwright.data.tasks.label_sets:are_label_sets"),
    answer=Reference("archwright.compression.answering:answer_label"),
    compare=Reference("archwright.compression.differences:compare_label_sets"),
    asked=("Text", ""),
)
