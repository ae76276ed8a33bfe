// The packer against an exhaustive search, planted perfect packings, published instances and real traces; the checker
// against a quadratic one and seeded mistakes.
#include "analyzer/analyses/packing/packing.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "analyzer/analyses/packing/packing_greedy.h"
#include "analyzer/analyses/packing/packing_search.h"
#include "analyzer/analyses/state/timeline_blocks.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/plain/minimalloc_csv.h"
#include "commands/shared/traced_run.h"
#include "gtest/gtest.h"
#include "tests/corpus_files.h"

namespace ashlar::analyses {
namespace {

using Offsets = std::vector<std::uint64_t>;

std::string Print(const std::vector<Lifetime>& buffers) {
  std::string out = "buffers:";
  for (const Lifetime& b : buffers) {
    out += " {" + std::to_string(b.lower) + ", " + std::to_string(b.upper) + ", " + std::to_string(b.size) + "}";
  }
  return out;
}

bool HoldsQuadratic(const std::vector<Lifetime>& buffers, const Offsets& offsets, std::uint64_t height) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (offsets[i] + buffers[i].size > height) return false;
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper;
      const bool apart = offsets[i] + buffers[i].size <= offsets[j] || offsets[j] + buffers[j].size <= offsets[i];
      if (together && !apart) return false;
    }
  }
  return true;
}

std::vector<Lifetime> RandomBuffers(Rng& rng, std::size_t count, std::int64_t time, std::int64_t longest,
                                    std::uint64_t most) {
  std::vector<Lifetime> out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto lower = static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(time)));
    const auto length = static_cast<std::int64_t>(1 + rng.Below(static_cast<std::uint64_t>(longest)));
    out.push_back({lower, lower + length, 1 + rng.Below(most)});
  }
  return out;
}

// Sums at every time, one by one.
std::uint64_t SlowLowerBound(const std::vector<Lifetime>& buffers) {
  std::uint64_t most = 0;
  for (const Lifetime& at : buffers) {
    std::uint64_t sum = 0;
    for (const Lifetime& b : buffers) sum += b.lower <= at.lower && at.lower < b.upper ? b.size : 0;
    most = std::max(most, sum);
  }
  return most;
}

