// Random small states: the release set against every subset of live blocks, each tried in a real allocator that is put
// into the state, and the largest request that can be served against the same.
#include <optional>
#include <set>
#include <vector>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/failure/failure_case.h"

namespace ashlar::analyses {
namespace {

struct Shape {
  const char* conf = "";
  bool has_private_pools = false;
  bool has_pending = false;
  bool is_expandable = false;
};

constexpr std::uint64_t kGrain = 512 * kKiB;  // of large segments; 512 bytes of small ones

// Some blocks of random sizes at random places.
void FillSegment(Rng& rng, const Shape& shape, std::uint64_t most_blocks, timeline::StateSegment& segment) {
  const std::uint64_t grain = segment.is_small_pool ? 512 : kGrain;
  const std::uint64_t grains = segment.size_bytes / grain;
  std::uint64_t at = 0;
  while (segment.blocks.size() < most_blocks && at < grains) {
    at += rng.Below(3) == 0 ? 0 : rng.Below(grains);
    if (at >= grains) break;
    const std::uint64_t size = 1 + rng.Below(std::min(grains - at, grains / 2));
    segment.blocks.push_back(LiveBlock(segment, at * grain, size * grain));
    if (shape.has_pending && rng.Below(5) == 0) segment.blocks.back().state = trace::BlockState::kPending;
    at += size;
  }
}

FailureCase RandomCase(std::uint64_t seed, const Shape& shape) {
  Rng rng(seed);
  FailureCase out;
  out.conf = shape.conf;
  const std::uint64_t max_split = out.Options().max_split_size_bytes;
  const std::uint64_t count = shape.is_expandable ? 1 + rng.Below(2) : 1 + rng.Below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_small = !shape.is_expandable && rng.Below(3) == 0;
    const std::uint64_t size =
        shape.is_expandable ? (1 + rng.Below(3)) * 20 * kMiB : (is_small ? 2 * kMiB : (10 + rng.Below(20)) * 2 * kMiB);
    timeline::StateSegment& segment = out.AddSegment(size, is_small, shape.is_expandable);
    segment.stream = Stream{shape.is_expandable ? i : rng.Below(4) / 3};  // expandable: a reservation each
    if (shape.has_private_pools && rng.Below(3) == 0) segment.pool = PoolId{0, 1};
    if (size >= max_split) {  // never split
      if (rng.Below(2) == 0) segment.blocks.push_back(LiveBlock(segment, 0, size));
    } else {
      FillSegment(rng, shape, 3, segment);
    }
  }
  const bool is_small_request = !shape.is_expandable && rng.Below(4) == 0;
  out.request_bytes = is_small_request ? (1 + rng.Below(2048)) * 512 : kMiB + (1 + rng.Below(120)) * kGrain;
  out.stream = Stream{rng.Below(4) / 3};
  if (shape.has_private_pools && rng.Below(3) == 0) out.pool = PoolId{0, 1};
  const std::uint64_t segment_bytes = policy::SegmentBytes(out.request_bytes, out.Options());
  out.free_bytes = rng.Below(segment_bytes / (2 * kMiB)) * 2 * kMiB + rng.Below(2) * 12345;
  if (out.free_bytes >= segment_bytes) out.free_bytes = 0;
  return out;
}

// Fewest live bytes among all subsets that make room; nullopt when not even all do.
std::optional<std::uint64_t> FewestBytes(const FailureCase& failure) {
  const std::vector<std::uint64_t> sizes = failure.LiveSizes();
  std::optional<std::uint64_t> best;
  for (std::uint32_t mask = 0; mask < (std::uint32_t{1} << sizes.size()); ++mask) {
    std::set<std::size_t> freed;
    std::uint64_t bytes = 0;
    bool is_live = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      freed.insert(i);
      bytes += sizes[i];
      is_live = is_live && sizes[i] > 0;
    }
    if (!is_live || (best && bytes >= *best)) continue;
    if (failure.SucceedsWithout(freed, failure.request_bytes)) best = bytes;
  }
  return best;
}

struct Seen {
  int sets = 0, impossible = 0, runs = 0, emptied = 0, several = 0, minimal = 0, fits = 0;
};

