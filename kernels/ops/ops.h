// The arithmetic of a workload, in three backends with one signature: CUDA kernels, host loops, and a dry run that
// checks and counts but touches no data. An op is a value (elementwise.h, layers.h, optimizer.h)
// that names its operands, all allocated by the caller; `Run` checks it and does it.
//
//   HostOps ops(&workspace);
//   absl::Status done = ops.Run(Softmax{.in = scores, .is_causal = true, .scale = 0.125, .out = probabilities});
//
// Errors: kInvalidArgument for sizes, dtypes or strides that the op does not take, naming the op, the operand and what
// it takes; nothing was done then. kResourceExhausted where scratch could not be had; kOutOfRange for an index outside
// its table (host only). Other codes are the device's.
// Order and threads: an Ops works on one stream in the order of the calls; CUDA ops return before their work is done.
// One thread at a time.
#ifndef ASHLAR_KERNELS_OPS_OPS_H_
#define ASHLAR_KERNELS_OPS_OPS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/layers.h"
#include "kernels/ops/optimizer.h"

namespace ashlar::ops {

// A Workspace gives ops their scratch. Nothing in kernels/ops allocates by itself, so the caller sees all memory of a
// run. Scratch is allocated and freed in stream order: the stream's later work may reuse it at once.
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

// Every op, once: the backends declare their methods from this list.
// clang-format off: it lays the list out anew each time
#define ASHLAR_FOR_EACH_OP_BUT_MATMUL(X)                                                                          \
  X(Fill) X(Arange) X(Copy)                                                                                       \
  X(Unary) X(UnaryBackward) X(Affine) X(Binary) X(AddProduct) X(Compare) X(Where) X(MaskedFill)                   \
  X(Reduce) X(MaxAlong) X(Gather) X(ScatterAdd)                                                                   \
  X(LayerNorm) X(LayerNormBackward) X(RmsNorm) X(RmsNormBackward) X(Rotary) X(Softmax) X(SoftmaxBackward)         \
  X(Dropout) X(DropoutBackward) X(TiledAttention) X(TiledAttentionBackward) X(Embedding) X(EmbeddingBackward)     \
  X(CountTargets) X(NllLoss) X(NllLossBackward) X(CrossEntropy) X(CrossEntropyBackward)                           \
  X(AdamWStep) X(AdamW8BitStep) X(SgdStep) X(AdafactorStep) X(ClipNorm) X(Unscale)
// clang-format on
#define ASHLAR_FOR_EACH_OP(X) ASHLAR_FOR_EACH_OP_BUT_MATMUL(X) X(MatMul)

namespace ashlar::ops {

// Whether an op takes its operands (checks.cc): kInvalidArgument, one line, if not.
#define ASHLAR_DECLARE_CHECK(Op) absl::Status Check(const Op& op);
ASHLAR_FOR_EACH_OP(ASHLAR_DECLARE_CHECK)
#undef ASHLAR_DECLARE_CHECK

class Ops {
 public:
  explicit Ops(Workspace* workspace) : workspace_(workspace) {}
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;
  virtual ~Ops() = default;

  template <typename Op>
  absl::Status Run(const Op& op) {
    if (absl::Status status = Check(op); !status.ok()) return status;
    return Do(op);
  }

 protected:
#define ASHLAR_DECLARE_DO(Op) virtual absl::Status Do(const Op& op) = 0;
  ASHLAR_FOR_EACH_OP(ASHLAR_DECLARE_DO)
#undef ASHLAR_DECLARE_DO

  Workspace* workspace() const { return workspace_; }

 private:
  Workspace* workspace_;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_OPS_H_
