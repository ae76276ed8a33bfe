// A Workspace gives ops their scratch. Nothing in kernels/ops allocates by itself, so the caller sees all memory of a
// run. Scratch is allocated and freed in stream order: the stream's later work may reuse it at once.
#ifndef ASHLAR_KERNELS_OPS_WORKSPACE_H_
#define ASHLAR_KERNELS_OPS_WORKSPACE_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::ops {

class Workspace {
 public:
  virtual ~Workspace() = default;
  // At least `bytes` > 0, aligned to 256 bytes. kResourceExhausted is out of memory.
  virtual absl::StatusOr<void*> Allocate(std::uint64_t bytes) = 0;
  virtual void Free(void* address) = 0;
};

// Scratch from a caching allocator, on one stream.
class AllocatorWorkspace final : public Workspace {
 public:
  AllocatorWorkspace(core::CachingAllocator* allocator, Stream stream) : allocator_(allocator), stream_(stream) {}
  absl::StatusOr<void*> Allocate(std::uint64_t bytes) override;
  void Free(void* address) override;

 private:
  core::CachingAllocator* allocator_;
  Stream stream_;
};

// A piece of scratch, freed at the end of its scope.
class Scratch {
 public:
  static absl::StatusOr<Scratch> Take(Workspace* workspace, std::uint64_t bytes);
  Scratch() = default;
  Scratch(Scratch&& other) noexcept { *this = std::move(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(workspace_, other.workspace_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Scratch() {
    if (data_ != nullptr) workspace_->Free(data_);
  }

  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }

 private:
  Workspace* workspace_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_WORKSPACE_H_
