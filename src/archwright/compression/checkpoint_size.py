"""Sizes of the untouched checkpoint, and what was made smaller before the layers."""

from typing import Any

from archwright.configs import compress as o
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import Anatomy, nonembedding_parameters, parameters
from archwright.training.task_data import TaskData, describe_checkpoint


def checkpoint_anatomy(task_data: TaskData, model: o.ModelOptions) -> Anatomy:
    """The network before anything was made smaller: what percentages of all parameters are about."""
    return read_anatomy(describe_checkpoint(task_data, model, whole=True))


def describe_embeddings(task_data: TaskData, model: o.ModelOptions) -> dict[str, Any]:
    """What was made smaller before the layers: sizes of the untouched checkpoint, the tokens that stay, the rank."""
    whole, vocabulary = checkpoint_anatomy(task_data, model), task_data.vocabulary
    size = describe_checkpoint(task_data, model, whole=True).backbone["vocab_size"]
    return {
        "checkpoint": {
            "tokens": size,
            "parameters": parameters(whole, whole.full),
            "nonembedding_parameters": nonembedding_parameters(whole, whole.full),
            "width": whole.width,
        },
        "embedding_rank": model.embedding_rank,
        "width": describe_checkpoint(task_data, model).width,
        "vocabulary": vocabulary
        and {
            "rule": str(model.vocabulary),
            "tokens": len(vocabulary),
            "of": vocabulary.size,
            "texts_touched": dict(vocabulary.touched),
            "note": vocabulary.note,
        },
    }
