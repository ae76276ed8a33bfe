// libashlar_cupy.so: the two C functions that CuPy's CFunctionAllocator calls, over the process's allocator. Used by
// python/ashlar_gpu/cupy.py. CuPy declares them (cupy/cuda/memory.pyx) as
//
//   void* malloc(void* param, size_t size, int device_id)
//   void free(void* param, void* memory, int device_id)
//
// `param` points to a CupyParam. CuPy does not look at a null pointer, and turns a C++ exception of malloc into one of
// Python: std::bad_alloc into MemoryError with our text, std::invalid_argument into ValueError, others into
// RuntimeError.
// It shares its C++ library with CuPy for that. Threads: any; CuPy holds the interpreter's lock in both.
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "ashlar.h"
#include "ashlar/handle.h"

namespace {

struct CupyParam {
  std::intptr_t (*current_stream)();  // CuPy's own, of the calling thread; null: always the default stream
};

// CUDA's two names of the default stream are one.
ashlar_stream StreamOf(const CupyParam* param) {
  constexpr std::intptr_t kLegacy = 1, kPerThread = 2;
  const std::intptr_t handle = param->current_stream == nullptr ? 0 : param->current_stream();
  if (handle == kPerThread) {
    throw std::invalid_argument(
        "ashlar: the per-thread default stream is another stream in each thread, and a block belongs to one stream: "
        "allocate on the default stream or on a stream that was made");
  }
  return reinterpret_cast<ashlar_stream>(handle == kLegacy ? 0 : handle);  // NOLINT: CUDA's handles are pointers
}

}  // namespace

extern "C" {

ASHLAR_API void* ashlar_cupy_malloc(void* param, size_t size, int device) {
  ashlar_allocator* allocator = nullptr;
  ashlar::ThrowUnlessOk(ashlar_process_allocator(device, &allocator));
  void* memory = nullptr;
  ashlar::ThrowUnlessOk(ashlar_allocate(allocator, size, StreamOf(static_cast<const CupyParam*>(param)), &memory));
  return memory;
}

// An address that the allocator does not know is nobody's memory: there is no one to tell.
ASHLAR_API void ashlar_cupy_free(void*, void* memory, int device) noexcept {
  ashlar_allocator* allocator = nullptr;
  if (ashlar_process_allocator(device, &allocator) == ASHLAR_OK) ashlar_free(allocator, memory);
}

}  // extern "C"
