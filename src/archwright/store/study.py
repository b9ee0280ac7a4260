"""The study of a run, in a journal file or a database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

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


def read_study(run: RunFolder, url: str | None) -> "Study | None":
    """The run's study to look at: nothing is created or changed; None when there is none yet."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    journal, name = run.path / "study.journal", f"archwright-{run.identity}"
    if url is None and not journal.exists():
        return None
    try:
        if url is None:
            return optuna.load_study(study_name=name, storage=storage(None, journal))
        return optuna.load_study(study_name=name, storage=database_to_read(url))
    except KeyError:
        if url is None and journal.stat().st_size:
            raise Failed("the journal of this run does not have its study; it is damaged or of another run.") from None
        return None
    except (SQLAlchemyError, OSError, ValueError, optuna.exceptions.StorageInternalError) as error:
        where = "its journal" if url is None else without_password(url).split("@")[-1].split("/")[-1]
        raise Failed(f"the study of this run cannot be read ({where}: {type(error).__name__}).") from error


def database_to_read(url: str) -> "BaseStorage":
    """The database at this address, opened such that it refuses to be written; a missing file is not made."""
    import optuna

    address, options = url.replace("postgresql://", "postgresql+psycopg://", 1), {}
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        if not path.is_file():
            raise FileNotFoundError(f"{path.name} is gone")
        address = f"sqlite:///file:{quote(str(path.resolve()))}?mode=ro&uri=true"
    elif url.startswith("postgresql"):
        options = {"options": "-c default_transaction_read_only=on", "connect_timeout": 5}
    else:
        raise ValueError("neither SQLite nor PostgreSQL")
    return optuna.storages.RDBStorage(
        address,
        engine_kwargs={"pool_pre_ping": True, "connect_args": options},
        skip_compatibility_check=True,
        skip_table_creation=True,
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
