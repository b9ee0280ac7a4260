"""Exports of a run: a model card that the hub understands, and latency beside the original in the same runtime."""

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from archwright.compression.export import export_subnet
from archwright.compression.methods import load_evaluator
from archwright.exporting.card import CardFacts


@pytest.fixture(scope="module")
def exported(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    member = run.front[0]
    folder = tmp_path_factory.mktemp("card") / "small"
    evaluator = load_evaluator(run.folder)
    return member, export_subnet(evaluator, member["trial"], member["config"], to="onnx", folder=folder, int8=True)


def test_the_card_says_where_it_comes_from_and_how_good_it_is(exported: Any, run: Any) -> None:
    member, done = exported
    card = ModelCard.load(done.folder / "README.md")
    (result,) = card.data.eval_results
    assert card.data.model_name == "small" and result.metric_type == "accuracy"
    assert result.metric_value == pytest.approx(1 - member["test_error"], abs=1e-4)
    assert result.metric_name == f"accuracy on {member['test_rows']} test rows"
    assert f"archwright export {run.result['run']} --trial {member['trial']}" in card.text
    assert "loses" in card.text and "rows) against the original" in card.text
    assert str(run.folder.path) not in card.content  # no path of this machine


def test_latency_is_compared_in_the_same_runtime(exported: Any) -> None:
    latency = exported[1].parity.latency
    assert (latency["runtime"], latency["original_runtime"]) == ("onnxruntime", "onnxruntime")
    assert latency["length"] > 0 and latency["ratio"] == latency["median"] / latency["original"]
    int8 = exported[1].parity.int8
    assert int8.latency["original_runtime"] == "onnxruntime" and int8.test_error is not None
    lines = "\n".join(exported[1].lines())
    assert f"for one text of {latency['length']} tokens on one thread in onnxruntime" in lines


def test_base_models_and_licences(tmp_path: Path) -> None:
    def facts(model: str) -> CardFacts:
        return CardFacts(model, "task", "accuracy", 0.9, 100, "loses nothing", "archwright export")

    assert facts("minilm").base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert facts("minilm").licence == "apache-2.0"
    assert facts("someone/model").base_model == "someone/model" and facts("someone/model").licence is None
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    assert facts(str(tmp_path)).base_model is None and facts(str(tmp_path)).licence == "mit"
