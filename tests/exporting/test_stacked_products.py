"""Eight bits where one product has a matrix per head: it stays in floats, and the file runs."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from archwright.exporting.onnx_int8 import quantize_encoder, stacked_products

RNG = np.random.default_rng(0)
PLAIN, STACK = RNG.standard_normal((16, 16)).astype("f"), RNG.standard_normal((2, 16, 16)).astype("f")


def two_products() -> onnx.ModelProto:
    """x, times one matrix, times two."""
    shape = ["rows", 2, "time", 16]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "plain"], ["between"], name="one"),
            helper.make_node("MatMul", ["between", "stack"], ["y"], name="many"),
        ],
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(PLAIN, "plain"), numpy_helper.from_array(STACK, "stack")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_a_matrix_per_head_stays_as_it_is(tmp_path: Path) -> None:
    model = two_products()
    assert stacked_products(model.graph) == ["many"]
    quantize_encoder(model, tmp_path / "small.onnx")
    kinds = [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node]
    assert "MatMul" in kinds and "DynamicQuantizeLinear" in kinds
    session = ort.InferenceSession(tmp_path / "small.onnx", providers=["CPUExecutionProvider"])
    x = RNG.standard_normal((3, 2, 5, 16)).astype("f")
    found, wanted = session.run(None, {"x": x})[0], x @ PLAIN @ STACK
    assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()
