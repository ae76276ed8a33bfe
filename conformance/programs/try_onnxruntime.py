"""onnxruntime-gpu: a matrix product by its CUDA provider, and by no other."""

import json

import numpy
import onnx
import onnxruntime

a = onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [256, 256])
b = onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [256, 256])
graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["a", "a"], ["b"])], "product", [a], [b])
model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
onnxruntime.preload_dlls()
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
assert "CUDAExecutionProvider" in session.get_providers(), "it fell back to %s" % session.get_providers()
(out,) = session.run(None, {"a": numpy.ones((256, 256), numpy.float32)})
print(json.dumps({"program": "try_onnxruntime", "shape": list(out.shape)}))
