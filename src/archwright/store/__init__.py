"""Where results lie: run folders, studies, checkpoints. The only code that knows paths."""

from archwright.store.files import whole_folder, write_whole
from archwright.store.run import RunFolder, begin, existing_run, is_run
from archwright.store.scores import Scores, digest
from archwright.store.study import answering, check_store, open_study

__all__ = [
    "RunFolder",
    "Scores",
    "answering",
    "begin",
    "check_store",
    "digest",
    "existing_run",
    "is_run",
    "open_study",
    "whole_folder",
    "write_whole",
]
