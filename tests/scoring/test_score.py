"""`archwright score`: architectures from a file or at random, each with its counts, scores and what is missing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import archwright as aw
from archwright.benchmarks import BENCHMARKS
from archwright.cli.main import main
from archwright.configs import scoring as so
from archwright.discovery.statistics import StatisticsRequest
from archwright.errors import BadInput
from archwright.proxies import PROXIES
from archwright.proxies.formulas.inputs import LAYERS
from archwright.proxies.formulas.statistics import statistics
from archwright.random_streams import generator
from archwright.scoring.request import record_network, record_shapes
from archwright.scoring.setup import scoring_setup
from archwright.spaces import ARCHITECTURES
from archwright.spaces.formulas import FormulaSpace


@pytest.fixture
def options(text: Path, tmp_path: Path) -> dict[str, Any]:
    return {"text": text, "out": tmp_path / "scores", "batch_rows": 2, "length": 16, "workers": 1}


@pytest.mark.parametrize("space", ARCHITECTURES)
def test_random_architectures_of_every_space(space: str, options: dict[str, Any]) -> None:
    proxies = ("parameters", "grad_norm", "hidden_covariance_1")
    scored = aw.score(space=space, random=3, proxies=proxies, **options)
    assert scored.document["n"] == 3 == len(scored.rows)
    for row in scored.rows:
        assert row["counts"]["parameters"] == row["scores"]["parameters"] > 0
        assert np.isfinite([row["scores"]["grad_norm"]]).all()
        ARCHITECTURES[space].check(row["config"])
    assert len({json.dumps(row["config"]) for row in scored.rows}) == 3
    again = aw.score(space=space, random=3, proxies=proxies, **options)
    assert again.rows == scored.rows


@pytest.mark.parametrize("space", ARCHITECTURES)
def test_the_shapes_of_every_space_are_those_of_its_networks(space: str, text: Path) -> None:
    """Layer counts of thousands of large decoders are taken without drawing a weight."""
    drawn = ARCHITECTURES[space]
    setup = scoring_setup(drawn, so.ProxyOptions(proxies=("depth",)), so.RecordingOptions(text=text))
    request = setup.request(drawn.sample(np.random.default_rng(0)))
    formulas = FormulaSpace(1, LAYERS)
    expected = statistics(record_network(request, (), ()), formulas.chains, formulas.inputs)
    assert np.array_equal(StatisticsRequest(request, formulas.inputs, formulas.chains)(), expected, equal_nan=True)
    if drawn.name == "hw-gpt":
        layers = record_shapes(request).layers
        assert all(weight.value.is_meta for layer in layers for weight in (*layer.attention, *layer.ffn))


def test_configs_from_a_file(options: dict[str, Any], tmp_path: Path) -> None:
    drawn = [row["config"] for row in aw.score(random=2, proxies=("parameters",), **options).rows]
    (tmp_path / "one.json").write_text(json.dumps(drawn[0]))
    (tmp_path / "list.json").write_text(json.dumps(drawn))
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, drawn)))
    page = tmp_path / "new" / "page.html"
    found = {
        name: [row["config"] for row in aw.score(config=tmp_path / name, proxies=("depth",), **options).rows]
        for name in ("one.json", "list.json", "lines.jsonl")
    }
    assert found == {"one.json": drawn[:1], "list.json": drawn, "lines.jsonl": drawn}
    scored = aw.score(config=tmp_path / "list.json", proxies=("depth",), html=page, **options)
    assert scored.document["variant"] == "trained" and "flexibert" in page.read_text()
    with pytest.raises(BadInput, match="must be a file"):
        aw.score(config=tmp_path / "list.json", proxies=("depth",), html=tmp_path, **options)


def test_a_role_that_is_not_there_is_missing_with_its_reason(options: dict[str, Any], tmp_path: Path) -> None:
    space = ARCHITECTURES["flexibert"].with_variant("described")
    config = next(row["config"] for row in aw.score(random=1, variant="described", proxies=("depth",), **options).rows)
    pure = {name: "LT/DFT" if name.startswith("operation") else value for name, value in config.items()}
    space.check(pure)
    (tmp_path / "pure.json").write_text(json.dumps(pure))
    (row,) = aw.score(
        config=tmp_path / "pure.json", variant="described", proxies=("softmax_confidence", "snip"), **options
    ).rows
    assert row["scores"]["softmax_confidence"] is None and row["missing"]["softmax_confidence"]
    assert row["scores"]["snip"] > 0


BAD = {
    "neither": ({}, "--config FILE or --random N"),
    "none": ({"random": 0}, "at least 1"),
    "not json": ({"config": "not json"}, "JSON"),
    "not a config": ({"config": "[1]"}, "JSON object"),
    "too deep": ({"config": "[" * 100_000}, "JSON"),
    "outside the space": ({"config": '{"layers": 3}'}, "layers"),
}


@pytest.mark.parametrize(("given", "why"), BAD.values(), ids=BAD)
def test_bad_input(given: dict[str, Any], why: str, options: dict[str, Any], tmp_path: Path) -> None:
    if "config" in given:
        (tmp_path / "config.json").write_text(given["config"])
        given = {"config": tmp_path / "config.json"}
    with pytest.raises(BadInput, match=why):
        aw.score(**given, proxies=("depth",), **options)


def test_help_tells_what_each_proxy_and_benchmark_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    described = {**PROXIES.descriptions(), **BENCHMARKS.descriptions()}
    assert [name for name, text in described.items() if f"{name}: {text}" not in told] == []


LOUD = """
import torch
def loud(probe):
    print("a word of the user's")
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    probe.linears[0].value.zero_()
    return 1.0
