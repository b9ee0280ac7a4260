"""What a run of `compress` is bound to: its rows, the weights of its model, and the tokenizer."""

from archwright.store import RunFolder
from archwright.training.digests import NOTE, bind_run, digest_rows, digest_tokenizer, digest_weights
from archwright.training.task_data import TaskData

NAMES = {"rows": ("train", "data", "task"), "model": ("model",), "tokenizer": ("tokenizer", "model")}


def check_inputs(run: RunFolder, task_data: TaskData) -> None:
    """BadInput where rows, weights or tokenizer are not those that the run was begun with; notes them for a new run."""
    whole, noted = task_data.uncut or task_data, run.note(NOTE) or {}
    found = {
        "tokenizer": {"digest": digest_tokenizer(whole.tokenizer)},
        "model": digest_weights(task_data.source, noted.get("model", {})),
        "rows": {"digest": digest_rows(whole.encoded, whole.task.kind, whole.task.labels)},
    }
    bind_run(run, found, NAMES, begun=run.original.exists())