// What must hold for every set found; exact unless `is_exact` is false.
void Check(const FailureCase& failure, bool is_exact, Seen& seen) {
  const FailedRequest examined = failure.Examine();
  const std::optional<std::uint64_t> fewest = FewestBytes(failure);
  if (is_exact) {
    ASSERT_EQ(examined.release.has_value(), fewest.has_value());
  }
  if (!examined.release.has_value()) {
    ++seen.impossible;
    return;
  }
  const ReleaseSet& release = *examined.release;
  ASSERT_TRUE(fewest.has_value());
  std::uint64_t bytes = 0;
  for (const std::size_t block : release.blocks) bytes += failure.LiveSizes()[block];
  EXPECT_EQ(bytes, release.bytes);
  EXPECT_TRUE(failure.SucceedsWithout({release.blocks.begin(), release.blocks.end()}, failure.request_bytes));
  EXPECT_LE(release.lower_bound_bytes, *fewest);
  EXPECT_EQ(release.is_minimal, release.lower_bound_bytes == release.bytes);
  if (is_exact) {
    EXPECT_EQ(release.bytes, *fewest);
  }
  ++seen.sets;
  seen.minimal += release.is_minimal;
  seen.fits += release.blocks.empty();
  (release.is_one_run ? seen.runs : seen.emptied) += !release.blocks.empty();
  seen.several += release.blocks.size() > 1;
}

void CheckMany(const Shape& shape, std::uint64_t seeds, bool is_exact, Seen& seen) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const FailureCase failure = RandomCase(seed, shape);
    Check(failure, is_exact, seen);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << "\n" << failure.Print();
  }
}

TEST(FailedRequestPropertyTest, ReleaseSetsAreTheCheapest) {
  Seen seen;
  CheckMany({}, 400, true, seen);
  EXPECT_EQ(seen.minimal, seen.sets);  // and proven to be
  EXPECT_GT(seen.runs, 30);
  EXPECT_GT(seen.emptied, 20);
  EXPECT_GT(seen.several, 30);
  EXPECT_GT(seen.impossible, 10);
}

TEST(FailedRequestPropertyTest, WithPendingFrees) {
  Seen seen;
  CheckMany({.has_pending = true}, 200, true, seen);
  EXPECT_EQ(seen.minimal, seen.sets);
}

TEST(FailedRequestPropertyTest, WithASplitLimit) {
  Seen seen;
  CheckMany({.conf = "max_split_size_mb:32", .has_pending = true}, 200, true, seen);
  EXPECT_EQ(seen.minimal, seen.sets);
  EXPECT_GT(seen.runs, 10);
}

// The proof assumes that a private pool could be returned too, which the allocator does not do while it is in use.
TEST(FailedRequestPropertyTest, WithPrivatePools) {
  Seen seen;
  CheckMany({.has_private_pools = true}, 200, true, seen);
  EXPECT_GT(seen.minimal, seen.sets / 2);
}

TEST(FailedRequestPropertyTest, ExpandableSegmentsAreBoundedFromBothSides) {
  Seen seen;
  CheckMany({.conf = "expandable_segments:True", .is_expandable = true}, 300, false, seen);
  EXPECT_GT(seen.runs, 50);
}

bool HasReturnable(const FailureCase& failure) {
  for (const timeline::StateSegment& segment : failure.state.segments) {
    bool is_held = false;
    for (const timeline::StateBlock& block : segment.blocks) is_held |= block.state == trace::BlockState::kLive;
    if (!is_held && segment.pool.IsDefault()) return true;
  }
  return false;
}

TEST(FailedRequestPropertyTest, TheLargestServableRequestIsServedAndNoLargerOne) {
  int served = 0;
  for (const Shape& shape : {Shape{}, Shape{.conf = "max_split_size_mb:32"}, Shape{.has_private_pools = true}}) {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
      const FailureCase failure = RandomCase(seed, shape);
      if (HasReturnable(failure)) continue;  // after the ladder there is none
      const FailedRequest examined = failure.Examine();
      SCOPED_TRACE(failure.Print());
      const std::uint64_t largest = examined.largest_servable_bytes;
      if (largest > 0) {
        EXPECT_TRUE(failure.SucceedsWithout({}, largest));
        ++served;
      }
      EXPECT_GE(largest, examined.largest_cached_bytes);
      const std::uint64_t next = largest + 512;
      const bool is_its_class = examined.is_small_pool ? next <= kMiB : next > kMiB;
      if (is_its_class) {
        EXPECT_FALSE(failure.SucceedsWithout({}, next)) << largest;
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
  }
  EXPECT_GT(served, 200);
}

}  // namespace
}  // namespace ashlar::analyses
