#include "ashlar/onnxruntime.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/api/c/handle.h"

namespace ashlar::c {
namespace {

constexpr std::size_t kOnnxDevices = 16;

void TellOnStderr(ashlar_status status) {
  if (status != ASHLAR_OK) std::fprintf(stderr, "ashlar: %s\n", ashlar_last_error());
}

// ONNX Runtime's functions have no argument that names a device: each device has functions of its own.
template <std::size_t kDevice>
struct OnnxOfDevice {
  // It is open, since ashlar_onnxruntime opened it.
  static ashlar_allocator* Allocator() {
    ashlar_allocator* allocator = nullptr;
    TellOnStderr(ashlar_process_allocator(static_cast<int>(kDevice), &allocator));
    return allocator;
  }
  static void* Alloc(std::size_t bytes) {
    void* memory = nullptr;
    TellOnStderr(ashlar_allocate(Allocator(), bytes, nullptr, &memory));
    return memory;
  }
  static void Free(void* memory) { TellOnStderr(ashlar_free(Allocator(), memory)); }
  static void EmptyCache() { TellOnStderr(ashlar_empty_cache(Allocator())); }

  static constexpr ashlar_onnxruntime_functions kFunctions = {0, &Alloc, &Free, &EmptyCache};
};

template <std::size_t... kDevices>
constexpr std::array<ashlar_onnxruntime_functions, sizeof...(kDevices)> OnnxTable(std::index_sequence<kDevices...>) {
  return {OnnxOfDevice<kDevices>::kFunctions...};
}
constexpr std::array<ashlar_onnxruntime_functions, kOnnxDevices> kOnnxTable =
    OnnxTable(std::make_index_sequence<kOnnxDevices>());

}  // namespace
}  // namespace ashlar::c

extern "C" ashlar_status ashlar_onnxruntime(int device, ashlar_onnxruntime_functions* out) {
  if (device < 0 || static_cast<std::size_t>(device) >= ashlar::c::kOnnxDevices) {
    return ashlar::c::Call([&] {
      return absl::InvalidArgumentError(
          absl::StrCat("ashlar_onnxruntime: device ", device, " is none of 0 to ", ashlar::c::kOnnxDevices - 1));
    });
  }
  ashlar_allocator* allocator = nullptr;
  if (const ashlar_status status = ashlar_process_allocator(device, &allocator); status != ASHLAR_OK) return status;
  return ashlar::c::Fill(out, ashlar::c::kOnnxTable[static_cast<std::size_t>(device)], "ashlar_onnxruntime_functions");
}
