"""A network as an ordinary checkpoint or ONNX file, with proof that it behaves the same."""
