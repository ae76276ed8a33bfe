#include "kernels/ops/dry_ops.h"

#include <utility>

namespace ashlar::ops {

absl::Status DryOps::TakeScratch(std::uint64_t bytes) {
  if (bytes == 0 || !options_.takes_scratch) return absl::OkStatus();
  return Scratch::Take(workspace(), bytes).status();
}

absl::Status DryOps::Do(const MatMul&) {
  if (cublas_.data() != nullptr || options_.cublas_workspace_bytes == 0 || !options_.takes_scratch) {
    return absl::OkStatus();
  }
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), options_.cublas_workspace_bytes);
  if (!scratch.ok()) return scratch.status();
  cublas_ = *std::move(scratch);
  return absl::OkStatus();
}

}  // namespace ashlar::ops
