// That a difference is found, made small and printed: what the other tests of this folder rely on.
#include "tests/hollow/property.h"

#include <gtest/gtest.h>

#include <string>

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;

// A stack that forgets to take its third element off.
std::string BrokenStackDifference(const Operations& program) {
  std::size_t depth = 0;
  std::size_t broken = 0;
  for (const Operation& one : program) {
    if (one.kind == 0) {
      ++depth;
      ++broken;
    } else if (depth > 0) {
      broken -= depth == 3 ? 0 : 1;
      --depth;
    }
    if (depth != broken) return "the depth is " + std::to_string(broken) + ", not " + std::to_string(depth);
  }
  return "";
}

TEST(PropertyTest, ADifferenceIsMadeSmallAndPrinted) {
  const test::Programs programs{.kinds = 2, .operations = 100, .below_a = 5, .below_b = 1, .seeds = 1};
  const Operations program = test::RandomOperations(programs, 1);
  ASSERT_NE(BrokenStackDifference(program), "");
  const Operations small = test::Shrunk(program, BrokenStackDifference);
  ASSERT_EQ(small.size(), 4U);  // three on, one off
  EXPECT_EQ(BrokenStackDifference(small), "the depth is 3, not 2");
  EXPECT_EQ(test::ToTestCase({{0, 1, 2}, {1, 3, 0}}, "Suite", "Difference"),
            "TEST(Suite, Regression) {\n  EXPECT_EQ(Difference({{0, 1, 2}, {1, 3, 0}}), \"\");\n}\n");
}

}  // namespace
}  // namespace ashlar::hollow
