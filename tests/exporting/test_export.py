"""An export is a folder that proves itself, or nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoTokenizer

from archwright.errors import BadInput, Failed
from archwright.exporting.checkpoint import export
from archwright.exporting.formats import FORMATS
from archwright.exporting.parity import Parity, varied_batches
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.exporting.tiny import ENCODERS, HEADS, batches, inside, readable, supernet, tokenizer

EVEN = (LayerSpec(HEADS, 20), LayerSpec(0, 0), LayerSpec(HEADS, 20))
UNEVEN = (LayerSpec((0, 2), (1, 5, 7)), LayerSpec(3, 0), LayerSpec(1, 11))
TORCH_FORMATS = [name for name, kind in FORMATS.items() if kind.library == "transformers"]


def exported(
    folder: Path,
    to: str,
    keep: SubnetSpec = EVEN,
    *,
    family: str = "bert",
    pooling: str = "mean",
    config: Any = None,
    **kw: Any,
) -> Parity:
    model = supernet(family, pooling, **(config or {}))
    values = {"reference": inside(model, keep), "batches": batches(family)} | kw
    return export(extract(model, keep), tokenizer(family), folder, to=to, **values)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One export of every format, the ONNX one with 8-bit weights."""
    made = {}
    for to, kind in FORMATS.items():
        made[to] = tmp_path_factory.mktemp("exports") / to
        exported(made[to], to, int8=kind.quantize is not None)
    return made


