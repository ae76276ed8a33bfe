// Private pools by themselves: users, routes, ids, and what a capture defers.
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/core/pools.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/parts.h"

namespace ashlar::core {
namespace {

constexpr PoolId kPool{0, 9};
const StreamFilter kStreamSeven = [](Stream stream) { return stream == Stream{7}; };

TEST(PoolAccountingTest, UsersAreCounted) {
  Parts parts;
  Pools& pools = parts.pools;
  EXPECT_EQ(pools.UseCount(kPool), 0u);
  pools.Retain(kPool);
  pools.Retain(kPool);
  EXPECT_EQ(pools.UseCount(kPool), 2u);
  EXPECT_EQ(pools.CheckUnused(kPool).code(), absl::StatusCode::kFailedPrecondition);
  pools.Release(kPool);
  pools.Release(kPool);
  pools.Release(kPool);
  EXPECT_EQ(pools.UseCount(kPool), 0u) << "there is no less than nobody";
  EXPECT_EQ(pools.CheckUnused(kPool), absl::OkStatus());
}

TEST(PoolAccountingTest, NoIdIsGivenTwice) {
  Parts parts;
  parts.pools.Retain({0, 2});
  const PoolId first = parts.pools.Create();
  const PoolId second = parts.pools.Create();
  EXPECT_EQ(first, (PoolId{0, 1}));
  EXPECT_EQ(second, (PoolId{0, 3})) << "the second was there";
}

TEST(PoolAccountingTest, RoutesLeadWhereTheirFilterSays) {
  Parts parts;
  Pools& pools = parts.pools;
  EXPECT_FALSE(pools.HasRoutes());
  ASSERT_EQ(pools.Begin(kPool, StreamFilter(kStreamSeven), RouteKind::kPlain), absl::OkStatus());
  EXPECT_EQ(pools.Route({}, Stream{7}), kPool);
  EXPECT_EQ(pools.Route({}, Stream{8}), PoolId{});
  EXPECT_EQ(pools.Begin(kPool, StreamFilter(kStreamSeven), RouteKind::kPlain).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pools.Begin({}, StreamFilter(kStreamSeven), RouteKind::kPlain).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(pools.IsCapturing());
  StreamFilter ended;
  ASSERT_EQ(pools.End(kPool, ended), absl::OkStatus());
  EXPECT_EQ(pools.End(kPool, ended).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pools.UseCount(kPool), 1u) << "the route's user stays";
}

// Facts lead another allocator to the same pools.
TEST(PoolAccountingTest, FactsSayWhatStands) {
  Parts parts;
  parts.pools.Configure(kPool, /*use_on_oom=*/true, /*no_split=*/true);
  ASSERT_EQ(parts.pools.Begin(kPool, StreamFilter(kStreamSeven), RouteKind::kCapture), absl::OkStatus());
  namespace fact = trace::fact;
  const std::vector<trace::AnyFact> wanted = {fact::PoolBegun{kPool, true}, fact::PoolUsers{kPool, 2},
                                              fact::PoolConfigured{kPool, true, true}};
  EXPECT_EQ(parts.pools.Facts(), wanted);
}

}  // namespace
}  // namespace ashlar::core
