#include "kernels/ops/view.h"

#include <cstdint>
#include <map>
#include <vector>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {
namespace {

// The address of each element, in row order.
std::vector<std::int64_t> Addresses(const Dims& sizes, const Dims& strides) {
  std::vector<std::int64_t> addresses = {0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t address : addresses) {
      for (std::int64_t k = 0; k < sizes[i]; ++k) longer.push_back(address + k * strides[i]);
    }
    addresses = longer;
  }
  return addresses;
}

TEST(ViewTest, RowOrderHasTheStridesOfItsSizes) {
  EXPECT_EQ(ContiguousStrides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_TRUE(IsContiguous(Contiguous(nullptr, DType::kInt64, {2, 1, 3})));
  EXPECT_TRUE(IsContiguous({.sizes = {2, 1, 3}, .strides = {3, 77, 1}}));
  EXPECT_FALSE(IsContiguous({.sizes = {3, 2}, .strides = {1, 3}}));
  EXPECT_TRUE(IsContiguous({.sizes = {3, 0}, .strides = {1, 3}}));
}

TEST(ViewTest, SpanCountsToTheLastElement) {
  EXPECT_EQ(SpanBytes({.dtype = DType::kFloat16, .sizes = {2, 3}, .strides = {10, 2}}), 30u);
  EXPECT_EQ(ElementBytes({.dtype = DType::kFloat16, .sizes = {2, 3}, .strides = {10, 2}}), 12u);
  EXPECT_EQ(SpanBytes({.dtype = DType::kInt64, .sizes = {2, 0}, .strides = {1, 1}}), 0u);
  EXPECT_EQ(SpanBytes({.dtype = DType::kInt64}), 8u);
}

TEST(ViewTest, PermutedHeadsReshapeToThreeDimsOnlyForBatchOne) {
  // (B, S, H, D) seen as (B, H, S, D), and as (B * H, S, D).
  const auto reshaped = [](std::int64_t b) {
    return StridesForReshape({b, 12, 128, 64}, {128 * 768, 64, 768, 1}, {b * 12, 128, 64});
  };
  EXPECT_EQ(reshaped(1), (Dims{64, 768, 1}));
  EXPECT_EQ(reshaped(2), std::nullopt);
}

// Every reshape of small views with random strides: the strides found name the same addresses in the same order, and
// where none were found, no strides do.
TEST(ViewTest, ReshapeAgreesWithEveryElementsAddress) {
  Rng rng(7);
  int found = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Dims sizes;
    Dims strides;
    for (std::uint64_t rank = rng.Below(5); rank > 0; --rank) {
      sizes.push_back(static_cast<std::int64_t>(rng.Between(1, 4)));
      strides.push_back(static_cast<std::int64_t>(rng.Below(2) ? rng.Below(13) : ElementCount(sizes)));
    }
    if (rng.Below(2)) {
      strides = ContiguousStrides(sizes);
      if (!sizes.empty() && rng.Below(2)) std::swap(sizes[0], sizes.back());
    }
    Dims new_sizes;
    for (std::int64_t rest = ElementCount(sizes); rest > 1 || rng.Below(2);) {
      const std::int64_t size = static_cast<std::int64_t>(rng.Between(1, static_cast<std::uint64_t>(rest) + 1));
      if (rest % size != 0) continue;
      new_sizes.push_back(size);
      rest /= size;
    }
    const std::vector<std::int64_t> addresses = Addresses(sizes, strides);
    const std::optional<Dims> new_strides = StridesForReshape(sizes, strides, new_sizes);
    if (new_strides) {
      ++found;
      EXPECT_EQ(Addresses(new_sizes, *new_strides), addresses);
      continue;
    }
    // The strides could only be these: the distance of two neighbours along each dim.
    ++refused;
    Dims only(new_sizes.size(), 0);
    const Dims order = ContiguousStrides(new_sizes);
    bool is_possible = true;
    for (std::size_t d = 0; d < new_sizes.size(); ++d) {
      if (new_sizes[d] > 1) only[d] = addresses[static_cast<std::size_t>(order[d])] - addresses[0];
      is_possible = is_possible && only[d] >= 0;
    }
    EXPECT_FALSE(is_possible && Addresses(new_sizes, only) == addresses)
        << ToString(sizes) << ToString(strides) << ToString(new_sizes);
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(ViewTest, OneToOneMeansNoAddressTwice) {
  Rng rng(9);
  int shared = 0;
  for (int i = 0; i < 20000; ++i) {
    View view;
    for (std::uint64_t rank = rng.Below(4); rank > 0; --rank) {
      view.sizes.push_back(static_cast<std::int64_t>(rng.Below(4)));
      view.strides.push_back(static_cast<std::int64_t>(rng.Below(10)));
    }
    std::map<std::int64_t, int> uses;
    bool is_shared = false;
    for (const std::int64_t address : Addresses(view.sizes, view.strides)) is_shared |= ++uses[address] > 1;
    // The rule is sure, not complete: interleaved strides such as (2, 3) of sizes (2, 2) are refused.
    if (is_shared) {
      ++shared;
      EXPECT_FALSE(IsOneToOne(view)) << ToString(view);
    }
  }
  EXPECT_GT(shared, 1000);
  EXPECT_TRUE(IsOneToOne({.sizes = {4, 3, 2}, .strides = {1, 8, 4}}));
}

TEST(ViewTest, BroadcastAlignsAtTheLastDim) {
  EXPECT_EQ(BroadcastSizes({4, 1, 3}, {5, 1}), (Dims{4, 5, 3}));
  EXPECT_EQ(BroadcastSizes({4, 2}, {3}), std::nullopt);
  EXPECT_EQ(BroadcastSizes({0}, {1}), (Dims{0}));
  const std::optional<View> seen = BroadcastTo({.sizes = {5, 1}, .strides = {1, 1}}, {4, 5, 3});
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->strides, (Dims{0, 1, 0}));
  EXPECT_FALSE(BroadcastTo({.sizes = {4, 5}, .strides = {5, 1}}, {5}).has_value());
}

TEST(ViewTest, ChecksNameTheOpTheOperandAndWhatItTakes) {
  const View scores = Contiguous(nullptr, DType::kFloat32, {4, 16});
  EXPECT_EQ(Check(Softmax{.in = scores, .out = Contiguous(nullptr, DType::kFloat16, {4, 8})}).message(),
            "softmax: out is float16[4, 8], and must have sizes [4, 16]");
  EXPECT_EQ(Check(Softmax{.in = {.sizes = {16, 4}, .strides = {1, 16}}, .out = scores}).message(),
            "softmax: in is float32[16, 4] strides [1, 16], and must be contiguous");
  EXPECT_TRUE(Check(Softmax{.in = scores, .out = scores}).ok());
}

}  // namespace
}  // namespace ashlar::ops
