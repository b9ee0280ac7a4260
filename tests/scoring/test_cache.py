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
from archwright.scoring.request import ScoreRequest, ScoreResult
from archwright.scoring.scorer import Scorer, cache_entry, cache_key, read_result
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


def test_what_other_proxies_took_is_not_charged(request_: ScoreRequest, tmp_path: Path) -> None:
    kept, took = ScoreStore(tmp_path), {"snip": 5.0, "depth": 1.0}
    parts = {name: replace(request_, proxies={name: PROXIES[name]}) for name in took}
    for name, part in parts.items():
        kept.add("network", cache_entry(part, ScoreResult({name: 0.0}, {}, took[name], 10 * took[name], {})))
    entry = ScoreStore(tmp_path).of("network")
    results = {name: read_result(part, entry) for name, part in parts.items()}
    assert {name: result.seconds for name, result in results.items()} == took
    assert results["depth"].peak_mb == 10.0
    assert read_result(request_, entry).seconds == 6.0
    changed = replace(request_, proxies={"depth": replace(PROXIES["depth"], revision=2)})
    kept.add("network", cache_entry(changed, ScoreResult({"depth": 0.0}, {}, 2.0, None, {})))
    assert [read_result(each, kept.of("network")).seconds for each in (changed, parts["depth"])] == [2.0, 1.0]


def test_costs_that_do_not_say_what_they_were_for_always_count(request_: ScoreRequest) -> None:
    """They were kept by an earlier version."""
    entry = cache_entry(request_, ScoreResult({"snip": 0.0, "depth": 0.0}, {}, 1.0, None, {}))
    earlier = {"seconds": 4.0, "peak_mb": None}
    assert read_result(request_, entry | {"cost": {"earlier": earlier, **entry["cost"]}}).seconds == 5.0
