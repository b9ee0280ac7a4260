"""One document out of several results: who is compared with whom, and numbers worked out by hand."""

import json

import pytest

from archwright.compression.studies.protocol import compare_runs
from archwright.reports.compress.compare import compare_headline, methods_by_volume
from tests.compression.documents import BAD, GOOD, comparison, run


def test_numbers_by_hand() -> None:
    """Pooled places of the errors .1 .2 .3 .4 and of the shares .1 .2 .3 .4 are 0, 1/3, 2/3 and 1."""
    protocol = compare_runs([comparison({"good": GOOD, "bad": BAD})])
    (group,) = protocol["groups"]
    names = group["comparisons"]["methods"]["names"]
    good = (2 - 0) * (2 - 1 / 3) + (2 - 2 / 3) * (1 / 3 - 0)
    bad = (2 - 1 / 3) * (2 - 1) + (2 - 1) * (1 - 2 / 3)
    assert names["good"]["hypervolume"] == [pytest.approx(good)]
    assert names["bad"]["regret"] == pytest.approx(4 - bad)
    assert names["bad"]["over"]["trials"]["mean"] == pytest.approx([4 - 5 / 3, 4 - bad])
    assert names["good"]["deviation"] is None
    assert group["comparisons"]["methods"]["pooled"] == 4


def test_bins_by_hand() -> None:
    """Test scores 0.8 and 0.6 at shares 0.2 and 0.1, the unpruned model has 0.8."""
    (group,) = compare_runs([comparison({"good": GOOD, "bad": BAD})])["groups"]
    assert group["bins"]["shares"][0] == 0.2
    assert [entry["mean"] for entry in group["bins"]["methods"]["good"]] == pytest.approx([1.0] * 8)
    bad = group["bins"]["methods"]["bad"]
    assert bad[0] is None and bad[1]["mean"] == pytest.approx(0.5 / 0.8) and bad[2]["mean"] == pytest.approx(0.7 / 0.8)


def test_perplexities_are_compared_by_their_inverse() -> None:
    front = [{"validation_error": 40.0, "test_error": 50.0, "nonembedding_share": 0.5}]
    document = run(metric="perplexity", original={"test_error": 25.0}, front=front, trials=front)
    (group,) = compare_runs([document])["groups"]
    entries = group["bins"]["methods"]["weight-sharing"]
    assert entries[2] is None and entries[3]["mean"] == pytest.approx(25 / 50)


def test_seeds_give_mean_and_deviation() -> None:
    documents = [comparison({"a": GOOD, "b": BAD}, seed=0), comparison({"a": BAD, "b": BAD}, seed=1)]
    names = compare_runs(documents)["groups"][0]["comparisons"]["methods"]["names"]
    first, second = names["a"]["hypervolume"]
    assert names["a"]["seeds"] == [0, 1] and names["a"]["mean"] == pytest.approx((first + second) / 2)
    assert names["a"]["deviation"] == pytest.approx(abs(first - second) / 2**0.5)
    assert names["b"]["deviation"] == pytest.approx(0)


def test_tasks_and_models_are_apart() -> None:
    groups = compare_runs([run(*GOOD), run(*BAD, task="u"), run(*BAD, model="a/other")])["groups"]
    assert [of["name"] for of in groups] == ["t, m", "u, m", "t, other"]
    assert [len(of["runs"]) for of in groups] == [1, 1, 1]


def test_a_comparison_varies_one_setting_only() -> None:
    """Two spaces with strategy full and three with strategy kd: the spaces are compared under kd."""
    documents = [run(*GOOD, space=space, strategy="full") for space in ("small", "layer")]
    documents += [run(*BAD, space=space, strategy="kd") for space in ("small", "layer", "large")]
    comparisons = compare_runs(documents)["groups"][0]["comparisons"]
    assert list(comparisons["spaces"]["names"]) == ["small", "layer", "large"]
    assert comparisons["spaces"]["fixed"]["strategy"] == ["kd"]
    assert list(comparisons["strategies"]["names"]) == ["full", "kd"]
    assert "standard_samplers" not in comparisons


def test_standard_and_weight_sharing_samplers_are_compared_apart() -> None:
    documents = [run(*GOOD, sampler=name) for name in ("random", "local")]
    documents += [
        run(*BAD, sampler=name, method="standard", seed=seed) for name in ("random", "mo-asha") for seed in (0, 1)
    ]
    protocol = compare_runs(documents)
    comparisons = protocol["groups"][0]["comparisons"]
    assert list(comparisons["samplers"]["names"]) == ["random", "local"]
    assert list(comparisons["standard_samplers"]["names"]) == ["random", "mo-asha"]
    assert [ranked["name"] for ranked in protocol["ranks"]] == ["Standard NAS", "Weight-sharing NAS"]
    assert [ranked["unit"].split(",")[0] for ranked in protocol["ranks"]] == ["time steps", "trials"]


def test_methods_are_those_of_comparisons_when_there_are_any() -> None:
    documents = [run(*GOOD, seed=5), comparison({"weight-sharing": BAD, "random": GOOD})]
    protocol = compare_runs(documents)
    (group,) = protocol["groups"]
    assert group["comparisons"]["methods"]["names"]["weight-sharing"]["seeds"] == [0]
    assert [run["in_methods"] for run in group["runs"]] == [False, True, True]


