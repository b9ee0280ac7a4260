"""ONNX files: equal at shapes other than the traced one, for every family."""

from pathlib import Path

import onnx
import pytest

from archwright.export import export
from archwright.networks.pruned import POOLINGS
from archwright.subnet.extract import extract
from archwright.subnet.keep import Keep, LayerKeep
from tests.export.tiny import SIZES, batches, inside, supernet, tokenizer

UNEVEN = (LayerKeep(0, 11), LayerKeep((0, 2), (1, 5, 7)), LayerKeep(3, 0))
NOTHING = (LayerKeep(0, 0),) * 3


def check(kind: str, pooling: str, keep: Keep, folder: Path) -> None:
    model = supernet(kind, pooling)
    parity = export(
        extract(model, keep),
        tokenizer(kind),
        folder,
        to="onnx",
        int8=True,
        reference=inside(model, keep),
        batches=batches(kind),
    )
    assert parity.difference.share <= 1e-4
    graph = onnx.load(folder / "model.onnx").graph
    assert [value.name for value in graph.input] == list(batches(kind)[0])
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
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", SIZES)
def test_every_family(kind: str, pooling: str, keep: Keep, tmp_path: Path) -> None:
    check(kind, pooling, keep, tmp_path / "out")
