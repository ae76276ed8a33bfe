// The dry runtime: what it checks, what it takes, and that it touches nothing. And what the host says of bad indices.
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/scratch.h"

namespace ashlar::ops {
namespace {

// Addresses that nobody may touch; writes down what it gives.
class FakeWorkspace final : public Workspace {
 public:
  absl::StatusOr<void*> Allocate(std::uint64_t bytes) override {
    if (bytes > limit) return absl::ResourceExhaustedError("out of memory");
    taken.push_back(bytes);
    ++in_use;
    return reinterpret_cast<void*>(0x1000);
  }
  void Free(void*) override { --in_use; }

  std::uint64_t limit = ~std::uint64_t{0};
  std::vector<std::uint64_t> taken;
  int in_use = 0;
};

View Untouchable(const Dims& sizes, DType dtype = DType::kFloat32) {
  return Contiguous(reinterpret_cast<void*>(0x2000), dtype, sizes);
}

TEST(DryOpsTest, TouchesNothingAndTakesWhatCudaWould) {
  FakeWorkspace workspace;
  {
    DryOps ops(&workspace);
    EXPECT_TRUE(
        ops.Run(Unary{.kind = UnaryKind::kGelu, .in = Untouchable({4096, 768}), .out = Untouchable({4096, 768})}).ok());
    EXPECT_TRUE(workspace.taken.empty());
    // A column sum of 4,096 rows: 16 parts a column.
    EXPECT_TRUE(
        ops.Run(Reduce{.kind = ReduceKind::kSum, .in = Untouchable({4096, 768}), .out = Untouchable({768})}).ok());
    EXPECT_EQ(workspace.taken, (std::vector<std::uint64_t>{768 * 16 * 4}));
    EXPECT_EQ(workspace.in_use, 0);
    // The workspace of cuBLAS, once.
    const MatMul product = {.left = Untouchable({8, 16}), .right = Untouchable({16, 4}), .out = Untouchable({8, 4})};
    EXPECT_TRUE(ops.Run(product).ok());
    EXPECT_TRUE(ops.Run(product).ok());
    EXPECT_EQ(workspace.taken, (std::vector<std::uint64_t>{768 * 16 * 4, kCublasWorkspaceBytes}));
    EXPECT_EQ(workspace.in_use, 1);
  }
  EXPECT_EQ(workspace.in_use, 0);
}

TEST(DryOpsTest, WithoutScratchNeedsNoWorkspace) {
  DryOps ops(nullptr, {.takes_scratch = false});
  EXPECT_TRUE(ops.Run(Reduce{.kind = ReduceKind::kSum, .in = Untouchable({4096, 768}), .out = Untouchable({})}).ok());
  EXPECT_TRUE(
      ops.Run(MatMul{.left = Untouchable({8, 16}), .right = Untouchable({16, 4}), .out = Untouchable({8, 4})}).ok());
}

TEST(DryOpsTest, ScratchThatCannotBeHadIsTheCallersToKnow) {
  FakeWorkspace workspace;
  workspace.limit = 100;
  DryOps ops(&workspace);
  EXPECT_EQ(ops.Run(Reduce{.kind = ReduceKind::kSum, .in = Untouchable({4096, 768}), .out = Untouchable({768})}).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(workspace.in_use, 0);
}

TEST(DryOpsTest, ChecksWhatItIsGiven) {
  DryOps ops(nullptr, {.takes_scratch = false});
  const auto message = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(
      message(ops.Run(MatMul{.left = Untouchable({8, 16}), .right = Untouchable({15, 4}), .out = Untouchable({8, 4})})),
      "matmul: right is float32[15, 4], and must have sizes [16, 4]");
  View gaps = Untouchable({8, 16});
  gaps.strides = {32, 2};
  EXPECT_EQ(
      message(ops.Run(MatMul{.left = gaps, .right = Untouchable({16, 4}), .out = Untouchable({8, 4})})),
      "matmul: left float32[8, 16] strides [32, 2] must have a stride of 1 in one of its last two dims and the other "
      "at least as long as a row: copy it first");
  View repeated = Untouchable({4, 4});
  repeated.strides = {0, 1};
  EXPECT_EQ(message(ops.Run(Fill{.out = repeated})),
            "fill: out is float32[4, 4] strides [0, 1], and must have no two elements at one address");
  EXPECT_EQ(message(ops.Run(Dropout{
                .in = Untouchable({4}), .p = 1, .out = Untouchable({4}), .mask = Untouchable({4}, DType::kBool)})),
            "dropout: p must be in [0, 1)");
  EXPECT_EQ(message(ops.Run(
                Embedding{.weight = Untouchable({9, 4}), .indices = Untouchable({3}), .out = Untouchable({3, 4})})),
            "embedding: indices is float32[3], and must be int64 or int32");
}

TEST(HostOpsTest, NamesAnIndexOutsideItsTable) {
  HostOps ops(nullptr);
  std::vector<float> weight(12);
  std::vector<float> out(8);
  std::vector<std::int64_t> indices = {2, 3};
  const Embedding op = {.weight = Contiguous(weight.data(), DType::kFloat32, {3, 4}),
                        .indices = Contiguous(indices.data(), DType::kInt64, {2}),
                        .out = Contiguous(out.data(), DType::kFloat32, {2, 4})};
  EXPECT_EQ(ops.Run(op), absl::OutOfRangeError("embedding: index 3 at element 1 is outside [0, 3)"));
  indices[1] = -1;
  EXPECT_EQ(ops.Run(op), absl::OutOfRangeError("embedding: index -1 at element 1 is outside [0, 3)"));
  const Gather gather = {.in = op.weight,
                         .dim = 0,
                         .index = Contiguous(indices.data(), DType::kInt64, {1, 2}),
                         .out = Contiguous(out.data(), DType::kFloat32, {1, 2})};
  EXPECT_EQ(ops.Run(gather), absl::OutOfRangeError("gather: index -1 is outside [0, 3) of dim 0"));
}

}  // namespace
}  // namespace ashlar::ops
