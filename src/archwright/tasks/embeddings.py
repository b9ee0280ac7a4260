"""Sentence embeddings: a vector per text. The original's own vectors are what smaller networks learn."""

from archwright.tasks.kind import Reference, TaskKind

KIND = TaskKind(
    metric="neighbour_recall",  # cosine_spearman where pairs of texts have scores
    network=Reference("archwright.networks.pruned:PrunedSentenceModel"),
    stock_head=Reference("archwright.networks.stock_heads:EMBEDDINGS"),
    export=Reference("archwright.exporting.kinds:EMBEDDINGS"),
    outputs=Reference("archwright.subnet.anatomy:no_outputs"),
    scores=Reference("archwright.training.evaluation:vector_scores"),
    export_batches=Reference("archwright.compression.export:single_text_batches"),
    per_row=True,
    teach=Reference("archwright.compression.vectors:teach_vectors"),
    load=Reference("archwright.data.tasks.embedding_texts:load_sentences"),
    answer=Reference("archwright.compression.answering:answer_similarity"),
    compare=Reference("archwright.compression.differences:compare_vectors"),
    asked=("Text", "Text to compare it with"),
    needs_second=True,
)
