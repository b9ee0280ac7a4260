"""Every method gives the same kind of run: a front that can be selected and exported, resumed and compared."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import archwright as aw
from archwright.compression.finetuning import finetune
from archwright.compression.methods import METHODS, load_evaluator, space_for
from archwright.compression.weights import StandaloneWeights, config_name
from archwright.configs.compress import PRESETS, SupernetOptions
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network
from archwright.search import largest
from archwright.subnet.pruning.baselines import prune_by_fisher
from tests.compression.runs import QUICK, compressed, front_of, left_over

OTHERS = sorted(set(METHODS) - {"weight-sharing"})


def options_of(method: str) -> dict[str, Any]:
    """Options that the method knows what to do with."""
    return {name: value for name, value in QUICK.items() if name not in METHODS[method].unused}


def run_of(folder: Path, method: str, given: dict[str, Any], **more: Any) -> Any:
    return aw.compress(**{**options_of(method), **given, "method": method, "out": folder, **more})


@pytest.fixture(scope="module")
def runs(place: Path, given: dict[str, Any]) -> dict[str, Any]:
    return {method: run_of(place / method, method, given) for method in OTHERS}


@pytest.mark.parametrize("method", OTHERS)
def test_the_result_has_the_keys_of_weight_sharing(method: str, runs: dict[str, Any], run: Any) -> None:
    result = runs[method].result
    assert result.keys() == run.result.keys()
    assert result["method"] == method
    assert result["space"] == METHODS[method].spaces[0]
    assert result["front"]
    assert result["front"][0].keys() == run.result["front"][0].keys()
    assert 0 <= result["hypervolume"] <= 1
    assert left_over(runs[method].folder.path) == []


@pytest.mark.parametrize("method", OTHERS)
def test_a_member_is_exported_with_the_weights_it_was_judged_by(
    method: str, runs: dict[str, Any], tmp_path: Path
) -> None:
    run = runs[method]
    entry = run.front[0]
    report = run.member(entry["trial"]).save_pretrained(tmp_path / "out")
    assert report["difference"]["largest"] <= 1e-5
    network = run.member(entry["trial"]).network
    kept = [list(pair) for pair in entry["keep"] if any(pair)]
    assert [list(pair) for pair in network.config.layers] == kept


@pytest.mark.parametrize("method", OTHERS)
def test_the_same_command_again_is_done_at_once_and_a_new_folder_gives_the_same(
    method: str, runs: dict[str, Any], given: dict[str, Any], tmp_path: Path
) -> None:
    first = runs[method]
    assert run_of(first.folder.path, method, given).result == first.result
    again = run_of(tmp_path / "again", method, given)
    assert front_of(again.result) == front_of(first.result)


def test_networks_trained_by_themselves_are_kept_only_on_the_front(runs: dict[str, Any]) -> None:
    run = runs["standard"]
    pruned = [entry for entry in run.front if entry["nonembedding_share"] < 1]  # the whole network is the original
    assert len(list(run.folder.networks.iterdir())) == len(pruned) > 0


def test_the_whole_network_is_the_original(runs: dict[str, Any]) -> None:
    for method in ("standard", "layer-dropping", "retraining-free", "magnitude"):
        result = runs[method].result
        whole = [row for row in result["trials"] if row["nonembedding_share"] == 1]
        assert whole[0]["validation_error"] == result["original"]["validation_error"]


def test_repairs_give_the_same_sizes_and_other_weights(given: dict[str, Any], tmp_path: Path) -> None:
    runs = {
        repair: run_of(tmp_path / repair, "retraining-free", given, repair=repair)
        for repair in ("none", "mask", "least-squares")
    }
    shares = [[row["nonembedding_share"] for row in run.result["trials"]] for run in runs.values()]
    assert shares[0] == shares[1] == shares[2]
    names = {repair: sorted(path.name for path in run.folder.networks.iterdir()) for repair, run in runs.items()}
    assert names["none"] == names["mask"] == names["least-squares"] != []
    file = Path("networks") / names["none"][0] / "model.safetensors"
    assert len({(run.folder.path / file).read_bytes() for run in runs.values()}) == 3
    assert run_of(tmp_path / "mask", "retraining-free", given, repair="mask").result == runs["mask"].result


@pytest.mark.parametrize("method", ["standard", "layer-dropping"])
def test_the_whole_network_is_not_trained_again(
    method: str, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[list[tuple[int, int]]] = []

    def recording(task_data: Any, network: Any, *args: Any, **options: Any) -> Any:
        trained.append([tuple(pair) for pair in network.config.layers])
        return finetune(task_data, network, *args, **options)

    monkeypatch.setattr("archwright.compression.weights.finetune", recording)
    run = run_of(tmp_path / "run", method, given, trials=3, original_epochs=2.0)
    assert trained and [(4, 64)] * 3 not in trained
    whole = [row for row in run.result["trials"] if row["nonembedding_share"] == 1]
    assert [row["validation_error"] for row in whole] == [run.result["original"]["validation_error"]]
    evaluator = load_evaluator(run.folder)
    network, _ = evaluator.weights.locate(largest(evaluator.space.choices))
    original = load_saved_network(run.folder.original).state_dict()
    assert all((value == original[name]).all() for name, value in network.state_dict().items())


def test_a_second_training_of_the_whole_network_in_an_old_run_stays_its_weights(
    given: dict[str, Any], tmp_path: Path
) -> None:
    run = run_of(tmp_path / "run", "standard", given, trials=2)
    weights = load_evaluator(run.folder).weights
    assert isinstance(weights, StandaloneWeights)
    config = largest(weights.space.choices)
    assert weights.folder(config) == run.folder.original
    own = run.folder.networks / config_name(config)
    own.mkdir(parents=True)
    assert weights.folder(config) == own


def test_a_checkpoint_that_a_kill_left_beside_its_network_goes(runs: dict[str, Any]) -> None:
    run = runs["standard"]
    weights = load_evaluator(run.folder).weights
    assert isinstance(weights, StandaloneWeights)
    config = next(row["config"] for row in run.front if weights.folder(row["config"]) != run.folder.original)
    left = weights.checkpoints(config).path
    left.write_bytes(b"of a training that is over")
    weights.locate(config)
    assert not left.exists()


def test_a_smaller_network_is_tried_even_when_time_is_up(given: dict[str, Any], tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "standard", given, epochs=50.0, trials=50, minutes=0.0001)
    assert [row["nonembedding_share"] < 1 for row in run.result["trials"]] == [False, True]


def test_a_lost_network_is_trained_again_to_the_same(given: dict[str, Any], tmp_path: Path) -> None:
    import shutil

    run = run_of(tmp_path / "run", "standard", given, trials=2)
    before = {k: v.clone() for k, v in run.member(run.front[0]["trial"]).network.state_dict().items()}
    shutil.rmtree(run.folder.networks)
    after = aw.open_run(tmp_path / "run").member(run.front[0]["trial"]).network.state_dict()
    assert all((before[name] == after[name]).all() for name in before)


def test_mo_asha_trains_the_best_longer(given: dict[str, Any], tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", "standard", given, sampler="mo-asha", trials=9, epochs=3.0)
    study = (tmp_path / "run" / "study.journal").read_text()
    assert '"epochs"' in study
    epochs = [entry["config"]["epochs"] for entry in run.front]
    assert set(epochs) <= {1.0, 3.0}
    assert len(run.result["trials"]) == 9


def test_minutes_end_a_training_in_the_middle_but_one_network_is_always_tried(
    given: dict[str, Any], tmp_path: Path
) -> None:
    run = run_of(tmp_path / "run", "standard", given, epochs=200.0, trials=50, minutes=0.1)
    assert 1 <= len(run.result["trials"]) < 50


def test_layer_dropping_lists_every_depth(runs: dict[str, Any]) -> None:
    depths = {sum(map(any, entry["keep"])) for entry in runs["layer-dropping"].front}
    assert depths <= {1, 2, 3}
    assert len(runs["layer-dropping"].result["trials"]) == 3


def test_retraining_free_networks_carry_their_tuned_masks(runs: dict[str, Any]) -> None:
    run = runs["retraining-free"]
    pruned = [entry for entry in run.front if entry["nonembedding_share"] < 1]
    assert pruned
    assert all((run.folder.networks).exists() for _ in pruned)
    assert len(run.result["trials"]) == 10


def test_retraining_free_pruning_trusts_the_fisher_blocks_as_it_is_told(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusts = []

    def recording(*args: Any, trust: float, **options: Any) -> Any:
        trusts.append(trust)
        return prune_by_fisher(*args, trust=trust, **options)

    monkeypatch.setattr("archwright.compression.methods.retraining_free.prune_by_fisher", recording)
    run_of(tmp_path / "usual", "retraining-free", given)
    run_of(tmp_path / "published", "retraining-free", given, fisher_trust=1.0)
    assert trusts == [0.2, 1.0]


@pytest.fixture(scope="module")
def comparison(place: Path, given: dict[str, Any]) -> Any:
    return compressed(place / "compared", **given, compare=("random", "weight-sharing", "standard"), trials=4)


def test_a_comparison_holds_the_runs_of_all_methods(comparison: Any) -> None:
    document = comparison.as_json()
    assert document["schema"] == "archwright/compare/1"
    assert set(document["methods"]) == {"random", "weight-sharing", "standard"}
    for name, part in document["methods"].items():
        single = json.loads((comparison.folder.path / name / "result.json").read_text())
        assert part["front"] == single["front"]
        assert part["hypervolume"] == single["hypervolume"]
        assert single["original"]["test_error"] == document["original"]["test_error"]
    assert comparison.folder.report.exists()


def test_all_methods_pay_for_the_one_original(comparison: Any) -> None:
    phases = [part["seconds_by_phase"]["original"] for part in comparison.as_json()["methods"].values()]
    assert len(set(phases)) == 1


def test_the_same_comparison_again_trains_nothing(comparison: Any, given: dict[str, Any]) -> None:
    before = {path: path.stat().st_mtime_ns for path in comparison.folder.path.glob("*/study.journal")}
    again = compressed(comparison.folder.path, **given, compare=("random", "weight-sharing", "standard"), trials=4)
    assert again.as_json()["methods"] == comparison.as_json()["methods"]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_run_of_a_comparison_can_be_selected_from(comparison: Any) -> None:
    assert comparison.run("standard").front == comparison.as_json()["methods"]["standard"]["front"]


def test_select_on_a_comparison_says_which_runs_there_are(comparison: Any) -> None:
    with pytest.raises(BadInput, match="weight-sharing"):
        aw.open_run(comparison.folder.path)


@pytest.mark.parametrize("method", ["standard", "retraining-free", "random"])
def test_an_evaluator_can_be_sent_to_another_process(method: str, runs: dict[str, Any]) -> None:
    evaluator, entry = load_evaluator(runs[method].folder), runs[method].front[0]
    copy = pickle.loads(pickle.dumps(evaluator))
    assert copy.error(entry["config"], copy.context.task_data.validation) == entry["validation_error"]


@pytest.mark.parametrize("method", METHODS)
def test_every_space_is_served_or_refused_in_one_line(method: str) -> None:
    for space in ("small", "layer", "medium", "large"):
        if space in METHODS[method].spaces:
            assert space_for(method, space) == space
        else:
            with pytest.raises(BadInput, match=f"--space.*{method}.*{space}"):
                space_for(method, space)


def test_unused_options_are_options() -> None:
    known = set(vars(SupernetOptions()))
    assert all(set(method.unused) <= known for method in METHODS.values())
    assert set(PRESETS["paper"]) > {"min_epochs"}


def test_networks_are_not_trained_in_the_precision_of_the_search(place: Path, given: dict[str, Any]) -> None:
    run = run_of(place / "bfloat16", "standard", given, precision="bfloat16", trials=2)
    evaluator = load_evaluator(run.folder)
    seen: list[bool] = []

    class Watched:
        def locate(self, config: Any) -> Any:
            seen.append(torch.is_autocast_enabled("cpu"))
            return evaluator.weights.locate(config)

    assert 0 <= replace(evaluator, weights=Watched()).search_error(run.front[0]["config"]) <= 1
    assert seen == [False]
