#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hollow/model/device_model.h"
#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;

constexpr std::uint64_t kPageUnits = 16;  // of 512 bytes
constexpr std::uint64_t kPageBytes = kPageUnits * 512;

// Pages as rows of units, looked through from the first.
class UnitRows {
 public:
  void AddPage(std::uint64_t address) { pages_[address].resize(kPageUnits, false); }
  std::optional<std::uint64_t> Take(std::uint64_t units) {
    for (auto& [address, row] : pages_) {
      for (std::uint64_t begin = 0; begin + units <= kPageUnits; ++begin) {
        std::uint64_t free = 0;
        while (free < units && !row[begin + free]) ++free;
        if (free < units) continue;
        for (std::uint64_t i = 0; i < units; ++i) row[begin + i] = true;
        return address + begin * 512;
      }
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> Give(std::uint64_t address, std::uint64_t units) {
    const auto page = std::prev(pages_.upper_bound(address));
    for (std::uint64_t i = 0; i < units; ++i) page->second[(address - page->first) / 512 + i] = false;
    for (const bool is_taken : page->second) {
      if (is_taken) return std::nullopt;
    }
    const std::uint64_t page_address = page->first;
    pages_.erase(page);
    return page_address;
  }

 private:
  std::map<std::uint64_t, std::vector<bool>> pages_;
};

// 0 and 1 take, 2 gives one back; a page is added where none has room, at an address that no page has.
std::string SmallBlocksDifference(const Operations& program) {
  SmallBlocks blocks(kPageBytes);
  UnitRows rows;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;  // address, units
  constexpr std::uint64_t kMiddle = 1 << 30;
  std::uint64_t pages = 0;
  for (const Operation& one : program) {
    if (one.kind == 2) {
      if (live.empty()) continue;
      const auto given = live.begin() + static_cast<std::ptrdiff_t>(one.a % live.size());
      if (!blocks.Has(given->first) || blocks.Has(given->first + 1)) return "a block is not known by its start";
      if (blocks.Give(given->first) != rows.Give(given->first, given->second)) return "another page is empty";
      live.erase(given);
      continue;
    }
    const std::uint64_t bytes = 1 + one.b * 90;
    const std::uint64_t units = (bytes + 511) / 512;
    std::optional<std::uint64_t> taken = blocks.Take(bytes);
    if (taken != rows.Take(units)) return "another place was taken";
    if (!taken.has_value()) {
      // Below or above those that are there.
      ++pages;
      const std::uint64_t page = one.a % 2 == 0 ? kMiddle + pages * kPageBytes : kMiddle - pages * kPageBytes;
      blocks.AddPage(page);
      rows.AddPage(page);
      taken = blocks.Take(bytes);
      if (taken != rows.Take(units) || !taken.has_value()) return "a new page has no room";
    }
    live.emplace_back(*taken, units);
  }
  return "";
}

TEST(SmallBlocksTest, IsAsRowsOfUnits) {
  test::CheckPrograms("SmallBlocksTest", "SmallBlocksDifference", SmallBlocksDifference,
                      {.kinds = 3, .operations = 200, .below_a = 64, .below_b = 64, .seeds = 200});
}

TEST(SmallBlocksTest, BlocksAreAlignedAndAPageGoesWithItsLastBlock) {
  SmallBlocks blocks(2 * kMiB);
  EXPECT_EQ(blocks.Take(1), std::nullopt);
  blocks.AddPage(8 * kMiB);
  EXPECT_EQ(blocks.Take(1), 8 * kMiB);
  EXPECT_EQ(blocks.Take(513), 8 * kMiB + 512);
  EXPECT_EQ(blocks.Take(512), 8 * kMiB + 3 * 512);
  EXPECT_EQ(blocks.Give(8 * kMiB + 512), std::nullopt);
  EXPECT_EQ(blocks.Take(1024), 8 * kMiB + 512) << "the lowest place with room";
  EXPECT_EQ(blocks.Give(8 * kMiB), std::nullopt);
  EXPECT_EQ(blocks.Give(8 * kMiB + 3 * 512), std::nullopt);
  EXPECT_EQ(blocks.Give(8 * kMiB + 512), 8 * kMiB);
  EXPECT_EQ(blocks.Take(1), std::nullopt);
}

}  // namespace
}  // namespace ashlar::hollow
