"""Bad requests by the hundred: every address with every kind of nonsense is answered with a sentence, tells nothing.

`CASES` is the table; each is a method, an address, headers and a body, and the codes that are an answer to it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from archwright.commands import COMMANDS
from archwright.web.app import create_app
from archwright.web.folder import open_folder
from archwright.web.security import LARGEST_BODY, choose_access
from tests.reports.conftest import synthetic
from tests.web.served import write_finished, write_search

SECRET, PASSWORD, TOKEN = "SECRET-MODEL", "hunter2", "correct-horse-battery"
OWN = {"origin": "http://127.0.0.1:8321"}
NAMES = (
    *("..", "../secret", "one/../../secret", "..%2Fsecret", "%2e%2e/secret", "%2e%2e%2fsecret", "....//secret"),
    *("/etc/passwd", "//etc/passwd", "%2Fetc%2Fpasswd", "one/..%00", "%00", "~root", "x" * 2000, "one\\..\\..\\secret"),
    *("..%c0%afsecret", "%F0%9F%92%A9", "file:///etc/passwd", "one/result.json", "<script>alert(1)</script>", "%"),
)
READ = (
    *("/run/{}", "/network/14/{}", "/proxies/{}", "/architecture/{}", "/download/trial-14-hf/{}", "/download/{}/one"),
    *("/api/run/{}", "/api/events/{}", "/api/select/{}?params=50%25", "/api/network/14/{}", "/api/inspect/14/{}"),
    *("/assets/1/{}", "/api/jobs/{}", "/compare?run={}", "/compare?network=14:{}"),
)
WRITE = ("/api/try/14/{}", "/api/export/14/{}", "/api/resume/{}", "/api/stop/{}", "/api/command", "/api/start")
TRIALS = ("-1", "x", "1.5", "999999", "9" * 40, "14%00", "0x0e", "%20", "..")
QUERIES = (
    *(
        "/api/events/one?after=-1",
        "/api/events/one?after=x",
        "/api/events/one?after=9999999999999",
        "/compare?network=x",
    ),
    *("/compare?network=14", "/compare?network=:one", "/compare?network=99999999999999:one", "/api/select/one"),
    *("/api/select/one?params=-1", "/api/select/one?params=..%2F..%2Fsecret", "/api/select/one?params=nan"),
    *(f"/api/select/one?{name}=..%2F..%2Fsecret" for name in ("flops", "int8_size", "max_loss", "total_params")),
    *(
        "/api/events/one?after=../x",
        "/compare?network=../x:one",
        "/assets/..%2F..%2Fsecret/x",
        "/compare?" + "&".join(f"run=x{n}" for n in range(9)),
    ),
    *("/api/select/one?latency_ms=../x", "/api/select/one?latency_ms=nan", "/api/select/one?max_loss=inf"),
    *("/api/select/search?params=50%25", "/api/inspect/14/search", "/api/network/14/search", "/network/14/search"),
    *("/nothing", "/api", "/api/", "/api/nothing", "/assets", "/assets/1", "/assets/1/base.py", "/download/one"),
    *("/assets/1/" + "+".join(["base"] * 50) + ".js", "/assets/1/base+nothing.js", "/.git/config", "/robots.txt"),
)
BODIES: tuple[bytes, ...] = (
    *(b"", b"x", b"{", b"[]", b"3", b"null", b'"text"', b"\xff\xfe", b"{}x", b'{"text": 3}', b'{"to": ["hf"]}'),
    *(b'{"to": "../../secret"}', b'{"to": "hf", "out": "/tmp/x"}', b'{"int8": "yes"}', b'{"name": 3, "options": []}'),
    *(b'{"name": "../secret", "options": {}}', b'{"name": "/tmp/x", "options": {}}', b'{"name": "a\\u0000b"}'),
    *(b'{"name": "new", "options": {"out": "/etc"}}', b'{"name": "new", "options": {"trials": "-3"}}'),
    *(b'{"name": "new", "options": {"store": "sqlite:////tmp/x"}}', b'{"name": "one", "options": {}}'),
    *(b"[" * 60_000, b'{"a":' * 10_000, b'{"text": NaN}', b"1" * 6000),
)
METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "GET", "POST", "X" * 40)
FOREIGN: tuple[dict[str, str], ...] = (
    {"host": "evil.example"},
    {"host": ""},
    {"host": "127.0.0.1.evil.example:8321"},
    {"host": "localhost@evil.example"},
    {"host": "[::1"},
    {"host": "127.0.0.1:99999999"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:9"},
    {"origin": "http://[::1"},
    {"sec-fetch-site": "cross-site"},
    {"content-length": "-1"},
    {"content-length": "x"},
    {"content-length": str(LARGEST_BODY + 1)},
    {"content-length": "9" * 30},
)


class Case(NamedTuple):
    """A request, and the codes that are an answer to it."""

    method: str
    path: str
    codes: tuple[int, ...]
    headers: dict[str, str] = OWN
    body: bytes | None = None


def make_cases() -> list[Case]:
    refused = (400, 404)
    read = [
        Case("GET", path.format(name), (*refused, 200) if path.startswith("/compare") or name == ".." else refused)
        for path in READ
        for name in NAMES
    ]
    write = [
        Case("POST", path.format(name), (*refused, 405), body=b"{}") for path in WRITE if "{}" in path for name in NAMES
    ]
    trials = [
        Case(method, path.format(trial), (*refused, 405), body=b"{}" if method == "POST" else None)
        for method, path in (
            *(("GET", f"/{page}/{{}}/one") for page in ("network", "api/network", "api/inspect")),
            *(("POST", f"/api/{what}/{{}}/one") for what in ("try", "export")),
        )
        for trial in TRIALS
    ]
    queries = [Case("GET", path, refused) for path in QUERIES]
    bodies = [
        Case("POST", path.format("one"), refused, body=body)
        for path in WRITE
        for body in BODIES
        if path != "/api/command" or b'"one"' not in body  # a command may be shown
    ]
    known = [path.format("one") for path in (*READ, *WRITE, "/", "/start", "/api/runs", "/api/jobs")]
    methods = [
        Case(method, path, (404, 405))
        for path in known
        for method in METHODS
        if method not in ("GET", "POST") or (method == "POST") != (path.startswith(tuple(w[:9] for w in WRITE)))
        if not (method == "GET" and not path.startswith(tuple(w[:9] for w in WRITE)))
    ]
    foreign = [
        Case(method, path, (400, 403, 413, 421), {**headers})
        for headers in FOREIGN
        for method, path in (("GET", "/api/runs"), ("POST", "/api/try/14/one"), ("POST", "/api/start"))
    ]
    large = [Case("POST", path.format("one"), (413,), body=b"x" * (LARGEST_BODY + 1)) for path in WRITE]
    return [*read, *write, *trials, *queries, *bodies, *methods, *foreign, *large]


CASES = make_cases()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bad") / "runs"
    result = synthetic(20)
    store = {"store": f"postgresql://me:{PASSWORD}@db.example/x"}
    write_finished(root / "one", result, **store)
    write_search(root / "search", trials=2)
    write_finished(root.parent / "secret", {**result, "model": SECRET})
    (root.parent / "secret" / "design.json").write_text(f'{{"schema": "archwright/design/1", "space": "{SECRET}"}}')
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[TestClient]:
    access = choose_access("127.0.0.1", None, ())
    app = create_app(open_folder(root), access, start_options=COMMANDS["compress"].first)
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as client:
        yield client


def problem(client: TestClient, root: Path, case: Case) -> str:
    """What is wrong with the answer; nothing where it is in order."""
    answer = client.request(case.method, case.path, headers=case.headers, content=case.body, follow_redirects=False)
    hidden = (SECRET, PASSWORD, "Traceback", "root:x:", 'File "', *([str(root)] if answer.status_code >= 400 else []))
    leaked = [word for word in hidden if word in answer.text]  # commands on pages name the folder
    if leaked:
        return f"tells {leaked}"
    if answer.status_code not in case.codes:
        return f"answers {answer.status_code}: {answer.text[:200]}"
    if answer.status_code in (400, 404, 405) and answer.request.url.path.startswith("/api/"):
        words = answer.json()["error"]
        if not words.strip() or "\n" in words.strip() or len(words) > 400:
            return f"says {words!r}"
    return ""


def test_every_bad_request_gets_a_clear_answer(client: TestClient, root: Path) -> None:
    assert len(CASES) > 800
    problems = {
        f"{case.method} {case.path[:80]} {case.headers} {(case.body or b'')[:60]!r}": words
        for case in CASES
        if (words := problem(client, root, case))
    }
    assert not problems, f"{len(problems)} of {len(CASES)}: {json.dumps(problems, indent=1)[:6000]}"
    assert client.get("/api/jobs").json()["jobs"] == []  # nothing was started
    assert {path.name for path in root.iterdir()} == {"one", "search"}
    assert {row["name"]: row["state"] for row in client.get("/api/runs").json()["runs"]} == {
        "one": "finished",
        "search": "stopped",
    }


def test_without_the_token_no_case_gets_further(root: Path) -> None:
    access = choose_access("0.0.0.0", TOKEN, ("page.example",))
    with TestClient(create_app(open_folder(root), access), base_url="http://page.example") as guarded:
        for case in CASES[:: len(CASES) // 150]:
            own: dict[str, Any] = (
                {**case.headers, "origin": "http://page.example"} if case.headers == OWN else case.headers
            )
            wrong = {**own, "authorization": f"Bearer {TOKEN[:-1]}"}
            answer = guarded.request(case.method, case.path, headers=wrong, content=case.body, follow_redirects=False)
            assert answer.status_code in (400, 401, 403, 413, 421), (case, answer.status_code)
            assert "archwright compress" not in answer.text


def test_a_folder_without_runs_says_how_to_make_one(tmp_path: Path) -> None:
    with TestClient(
        create_app(open_folder(tmp_path), choose_access("127.0.0.1", None, ())), base_url="http://127.0.0.1:8321"
    ) as empty:
        for path, words in {
            "/": "There is no run below this folder yet",
            "/compare": "Choose two runs",
            "/proxies": "archwright rank",
            "/architectures": "archwright design",
        }.items():
            answer = empty.get(path)
            assert answer.status_code == 200 and words in answer.text
        assert empty.get("/api/runs").json()["runs"] == []
