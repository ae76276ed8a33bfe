#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "allocator/trace/event.h"

namespace ashlar::trace {
namespace {

constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();

// The ends of each form that an id can be kept in, one before and one behind.
std::vector<PoolId> Ids() {
  std::vector<PoolId> out;
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, (std::uint64_t{1} << 22) - 2,
                                (std::uint64_t{1} << 22) - 1, std::uint64_t{1} << 22, (std::uint64_t{1} << 40) - 1,
                                std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + (std::uint64_t{1} << 22) - 1,
                                (std::uint64_t{1} << 40) + (std::uint64_t{1} << 22), kTop}) {
    out.push_back({0, n});
    out.push_back({n, 0});
    out.push_back({n, n});
    out.push_back({1, n});
  }
  return out;
}

TEST(EventPoolTest, HoldsEveryId) {
  for (const PoolId& id : Ids()) {
    ASSERT_TRUE(EventPool::CanHold(id));
    const EventPool pool = id;
    ASSERT_TRUE(pool.has_value()) << id.first << " " << id.second;
    EXPECT_EQ(*pool, id) << id.first << " " << id.second;
    EXPECT_EQ(pool.AsOptional(), std::optional(id));
    EXPECT_EQ(pool.value_or({3, 4}), id);
  }
}

TEST(EventPoolTest, DiffersWhereIdsDo) {
  for (const PoolId& a : Ids()) {
    EXPECT_NE(EventPool(a), EventPool());
    for (const PoolId& b : Ids()) EXPECT_EQ(EventPool(a) == EventPool(b), a == b);
  }
}

TEST(EventPoolTest, IsNoneUntilToldAndAfterReset) {
  EventPool pool;
  EXPECT_FALSE(pool.has_value());
  EXPECT_EQ(pool.AsOptional(), std::nullopt);
  EXPECT_EQ(pool.value_or({3, 4}), (PoolId{3, 4}));
  pool = PoolId{};
  EXPECT_TRUE(pool.has_value());
  EXPECT_EQ(*pool, PoolId{});
  pool.reset();
  EXPECT_EQ(pool, EventPool(std::nullopt));
  EXPECT_EQ(EventPool(std::optional<PoolId>()), EventPool());
}

}  // namespace
}  // namespace ashlar::trace