@pytest.mark.parametrize("to", FORMATS)
def test_the_folder_holds_weights_labels_tokenizer_report_and_card(folders: dict[str, Path], to: str) -> None:
    folder = folders[to]
    config = json.loads((folder / "config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "perhaps", "2": "yes"}
    assert config["label2id"] == {"no": 0, "perhaps": 1, "yes": 2}
    assert config["problem_type"] == "single_label_classification"
    assert AutoTokenizer.from_pretrained(folder)("w4 w9")["input_ids"] == [1, 4, 9, 2]
    assert "pipeline_tag: text-classification" in (folder / "README.md").read_text()
    assert {path.name for path in folder.parent.iterdir()} == {to}


@pytest.mark.parametrize("to", FORMATS)
def test_the_report(folders: dict[str, Path], to: str) -> None:
    report = json.loads((folders[to] / "parity.json").read_text())
    assert report["schema"] == "archwright/parity/1"
    assert report["format"] == to
    assert report["layers"] == [[HEADS, 20], [HEADS, 20]]
    assert report["difference_share"] <= report["limit"] == FORMATS[to].limit
    assert report["difference"]["same_predictions"] == 1
    assert [(shape["rows"], shape["length"]) for shape in report["difference"]["shapes"]][:3] == [
        (1, 3),
        (1, 48),
        (8, 21),
    ]
    assert report["bytes"] == (folders[to] / FORMATS[to].weights).stat().st_size == report["files"][FORMATS[to].weights]
    on_disk = {path.name: path.stat().st_size for path in folders[to].iterdir()}
    assert report["files"] == {name: on_disk[name] for name in on_disk.keys() - {"parity.json", "README.md"}}


def test_parameters(folders: dict[str, Path]) -> None:
    reports = {to: json.loads((folder / "parity.json").read_text()) for to, folder in folders.items()}
    model = extract(supernet("bert", "mean"), EVEN)
    assert {report["parameters"] for report in reports.values()} == {model.num_parameters()}
    assert reports["compact"]["stored_parameters"] == model.num_parameters()
    assert reports["hf"]["stored_parameters"] == model.num_parameters() + 4 * 32 * 33 + 2 * 20 * 32 + 20 + 5 * 32


def test_int8_is_smaller_and_reported(folders: dict[str, Path]) -> None:
    twin = json.loads((folders["onnx"] / "parity.json").read_text())["int8"]
    assert twin["file"] == "model_int8.onnx"
    assert twin["bytes"] == (folders["onnx"] / "model_int8.onnx").stat().st_size
    assert 0 < twin["difference"]["largest"] < 1
    assert 0 <= twin["difference"]["same_predictions"] <= 1
    assert "model_int8.onnx" in (folders["onnx"] / "README.md").read_text()


def test_the_compact_config_is_read_by_its_own_copy(folders: dict[str, Path]) -> None:
    config = AutoConfig.from_pretrained(folders["compact"], trust_remote_code=True)
    assert config.layers == [[HEADS, 20], [HEADS, 20]]
    assert not type(config).__module__.startswith("archwright")


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("to", ["hf-padded", "compact"])
def test_uneven_networks_of_every_family(tmp_path: Path, to: str, family: str, pooling: str) -> None:
    if to == "hf-padded" and pooling not in readable(family):
        with pytest.raises(BadInput, match=f"need the pooling .*, got {pooling}; export to compact"):
            exported(tmp_path / "out", to, UNEVEN, family=family, pooling=pooling)
        return
    parity = exported(tmp_path / "out", to, UNEVEN, family=family, pooling=pooling)
    assert parity.difference.share <= 1e-5
    assert parity.family == family.split(",")[0]


def test_regression_has_no_predictions_to_compare(tmp_path: Path) -> None:
    parity = exported(tmp_path / "out", "compact", config={"labels": ()})
    assert parity.difference.same_predictions is None
    assert json.loads((tmp_path / "out" / "config.json").read_text())["problem_type"] == "regression"


def test_latency_is_measured_on_what_was_loaded(tmp_path: Path) -> None:
    timed = []

    times = {"median": 2.0, "low": 1.5, "high": 2.5, "original": 4.0, "ratio": 0.5, "length": 24}
    times |= {"runtime": "PyTorch", "original_runtime": "PyTorch"}

    def latency(run: Any) -> Mapping[str, Any]:
        timed.append(run(batches("bert")[0]).shape)
        return times

    parity = exported(tmp_path / "out", "hf", latency=latency)
    assert parity.latency == times
    assert timed == [(1, 3)]
    words = (
        "Latency: 2.00 ms (1.50 to 2.50) for one text of 24 tokens on one thread in PyTorch, 4.00 ms of the original"
    )
    assert words in (tmp_path / "out" / "README.md").read_text()


def test_a_network_in_training_mode_and_double_precision_is_left_so(tmp_path: Path) -> None:
    model = supernet("bert", "cls")
    network = extract(model, UNEVEN).double().train()
    parity = export(
        network,
        tokenizer("bert"),
        tmp_path / "o",
        to="compact",
        reference=inside(model, UNEVEN),
        batches=batches("bert"),
    )
    assert parity.difference.share <= 1e-5
    assert network.training
    assert network.dtype == torch.float64


@pytest.mark.parametrize("error", [1e-3, float("nan")])
@pytest.mark.parametrize("to", TORCH_FORMATS)
def test_a_difference_above_the_limit_fails_and_leaves_nothing(tmp_path: Path, to: str, error: float) -> None:
    right = inside(supernet("bert", "mean"), EVEN)

    def wrong(inputs: Mapping[str, Tensor]) -> Tensor:
        return right(inputs) + error

    with pytest.raises(Failed, match=rf"an export to {to} must keep every logit within 1e-05") as caught:
        exported(tmp_path / "out", to, reference=wrong)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_dead_sublayers_behind_a_large_eps_are_refused_by_their_parity(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="export to compact"):
        exported(tmp_path / "out", "hf-padded", UNEVEN, family="roberta", config={"layer_norm_eps": 1e-3})
    exported(tmp_path / "out", "compact", UNEVEN, family="roberta", config={"layer_norm_eps": 1e-3})


BAD = {
    "unknown format": ({"to": "hf-paded"}, "did you mean hf-padded?"),
    "another unknown format": ({"to": "gguf"}, "must be one of hf, hf-padded, compact, onnx"),
    "8 bits without onnx": ({"to": "compact", "int8": True}, "need the format onnx"),
    "sizes": ({"to": "hf", "keep": UNEVEN}, "hf-padded or compact"),
}


@pytest.mark.parametrize(("options", "line"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, options: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as caught:
        exported(tmp_path / "new" / "out", **options)
    assert line in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_format_replaces_another(tmp_path: Path) -> None:
    exported(tmp_path / "out", "compact")
    exported(tmp_path / "out", "hf")
    assert not (tmp_path / "out" / "modeling_archwright.py").exists()


def test_a_full_disk_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError

    from archwright.networks.pruned import PrunedNetwork

    def full(*_: Any, **__: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(PrunedNetwork, "save_pretrained", full)
    with pytest.raises(Failed, match="No space left"):
        exported(tmp_path / "out", "compact")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", TORCH_FORMATS)
def test_nothing_is_printed(tmp_path: Path, to: str, capfd: pytest.CaptureFixture[str]) -> None:
    exported(tmp_path / "out", to)
    assert capfd.readouterr() == ("", "")


def test_varied_batches_differ_in_shape_and_padding() -> None:
    texts = ["w4 " * length for length in range(1, 30)]
    made = varied_batches(tokenizer("bert"), texts, texts[::-1], max_length=20)
    assert [tuple(batch["input_ids"].shape) for batch in made] == [(1, 20), (1, 20), (1, 20), (8, 20), (3, 20)]
    made = varied_batches(tokenizer("roberta"), texts)
    assert [tuple(batch["input_ids"].shape) for batch in made] == [(1, 3), (1, 31), (1, 17), (8, 31), (3, 5)]
    assert (made[3]["attention_mask"] == 0).any()
    assert len(varied_batches(tokenizer("bert"), ["w4"])) == 5
