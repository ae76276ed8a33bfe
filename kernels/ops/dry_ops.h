// The ops without their arithmetic: each is checked, and takes and returns the scratch that CudaOps would, so that the
// allocator behind the workspace sees what a real run shows it. No data is read or written; addresses may be anything.
#ifndef ASHLAR_KERNELS_OPS_DRY_OPS_H_
#define ASHLAR_KERNELS_OPS_DRY_OPS_H_

#include <cstdint>

#include "kernels/ops/ops.h"
#include "kernels/ops/scratch.h"

namespace ashlar::ops {

struct DryOptions {
  bool takes_scratch = true;  // false: what a caller that allocates its scratch by rules of its own wants
  std::uint64_t cublas_workspace_bytes = kCublasWorkspaceBytes;  // 0: none
};

class DryOps final : public Ops {
 public:
  // The workspace may be null where no scratch is taken.
  explicit DryOps(Workspace* workspace, DryOptions options = {}) : Ops(workspace), options_(options) {}

 protected:
#define ASHLAR_OVERRIDE_DO(Op) \
  absl::Status Do(const Op& op) override { return TakeScratch(ScratchBytes(op)); }
  ASHLAR_FOR_EACH_OP_BUT_MATMUL(ASHLAR_OVERRIDE_DO)
#undef ASHLAR_OVERRIDE_DO
  absl::Status Do(const MatMul& op) override;

 private:
  absl::Status TakeScratch(std::uint64_t bytes);

  DryOptions options_;
  Scratch cublas_;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_DRY_OPS_H_
