// DriverAddresses against what NVIDIA's driver did under recorded runs of PyTorch, and by hand.
#include "allocator/device/driver_addresses.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "ashlar/units.h"
#include "gtest/gtest.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kDeviceBegin = 0x7f0000000000;
constexpr std::uint64_t kDeviceEnd = kDeviceBegin + (std::uint64_t{1} << 40);
constexpr std::uint64_t kContext = kDeviceEnd - 512 * kMiB;
constexpr std::uint64_t kRegion = 32 * kMiB;
constexpr std::uint64_t kBelow = kContext - kRegion;  // the driver holds 26 MiB there

TEST(DriverAddressesTest, TheContextsRegionIsFilledFirst) {
  DriverAddresses addresses(kDeviceBegin, kDeviceEnd);
  EXPECT_EQ(addresses.Take(2 * kMiB), kContext + 414 * kMiB) << "before it all is the context's";
  for (std::uint64_t offset = 0; offset < 400; offset += 20) {
    EXPECT_EQ(addresses.Take(20 * kMiB), kContext + offset * kMiB) << offset;
  }
  EXPECT_EQ(addresses.Take(20 * kMiB), kContext + 490 * kMiB) << "12 MiB are left before what the driver holds";
  EXPECT_EQ(addresses.Take(20 * kMiB), kBelow - kRegion);
  EXPECT_EQ(addresses.Take(6 * kMiB), kBelow - kRegion + 20 * kMiB) << "the lowest";
  EXPECT_EQ(addresses.Take(8 * kMiB), kContext + 400 * kMiB);
  EXPECT_EQ(addresses.Take(8 * kMiB), kBelow - 2 * kRegion);
}

// A device whose context's region is full.
class FilledContext : public testing::Test {
 protected:
  FilledContext() {
    for (const std::uint64_t mib : {2, 412, 20, 6}) addresses.Take(mib * kMiB);
  }
  DriverAddresses addresses{kDeviceBegin, kDeviceEnd};
};

TEST_F(FilledContext, RegionsGoDownAndSegmentsUp) {
  EXPECT_EQ(addresses.Take(38 * kMiB), kBelow - 2 * kRegion) << "a multiple of 32 MiB";
  EXPECT_EQ(addresses.Take(34 * kMiB), kBelow - 4 * kRegion);
  EXPECT_EQ(addresses.Take(20 * kMiB), kBelow - 4 * kRegion + 34 * kMiB) << "the lowest that has room";
  EXPECT_EQ(addresses.Take(22 * kMiB), kBelow - 2 * kRegion + 38 * kMiB);
  EXPECT_EQ(addresses.Take(20 * kMiB), kBelow - 5 * kRegion);
  EXPECT_EQ(addresses.Take(14 * kMiB), kBelow - 6 * kRegion) << "no segment crosses regions";
}

TEST_F(FilledContext, AnEmptyRegionIsOneNoMore) {
  const std::uint64_t first = *addresses.Take(32 * kMiB);
  const std::uint64_t second = *addresses.Take(32 * kMiB);
  const std::uint64_t third = *addresses.Take(32 * kMiB);
  const std::uint64_t fourth = *addresses.Take(32 * kMiB);
  addresses.Give(second, 32 * kMiB);
  addresses.Give(third, 32 * kMiB);
  EXPECT_EQ(addresses.Take(64 * kMiB), fourth - 64 * kMiB) << "aligning may take 32 MiB more than there are";
  addresses.Give(fourth, 32 * kMiB);
  EXPECT_EQ(addresses.Take(64 * kMiB), first - 64 * kMiB) << "one range of the three";
}

TEST_F(FilledContext, NoAddressTwice) {
  Rng rng(7);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int step = 0; step < 20'000; ++step) {
    if (!live.empty() && rng.Below(5) < 2) {
      const auto gone = std::next(live.begin(), static_cast<std::ptrdiff_t>(rng.Below(live.size())));
      addresses.Give(gone->first, gone->second);
      live.erase(gone);
      continue;
    }
    const std::uint64_t size = (1 + rng.Below(60)) * 2 * kMiB;
    const std::optional<std::uint64_t> address = addresses.Take(size);
    ASSERT_TRUE(address.has_value());
    const auto above = live.lower_bound(*address);
    ASSERT_TRUE(above == live.end() || *address + size <= above->first) << step;
    ASSERT_TRUE(above == live.begin() || std::prev(above)->first + std::prev(above)->second <= *address) << step;
    ASSERT_TRUE(kDeviceBegin <= *address && *address + size <= kDeviceEnd) << step;
    live.emplace(*address, size);
  }
  for (const auto& [address, size] : live) addresses.Give(address, size);
  EXPECT_EQ(addresses.Take(std::uint64_t{512} * kGiB), kBelow - std::uint64_t{512} * kGiB) << "all is one range";
}

