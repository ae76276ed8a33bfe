"""onnxruntime-gpu: a graph of matrix products by its CUDA provider, without the integration (`plain`) or with it (the path of
libashlar.so). Tells how many requests the allocator served."""

import ctypes
import json
import sys

import numpy
import onnx
import onnxruntime


class Functions(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_size_t), ('alloc', ctypes.c_void_p), ('free', ctypes.c_void_p),
                ('empty_cache', ctypes.c_void_p)]


def options_of(library):
    functions = Functions(ctypes.sizeof(Functions))
    if library.ashlar_onnxruntime(0, ctypes.byref(functions)) != 0:
        library.ashlar_last_error.restype = ctypes.c_char_p
        sys.exit(library.ashlar_last_error().decode())
    return {f'gpu_external_{name}': str(getattr(functions, name)) for name in ('alloc', 'free', 'empty_cache')}


def product_of(layers, size):
    """A chain of matrix products: each result is freed when the next is made."""
    names = ['a'] + [f'x{i}' for i in range(layers - 1)] + ['b']
    nodes = [onnx.helper.make_node('MatMul', [left, 'a'], [right]) for left, right in zip(names, names[1:])]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size, size]) for name in ('a', 'b')]
    graph = onnx.helper.make_graph(nodes, 'products', ends[:1], ends[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 17)], ir_version=9)


def statistics_of(library):
    statistics = (ctypes.c_uint64 * 16)(ctypes.sizeof(ctypes.c_uint64) * 16)
    allocator = ctypes.c_void_p()
    library.ashlar_process_allocator(0, ctypes.byref(allocator))
    library.ashlar_get_statistics(allocator, statistics)
    return {'allocations': statistics[9], 'device_allocations': statistics[11], 'allocated_bytes': statistics[1]}


library = None if sys.argv[1] == 'plain' else ctypes.CDLL(sys.argv[1])
provider = ('CUDAExecutionProvider', {'enable_cudnn': '0', **(options_of(library) if library else {})})
onnxruntime.preload_dlls()
session = onnxruntime.InferenceSession(product_of(20, 1024).SerializeToString(), providers=[provider])
assert 'CUDAExecutionProvider' in session.get_providers(), f'it fell back to {session.get_providers()}'
a = numpy.ones((1024, 1024), numpy.float32)
for _ in range(10):
    (out,) = session.run(None, {'a': a})
told = {'program': 'integration_onnxruntime', 'shape': list(out.shape)}
if library:
    told |= statistics_of(library)
print(json.dumps(told))
