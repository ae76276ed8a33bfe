// The real allocation and free behind each door.
#ifndef ASHLAR_HOLLOW_SERVE_REAL_MEMORY_H_
#define ASHLAR_HOLLOW_SERVE_REAL_MEMORY_H_

#include <cstddef>

#include "hollow/interpose/real.h"
#include "hollow/serve/driver.h"

namespace ashlar::serve {

inline int RealAllocation(Door door, std::size_t bytes, void** out) {
  const bool is_runtime = door == Door::kRuntime;
  return interpose::CallReal(is_runtime ? interpose::Name::cudaMalloc : interpose::Name::cuMemAlloc_v2, out, bytes);
}

inline int RealFree(Door door, void* pointer) {
  const bool is_runtime = door == Door::kRuntime;
  return interpose::CallReal(is_runtime ? interpose::Name::cudaFree : interpose::Name::cuMemFree_v2, pointer);
}

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_REAL_MEMORY_H_
