"""The study of a run, in a journal file or a database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archwright.errors import BadInput, Failed
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

    if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise BadInput(f"--store must begin with sqlite:/// or postgresql://, got {url!r}.")
    if url.startswith("postgresql") and find_spec("psycopg") is None:
        raise BadInput(
            "--store postgresql:// needs the package psycopg; install it: pip install 'archwright[postgres]'"
        )
    address = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        return optuna.storages.RDBStorage(address, engine_kwargs={"pool_pre_ping": True})
    except (SQLAlchemyError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BadInput(f"--store must be a database that answers, got {url.split('@')[-1]!r}: {reason}") from error


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