"""


def test_a_proxy_of_the_user_cannot_change_the_others(
    options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, usual = ("w_pca", "snip", "grad_norm"), {**options, "out": tmp_path / "usual"}
    (tmp_path / "loud.py").write_text(LOUD)
    with_it = aw.score(random=4, proxies=names, proxy=(f"{tmp_path / 'loud.py'}:loud",), **options)
    assert capsys.readouterr().out == ""
    for one, other in zip(with_it.rows, aw.score(random=4, proxies=names, **usual).rows, strict=True):
        assert {name: one["scores"][name] for name in names} == other["scores"]


def test_scores_are_kept_by_the_shape_of_the_batch(options: dict[str, Any], tmp_path: Path) -> None:
    text = tmp_path / "cats.txt"
    text.write_text("the cat " * 100)
    shapes = ({"batch_rows": 2, "length": 8}, {"batch_rows": 4, "length": 4})
    given = [{**options, "text": text, **shape} for shape in shapes]
    one, other = (aw.score(random=1, proxies=("snip",), **each).rows[0]["scores"]["snip"] for each in given)
    assert one != other


def test_time_of_later_proxies_is_added(options: dict[str, Any]) -> None:
    (first,) = aw.score(random=1, proxies=("grasp",), **options).rows
    (both,) = aw.score(random=1, proxies=("grasp", "depth"), **options).rows
    assert both["seconds"] > first["seconds"]


def test_two_proxies_of_one_name(options: dict[str, Any], tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text("def mine(probe):\n    return 1.0\n")
    both = tuple(f"{tmp_path / folder / 'mine.py'}:mine" for folder in ("a", "b"))
    with pytest.raises(BadInput, match="'mine' is taken"):
        aw.score(random=1, proxies=("depth",), proxy=both, **options)


def test_seeds_of_two_commands_do_not_overlap(options: dict[str, Any]) -> None:
    glasses = [
        scoring_setup(ARCHITECTURES["flexibert"], so.ProxyOptions(), so.ScoringOptions(seed=seed)) for seed in (0, 1)
    ]
    config = ARCHITECTURES["flexibert"].sample(np.random.default_rng(0))
    looks = [setup.request(config, seed=number) for setup in glasses for number in range(3)]
    weights = [generator(at.seed[0], 0, at.seed[1]).initial_seed() for at in looks]
    assert len(set(weights)) == len(weights)


def test_a_long_list_of_names_is_not_printed_into_the_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--random", "1", "--proxies", "w_pcb"]) == 2
    line = capsys.readouterr().err
    assert "that --help lists" in line and "'w_pcb'; did you mean w_pca?" in line and len(line) < 160
