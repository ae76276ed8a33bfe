#include "kernels/ops/workspace.h"

#include "allocator/base/check.h"

namespace ashlar::ops {

absl::StatusOr<void*> AllocatorWorkspace::Allocate(std::uint64_t bytes) {
  const absl::StatusOr<std::uint64_t> address = allocator_->AllocateAddress(bytes, stream_);
  if (!address.ok()) return address.status();
  return reinterpret_cast<void*>(*address);
}

void AllocatorWorkspace::Free(void* address) {
  ASHLAR_CHECK(allocator_->FreeAddress(reinterpret_cast<std::uint64_t>(address)));
}

absl::StatusOr<Scratch> Scratch::Take(Workspace* workspace, std::uint64_t bytes) {
  Scratch scratch;
  if (bytes == 0) return scratch;
  absl::StatusOr<void*> data = workspace->Allocate(bytes);
  if (!data.ok()) return data.status();
  scratch.workspace_ = workspace;
  scratch.data_ = *data;
  return scratch;
}

}  // namespace ashlar::ops
