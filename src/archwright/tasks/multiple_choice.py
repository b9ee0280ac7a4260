"""Multiple choice: one of several texts that belong to another one."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="accuracy",
    outputs=Reference("archwright.subnet.anatomy:score_outputs"),
    scores=Reference("archwright.training.evaluation:label_scores"),
    metrics=("accuracy",),
    several_texts=True,
)
