#include "hollow/record/device_state.h"

#include <cstddef>

#include "hollow/interpose/real_function.h"

namespace ashlar::record {
namespace {

constinit interpose::RealFunction<int(int*)> device_of_context("cuCtxGetDevice");
constinit interpose::RealFunction<int(int*)> device_of_runtime("cudaGetDevice");
constinit interpose::RealFunction<int(std::size_t*, std::size_t*)> memory_of_device("cuMemGetInfo_v2");

}  // namespace

int CurrentDevice() {
  int device = 0;
  if (device_of_context(&device) == 0) return device;
  return device_of_runtime(&device) == 0 ? device : 0;
}

DeviceMemory MemoryOfDevice() {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (memory_of_device(&free_bytes, &total_bytes) != 0) return {};
  return {free_bytes, total_bytes};
}

}  // namespace ashlar::record
