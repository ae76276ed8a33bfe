// FreeIndex against std::set in the same order, by random programs; a program that fails is made small and printed as
// C++ that pastes here as a test case.
#include "allocator/policy/free_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/allocator/policy/shrink.h"

namespace ashlar::policy {
namespace {

struct Step {
  bool is_insert = true;
  std::size_t block = 0;  // index of the block
  std::uint64_t size_bytes = 0;
  std::uint64_t rank = 0;
};

using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // size, rank, address
constexpr std::uint64_t kAddressStep = 512;

class Oracle {
 public:
  explicit Oracle(FreeIndex::Ranks ranks) : index_(ranks) {}
  // What is different after the step, empty when nothing is.
  std::string Apply(const Step& step) {
    while (blocks_.size() <= step.block) AddBlock();
    Block* block = &blocks_[step.block];
    if (step.is_insert == (present_.find(KeyOf(*block)) != present_.end())) return "";  // nothing to do
    if (step.is_insert) {
      block->size_bytes = step.size_bytes;
      block->rank = step.rank;
      block->segment = &segments_[step.rank];
      index_.Insert(block);
      present_.insert(KeyOf(*block));
    } else {
      index_.Erase(block);
      present_.erase(KeyOf(*block));
      block->size_bytes = 0;
    }
    return Compare(*block, step.size_bytes);
  }

  std::string CompareAll() const {
    std::vector<Key> forward;
    for (const Block* block = index_.First(); block != nullptr; block = index_.Next(block)) {
      forward.push_back(KeyOf(*block));
    }
    if (forward != std::vector<Key>(present_.begin(), present_.end())) return "the walk by Next";
    std::vector<Key> backward;
    for (const Block* block = index_.Last(); block != nullptr; block = index_.Previous(block)) {
      backward.push_back(KeyOf(*block));
    }
    if (backward != std::vector<Key>(present_.rbegin(), present_.rend())) return "the walk by Previous";
    return "";
  }

 private:
  // Some lie further into their segment than a key can tell.
  void AddBlock() {
    const std::uint64_t number = blocks_.size() + 1;
    blocks_.emplace_back().address = kAddressStep * number + (number % 5 == 0 ? 16 * kGiB : 0);
  }
  static Key KeyOf(const Block& block) { return {block.size_bytes, block.rank, block.address}; }
  static bool IsSame(const Block* block, std::set<Key>::const_iterator expected, const std::set<Key>& set) {
    return expected == set.end() ? block == nullptr : block != nullptr && KeyOf(*block) == *expected;
  }

  std::string Compare(const Block& block, std::uint64_t size_bytes) const {
    if (index_.size() != present_.size() || index_.empty() != present_.empty()) return "size";
    if (index_.Contains(&block) != (present_.find(KeyOf(block)) != present_.end())) return "Contains";
    if (!IsSame(index_.First(), present_.begin(), present_)) return "First";
    if (!IsSame(index_.Last(), present_.empty() ? present_.end() : std::prev(present_.end()), present_)) return "Last";
    for (const std::uint64_t least : {size_bytes, size_bytes + 1, size_bytes - 1, size_bytes / 2, std::uint64_t{1}}) {
      if (!IsSame(index_.FirstAtLeast(least), present_.lower_bound({least, 0, 0}), present_)) {
        return absl::StrCat("FirstAtLeast(", least, ")");
      }
    }
    const auto at = present_.find(KeyOf(block));
    if (at == present_.end()) return "";
    if (!IsSame(index_.Next(&block), std::next(at), present_)) return "Next";
    if (!IsSame(index_.Previous(&block), at == present_.begin() ? present_.end() : std::prev(at), present_)) {
      return "Previous";
    }
    return "";
  }

  FreeIndex index_;
  std::set<Key> present_;
  std::deque<Block> blocks_;
  std::map<std::uint64_t, Segment> segments_;  // by rank; they begin at 0
};

// An index that was told so is asked by other paths where all ranks are 0, or their segments'; the answers are the
// same.
std::string DifferenceOf(const std::vector<Step>& steps, FreeIndex::Ranks ranks) {
  Oracle oracle(ranks);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string difference = oracle.Apply(steps[i]);
    if (!difference.empty()) return absl::StrCat("after step ", i, ": ", difference);
    if (i % 512 != 511) continue;
    if (std::string walk = oracle.CompareAll(); !walk.empty()) return absl::StrCat("after step ", i, ": ", walk);
  }
  return oracle.CompareAll();
}

std::string Difference(const std::vector<Step>& steps) {
  std::string difference = DifferenceOf(steps, FreeIndex::Ranks::kAny);
  if (difference.empty()) difference = DifferenceOf(steps, FreeIndex::Ranks::kOfSegments);
  if (!difference.empty()) return difference;
  const bool any_rank = std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.rank != 0; });
  return any_rank ? "" : DifferenceOf(steps, FreeIndex::Ranks::kZero);
}

