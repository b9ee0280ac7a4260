"""Multiple choice: one of several texts that belong to another one."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="accuracy",
    network=Reference("archwright.networks.pruned:PrunedForMultipleChoice"),
    stock_head=Reference("archwright.networks.stock_heads:MULTIPLE_CHOICE"),
    export=Reference("archwright.exporting.kinds:MULTIPLE_CHOICE"),
    outputs=Reference("archwright.subnet.anatomy:score_outputs"),
    scores=Reference("archwright.training.evaluation:label_scores"),
    per_row=True,
    metrics=("accuracy",),
    several_texts=True,
    answer=Reference("archwright.compression.answering:answer_choice"),
    compare=Reference("archwright.compression.differences:compare_choices"),
    asked=("Text", "Choices, one per line"),
    needs_second=True,
)
