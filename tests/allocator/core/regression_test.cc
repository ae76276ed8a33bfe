// Programs on which the product and the model once differed, as random_program_test printed them.
#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/program.h"

namespace ashlar::core {
namespace {

// A block of a no_split pool was split when it served a request of the default pool.
TEST(RegressionTest, OverflowKeepsBlocksOfNoSplitPoolsWhole) {
  Program program;
  program.compat = policy::Compat::kTorchLatest;
  program.capacity_bytes = 40 * kMiB;
  program.ops = {
      {Op::kConfigurePool, 0, 3, 0, 2}, {Op::kAlloc, 0, 12 * kMiB, 0, 2}, {Op::kAlloc, 1, 20 * kMiB, 0, 0},
      {Op::kFree, 0, 0, 0, 0},          {Op::kAlloc, 2, 8 * kMiB, 0, 0},
  };
  EXPECT_EQ(Difference(program), "");
}

}  // namespace
}  // namespace ashlar::core
