"""Classification: one of several classes per text or pair of texts."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="accuracy",
    outputs=Reference("archwright.subnet.anatomy:classification_outputs"),
    scores=Reference("archwright.training.evaluation:label_scores"),
    metrics=("accuracy",),
)
