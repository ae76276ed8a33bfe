// What python/ashlar_gpu calls of this library, by name.
#include <c10/core/Allocator.h>
#include <cuda_runtime_api.h>
#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <torch/csrc/api/include/torch/version.h>
#endif

#include <exception>

#include "allocator/plugins/torch_native/allocator.h"

#define ASHLAR_TEXT_OF(words) #words
#define ASHLAR_TEXT(words) ASHLAR_TEXT_OF(words)

extern "C" {

// Makes Ashlar the process's allocator of CUDA memory. `settings`: PyTorch's own of those that are in force. 0: done.
ASHLAR_API int ashlar_torch_native_install(const char* settings) noexcept {
  try {
    auto& allocator = ashlar::torch::NativeAllocator::Instance();
    allocator.SetSettingsText(settings);
    c10::cuda::CUDACachingAllocator::allocator.store(&allocator);
    c10::SetAllocator(c10::DeviceType::CUDA, &allocator, 100);  // above what the release registered itself with
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

// The c10::cuda::CUDACachingAllocator::CUDAAllocator itself, for benches.
ASHLAR_API void* ashlar_torch_native_allocator() noexcept {
  return static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator*>(&ashlar::torch::NativeAllocator::Instance());
}

// The process's allocators have the settings `conf` from now on, those that open later too. The first failure, with its
// text in ashlar_last_error: nothing has changed then where one device is in use.
ASHLAR_API ashlar_status ashlar_torch_native_change(const char* settings, const char* conf) noexcept {
  try {
    return ashlar::torch::NativeAllocator::Instance().ChangeSettings(settings, conf);
  } catch (const std::exception&) {
    return ASHLAR_INTERNAL;
  }
}

// What this was compiled for, by the headers themselves, to be compared with what runs: "2.14.1 abi1 cuda13000 HASH".
ASHLAR_API const char* ashlar_torch_native_built_for() noexcept {
  return ASHLAR_TEXT(TORCH_VERSION_MAJOR) "." ASHLAR_TEXT(TORCH_VERSION_MINOR) "." ASHLAR_TEXT(TORCH_VERSION_PATCH)
      " abi" ASHLAR_TEXT(_GLIBCXX_USE_CXX11_ABI) " cuda" ASHLAR_TEXT(CUDART_VERSION) " " ASHLAR_TORCH_GIT;
}
}
