"""ONNX files: equal at shapes other than the traced one, for every family."""

from pathlib import Path

import onnx
import pytest

from archwright.exporting.checkpoint import export
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.exporting.tiny import ENCODERS, batches, inside, supernet, tokenizer

UNEVEN = (LayerSpec(0, 11), LayerSpec((0, 2), (1, 5, 7)), LayerSpec(3, 0))
NOTHING = (LayerSpec(0, 0),) * 3


def check(family: str, pooling: str, keep: SubnetSpec, folder: Path) -> None:
    model = supernet(family, pooling)
    parity = export(
        extract(model, keep),
        tokenizer(family),
        folder,
        to="onnx",
        int8=True,
        reference=inside(model, keep),
        batches=batches(family),
    )
    assert parity.difference.share <= 1e-4
    graph = onnx.load(folder / "model.onnx").graph
    assert [value.name for value in graph.input] == list(batches(family)[0])
    assert [value.name for value in graph.output] == ["logits"]
    assert all(value.type.tensor_type.shape.dim[0].dim_param for value in graph.input)
    assert {path.name for path in folder.glob("model*")} == {"model.onnx", "model_int8.onnx"}


def test_uneven_and_silent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check("roberta", "cls", UNEVEN, tmp_path / "out")
    out, err = capfd.readouterr()
    assert out == ""
    assert all(line.startswith("export to onnx: ") for line in err.splitlines())  # our own progress


@pytest.mark.slow
@pytest.mark.parametrize("keep", [UNEVEN, NOTHING], ids=["uneven", "no layer"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("family", ENCODERS)
def test_every_family(family: str, pooling: str, keep: SubnetSpec, tmp_path: Path) -> None:
    check(family, pooling, keep, tmp_path / "out")
