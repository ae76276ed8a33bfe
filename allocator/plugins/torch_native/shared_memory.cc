#include "allocator/plugins/torch_native/shared_memory.h"

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <mutex>

namespace ashlar::torch {
namespace {

// What a handle begins with, so that one of another allocator is told from ours.
constexpr char kMark[] = "ashlar:cudaMalloc:";
constexpr std::size_t kMarkBytes = sizeof(kMark) - 1;

// Never destroyed: memory may be let go at the end of the process.
struct OpenMemory {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<void>> by_handle;

  static OpenMemory& Instance() {
    static OpenMemory& instance = *new OpenMemory;
    return instance;
  }
};

void CloseShared(const std::string& handle, void* memory) {
  OpenMemory& open = OpenMemory::Instance();
  const std::lock_guard<std::mutex> lock(open.mutex);
  const auto found = open.by_handle.find(handle);
  if (found != open.by_handle.end() && found->second.expired()) open.by_handle.erase(found);
  C10_CUDA_CHECK_WARN(cudaIpcCloseMemHandle(memory));
}

}  // namespace

ShareableHandle ShareMemory(void* base, std::ptrdiff_t offset) {
  cudaIpcMemHandle_t handle;
  C10_CUDA_CHECK(cudaIpcGetMemHandle(&handle, base));
  return {offset, kMark + std::string(reinterpret_cast<const char*>(&handle), sizeof(handle))};
}

std::shared_ptr<void> OpenShared(const std::string& handle) {
  cudaIpcMemHandle_t of_cuda;
  TORCH_CHECK(handle.size() == kMarkBytes + sizeof(of_cuda) && handle.compare(0, kMarkBytes, kMark) == 0,
              "ashlar: getIpcDevPtr: the tensor is of a process whose allocator is not Ashlar's: install it in both");
  std::memcpy(&of_cuda, handle.data() + kMarkBytes, sizeof(of_cuda));
  OpenMemory& open = OpenMemory::Instance();
  const std::lock_guard<std::mutex> lock(open.mutex);
  std::weak_ptr<void>& known = open.by_handle[handle];
  if (std::shared_ptr<void> memory = known.lock(); memory != nullptr) return memory;
  void* opened = nullptr;
  C10_CUDA_CHECK(cudaIpcOpenMemHandle(&opened, of_cuda, cudaIpcMemLazyEnablePeerAccess));
  std::shared_ptr<void> memory(opened, [handle](void* given) { CloseShared(handle, given); });
  known = memory;
  return memory;
}

}  // namespace ashlar::torch
