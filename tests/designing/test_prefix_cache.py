"""PrefixCache: the same scores as whole networks, layers run once, memory that has an end."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from archwright.configs import design as do
from archwright.configs import scoring as so
from archwright.designing import prefix_cache
from archwright.designing.prefix_cache import (
    CACHES,
    LAYERWISE,
    LruCache,
    PrefixCache,
    PrefixScoring,
    prefix_cache_for,
    prefix_pool,
)
from archwright.designing.proxy_evaluator import open_pool, proxy_setup
from archwright.proxies import PROXIES
from archwright.scoring.request import ScoreRequest, ScoreResult, score_network
from archwright.scoring.scorer import Scorer
from archwright.scoring.setup import scoring_setup
from archwright.search import Config
from archwright.spaces.nlu import NluSpace
from archwright.store import ScoreStore

SPACE = NluSpace("tiny")
Looks = Callable[..., list[ScoreRequest]]


def config(*words: str) -> Config:
    """The blocks given, then small ones."""
    return dict(zip(SPACE.choices, (*words, *["mobile-132"] * 6), strict=False))


ALIKE = [
    config("base-132", "mobile-660", "base-660", "mobile-132", "base-264", "mobile-792"),
    config("base-132", "mobile-660", "base-660", "mobile-132", "base-264", "base-132"),
    config("base-132", "mobile-660", "base-132", "mobile-132", "base-264", "base-132"),
    config("mobile-264", "mobile-660", "base-660"),
]


@pytest.fixture
def looks(text: Path) -> Looks:
    def made(
        *names: str, configs: list[Config] = ALIKE, rows: int = 4, length: int = 24, seed: int = 0
    ) -> list[ScoreRequest]:
        recording = so.RecordingOptions(text=text, batch_rows=rows, length=length, seed=seed)
        own = tuple(name for name in names if ":" in name)
        listed = tuple(name for name in names if name not in own)
        setup = scoring_setup(SPACE, so.ProxyOptions(proxies=listed or ("depth",), proxy=own), recording)
        return [setup.request(one) for one in configs]

    return made


def test_w_pca_is_exactly_that_of_whole_networks(looks: Looks) -> None:
    """With more tokens than units, so that all three ways to a spectrum are taken."""
    for at in looks("w_pca", configs=ALIKE[:2], rows=16, length=64):
        assert PrefixScoring(at)().scores == score_network(at).scores


@pytest.mark.parametrize("name", LAYERWISE)
def test_what_adds_up_over_layers_is_that_of_whole_networks(name: str, looks: Looks) -> None:
    for at in looks(name, configs=ALIKE[:2]):
        assert PrefixScoring(at)().scores[name] == pytest.approx(score_network(at).scores[name], rel=1e-6)


@pytest.mark.parametrize("names", [("nwot", "lpzero_flexibert_layers"), ("w_pca", "hidden_covariance_2", "random")])
def test_what_does_not_is_found_on_a_probe_put_together(names: tuple[str, ...], looks: Looks) -> None:
    for at in looks(*names):
        by_prefix, whole = PrefixScoring(at)().scores, score_network(at).scores
        assert by_prefix == pytest.approx(whole, rel=1e-6) and set(by_prefix) == set(names)


def test_a_proxy_of_ones_own_sees_all_it_would_see(looks: Looks, tmp_path: Path) -> None:
    source = """
def everything(probe):
    states = sum(float(layer.output.value.abs().sum()) for layer in probe.layers)
    weights = sum(float(weight.value.double().sum()) for weight in probe.parameters)
    return states + weights + probe.counts.depth + len(probe.linears)

