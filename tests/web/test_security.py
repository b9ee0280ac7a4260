"""Who may ask, and what can be read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from archwright.errors import BadInput
from archwright.web.app import create_app
from archwright.web.folder import open_folder
from archwright.web.security import COOKIE, LARGEST_BODY, choose_access
from tests.web.conftest import HOSTILE
from tests.web.served import write_finished

TOKEN = "correct-horse-battery"
ORIGIN = {"origin": "http://127.0.0.1:8321"}
PATHS = ("/", "/run/one", "/compare?run=one", "/proxies", "/architectures", "/nothing", "/run/nothing")


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", PATHS)
def test_no_script_stands_in_a_page(client: TestClient, path: str) -> None:
    """Scripts are files; the only inline element holds JSON, which is not run."""
    page = client.get(path).text
    inline = [part.split(">", 1)[0] for part in page.split("<script")[1:]]
    assert all("src=" in head or 'type="application/json"' in head for head in inline)
    assert "onclick" not in page and "javascript:" not in page


def test_hostile_names_are_escaped(client: TestClient) -> None:
    for path in ("/", "/compare?run=one", "/run/group/" + HOSTILE.replace("/", "")):
        page = client.get(path).text
        assert "<script>alert" not in page and "<img src=x" not in page


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "", "10.0.0.7:8321", "localhost@evil.example"],
)
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/runs", headers={"host": host})
    assert answer.status_code == 421
    assert "host name" in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:9", "LOCALHOST", "[::1]:8321"])
def test_our_own_names_are_known(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


FOREIGN = ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {})


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_post_from_elsewhere_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.post("/api/export/14/one", json={"to": "hf"}, headers=headers)
    assert answer.status_code == 403
    assert client.get("/api/jobs").json()["jobs"] == []


def test_another_site_cannot_read(client: TestClient) -> None:
    assert client.get("/api/runs", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/runs", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200  # a link to the page


def test_large_bodies_are_refused(client: TestClient) -> None:
    large = b"x" * (LARGEST_BODY + 1)
    assert client.post("/api/try/14/one", content=large, headers=ORIGIN).status_code == 413
    chunks = (b"x" * 10_000 for _ in range(10))
    assert client.post("/api/try/14/one", content=chunks, headers=ORIGIN).status_code >= 400


@pytest.fixture
def guarded(folder: Path) -> Iterator[TestClient]:
    access = choose_access("0.0.0.0", TOKEN, ("page.example",))
    with TestClient(create_app(open_folder(folder), access), base_url="http://page.example") as client:
        yield client


def test_without_the_token_nothing_is_shown(guarded: TestClient) -> None:
    for path in (*PATHS, "/api/runs", "/api/events", "/assets/1/base.css", "/download/x/one"):
        answer = guarded.get(path)
        assert answer.status_code == 401
        assert "one" not in answer.text.replace("one is wrong", "")


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "%00"])
def test_a_wrong_token_is_refused(guarded: TestClient, wrong: str) -> None:
    assert guarded.get("/", params={"token": wrong}).status_code == 401
    assert (
        guarded.get("/", headers={"cookie": f"{COOKIE}={wrong.encode('ascii', 'ignore').decode()}"}).status_code == 401
    )


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(guarded: TestClient) -> None:
    answer = guarded.get("/compare", params={"token": TOKEN, "run": "one"}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/compare?run=one"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert guarded.get("/api/runs").status_code == 200


def test_the_token_redirect_stays_here(guarded: TestClient) -> None:
    answer = guarded.get("//evil.example/", params={"token": TOKEN}, follow_redirects=False)
    assert not answer.headers.get("location", "/").startswith("//")


def test_scripts_use_a_bearer_token(guarded: TestClient) -> None:
    assert guarded.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/api/runs", headers={"authorization": "Bearer wrong"}).status_code == 401


def test_any_other_address_gets_a_token() -> None:
    assert choose_access("127.0.0.1", None, ()).token is None
    made = choose_access("0.0.0.0", None, ()).token
    assert made is not None and len(made) >= 32
    assert made != choose_access("0.0.0.0", None, ()).token
    with pytest.raises(BadInput, match="at least 8 characters"):
        choose_access("127.0.0.1", "short", ())


CLIMBING = (
    "one/../../secret",
    "..%2Fsecret",
    "%2e%2e/secret",
    "....//secret",
    "/etc",
    "one/..%00",
    "x" * 2000,
)
ADDRESSES = (
    *(
        "/run/{}",
        "/network/14/{}",
        "/api/run/{}",
        "/api/events/{}",
        "/api/select/{}?params=50%25",
        "/api/network/14/{}",
    ),
    *("/api/inspect/14/{}", "/download/trial-14-hf/{}", "/proxies/{}", "/architecture/{}", "/download/{}/one"),
    *("/compare?run={}", "/compare?network=14:{}", "/assets/1/{}"),
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_name_climbs_out_of_the_folder(
    client: TestClient, folder: Path, address: str, result: dict[str, Any]
) -> None:
    secret = folder.parent / "secret"
    if not secret.exists():
        write_finished(secret, {**result, "model": "SECRET-MODEL"})
        (secret / "design.json").write_text('{"schema": "archwright/design/1", "space": "SECRET-MODEL"}')
    for name in CLIMBING:
        answer = client.get(address.format(name))
        assert "SECRET-MODEL" not in answer.text
        assert str(folder) not in answer.text
        assert answer.status_code in (400, 404) or (answer.status_code == 200 and address.startswith("/compare"))


@pytest.mark.parametrize("address", [a for a in ADDRESSES if "{}" in a and "/one" not in a and "assets" not in a])
def test_links_out_of_the_folder_are_not_followed(
    client: TestClient, folder: Path, address: str, result: dict[str, Any]
) -> None:
    write_finished(folder.parent / "secret", {**result, "model": "SECRET-MODEL"})
    os.symlink(folder.parent / "secret", folder / "linked")
    answer = client.get(address.format("linked"))
    assert "SECRET-MODEL" not in answer.text and answer.status_code in (200, 400, 404)
    assert "linked" not in [row["name"] for row in client.get("/api/runs").json()["runs"]]


@pytest.mark.parametrize("name", ["result.json", "run.json", "study.journal"])
def test_a_file_that_is_a_link_out_is_not_read(
    client: TestClient, folder: Path, name: str, result: dict[str, Any]
) -> None:
    secret = write_finished(folder.parent / "secret", {**result, "model": "SECRET-MODEL"})
    (secret.path / "study.journal").write_text("SECRET-MODEL\n")
    (folder / "one" / name).unlink(missing_ok=True)
    os.symlink(secret.path / name, folder / "one" / name)
    for path in ("/run/one", "/api/run/one", "/", "/api/runs", "/compare?run=one"):
        assert "SECRET-MODEL" not in client.get(path).text
    (row,) = [row for row in client.get("/api/runs").json()["runs"] if row["name"] == "one"]
    assert row["state"] == "damaged" and "outside" in row["reason"]


def test_passwords_of_stores_are_never_shown(client: TestClient, folder: Path, result: dict[str, Any]) -> None:
    write_finished(folder / "other", result, store="postgresql://me:hunter2@db.example/x", seed=9)
    for path in ("/", "/run/other", "/compare?run=one&run=other", "/api/runs", "/api/run/other"):
        assert "hunter2" not in client.get(path).text