TEST(DriverAddressesTest, AFullSpaceGivesNothing) {
  DriverAddresses addresses(kDeviceBegin, kDeviceBegin + kGiB);
  int regions = 0;
  while (addresses.Take(32 * kMiB).has_value()) ++regions;
  EXPECT_EQ(regions, 26) << "12 in the context's region, and 16 less the driver's and one for aligning";
  EXPECT_TRUE(addresses.Take(2 * kMiB).has_value()) << "between what the driver holds";
}

struct Call {
  char what;  // 'h'ad, + or -
  std::uint64_t size, address;
};
struct RecordedRun {
  std::string name;
  std::vector<Call> calls;
};

std::vector<RecordedRun> RecordedRuns() {
  std::vector<RecordedRun> out;
  std::ifstream in(ASHLAR_SOURCE_DIR "/docs/measurements/h200_addresses.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "run") {
      words >> out.emplace_back().name;
    } else if (what != "#") {
      Call& call = out.back().calls.emplace_back(Call{what[0], 0, 0});
      words >> call.size >> call.address;
      call.size *= kMiB;
      call.address *= kMiB;
    }
  }
  return out;
}

// The rule's addresses beside the driver's. Where they differ, memory of the driver's own or another mapping of the
// host lies where the rule would go: it is taken here too, until the rule gives the driver's address.
class Beside {
 public:
  explicit Beside(const RecordedRun& run)
      : addresses_(run.calls[0].address - 414 * kMiB - (std::uint64_t{1} << 40), run.calls[0].address + 98 * kMiB) {}

  // Whether the rule alone says where the segment is.
  bool Make(const Call& call) {
    std::uint64_t place = *addresses_.Take(call.size);
    const bool is_right = place == call.address;
    fillers_.clear();
    for (int tries = 0; place != call.address && tries < kMostTries; ++tries) {
      place = place > call.address ? Lower(call, place) : Higher(call, place);
    }
    if (place != call.address) {  // nothing brings it there: the rule's address then, and as before
      for (const auto& [address, size] : fillers_) addresses_.Give(address, size);
    }
    ours_[call.address] = place;
    return is_right;
  }
  void Free(const Call& call) { addresses_.Give(ours_.at(call.address), call.size); }

 private:
  void Fill(std::uint64_t size) {
    const std::uint64_t address = *addresses_.Take(size);
    fillers_.emplace_back(address, size);
  }
  // Where the rule places the segment once something lies at `place`, which it gave; or below it.
  std::uint64_t Lower(const Call& call, std::uint64_t place) {
    std::uint64_t below = place - call.address;
    addresses_.Give(place, call.size);
    if (below % kRegion != 0) {  // a place in a region
      Fill(call.size);
      return *addresses_.Take(call.size);
    }
    // Any mapping stops a large region, and leaves what is above to others.
    const std::uint64_t left = call.size > kGiB && below > Rounded(call.size) + kMapping ? Rounded(call.size) : 0;
    if (left > 0) below -= left + kMapping;
    Fill(below);
    mapping_ = fillers_.back();
    if (left > 0) {
      const std::uint64_t hole = *addresses_.Take(left);
      Fill(kMapping);
      addresses_.Give(hole, left);
    }
    return *addresses_.Take(call.size);
  }
  std::uint64_t Higher(const Call& call, std::uint64_t place) {
    addresses_.Give(place, call.size);
    const auto [begin, size] = mapping_;
    if (call.address < begin || begin + size <= call.address) {
      Fill(std::min(call.address - place, call.size));
      return *addresses_.Take(call.size);
    }
    // Less was mapped than it seemed: only below the segment.
    mapping_ = {};
    addresses_.Give(begin, size);
    const std::uint64_t next = *addresses_.Take(call.size);
    if (call.address > begin + kRegion) addresses_.Take(call.address - begin - kRegion);
    return next;
  }
  static constexpr int kMostTries = 16;
  static constexpr std::uint64_t kMapping = 544 * kMiB;  // which no region that is there can take
  static std::uint64_t Rounded(std::uint64_t size) { return (size + kRegion - 1) / kRegion * kRegion; }

  DriverAddresses addresses_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fillers_;  // of one segment: address, bytes
  std::pair<std::uint64_t, std::uint64_t> mapping_;               // the last
  std::map<std::uint64_t, std::uint64_t> ours_;                   // recorded -> the rule's
};

TEST(DriverAddressesTest, AnH200sDriverFollowsTheRule) {
  std::uint64_t made = 0, right = 0;
  const std::vector<RecordedRun> runs = RecordedRuns();
  ASSERT_EQ(runs.size(), 11u);
  for (const RecordedRun& run : runs) {
    Beside beside(run);
    for (const Call& call : run.calls) {
      if (call.what == '-') {
        beside.Free(call);
        continue;
      }
      const bool is_right = beside.Make(call);
      if (call.what == 'h') continue;
      ++made;
      if (is_right) ++right;
    }
  }
  EXPECT_EQ(made, 1808u);
  EXPECT_GE(right, 1743u);
}

}  // namespace
}  // namespace ashlar::device
