#include <gtest/gtest.h>

#include <vector>

#include "allocator/trace/event.h"

namespace ashlar::trace {
namespace {

Event At(std::uint64_t address) {
  Event event;
  event.address = address;
  return event;
}

TEST(EventListTest, CopiesShareUntilOneIsChanged) {
  EventList first = {At(1), At(2)};
  EventList second = first;
  EXPECT_TRUE(second.SharesWith(first));
  EXPECT_EQ(second.data(), first.data());
  second.push_back(At(3));
  EXPECT_FALSE(second.SharesWith(first));
  EXPECT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_EQ(second.back().address, 3u);
  const Event* const own = second.data();
  second.Mutable()[0].address = 9;
  EXPECT_EQ(second.data(), own) << "what is its own is not copied again";
  EXPECT_EQ(first.front().address, 1u);
  second.clear();
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(first.size(), 2u);
}

TEST(EventListTest, AnEmptyOneSharesNothing) {
  const EventList first, second;
  EXPECT_TRUE(first.empty());
  EXPECT_FALSE(first.SharesWith(second));
  EXPECT_EQ(first.begin(), first.end());
}

TEST(EventListTest, IsReadAsAVector) {
  const EventList list = std::vector<Event>{At(5), At(6)};
  const std::vector<Event>& events = list;
  EXPECT_EQ(events.data(), list.data());
  std::uint64_t sum = 0;
  for (const Event& event : list) sum += event.address;
  EXPECT_EQ(sum, 11u);
  EXPECT_EQ(list.rbegin()->address, 6u);
  EXPECT_EQ(list.at(1).address, 6u);
}

}  // namespace
}  // namespace ashlar::trace
