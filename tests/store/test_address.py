"""Passwords of databases: shown nowhere, however they are spelled, and not needed in an address at all."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from archwright.cli.main import main
from archwright.errors import BadInput
from archwright.logs import hide_passwords, write_logs
from archwright.store import begin_run, check_store
from archwright.store.address import hide_secrets, is_same, without_password
from tests.postgres import postgres_folder, server_in

ADDRESSES = {
    "postgres://": "postgres://user:geheim@host/db",
    "another database": "mysql://user:geheim@host/db",
    "another driver": "postgresql+psycopg2://user:geheim@host/db",
    "nobody answers": "postgresql://user:geheim@127.0.0.1:1/db?connect_timeout=2",
    "in the query": "postgresql://user@127.0.0.1:1/db?password=geheim&connect_timeout=2",
    "@ in the query": "postgresql://127.0.0.1:1/db?user=u&password=ge@heim",
    "@": "postgresql://user:ge@heim@127.0.0.1:1/db",
    "@ quoted": "postgresql://user:ge%40heim@127.0.0.1:1/db",
    "?": "postgresql://user:ge?heim@127.0.0.1:1/db",
    "/": "postgresql://user:ge/heim@127.0.0.1:1/db",
    "blank": "postgresql://user:ge heim@127.0.0.1:1/db",
    "port too large": "postgresql://user:geheim@127.0.0.1:99999/db",
    "port no number": "postgresql://user:geheim@127.0.0.1:port/db",
    "half a host": "postgresql://user:geheim@[::1/db",
    "unknown word": "postgresql://user:geheim@127.0.0.1:1/db?nothing=1",
    "no database": "sqlite://user:geheim@host/x.db",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_that_cannot_be_used_is_one_line_without_the_password(address: str) -> None:
    with pytest.raises(BadInput, match="--store") as caught:
        check_store(address)
    line = str(caught.value)
    assert "ge" not in line.replace("got ", "") and "heim" not in line and "\n" not in line
    assert caught.value.__cause__ is None  # nor in the traceback of a log


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_at_the_wrong_place_is_told_without_the_password(
    address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.txt"
    for words in (["worker", address], ["compress", f"--stor={address}"], ["compress", "--stores", address]):
        assert main([*words, "--log-file", str(log)]) == 2
        told = "".join(capfd.readouterr()) + (log.read_text() if log.exists() else "")
        if address.startswith("sqlite"):  # has no passwords
            continue
        assert "geheim" not in told and "heim" not in told, told


def test_what_may_be_shown() -> None:
    assert without_password("postgresql://u:p@host:5432/db?x=1") == "postgresql://host:5432/db"
    assert without_password("postgresql:///db?host=/tmp") == "postgresql:///db"
    assert without_password("postgresql://u:p@ss@host/db") == "postgresql://***"
    assert without_password("sqlite:////some/folder/trials.db") == "sqlite:////some/folder/trials.db"
    assert without_password(3) == 3 and without_password("weights") == "weights"


def test_what_a_driver_says() -> None:
    said = "no user u with ge@heim or ge%40heim at host"
    assert hide_secrets(said, "postgresql://u:ge%40heim@host/db") == "no user u with *** or *** at host"
    assert hide_secrets(said, "postgresql://host/db?password=ge%40heim") == "no user u with *** or *** at host"
    assert hide_secrets(said, "postgresql://u:ge@heim@host/db") == ""


def test_log_lines_and_tracebacks(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with pytest.raises(ValueError, match="geheim"), write_logs(quiet=True, file=log):
        logging.getLogger("archwright").info("store %s", ADDRESSES["in the query"])
        raise ValueError(f"bad address {ADDRESSES['@']}, {ADDRESSES['nobody answers']}")
    text = log.read_text()
    assert "bad address" in text and "Traceback" in text and "heim" not in text
    assert hide_passwords("no file https://host/a@b: ask x@y.z") == "no file https://host/a@b: ask x@y.z"


def test_a_new_password_is_no_other_run(tmp_path: Path) -> None:
    assert is_same("postgresql://u:old@h/db?sslmode=require", "postgresql://u:new@h/db?sslmode=require&password=x")
    assert not is_same("postgresql://u:p@h/db", "postgresql://u:p@h/other")
    assert not is_same("postgresql://u:p@s@h/db", "postgresql://u:p@s@h/other")
    begin_run(tmp_path / "run", {"store": "postgresql://u:geheim@h/db"})
    begin_run(tmp_path / "run", {"store": "postgresql://u@h/db"})
    with pytest.raises(BadInput, match="store='postgresql://h/db', got 'postgresql://h/other'"):
        begin_run(tmp_path / "run", {"store": "postgresql://u:geheim@h/other"})


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[str, str]]:
    """Folder of the socket of a server, and a database there whose user needs a password."""
    with postgres_folder() as folder:
        server = server_in(folder)
        server.psql("CREATE ROLE guarded LOGIN PASSWORD 'ge@heim?'; CREATE DATABASE trials OWNER guarded;")
        rules = folder / "pg_hba.conf"
        rules.write_text("local trials guarded scram-sha-256\n" + rules.read_text())
        server.psql("SELECT pg_reload_conf();")
        address = urlsplit(server.get_uri())
        yield parse_qs(address.query)["host"][0], "trials"
        server.cleanup()


@pytest.mark.server
def test_the_password_of_a_real_server(
    guarded: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, database = guarded
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    plain, query = f"postgresql://guarded@/{database}?host={host}", "password=ge%40heim%3F"
    for wrong in (plain, plain.replace("guarded@", "guarded:geheim@")):
        with pytest.raises(BadInput, match="--store") as caught:
            check_store(wrong)
        assert "password" in str(caught.value) and "geheim" not in str(caught.value)
    check_store(plain.replace("guarded@", "guarded:ge%40heim%3F@"))
    check_store(f"{plain}&{query}")
    with monkeypatch.context() as environment:
        environment.setenv("PGPASSWORD", "ge@heim?")
        check_store(plain)
    file = tmp_path / ".pgpass"
    file.write_text(f"*:*:{database}:guarded:ge@heim?\n")
    file.chmod(0o600)
    check_store(plain)
    file.rename(tmp_path / "elsewhere")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "elsewhere"))
    check_store(plain)


def secrets_in(folder: Path) -> list[Path]:
    """Files with the password that others than their owner can read."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
    return [path for path in files if any(word in path.read_bytes() for word in (b"ge@heim", b"ge%40heim"))]


@pytest.mark.server
def test_a_whole_run_tells_nobody(guarded: tuple[str, str], tmp_path: Path, given: Any, capfd: Any) -> None:
    from tests.compression.runs import QUICK, words_of

    host, database = guarded
    store = f"postgresql://guarded:ge%40heim%3F@/{database}?host={host}"
    files = {name: tmp_path / name for name in ("json", "save_config", "log_file", "out")}
    words = words_of("compress", **{**QUICK, **given, **files, "store": store}, verbose=True)
    assert main(words) == 0
    trial = json.loads(files["json"].read_text())["front"][0]["trial"]
    assert main(words_of("export", files["out"], trial=trial, to="compact", out=tmp_path / "export")) == 0
    told = "".join(capfd.readouterr())
    assert told and "heim" not in told
    assert secrets_in(tmp_path) == []
    assert b"heim" in (tmp_path / "save_config").read_bytes()  # or the option could not be read again