// Every offset of every buffer.
bool ExistsPacking(const std::vector<Lifetime>& buffers, std::uint64_t height, Offsets& offsets) {
  const std::size_t i = offsets.size();
  if (i == buffers.size()) return true;
  for (std::uint64_t offset = 0; offset + buffers[i].size <= height; ++offset) {
    offsets.push_back(offset);
    const std::vector<Lifetime> so_far(buffers.begin(), buffers.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (HoldsQuadratic(so_far, offsets, height) && ExistsPacking(buffers, height, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

std::uint64_t Optimum(const std::vector<Lifetime>& buffers) {
  for (std::uint64_t height = SlowLowerBound(buffers);; ++height) {
    Offsets offsets;
    if (ExistsPacking(buffers, height, offsets)) return height;
  }
}

TEST(CheckPackingTest, SeesSeededMistakes) {
  const std::vector<Lifetime> buffers = {{0, 4, 8}, {4, 9, 8}, {2, 6, 4}};
  EXPECT_TRUE(CheckPacking(buffers, Offsets{0, 0, 8}, 12).ok());  // 0 and 1 meet at time 4 only: half-open
  const auto message = [&](const Offsets& offsets, std::uint64_t height) {
    return std::string(CheckPacking(buffers, offsets, height).message());
  };
  EXPECT_EQ(message({0, 0, 7}, 12), "buffers 0 and 2 are alive together and overlap");
  EXPECT_EQ(message({0, 5, 8}, 13), "buffers 1 and 2 are alive together and overlap");
  EXPECT_EQ(message({0, 0, 0}, 12), "buffers 0 and 2 are alive together and overlap");
  EXPECT_EQ(message({0, 0, 8}, 11), "buffer 2 ends above the height");
  EXPECT_EQ(message({0, 0, UINT64_MAX}, 12), "buffer 2 ends above the height");
  EXPECT_EQ(message({0, 0}, 12), "2 offsets for 3 buffers");
}

TEST(CheckPackingTest, AgreesWithTheQuadraticOneOnRandomOffsets) {
  std::size_t good = 0, bad = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Rng rng(seed);
    const std::vector<Lifetime> buffers = RandomBuffers(rng, 2 + rng.Below(6), 20, 8, 6);
    Offsets offsets;
    for (std::size_t i = 0; i < buffers.size(); ++i) offsets.push_back(rng.Below(30));
    const bool holds = HoldsQuadratic(buffers, offsets, 32);
    EXPECT_EQ(CheckPacking(buffers, offsets, 32).ok(), holds) << "seed " << seed << " " << Print(buffers);
    ++(holds ? good : bad);
  }
  EXPECT_GT(good, 500u);
  EXPECT_GT(bad, 500u);
}

// The search decides every height rightly, and Pack finds the optimum.
TEST(PackingTest, TinyInstancesAgainstEveryPacking) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    const std::vector<Lifetime> buffers = RandomBuffers(rng, 2 + rng.Below(8), 9, 6, 4);
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + Print(buffers));
    const std::uint64_t optimum = Optimum(buffers);
    EXPECT_EQ(LiveLowerBound(buffers), SlowLowerBound(buffers));
    const Packing packing = Pack(buffers, {.max_steps = 1'000'000});
    EXPECT_EQ(packing.height, optimum);
    EXPECT_TRUE(HoldsQuadratic(buffers, packing.offsets, packing.height));
    PackingSearch search(buffers);
    std::uint64_t steps = 0;
    EXPECT_EQ(search.Run(optimum, 1'000'000, steps), SearchEnd::kFound);
    EXPECT_TRUE(HoldsQuadratic(buffers, search.offsets(), optimum));
    EXPECT_EQ(search.Run(optimum - 1, 1'000'000, steps), SearchEnd::kNone);
  }
}

// Eight buffers that fill four units at every time, yet need five: the bound is not always reached, and that is said.
TEST(PackingTest, AnOptimumAboveTheBound) {
  const std::vector<Lifetime> buffers = {{0, 1, 2}, {0, 2, 2}, {3, 5, 2}, {1, 4, 1},
                                         {1, 3, 1}, {2, 4, 1}, {4, 5, 2}, {2, 3, 1}};
  EXPECT_EQ(Optimum(buffers), 5u);
  const Packing packing = Pack(buffers, {.max_steps = 1'000'000});
  EXPECT_EQ(packing.lower_bound, 4u);
  EXPECT_EQ(packing.height, 5u);
  EXPECT_FALSE(packing.IsOptimal());
  PackingSearch search(buffers);
  std::uint64_t steps = 0;
  EXPECT_EQ(search.Run(4, 1'000'000, steps), SearchEnd::kNone);
}

TEST(PackingTest, NeverBelowTheBoundAndTwiceTheSame) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const std::vector<Lifetime> buffers = RandomBuffers(rng, 1 + rng.Below(200), 400, 80, 1000);
    const Packing packing = Pack(buffers, {.max_steps = 2'000'000});
    EXPECT_EQ(packing.lower_bound, SlowLowerBound(buffers));
    EXPECT_GE(packing.height, packing.lower_bound);
    EXPECT_TRUE(HoldsQuadratic(buffers, packing.offsets, packing.height)) << "seed " << seed;
    EXPECT_EQ(Pack(buffers, {.max_steps = 2'000'000}).offsets, packing.offsets);
  }
}

TEST(PackingTest, NothingAndNoSize) {
  EXPECT_EQ(Pack({}, {}).height, 0u);
  const std::vector<Lifetime> buffers = {{0, 5, 0}, {0, 5, 3}, {1, 2, 0}};
  const Packing packing = Pack(buffers, {});
  EXPECT_EQ(packing.height, 3u);
  EXPECT_TRUE(CheckPacking(buffers, packing.offsets, packing.height).ok());
}

