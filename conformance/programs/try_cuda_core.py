"""cuda.core: a program compiled by NVRTC, a buffer, a launch on a stream."""

import json

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
extern "C" __global__ void twice(float *x, size_t n) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
arch = "sm_%d%d" % tuple(device.compute_capability)
module = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=arch)).compile("cubin")
buffer = device.memory_resource.allocate(4 << 20, stream=stream)
launch(stream, LaunchConfig(grid=4096, block=256), module.get_kernel("twice"), buffer, 1 << 20)
stream.sync()
print(json.dumps({"program": "try_cuda_core", "device": device.name, "bytes": buffer.size}))
buffer.close(stream)
