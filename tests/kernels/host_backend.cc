// The host's backend: memory and scratch from the allocator over host memory.
#include <cstring>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/host_device.h"
#include "kernels/ops/host/host_ops.h"
#include "tests/kernels/ops_suite.h"

namespace ashlar::ops {
namespace {

class HostBackend final : public Backend {
 public:
  Ops& ops() override { return ops_; }
  std::uint64_t Allocate(std::uint64_t bytes) override { return *memory_.AllocateAddress(bytes, Stream{0}); }
  void Write(std::uint64_t address, const void* from, std::uint64_t bytes) override {
    if (bytes > 0) std::memcpy(reinterpret_cast<void*>(address), from, bytes);
  }
  void Read(void* to, std::uint64_t address, std::uint64_t bytes) override {
    if (bytes > 0) std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  }
  std::uint64_t scratch_in_use() override {
    return static_cast<std::uint64_t>(scratch_.stats().allocated_bytes.all().current);
  }

 private:
  device::HostDevice device_{{.capacity_bytes = 4 * kGiB}};
  core::CachingAllocator memory_{&device_, policy::Options{}};
  core::CachingAllocator scratch_{&device_, policy::Options{}};
  AllocatorWorkspace workspace_{&scratch_, Stream{0}};
  HostOps ops_{&workspace_};
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(std::string*) { return std::make_unique<HostBackend>(); }

}  // namespace ashlar::ops
