"""Where results lie: run folders, studies, checkpoints. The only code that knows paths."""

from archwright.store.files import atomic_folder, write_atomic
from archwright.store.run import RunFolder, begin_run, existing_run, is_run
from archwright.store.scores import ScoreStore, digest
from archwright.store.study import check_store, open_study, read_study, report_database_loss

__all__ = [
    "RunFolder",
    "ScoreStore",
    "atomic_folder",
    "begin_run",
    "check_store",
    "digest",
    "existing_run",
    "is_run",
    "open_study",
    "read_study",
    "report_database_loss",
    "write_atomic",
]
