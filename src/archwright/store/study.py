"""The study of a run, in a journal file or a database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archwright.errors import BadInput, Failed
from archwright.store.address import hide_secrets, without_password
from archwright.store.run import RunFolder

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.study import Study


def open_study(
    run: RunFolder, url: str | None, *, sampler: "BaseSampler", directions: Sequence[Literal["minimize", "maximize"]]
) -> "Study":
    """The run's study in its store, made when it is not there yet."""
    import optuna

    journal = run.path / "study.journal"
    return optuna.create_study(
        study_name=f"archwright-{run.identity}",
        storage=storage(url, journal),
        sampler=sampler,
        directions=list(directions),
        load_if_exists=True,
    )


def check_store(url: str | None) -> None:
    """Raises BadInput for a database that cannot be used."""
    if url is not None:
        database(url)


def storage(url: str | None, journal: Path) -> "BaseStorage":
    """A journal file, or the database at this address."""
    import optuna

    if url is not None:
        return database(url)
    from archwright.store.journal import CheckedJournal  # loads optuna

    return optuna.storages.JournalStorage(CheckedJournal(journal))


def database(url: str) -> "BaseStorage":
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    shown = without_password(url)
    if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise BadInput(
            f"--store must begin with sqlite:/// or postgresql://, got {shown!r}; "
            "without it trials are in a file of the run folder."
        )
    if url.startswith("postgresql") and find_spec("psycopg") is None:
        raise BadInput(
            "--store postgresql:// needs the package psycopg; install it: pip install 'archwright[postgres]'"
        )
    address = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        return optuna.storages.RDBStorage(address, engine_kwargs={"pool_pre_ping": True})
    except (SQLAlchemyError, OSError, ValueError, TypeError, ImportError, OverflowError) as error:
        reason = hide_secrets((str(error).strip().splitlines() or [type(error).__name__])[0], url)
    reason = reason or "it is not USER@HOST:PORT/DATABASE; write @ in a password as %40, or use ~/.pgpass"
    raise BadInput(f"--store must be a database that answers, got {shown!r}: {reason}.")  # without a cause: it may tell


@contextmanager
def report_database_loss() -> Iterator[None]:
    """Ends a command with one line when its database goes away; the same command goes on when it is back."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise Failed(f"the database does not answer any more ({reason}); run the same command when it does.") from error
