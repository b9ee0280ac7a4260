"""`archwright design`: what it finds, within limits, again after a crash, and in every space."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from archwright.cli.main import main
from archwright.designing import pipeline
from archwright.designing.pipeline import COMPARED
from archwright.designing.proxy_evaluator import ProxyEvaluator
from archwright.errors import BadInput, Failed
from archwright.proxies import PROXIES
from archwright.spaces import ARCHITECTURES
from archwright.spaces.nlu import NluSpace

Options = dict[str, Any]
SPACE = NluSpace("tiny")


def without_clock(document: dict[str, Any]) -> str:
    """Everything but what a clock says, or which run did the work."""
    text = json.loads(json.dumps(document))
    for name in ("seconds", "latency_ms", "judged", "environment"):
        text.pop(name)
    for run in (run for runs in text["against"].values() for run in runs):
        run.pop("seconds")
    return json.dumps(text, sort_keys=True)


def test_a_search_finds_a_design_within_the_limit_of_the_space(options: Options) -> None:
    found = aw.design(**options)
    document = found.as_json()
    assert document["schema"] == "archwright/design/1" and document["space"] == "nlu-tiny"
    assert document["parameters"] == SPACE.counts(found.config).parameters <= SPACE.limit == 10_000_000
    assert document["evaluations"] == 12 == document["history"][-1]["evaluations"] and document["distinct"] <= 12
    assert [point["generation"] for point in document["history"]] == [1, 2, 3]
    bests = [point["best"] for point in document["history"]]
    assert bests == sorted(bests) and document["score"] == bests[-1] == document["scores"]["w_pca"]
    assert document["score"] == max(run["score"] for run in document["against"]["genetic"])
    assert json.loads((options["out"] / "design.json").read_text())["config"] == found.config
    assert "archwright design" in found.page.read_text()
    assert document["judged"]["looked"] == document["distinct"]
    parts = document["layer_scores"]["w_pca"]
    assert len(parts["layers"]) == len(document["layers"]) and sum(parts["layers"]) == document["score"]


def test_the_bar_shows_the_best_so_far(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[float] = []

    class Told:
        def advance(self, n: float = 1, **numbers: float) -> None:
            shown.append(numbers["best"])

    monkeypatch.setattr("archwright.designing.search.progress", lambda *_: nullcontext(Told()))
    history = aw.design(**options).document["history"]
    assert shown == [point["best"] for point in history] and len(shown) == 3


def test_the_same_command_does_nothing_twice_and_finds_the_same(options: Options) -> None:
    once, again = (aw.design(**options) for _ in range(2))
    assert without_clock(once.as_json()) == without_clock(again.as_json())
    assert again.document["judged"]["looked"] == 0 < once.document["judged"]["looked"]
    assert again.document["judged"]["core_seconds"] == once.document["judged"]["core_seconds"]
    other = aw.design(**options, seed=1)
    assert other.document["judged"]["looked"] > 0 and other.document["history"] != once.document["history"]


def test_a_killed_search_goes_on(options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = aw.design(**{**options, "out": tmp_path / "undisturbed"})
    evaluate, calls = ProxyEvaluator.__call__, []

    def dying(evaluator: ProxyEvaluator, candidates: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return evaluate(evaluator, candidates)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ProxyEvaluator, "__call__", dying)
        aw.design(**options)
    assert not (options["out"] / "design.json").exists()
    resumed = aw.design(**options)
    assert without_clock(resumed.as_json()) == without_clock(whole.as_json())
    assert resumed.document["judged"]["looked"] < whole.document["judged"]["looked"]


def test_limits_hold(options: Options) -> None:
    limits = {"max_parameters": "7M", "max_flops": "6.5M"}
    document = aw.design(**options, **limits).as_json()
    assert document["limits"] == {"parameters": 7e6, "flops": 6.5e6, "latency_ms": None}
    counts = [SPACE.counts(one["config"]) for one in document["front"]]
    assert all(one.parameters <= 7e6 and one.flops <= 6.5e6 for one in counts)
    assert document["distinct"] == document["judged"]["looked"]  # nothing beyond a limit takes up a trial


def test_a_latency_limit_is_measured_on_the_network(options: Options) -> None:
    options |= {"population": 2, "generations": 1}
    with pytest.raises(Failed, match="over a limit"):
        aw.design(**options, max_latency_ms=1e-6)
    assert aw.design(**options, max_latency_ms=1e6).document["judged"]["looked"] > 0


def test_several_proxies_have_a_front(options: Options) -> None:
    document = aw.design(**options, proxy=("v_pca", "softmax_confidence"), sampler="nsga2").as_json()
    pairs = [tuple(one["scores"].values()) for one in document["front"]]
    assert document["proxies"] == ["v_pca", "softmax_confidence"] and pairs
    assert not any(a[0] >= b[0] and a[1] >= b[1] for a in pairs for b in pairs if a is not b and a != b)
    assert document["score"] == max(pair[0] for pair in pairs)


def test_a_proxy_of_ones_own(options: Options, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def small(probe):\n    return -probe.counts.parameters\n\nsmall.passes = ()\n")
    document = aw.design(**options, proxy=(f"{tmp_path}/mine.py:small",)).as_json()
    assert document["proxies"] == ["small"] and document["score"] == -document["parameters"]


@pytest.mark.parametrize("space", [name for name in ARCHITECTURES if not name.startswith("nlu")])
def test_other_spaces_are_searched_network_by_network(
    space: str, options: Options, request: pytest.FixtureRequest
) -> None:
    if space == "gpt2":
        request.getfixturevalue("data_dir")  # its tokenizer
    small = {**options, "space": space, "population": 2, "generations": 2}
    document = aw.design(**small, proxy=("hidden_covariance_1",)).as_json()
    ARCHITECTURES[space].check(document["config"])
    assert document["evaluations"] == 4 and document["layers"] and document["limits"]["parameters"] is None


def test_a_gradient_proxy_goes_the_plain_way(options: Options) -> None:
    document = aw.design(**{**options, "generations": 1}, proxy=("grad_norm",)).as_json()
    found = aw.score(
        space="nlu-tiny", config=options["out"] / "design.json", proxies=("grad_norm",),
        **{name: options[name] for name in ("text", "batch_rows", "length", "workers", "out")},
    )  # fmt: skip
    assert found.rows[0]["config"] == document["config"]
    assert found.rows[0]["scores"]["grad_norm"] == pytest.approx(document["score"], rel=1e-6)


def test_samplers_and_seeds_side_by_side(options: Options) -> None:
    document = aw.design(**options, against=("random", "local"), seeds=2, proxy=("parameters",)).as_json()
    assert {name: len(runs) for name, runs in document["against"].items()} == {"genetic": 2, "random": 2, "local": 2}
    assert all(run["evaluations"] == 12 for runs in document["against"].values() for run in runs)
    scores = [run["score"] for run in document["against"]["genetic"]]
    assert document["spread"]["low"] == min(scores) and document["spread"]["high"] == max(scores)
    assert len(document["blocks"]["found"]) == 6
    assert all(sum(place.values()) == pytest.approx(1) for place in document["blocks"]["population"])


def test_distinct_designs_only(options: Options) -> None:
    many = {**options, "generations": 12, "proxy": ("parameters",)}
    loose, strict = (aw.design(**many, distinct=distinct).as_json() for distinct in (False, True))
    assert loose["distinct"] < loose["evaluations"] == 48 == strict["distinct"]


def test_proxies_are_compared_in_one_table(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    some = ("synaptic_saliency", "attention_confidence", "parameters", "w_pca")  # all but those that take long
    assert set(some) < set(COMPARED) <= set(PROXIES)
    monkeypatch.setattr(pipeline, "COMPARED", some)
    small = {**options, "population": 2, "generations": 1, "compare_proxies": True}
    rows = aw.design(**small, proxy=("nwot",)).document["proxies_compared"]
    assert [row["proxy"] for row in rows] == [*some, "nwot"]
    assert all(row["counts"]["parameters"] <= SPACE.limit and row["latency_ms"]["median"] > 0 for row in rows)


def test_a_design_is_scaled_up(options: Options) -> None:
    document = aw.design(**options, proxy=("parameters",), scale_up=2).as_json()
    larger = document["scaled_up"]
    assert larger["counts"]["depth"] == 12 and larger["counts"]["width"] == 1056
    assert larger["counts"]["parameters"] > 3 * document["parameters"] and larger["config"]["hidden_size"] == 1056


BAD: dict[str, tuple[Options, str]] = {
    "unknown space": ({"space": "nlu-huge"}, "nlu-small"),
    "unknown variant": ({"variant": "none"}, "variant"),
    "unknown proxy": ({"proxy": ("w_pcaa",)}, "w_pcaa"),
    "no proxy": ({"proxy": ()}, "at least one"),
    "own proxy without a file": ({"proxy": ("none.py:none",)}, "none.py"),
    "unknown sampler": ({"sampler": "annealing"}, "genetic"),
    "sampler of trainings": ({"sampler": "mo-asha"}, "genetic"),
    "limit below the smallest": ({"max_parameters": "1M"}, "at least 6,"),
    "operations below the smallest": ({"max_flops": "10"}, "smallest design"),
    "limit that is no number": ({"max_parameters": "many"}, "number such as 15.7M, got 'many'"),
    "limit as a share": ({"max_parameters": "50%"}, "15.7M"),
    "latency of nothing": ({"max_latency_ms": 0.0}, "above 0"),
    "population of one": ({"population": 1}, "at least 2"),
    "no generations": ({"generations": 0}, "at least 1"),
    "no seeds": ({"seeds": 0}, "at least 1"),
    "scaled down": ({"scale_up": 1}, "at least 2"),
    "cells cannot be scaled": ({"space": "rnn", "scale_up": 2}, "scaled"),
    "unknown method": ({"method": "darts"}, "spos"),
    "one-shot without blocks": ({"space": "flexibert", "method": "spos"}, "nlu-tiny"),
    "one-shot without steps": ({"method": "spos", "steps": 0}, "--steps"),
    "one-shot with a seed below zero": ({"method": "spos", "seed": -1}, "--seed"),
    "one-shot with rows of one token": ({"method": "spos", "length": 1}, "--length must be at least 2"),
    "no texts": ({"batch_rows": 0}, "--batch-rows must be at least 2"),
    "rows without positions": ({"length": 513}, "--length must be at most 512, the positions"),
    "one-shot rows without positions": ({"method": "spos", "length": 513}, "--length must be at most 512"),
    "against itself": ({"against": ("genetic",)}, "other samplers than --sampler"),
    "against one twice": ({"against": ("random", "random")}, "each once"),
    "a task without a super-network": (
        {"task": "glue/SST-2", "steps": 7},
        "--steps, --task have no effect without --method spos",
    ),
    "one-shot by a proxy": ({"method": "spos", "proxy": ("v_pca",)}, "--proxy has no effect on accuracies"),
    "one-shot in processes": ({"method": "spos", "workers": 3}, "--workers has no effect on accuracies"),
    "one-shot of a task on text": (
        {"method": "spos", "task": "movie-reviews", "teacher": "none"},
        "--length, --text have no effect beside --task and --teacher none",
    ),
    "one-shot data of no task": ({"method": "spos", "data": Path("nowhere")}, "--data needs --task"),
    "a file as the folder": ({"out": Path(__file__)}, f"File exists: {__file__}"),
}


@pytest.mark.parametrize(("given", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_one_line(given: Options, words: str, options: Options) -> None:
    idle = ("batch_rows", "workers") if given.get("method") == "spos" else ()
    usual = {name: value for name, value in options.items() if name not in idle}
    with pytest.raises(BadInput, match=words) as error:
        aw.design(**{**usual, **given})
    assert "\n" not in str(error.value) and not options["out"].exists()


def test_the_command_line(options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    assert main(["design", *words, "--proxy", "v_pca", "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    assert "  1 " in printed and "design.json" in printed and "10.00M allowed" in printed
    document = json.loads((tmp_path / "out.json").read_text())
    assert {"schema", "space", "config", "parameters", "score", "evaluations", "seconds", "history"} <= set(document)
    assert main(["design", "--population", "1", *words[:1]]) == 2
    assert "population" in capsys.readouterr().err
