"""Found proxies: one number by cached statistics, by direct evaluation and by their own Python, on real networks."""

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.discovery.score_table import StatisticsTable, is_usable
from archwright.probe import Probe, record
from archwright.proxies import PROXIES, Unscored
from archwright.proxies.formulas.discovered import GALLERY, as_proxy
from archwright.proxies.formulas.formula import Branch, Formula, parse
from archwright.proxies.formulas.inputs import EXTENDED, required_passes, required_roles
from archwright.proxies.formulas.operations import Chain
from archwright.proxies.formulas.statistics import statistics
from archwright.scoring.request import ScoreRequest
from archwright.spaces import ARCHITECTURES
from archwright.statistics.many_scores import BulkCorrelations
from tests.proxies.formulas.test_formula import executed, random_formula

ENTRIES = json.loads((Path(sys.modules[as_proxy.__module__].__file__ or "").parent / GALLERY).read_text())
SPACES = ("flexibert", "gpt2", "rnn")
NETWORKS = 20
DOCS = Path(__file__).parents[3] / "docs"


def probes(name: str) -> Iterator[Probe]:
    """Two random architectures of a space, small enough for a test."""
    space = ARCHITECTURES[name]
    rng = np.random.default_rng(1)
    drawn = [space.canonical(space.sample(rng)) for _ in range(12)]
    for config in sorted(drawn, key=lambda one: space.counts(one).nonembedding)[:2]:
        generator = torch.Generator().manual_seed(0)
        network = space.network(config, generator=generator, vocabulary=50, loss=space.losses[0])
        batch = {key: torch.randint(0, high, (3, 12), generator=generator) for key, high in
                 (("input_ids", 50), ("labels", 2))}  # fmt: skip
        needed = {"passes": required_passes(EXTENDED), "keep": required_roles(EXTENDED)}
        yield record(network, batch, counts=space.counts(config), loss=space.losses[0], **needed)


@pytest.fixture(scope="module", params=SPACES)
def networks(request: pytest.FixtureRequest) -> list[Probe]:
    return list(probes(request.param))


def measured(text: str, probe: Probe) -> float:
    try:
        return PROXIES[text].measure(probe) if text in PROXIES else parse(text).measure(probe)
    except Unscored:
        return math.nan


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_the_same_number_in_three_ways(entry: dict[str, Any], networks: list[Probe]) -> None:
    formula = parse(entry["formula"])
    chains = tuple(sorted({chain for branch in looked_at(formula) for chain in plain(branch)}))
    table = StatisticsTable.stack(formula.inputs, chains, [statistics(one, chains, formula.inputs) for one in networks])
    for cached, probe in zip(table.scores(formula), networks, strict=True):
        direct = measured(entry["name"], probe)
        assert direct == pytest.approx(cached, rel=1e-9, nan_ok=True)
        if math.isfinite(direct):
            assert executed(formula, probe) == pytest.approx(direct, rel=1e-4)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_the_gallery_knows_where_it_comes_from(entry: dict[str, Any]) -> None:
    proxy = PROXIES[entry["name"]]
    assert proxy.origin == "discovered" and proxy.content == entry["formula"] and proxy.description == entry["summary"]
    assert (
        parse(entry["formula"]).canonical() == parse(entry["formula"]) and parse(entry["formula"]).size == entry["size"]
    )
    assert {"benchmark", "seed", "commit", "data", "fitness"} <= entry["provenance"].keys()
    low, value, high = (entry["held_out"][end] for end in ("low", "value", "high"))
    assert low <= value <= high <= 1


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_the_gallery_has_a_page(entry: dict[str, Any]) -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    chapter = page.split(f"\n## {entry['name']}\n")[1].split("\n## ")[0]
    formula = parse(entry["formula"])
    assert str(formula) in chapter and formula.latex() in chapter and entry["meaning"] in chapter
    assert f"{entry['held_out']['value']:.3f}" in chapter
    picture = DOCS / "gallery" / f"{entry['name']}.svg"
    assert f"(gallery/{picture.name})" in chapter and picture.stat().st_size < 30_000
    assert all(f"| {name}" in chapter for name in ("nas-bert", "lts-gpt2", "nas-bench-nlp"))


@given(st.integers(0, 2**32), st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_nothing_that_is_no_number_is_ever_a_rank(seed: int, layers: int) -> None:
    """Statistics with gaps, infinities and huge numbers: where a formula exists it is finite, and so is its rank."""
    rng = np.random.default_rng(seed)
    formula = random_formula(rng, most=2)
    if formula.empty:
        return
    chains = tuple(sorted({chain for branch in looked_at(formula) for chain in plain(branch)}))
    values = rng.normal(size=(NETWORKS, len(formula.inputs), len(chains), layers)) * 10.0 ** rng.integers(-200, 200)
    spoilt = rng.random(values.shape)
    values = np.where(spoilt < 0.01, np.inf, np.where(spoilt > 0.995, np.nan, values))
    scores = StatisticsTable(formula.inputs, chains, values).scores(formula)
    there = np.isfinite(scores)
    if not is_usable(scores, np.ones(NETWORKS)):
        assert (np.isinf(scores).any() or np.isnan(scores).mean() > 0.05) and not np.isfinite(scores).all()
        return
    count = int(there.sum())
    rankings = BulkCorrelations.of(
        rng.normal(size=count), groups=range(count), cells=[0] * count, sets=[np.ones(count, bool)]
    )
    found = rankings.spearman(scores[there][None])[0, 0]
    assert np.isnan(found) == (len(np.unique(scores[there])) == 1) or abs(found) <= 1 + 1e-9


def looked_at(formula: Formula) -> list[Branch]:
    return list(formula.active_and_factor)


def plain(branch: Branch) -> tuple[Chain, Chain]:
    """Its chain, and the same without a sign at the end."""
    chain = branch.canonical().chain
    return chain, chain[:-1] if chain[-1:] == ("negate",) else chain


def test_a_machine_without_the_file_can_score_it() -> None:
    """The formula travels with the request."""
    theirs = as_proxy({"name": "theirs", "json": parse("sum(frobenius(W))").as_json()})
    space = ARCHITECTURES["flexibert"]
    request = ScoreRequest(space, {}, (0, 0), None, "electra", "own", {"theirs": theirs})  # type: ignore[arg-type]
    sent = pickle.loads(pickle.dumps(request))
    assert sent.proxies["theirs"] == theirs and theirs.content == "sum(frobenius(W))" and "theirs" not in PROXIES


def test_listing_found_proxies_loads_no_torch() -> None:
    source = "import sys; from archwright.proxies.formulas.discovered import load_discovered_proxies as load; load(); "
    subprocess.run([sys.executable, "-c", source + "assert 'torch' not in sys.modules"], check=True)