everything.passes = ("forward",)
"""
    (tmp_path / "mine.py").write_text(source)
    for at in looks(f"{tmp_path}/mine.py:everything", configs=ALIKE[:1]):
        assert PrefixScoring(at)().scores == pytest.approx(score_network(at).scores, rel=1e-6)


def test_counts_alone_run_nothing(looks: Looks) -> None:
    (at,) = looks("parameters", "flops", configs=ALIKE[:1])
    counts = SPACE.counts(at.config)
    assert PrefixScoring(at)().scores == {"parameters": counts.parameters, "flops": counts.flops}
    assert prefix_cache_for(at).runs.run == 0


@pytest.mark.parametrize("names", [("found_rising_weights",), ("reach",), ("found_rising_weights", "reach", "depth")])
def test_weights_alone_are_read_without_running_anything(names: tuple[str, ...], looks: Looks) -> None:
    for at in looks(*names):
        result = PrefixScoring(at)()
        assert result.scores == pytest.approx(score_network(at).scores, rel=1e-9) and not result.missing
    assert prefix_cache_for(at).runs.run == 0


def test_a_common_beginning_is_run_once(looks: Looks) -> None:
    wanted = looks("v_pca")
    for at in wanted:
        PrefixScoring(at)()
    runs = prefix_cache_for(wanted[0]).runs
    assert (runs.requested, runs.run) == (24, 6 + 1 + 4 + 6)  # the last layer, the last four, and a new beginning
    PrefixScoring(wanted[0])()
    assert prefix_cache_for(wanted[0]).runs.run == runs.run


def test_what_was_forgotten_is_found_again(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [PrefixScoring(at)().scores for at in looks("v_pca", "softmax_confidence")]
    CACHES.clear()
    monkeypatch.setattr(prefix_cache, "STATES", 1)
    monkeypatch.setattr(prefix_cache, "LAYERS", 1)
    wanted = looks("v_pca", "softmax_confidence")
    assert [PrefixScoring(at)().scores for at in wanted] == expected
    cache = prefix_cache_for(wanted[0])
    assert len(cache._states) == 1 == len(cache._layers)


def test_a_machine_with_little_memory_keeps_little(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_cache, "available_memory", lambda: 1)
    wanted = looks("v_pca")
    for at in wanted:
        PrefixScoring(at)()
    assert len(prefix_cache_for(wanted[0])._states) == 1


def test_another_seed_is_another_cache(looks: Looks) -> None:
    one, other = (looks("softmax_confidence", configs=ALIKE[:1], seed=seed)[0] for seed in (0, 1))
    assert PrefixScoring(one)().scores != PrefixScoring(other)().scores
    assert len(CACHES) == 1


@pytest.mark.parametrize("names", [("w_pca", "softmax_confidence"), ("nwot", "w_pca"), ("parameters", "nwot")])
def test_a_folder_that_knows_one_of_two_proxies_keeps_the_cache(
    names: tuple[str, str], text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every other design one proxy is missing, of the rest both."""
    begin, begun, results = PrefixCache.__init__, [], []
    monkeypatch.setattr(PrefixCache, "__init__", lambda cache, at: (begun.append(at), begin(cache, at))[1])
    scoring, kept = do.DesignScoringOptions(text=text, batch_rows=4, length=24, workers=1), ScoreStore(tmp_path)
    for proxies, configs in ((names[:1], ALIKE[::2]), (names, ALIKE)):
        begun.clear()
        setup = proxy_setup(SPACE, proxies, scoring)
        with open_pool(setup, scoring) as pool:
            requests = [setup.request(design) for design in configs]
            results = Scorer(kept, pool).score(requests)
        assert len(begun) == 1
    expected = [score_network(at).scores for at in requests]
    assert [result.scores for result in results] == [pytest.approx(scores, rel=1e-6) for scores in expected]


def test_a_score_that_cannot_be_is_missing_with_the_reason(looks: Looks) -> None:
    (at,) = looks("v_pca", configs=ALIKE[:1])
    cache = PrefixCache(at)
    cache._path[()] = torch.zeros_like(cache._path[()])
    seen = cache.score(at)
    assert seen.scores == {} and "same for all tokens" in seen.missing["v_pca"]
    assert cache.score(at).missing == seen.missing


def test_kept_things_end_with_the_oldest() -> None:
    cache: LruCache[str, int] = LruCache(10, lambda value: value)
    for key, value in {"a": 4, "b": 4}.items():
        cache.put(key, value)
    assert cache.get("a") == 4
    cache.put("c", 4)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (4, None, 4)
    cache.put("huge", 100)
    assert len(cache) == 1 and cache.get("huge") == 100


def test_what_is_put_again_counts_once() -> None:
    cache: LruCache[str, int] = LruCache(10, lambda value: value)
    for key, value in [("a", 6), ("b", 2), ("a", 6), ("a", 5)]:
        cache.put(key, value)
    assert (cache.get("b"), cache.get("a")) == (2, 5)
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [5, 2, 3]
    cache.put("d", 1)
    assert (cache.get("a"), len(cache)) == (None, 3)


def test_processes_give_what_one_gives(looks: Looks) -> None:
    wanted = looks("w_pca", configs=[*ALIKE, config("mobile-396"), config("base-792")])
    found: dict[int, dict[int, ScoreResult]] = {}
    for count in (1, 2):
        with prefix_pool(count) as pool:
            found[count] = dict(pool.map_unordered(wanted))
            assert dict(pool.map_unordered(wanted[:1]))[0].scores == found[count][0].scores
    assert [found[2][place].scores for place in range(6)] == [found[1][place].scores for place in range(6)]


def test_a_prefix_cache_needs_no_more_than_a_proxy_says() -> None:
    assert all(set(PROXIES[each.proxy].passes) == {"forward"} for each in LAYERWISE.values())
