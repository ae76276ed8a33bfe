"""onnxruntime-gpu: a matrix product and a convolution, which is cuDNN's, by its CUDA provider and by no other."""

import json

import numpy
import onnx
import onnxruntime

FLOAT = onnx.TensorProto.FLOAT
onnxruntime.preload_dlls()


def run(nodes, inputs, constants=()):
    """The output "out" of a graph of these nodes."""
    told = [onnx.helper.make_tensor_value_info(name, FLOAT, value.shape) for name, value in inputs.items()]
    out = onnx.helper.make_tensor_value_info("out", FLOAT, None)
    kept = [onnx.numpy_helper.from_array(value, name) for name, value in constants]
    graph = onnx.helper.make_graph(nodes, "graph", told, [out], kept)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
    assert "CUDAExecutionProvider" in session.get_providers(), "it fell back to %s" % session.get_providers()
    return session.run(None, inputs)[0]


product = run([onnx.helper.make_node("MatMul", ["a", "a"], ["out"])], {"a": numpy.ones((256, 256), numpy.float32)})
images = run([onnx.helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]), onnx.helper.make_node("Relu", ["y"], ["out"])],
             {"x": numpy.ones((8, 3, 64, 64), numpy.float32)}, [("w", numpy.ones((16, 3, 3, 3), numpy.float32))])
print(json.dumps({"program": "try_onnxruntime", "shape": list(product.shape), "images": list(images.shape)}))
