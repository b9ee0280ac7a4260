"""Question answering: the part of a text that answers a question, or none."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="squad_f1",  # squad_v2_f1 where some questions have no answer
    network=Reference("archwright.networks.pruned:PrunedForQuestionAnswering"),
    stock_head=Reference("archwright.networks.stock_heads:QUESTION_ANSWERING"),
    export=Reference("archwright.exporting.kinds:QUESTION_ANSWERING"),
    outputs=Reference("archwright.subnet.anatomy:span_outputs"),
    scores=Reference("archwright.training.evaluation:answer_scores"),
    answer=Reference("archwright.compression.answering:answer_span"),
    compare=Reference("archwright.compression.differences:compare_spans"),
    asked=("Question", "Text that has the answer"),
    needs_second=True,
)
