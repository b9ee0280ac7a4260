"""A kept score is found again as long as nothing it depends on has another revision."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archwright import probe
from archwright.configs import scoring as so
from archwright.parallel.pool import LocalPool
from archwright.proxies import PROXIES
from archwright.scoring.request import ScoreRequest
from archwright.scoring.scorer import Scorer, cache_key
from archwright.scoring.setup import scoring_setup
from archwright.search import smallest
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import ScoreStore

Computed = list[tuple[str, ...]]


@pytest.fixture
def request_(text: Path) -> ScoreRequest:
    space = ARCHITECTURES["flexibert"]
    options = so.ScoringOptions(text=text, batch_rows=2, length=8)
    setup = scoring_setup(space, so.ProxyOptions(proxies=("snip", "depth")), options)
    return setup.request(smallest(space.choices))


@pytest.fixture
def score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[ScoreRequest], Computed]:
    """Scores a request with a new scorer on the same folder; the proxies that were really computed."""
    computed: Computed = []

    class Recording(LocalPool):
        def map_unordered(self, tasks: Any, *, keys: Any = None) -> Any:
            computed.extend(tuple(task.proxies) for task in tasks)
            return super().map_unordered(tasks, keys=keys)

    def run(request: ScoreRequest) -> Computed:
        computed.clear()
        (result,) = Scorer(ScoreStore(tmp_path), Recording()).score([request])
        assert set(result.scores) == {"snip", "depth"}
        return list(computed)

    return run


def test_what_is_kept_is_not_computed_again(request_: ScoreRequest, score: Callable[..., Computed]) -> None:
    assert score(request_) == [("snip", "depth")]
    assert score(request_) == []


def test_a_proxy_of_another_revision_is_computed_alone(request_: ScoreRequest, score: Callable[..., Computed]) -> None:
    score(request_)
    changed = {"snip": replace(PROXIES["snip"], revision=2), "depth": PROXIES["depth"]}
    assert score(replace(request_, proxies=changed)) == [("snip",)]
    assert score(request_) == []


def test_a_probe_of_another_revision_computes_all(
    request_: ScoreRequest, score: Callable[..., Computed], monkeypatch: pytest.MonkeyPatch
) -> None:
    score(request_)
    monkeypatch.setattr(probe, "REVISION", probe.REVISION + 1)
    assert score(request_) == [("snip", "depth")]


def test_a_space_of_another_revision_computes_all(
    request_: ScoreRequest, score: Callable[..., Computed], monkeypatch: pytest.MonkeyPatch
) -> None:
    score(request_)
    monkeypatch.setattr(ArchitectureSpace, "revision", 2)
    assert score(request_) == [("snip", "depth")]


def test_the_key_does_not_read_source_files(request_: ScoreRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edited comment keeps every score."""
    before = cache_key(request_)

    def refuse(path: Path, *_: Any, **__: Any) -> bytes:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    assert cache_key(request_) == before
