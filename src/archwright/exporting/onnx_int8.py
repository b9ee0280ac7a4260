"""ONNX files with 8-bit weights that compute in bytes.

In an encoder one scale serves the whole input of a product. In a decoder a few features of the hidden states can be far
larger than the others, so that one scale would leave little of the rest: there 64 neighbours share one, in the weights
and in the inputs.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

TOGETHER = 64
"""Neighbours that share a scale in a decoder."""
IN_BYTES = 4
"""What onnxruntime calls the accuracy of products of bytes; at lower levels it multiplies floats."""
SMALLEST_TABLE = 2**10
"""Tables with fewer numbers stay as they are."""


def quantize_encoder(model: ModelProto, to: Path) -> None:
    """Weights as signed bytes with one scale per output, embeddings with one per row; activations while running.

    Weights use 7 of the 8 bits: processors without VNNI overflow otherwise, and with it nothing is lost.
    """
    quantize_tables(model.graph)
    lookups = [node.name for node in model.graph.node if node.op_type == "Gather"]
    options = {"weight_type": QuantType.QInt8, "per_channel": True, "reduce_range": True}
    quantize_dynamic(model, to, nodes_to_exclude=[*stacked_products(model.graph), *lookups], **options)


def stacked_products(graph: GraphProto) -> list[str]:
    """Products with several weight matrices at once, one per head: onnxruntime has no scale per output for them."""
    stacks = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 2}
    return [node.name for node in graph.node if node.op_type == "MatMul" and stacks.intersection(node.input)]


def quantize_decoder(model: ModelProto, to: Path) -> None:
    """Weights as bytes with one scale for 64 of them, and embeddings with one per row."""
    store_transposed(model.graph)
    small = MatMulNBitsQuantizer(model, bits=8, block_size=TOGETHER, is_symmetric=True, accuracy_level=IN_BYTES)
    small.process()
    quantize_tables(small.model.model.graph)
    onnx.save(small.model.model, to)


def store_transposed(graph: GraphProto) -> None:
    """Stores tables that the graph transposes, as tied embeddings are for the output, transposed."""
    tables = tables_of(graph)
    for node in [node for node in graph.node if node.op_type == "Transpose" and node.input[0] in tables]:
        turned = np.ascontiguousarray(numpy_helper.to_array(tables[node.input[0]]).T)
        graph.initializer.append(numpy_helper.from_array(turned, node.output[0]))
        graph.node.remove(node)


def quantize_tables(graph: GraphProto) -> None:
    """Rows that are looked up in a table become bytes, multiplied by their row's scale after that."""
    tables = tables_of(graph)
    nodes: list[NodeProto] = []
    for node in graph.node:
        by_row = node.op_type == "Gather" and not any(attribute.i for attribute in node.attribute)  # along axis 0
        table = tables.get(node.input[0]) if by_row else None
        nodes += [node] if table is None else lookup(graph, node, numpy_helper.to_array(table))
    del graph.node[:]
    graph.node.extend(nodes)
    used = names_read(graph)
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in used:
            del graph.initializer[place]


def names_read(graph: GraphProto) -> set[str]:
    """What nodes and outputs read, also inside the bodies of loops."""
    names = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    bodies = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return names.union(*map(names_read, bodies))


def lookup(graph: GraphProto, node: NodeProto, table: NDArray[np.float32]) -> Iterator[NodeProto]:
    """The nodes that look up bytes and their scales instead of floats."""
    scales = np.maximum(np.abs(table).max(1, keepdims=True) / 127, np.finfo(np.float32).tiny)
    name, where, out = node.input[0], node.input[1], node.output[0]
    parts = {f"{name}_bytes": np.rint(table / scales).astype(np.int8), f"{name}_scales": scales}
    have = {tensor.name for tensor in graph.initializer}
    graph.initializer.extend(numpy_helper.from_array(part, key) for key, part in parts.items() if key not in have)
    yield helper.make_node("Gather", [f"{name}_bytes", where], [f"{out}_bytes"], f"{out}_bytes")
    yield helper.make_node("Cast", [f"{out}_bytes"], [f"{out}_unscaled"], to=TensorProto.FLOAT)
    yield helper.make_node("Gather", [f"{name}_scales", where], [f"{out}_scales"], f"{out}_scales")
    yield helper.make_node("Mul", [f"{out}_unscaled", f"{out}_scales"], [out])


def tables_of(graph: GraphProto) -> dict[str, TensorProto]:
    """Matrices of floats that are worth it."""
    return {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2 and np.prod(tensor.dims) >= SMALLEST_TABLE
    }