def test_the_same_run_twice_counts_once_and_is_said() -> None:
    protocol = compare_runs([run(*GOOD), run(*BAD)])
    assert len(protocol["groups"][0]["runs"]) == 1
    assert protocol["groups"][0]["runs"][0]["front"][0]["validation_error"] == GOOD[0][0]
    assert any("1 runs have the settings and seed of another" in note for note in protocol["notes"])


def test_ranks_leave_out_names_that_a_task_does_not_have() -> None:
    documents = [run(*GOOD, sampler=name, task=task) for task in "tu" for name in ("random", "local")]
    documents.append(run(*BAD, sampler="ehvi"))
    (ranked,) = compare_runs(documents)["ranks"]
    assert ranked["tasks"] == ["t", "u"] and set(ranked["ranks"]) == {"random", "local"}
    assert ranked["ranks"]["random"] == [1.5, 1.5]


def test_one_run_says_what_is_missing() -> None:
    document = run(*GOOD, original={"validation_error": 0.1, "test_error": None})
    protocol = compare_runs([document])
    notes = " ".join(protocol["notes"])
    assert "only seed 0" in notes and "nothing to compare with" in notes and "no test errors" in notes
    assert protocol["ranks"] == []


def test_runs_without_any_measured_network_break_nothing() -> None:
    lost = [{"validation_error": None, "nonembedding_share": 0.3}]
    protocol = compare_runs([run(front=lost, trials=lost), comparison({"a": [], "b": GOOD})])
    assert list(protocol["groups"][0]["comparisons"]["methods"]["names"]) == ["b"]
    assert compare_runs([])["groups"] == []


def test_a_shorter_run_keeps_its_last_regret() -> None:
    documents = [run(*GOOD, sampler="random"), run(*GOOD, *BAD, sampler="local")]
    names = compare_runs(documents)["groups"][0]["comparisons"]["samplers"]["names"]
    curve = names["random"]["over"]["trials"]
    assert curve["x"] == [1, 2, 3, 4] and curve["mean"][1:] == [curve["mean"][1]] * 3
    assert names["local"]["over"]["seconds"]["x"][-1] == 30.0


def test_methods_side_by_side_are_timed_from_their_first_training() -> None:
    document = comparison({"a": GOOD, "b": BAD})
    document["methods"]["a"]["seconds_by_phase"] = {"supernet": 100.0, "search": 10.0, "measure": 3.0}
    names = compare_runs([document])["groups"][0]["comparisons"]["methods"]["names"]
    assert (names["a"]["over"]["seconds"]["x"][0], names["a"]["over"]["seconds"]["x"][-1]) == (100.0, 110.0)
    alone = compare_runs([run(*GOOD, seconds_by_phase={"supernet": 100.0, "search": 10.0})])["groups"][0]
    assert alone["comparisons"]["samplers"]["names"]["random"]["over"]["seconds"]["x"][-1] == 10.0


def test_studies_and_previews_come_along_and_all_is_json() -> None:
    honesty = {"k": 2, "pairs": [[0.1, 0.2, 0.3]], "kendall": {"value": 0.5, "low": 0.1, "high": 0.9}}
    preview = {"schema": "archwright/preview/1", "model": "m", "spaces": {}}
    points = {"points": [{"name": "x", "bits": 8}]}
    protocol = compare_runs([run(*GOOD, honesty=honesty), comparison({"a": GOOD}, quantized=points), preview])
    assert protocol["honesty"][0]["k"] == 2 and protocol["honesty"][0]["name"] == "t"
    assert protocol["quantized"][0]["points"] == points["points"]
    assert protocol["previews"] == [preview]
    assert json.loads(json.dumps(protocol, allow_nan=False))["schema"] == "archwright/protocol/1"


def test_runs_that_differ_in_order_or_rows_are_not_repetitions() -> None:
    rows = [{"train": train, "validation": 100, "test": 100} for train in (1000, 4000)]
    documents = [run(order="taylor", rows=rows[0]), run(order="none", rows=rows[0]), run(order="taylor", rows=rows[1])]
    (group,) = compare_runs([*documents, documents[0]])["groups"]
    assert group["repeated"] == 1 and len(group["runs"]) == 3
    conditions = {(one["order"], one["rows"]["train"]) for one in group["runs"]}
    assert conditions == {("taylor", 1000), ("none", 1000), ("taylor", 4000)}
    assert all(len(c["names"][name]["seeds"]) == 1 for c in group["comparisons"].values() for name in c["names"])


def test_the_chosen_fronts_on_test_rows_are_told_beside() -> None:
    runs = [run(*GOOD, method="a", seed=seed, test_hypervolume=volume) for seed, volume in enumerate((0.6, 0.7))]
    names = compare_runs([*runs, run(*BAD, method="b")])["groups"][0]["comparisons"]["methods"]["names"]
    assert names["a"]["test"]["hypervolume"] == [0.6, 0.7]
    assert names["a"]["test"]["mean"] == pytest.approx(0.65)
    assert names["b"]["test"] is None  # an older run


def test_methods_are_compared_by_the_test_hypervolume() -> None:
    document = comparison({"many": GOOD, "few": BAD})
    for name, tried, tested in (("many", 0.8, 0.5), ("few", 0.6, 0.7)):
        document["methods"][name] |= {"hypervolume": tried, "test_hypervolume": tested}
    assert list(methods_by_volume(document)) == ["few", "many"]
    assert compare_headline(document).startswith("few has the largest test hypervolume (0.700)")
    del document["methods"]["few"]["test_hypervolume"]  # an older document
    assert list(methods_by_volume(document)) == ["many", "few"]