std::string ToTestCase(const std::vector<Step>& steps) {
  std::string out = "TEST(FreeIndexTest, Found) {\n  EXPECT_EQ(Difference({\n";
  for (const Step& step : steps) {
    absl::StrAppend(&out, "      {", step.is_insert ? "true" : "false", ", ", step.block, ", ", step.size_bytes, "u, ",
                    step.rank, "u},\n");
  }
  return out + "  }), \"\");\n}\n";
}

void FreeIndexCheck(const std::vector<Step>& steps) {
  if (Difference(steps).empty()) return;
  const std::vector<Step> small =
      Shrink(steps, [](const std::vector<Step>& part) { return !Difference(part).empty(); });
  FAIL() << Difference(small) << "\n" << ToTestCase(small);
}

enum class Ranks { kNone, kFew, kUnique };

std::vector<Step> RandomSteps(std::uint64_t seed, std::size_t blocks, std::size_t count) {
  Rng rng(seed);
  const auto ranks = static_cast<Ranks>(rng.Below(3));
  const std::uint64_t distinct_sizes = rng.Below(2) == 0 ? 3 : 1000;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    Step step;
    // First mostly inserts, then mostly erases, so that bins fill up and empty again.
    step.is_insert = rng.Below(100) < (i < count / 2 ? 70u : 30u);
    step.block = rng.Below(blocks);
    const std::uint64_t which = rng.Below(distinct_sizes);
    step.size_bytes = distinct_sizes == 3 ? 5632 + which : std::uint64_t{1} << (which % 63);
    if (distinct_sizes != 3 && rng.Below(2) == 0) step.size_bytes = 512 * (1 + rng.Below(4096));
    if (ranks == Ranks::kFew) step.rank = rng.Below(4);
    if (ranks == Ranks::kUnique) step.rank = i;
    steps.push_back(step);
  }
  return steps;
}

TEST(FreeIndexTest, SmallProgramsLikeASet) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) FreeIndexCheck(RandomSteps(seed, 40, 300));
}

TEST(FreeIndexTest, LargeProgramsLikeASet) {
  for (std::uint64_t seed = 1000; seed < 1008; ++seed) FreeIndexCheck(RandomSteps(seed, 3000, 12'000));
}

// Thousands of equal blocks, inserted upwards, downwards and mixed, fill chunk after chunk of one bin.
TEST(FreeIndexTest, EqualSizesSplitChunks) {
  constexpr std::size_t kCount = 1500;
  for (int order = 0; order < 3; ++order) {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t block = order == 0 ? i : order == 1 ? kCount - 1 - i : i * 7 % kCount;
      steps.push_back({true, block, 4096, 0});
    }
    for (std::size_t i = 0; i < kCount; ++i) steps.push_back({false, i * 11 % kCount, 4096, 0});
    FreeIndexCheck(steps);
  }
}

TEST(FreeIndexTest, SizesAtTheEndsOfTheRange) {
  std::vector<Step> steps;
  std::size_t block = 0;
  for (int power = 0; power < 64; ++power) {
    const std::uint64_t size_bytes = std::uint64_t{1} << power;
    for (const std::uint64_t near : {size_bytes - 1, size_bytes, size_bytes + 1}) {
      if (near == 0 || near > std::uint64_t{1} << 63) continue;
      steps.push_back({true, block++, near, 0});
    }
  }
  FreeIndexCheck(steps);
}

TEST(FreeIndexTest, AnEmptyIndexHasNothing) {
  const FreeIndex index;
  EXPECT_EQ(index.First(), nullptr);
  EXPECT_EQ(index.Last(), nullptr);
  EXPECT_EQ(index.FirstAtLeast(1), nullptr);
  EXPECT_TRUE(index.empty());
}

}  // namespace
}  // namespace ashlar::policy