// A rectangle of time and memory cut into buffers: the shape of the published instances, with a packing that is known
// to leave no hole.
std::vector<Lifetime> CutRectangle(Rng& rng, std::size_t count, std::int64_t time, std::uint64_t height) {
  std::vector<Lifetime> pieces = {{0, time, height}};
  while (pieces.size() < count) {
    Lifetime& piece = pieces[rng.Below(pieces.size())];
    if (rng.Below(2) == 0 && piece.upper - piece.lower > 1) {
      const auto length = static_cast<std::uint64_t>(piece.upper - piece.lower);
      const std::int64_t at = piece.lower + 1 + static_cast<std::int64_t>(rng.Below(length - 1));
      const Lifetime rest{at, piece.upper, piece.size};
      piece.upper = at;
      pieces.push_back(rest);
    } else if (piece.size > 1) {
      const std::uint64_t at = 1 + rng.Below(piece.size - 1);
      const Lifetime rest{piece.lower, piece.upper, piece.size - at};
      piece.size = at;
      pieces.push_back(rest);
    }
  }
  return pieces;
}

TEST(PackingTest, PlantedPerfectPackingsAreFound) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    const std::vector<Lifetime> buffers = CutRectangle(rng, 40, 100'000, 1 << 20);
    const Packing packing = Pack(buffers, {.max_steps = 100'000'000});
    EXPECT_EQ(packing.lower_bound, 1u << 20);
    EXPECT_EQ(packing.height, 1u << 20) << "seed " << seed;
    EXPECT_TRUE(HoldsQuadratic(buffers, packing.offsets, packing.height));
  }
}

// A hundred thousand blocks, a thousand of them alive at a time: only the pass in order of time can afford them all.
TEST(PackingTest, AHundredThousandBlocks) {
  Rng rng(7);
  const std::vector<Lifetime> buffers = RandomBuffers(rng, 100'000, 200'000, 4'000, 1 << 20);
  const Packing packing = Pack(buffers, {});
  EXPECT_TRUE(CheckPacking(buffers, packing.offsets, packing.height).ok());
  EXPECT_LE(static_cast<double>(packing.height), 1.25 * static_cast<double>(packing.lower_bound));
}

class PublishedInstance : public testing::TestWithParam<const char*> {};

// All six are known to fit into 1,048,576.
TEST_P(PublishedInstance, Fits) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  const absl::StatusOr<std::string> bytes =
      formats::ReadInput(*SharedDir() + "/corpus/packing/" + GetParam() + ".1048576.csv");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<formats::PackingProblem> problem = formats::ParseMinimallocCsv(*bytes);
  ASSERT_TRUE(problem.ok()) << problem.status();
  const Packing packing = Pack(problem->buffers, {.target_height = 1 << 20, .max_steps = 3'000'000'000});
  EXPECT_LE(packing.height, 1u << 20);
  EXPECT_TRUE(HoldsQuadratic(problem->buffers, packing.offsets, packing.height));
}

INSTANTIATE_TEST_SUITE_P(All, PublishedInstance, testing::Values("A", "C", "E", "G", "I", "K"));

TEST(PackingTest, RealTracesComeWithinOnePercent) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  std::size_t packed = 0;
  for (const std::string& file : SnapshotFiles()) {
    SCOPED_TRACE(file);
    const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<answers::TracedRun> run = answers::TraceInput(*answers::LoadInput(*bytes), {});
    ASSERT_TRUE(run.ok()) << run.status();
    const BlockLifetimes lifetimes = LifetimesOf(run->timeline);
    if (lifetimes.in_use.size() > 2'500) continue;  // the larger ones take seconds each
    const Packing packing = Pack(lifetimes.in_use, {.max_steps = 10'000'000});
    EXPECT_TRUE(CheckPacking(lifetimes.in_use, packing.offsets, packing.height).ok());
    EXPECT_LE(lifetimes.live_bytes_peak, packing.lower_bound);
    EXPECT_LE(packing.lower_bound, packing.height);
    EXPECT_LE(packing.height, packing.lower_bound + packing.lower_bound / 100);
    EXPECT_LE(packing.height, run->timeline.reserved_peak().bytes);
    ++packed;
  }
  EXPECT_GT(packed, 15u);
}

}  // namespace
}  // namespace ashlar::analyses
