"""8-bit ONNX files: small, close, and right for decoders, whose features differ much in size."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from archwright.exporting import onnx_file
from archwright.exporting.checkpoint import export
from archwright.exporting.onnx_int8 import TOGETHER, lookup, quantize_decoder, quantize_encoder
from archwright.logs import silence_libraries
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec
from tests.exporting.tiny import batches, inside, supernet, tokenizer

KEEP = (LayerSpec(3, 30), LayerSpec(0, 0), LayerSpec(4, 40))


def answer(model: ModelProto | Path, inputs: dict[str, NDArray[np.generic]]) -> NDArray[np.float32]:
    source = model.SerializeToString() if isinstance(model, ModelProto) else str(model)
    found: NDArray[np.float32] = onnxruntime.InferenceSession(source).run(None, inputs)[0]
    return found


def graph_of(nodes: list[onnx.NodeProto], tables: dict[str, NDArray[np.float32]], kind: int, width: int) -> ModelProto:
    given = helper.make_tensor_value_info("x", kind, [None, None] if kind == TensorProto.FLOAT else [None])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, width])
    stored = [numpy_helper.from_array(table, name) for name, table in tables.items()]
    return helper.make_model(
        helper.make_graph(nodes, "g", [given], [out], stored),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )


def test_a_looked_up_row_is_within_half_a_step_of_its_own_scale() -> None:
    table = np.array([[127.0, -1.4, 0.6], [0.0127, 0.0001, -0.00626], [0, 0, 0]], dtype=np.float32)
    node = helper.make_node("Gather", ["t", "x"], ["y"])
    model = graph_of([], {"t": table}, TensorProto.INT64, 3)
    model.graph.node.extend(lookup(model.graph, node, table))
    found = answer(model, {"x": np.array([0, 1, 2])})
    assert found[0].tolist() == [127, -1, 1]
    assert found[1] == pytest.approx([0.0127, 0.0001, -0.0063], rel=1e-5)
    assert found[2].tolist() == [0, 0, 0]


def error_of(
    way: Callable[[ModelProto, Path], None], weight: NDArray[np.float32], x: NDArray[np.float32], to: Path
) -> float:
    """Largest error of small outputs, in units of the largest of them."""
    model = graph_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": weight}, TensorProto.FLOAT, weight.shape[1])
    with silence_libraries():
        way(model, to)
    exact = x @ weight
    return float(np.abs(answer(to, {"x": x}) - exact).max() / np.abs(exact).max())


def test_one_huge_feature_does_not_hide_the_others(tmp_path: Path) -> None:
    """A feature of 5,000, whose neighbours meet weights of zero: the outputs come from the others, all near 1."""
    rng = np.random.default_rng(0)
    weight, x = rng.normal(size=(256, 64)).astype(np.float32), rng.normal(size=(3, 256)).astype(np.float32)
    weight[:TOGETHER], x[:, 7] = 0, 5000
    assert error_of(quantize_encoder, weight, x, tmp_path / "encoder.onnx") > 0.3
    assert error_of(quantize_decoder, weight, x, tmp_path / "decoder.onnx") < 0.03
    x[:, 7] = 1
    assert error_of(quantize_encoder, weight, x, tmp_path / "encoder.onnx") < 0.03
    assert error_of(quantize_decoder, weight, x, tmp_path / "decoder.onnx") < 0.03


def test_a_table_that_is_looked_up_and_transposed_for_the_output(tmp_path: Path) -> None:
    """Tied embeddings of a large network, where tracing leaves the transposition in the graph; here two outputs."""
    table = np.random.default_rng(0).normal(size=(60, 48)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["t", "x"], ["row"]),
        helper.make_node("Transpose", ["t"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["row", "turned"], ["once"]),
        helper.make_node("MatMul", ["row", "turned"], ["twice"]),
        helper.make_node("Add", ["once", "twice"], ["y"]),
    ]
    with silence_libraries():
        quantize_decoder(graph_of(nodes, {"t": table}, TensorProto.INT64, 60), tmp_path / "small.onnx")
    exact = 2 * table[[3, 59]] @ table.T
    assert answer(tmp_path / "small.onnx", {"x": np.array([3, 59])}) == pytest.approx(
        exact, abs=0.03 * float(exact.max())
    )
    kinds = [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node]
    assert kinds.count("MatMulNBits") == 2 and not {"Transpose", "MatMul"} & {*kinds}


def test_columns_of_a_table_stay_as_they_are(tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)
    node = helper.make_node("Gather", ["t", "x"], ["y"], axis=1)
    with silence_libraries():
        quantize_decoder(graph_of([node], {"t": table}, TensorProto.INT64, 2), tmp_path / "small.onnx")
    assert (answer(tmp_path / "small.onnx", {"x": np.array([7, 0])}) == table[:, [7, 0]]).all()


def test_a_decoder_whose_output_shares_the_embeddings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As two files, as large networks are written; no float matrix is left in the 8-bit one."""
    monkeypatch.setattr(onnx_file, "ONE_FILE", 1000)
    model = supernet("llama", kind="lm")
    parity = export(
        extract(model, KEEP),
        tokenizer("llama"),
        tmp_path / "out",
        to="onnx",
        int8=True,
        reference=inside(model, KEEP),
        batches=batches("llama", "lm"),
    )
    assert parity.int8 is not None and parity.difference.share <= 1e-4
    assert parity.bytes == sum((tmp_path / "out" / name).stat().st_size for name in ("model.onnx", "model.onnx.data"))
    assert parity.bytes > 4 * parity.parameters
    assert "`model.onnx` needs `model.onnx.data` beside it." in (tmp_path / "out" / "README.md").read_text()
    assert parity.int8.difference.largest < 0.2 * parity.difference.largest_logit
    assert parity.int8.difference.same_predictions is not None and parity.int8.difference.same_predictions > 0.8
    graph = onnx.load(tmp_path / "out" / "model_int8.onnx").graph
    floats = [tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT]
    assert max(np.prod(tensor.dims) for tensor in floats) < 1000
    stored = sum(np.prod(tensor.dims) for tensor in graph.initializer if tensor not in floats)
    assert stored >= parity.parameters
