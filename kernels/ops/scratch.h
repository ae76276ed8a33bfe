// The scratch that CudaOps takes from its Workspace during an op, by the operands' sizes alone: no device is asked, so
// that a dry run takes the same bytes in the same order. Sums are split by these rules too, and so come out the same on
// every device. Other ops take none.
#ifndef ASHLAR_KERNELS_OPS_SCRATCH_H_
#define ASHLAR_KERNELS_OPS_SCRATCH_H_

#include <cstdint>

#include "kernels/ops/ops.h"

namespace ashlar::ops {

// cuBLAS works in a buffer that its handle keeps from its first product on: what PyTorch >= 2 gives it, for devices
// before sm_90 and from it on (CUDABlas, CublasHandlePool.cpp 2.4, 2.6).
inline constexpr std::uint64_t kCublasWorkspaceBytes = 8'519'680;
inline constexpr std::uint64_t kCublasWorkspaceBytesSm90 = 33'554'432;

// How many partial sums each output of a reduction has. 1: none, and no scratch.
struct ReduceParts {
  std::int64_t outputs = 0;
  std::int64_t reduced = 0;  // elements behind an output
  std::int64_t parts = 1;
};
ReduceParts PartsOf(const Reduce& op);

// Row blocks whose weight gradients are summed apart, and then together.
std::int64_t NormParts(std::int64_t rows);

// Pieces of a list of tensors, kListPiece elements each at most.
inline constexpr std::int64_t kListPiece = 65'536;
std::int64_t PiecesOf(absl::Span<const View> tensors);

// CUB's own need for n pairs is below this (its sort and its reduce-by-key keep less than 2 bytes an item).
std::uint64_t CubBytes(std::int64_t n);

struct AdafactorParts {
  std::int64_t parts = 1;   // row blocks of the column sums
  std::int64_t pieces = 1;  // of the sums over the whole tensor
};
AdafactorParts PartsOf(const AdafactorStep& op);

std::uint64_t ScratchBytes(const Reduce& op);
std::uint64_t ScratchBytes(const LayerNormBackward& op);
std::uint64_t ScratchBytes(const RmsNormBackward& op);
std::uint64_t ScratchBytes(const EmbeddingBackward& op);
std::uint64_t ScratchBytes(const TiledAttentionBackward& op);
std::uint64_t ScratchBytes(const AdafactorStep& op);
std::uint64_t ScratchBytes(const ClipNorm& op);
template <typename Op>
std::uint64_t ScratchBytes(const Op&) {
  return 0;
}

// The ops without their arithmetic: each is checked, and takes and returns the scratch that CudaOps would, so that the
// allocator behind the workspace sees what a real run shows it. No data is read or written; addresses may be anything.
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

#endif  // ASHLAR_KERNELS_OPS_SCRATCH_H_
