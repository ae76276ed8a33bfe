#include "allocator/plugins/torch_native/shared_memory.h"

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "allocator/plugins/torch_native/shared_pages.h"

namespace ashlar::torch {
namespace {

// c10/cuda/CUDACachingAllocator.cpp: a version, a kind, and what the kind has. Who reads takes earlier versions too,
// and a handle of CUDA's alone, as PyTorch wrote it before.
constexpr char kVersion = 1;
constexpr char kNewestVersion = 2;
constexpr char kOfCudaMalloc = 'c';
constexpr char kOfPages = 'e';

// Never destroyed: memory may be let go at the end of the process.
struct OpenMemory {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<void>> by_handle;

  static OpenMemory& Instance() {
    static OpenMemory& instance = *new OpenMemory;
    return instance;
  }
};

// Reads one value after the other.
class HandleReader {
 public:
  explicit HandleReader(const std::string& text) : text_(text) {}

  template <typename Value>
  Value Take() {
    Value value{};
    TORCH_CHECK(text_.size() - at_ >= sizeof(value), "ashlar: getIpcDevPtr: the handle is cut off");
    std::memcpy(&value, text_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

template <typename Value>
void Append(std::string& text, const Value& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Forget(const std::string& handle) {
  OpenMemory& open = OpenMemory::Instance();
  const std::lock_guard<std::mutex> lock(open.mutex);
  const auto found = open.by_handle.find(handle);
  if (found != open.by_handle.end() && found->second.expired()) open.by_handle.erase(found);
}

std::shared_ptr<void> OpenMalloced(HandleReader& reader, const std::string& handle) {
  const auto of_cuda = reader.Take<cudaIpcMemHandle_t>();
  void* opened = nullptr;
  C10_CUDA_CHECK(cudaIpcOpenMemHandle(&opened, of_cuda, cudaIpcMemLazyEnablePeerAccess));
  return {opened, [handle](void* given) {
            Forget(handle);
            C10_CUDA_CHECK_WARN(cudaIpcCloseMemHandle(given));
          }};
}

std::shared_ptr<void> OpenPages(HandleReader& reader, const std::string& handle) {
  const auto header = reader.Take<SharedPagesHeader>();
  TORCH_CHECK(header.page_bytes > 0 && header.count > 0 && header.count <= handle.size() / sizeof(int),
              "ashlar: getIpcDevPtr: the handle is none of pages");
  std::vector<int> files;
  for (std::size_t i = 0; i < header.count; ++i) files.push_back(reader.Take<int>());
  auto* const pages = new SharedPages(header, files);
  return {pages->base(), [handle, pages](void*) {
            Forget(handle);
            delete pages;
          }};
}

std::shared_ptr<void> Open(const std::string& handle) {
  HandleReader reader(handle);
  char kind = kOfCudaMalloc;
  if (handle.size() != sizeof(cudaIpcMemHandle_t)) {
    const auto version = reader.Take<char>();
    TORCH_CHECK(version >= 0 && version <= kNewestVersion, "ashlar: getIpcDevPtr: the handle is of a later PyTorch");
    kind = reader.Take<char>();
  }
  if (kind == kOfCudaMalloc) return OpenMalloced(reader, handle);
  TORCH_CHECK(kind == kOfPages, "ashlar: getIpcDevPtr: the handle is neither of cudaMalloc's memory nor of pages");
  return OpenPages(reader, handle);
}

}  // namespace

ShareableHandle ShareMemory(void* base, std::ptrdiff_t offset) {
  cudaIpcMemHandle_t of_cuda;
  C10_CUDA_CHECK(cudaIpcGetMemHandle(&of_cuda, base));
  std::string handle{kVersion, kOfCudaMalloc};
  Append(handle, of_cuda);
  return {offset, handle};
}

ShareableHandle SharePages(std::size_t page_bytes, const std::vector<int>& files, std::ptrdiff_t offset) {
  std::string handle{kVersion, kOfPages};
  SharedPagesHeader header;
  std::memset(&header, 0, sizeof(header));  // the gap too: equal memory has equal handles
  header.process = getpid();
  header.page_bytes = page_bytes;
  header.count = files.size();
  Append(handle, header);
  for (const int file : files) Append(handle, file);
  return {offset, handle};
}

std::shared_ptr<void> OpenShared(const std::string& handle) {
  OpenMemory& open = OpenMemory::Instance();
  const std::lock_guard<std::mutex> lock(open.mutex);
  const auto known = open.by_handle.find(handle);
  if (known != open.by_handle.end()) {
    if (std::shared_ptr<void> memory = known->second.lock(); memory != nullptr) return memory;
  }
  std::shared_ptr<void> memory = Open(handle);
  open.by_handle[handle] = memory;
  return memory;
}

}  // namespace ashlar::torch
