#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "hollow/model/allocations.h"
#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint64_t kBytes = 96;

// A flag for each byte.
class ByteFlags {
 public:
  void Set(std::uint64_t address, std::uint64_t bytes, bool known) {
    for (std::uint64_t i = address; i < address + bytes; ++i) flags_[i] = known;
  }
  void Carry(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    const auto before = flags_;
    for (std::uint64_t i = 0; i < bytes; ++i) flags_[to + i] = before[from + i];
  }
  std::uint64_t Count(std::uint64_t address, std::uint64_t bytes) const {
    std::uint64_t count = 0;
    for (std::uint64_t i = address; i < address + bytes; ++i) count += flags_[i] ? 1 : 0;
    return count;
  }
  // Runs of known bytes: as many ranges as there may be.
  std::uint64_t Runs() const {
    std::uint64_t runs = 0;
    for (std::uint64_t i = 0; i < kBytes; ++i) runs += flags_[i] && (i == 0 || !flags_[i - 1]) ? 1 : 0;
    return runs;
  }

 private:
  std::array<bool, kBytes> flags_ = {};
};

std::string CountsDifference(const KnownBytes& known, const ByteFlags& flags) {
  for (std::uint64_t address = 0; address < kBytes; ++address) {
    for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{7}, kBytes - address}) {
      if (address + bytes > kBytes) continue;
      const std::uint64_t wanted = flags.Count(address, bytes);
      if (known.CountKnown(address, bytes) != wanted || known.AreKnown(address, bytes) != (wanted == bytes)) {
        return "of " + std::to_string(bytes) + " bytes from " + std::to_string(address) + ", " +
               std::to_string(known.CountKnown(address, bytes)) + " are known, not " + std::to_string(wanted);
      }
    }
  }
  if (known.range_count() != flags.Runs()) return std::to_string(known.range_count()) + " ranges";
  return "";
}

// 0 knows, 1 forgets, 2 carries up, 3 carries down.
std::string KnownBytesDifference(const Operations& program) {
  KnownBytes known;
  ByteFlags flags;
  for (const Operation& one : program) {
    const std::uint64_t bytes = one.b;
    if (one.kind <= 1) {
      one.kind == 0 ? known.Know(one.a, bytes) : known.Forget(one.a, bytes);
      flags.Set(one.a, bytes, one.kind == 0);
    } else {
      const std::uint64_t from = one.kind == 2 ? one.a : one.a / 2;
      const std::uint64_t to = one.kind == 2 ? one.a / 2 : one.a;  // they may overlap
      known.Carry(from, to, bytes);
      flags.Carry(from, to, bytes);
    }
    if (std::string difference = CountsDifference(known, flags); !difference.empty()) return difference;
  }
  return "";
}

TEST(KnownBytesTest, IsAsAFlagForEachByte) {
  test::CheckPrograms("KnownBytesTest", "KnownBytesDifference", KnownBytesDifference,
                      {.kinds = 4, .operations = 120, .below_a = 64, .below_b = 32, .seeds = 300});
}

TEST(KnownBytesTest, RangesThatTouchAreOne) {
  KnownBytes known;
  known.Know(10, 10);
  known.Know(30, 10);
  EXPECT_EQ(known.range_count(), 2U);
  known.Know(20, 10);
  EXPECT_EQ(known.range_count(), 1U);
  EXPECT_TRUE(known.AreKnown(10, 30));
  known.Forget(15, 1);
  EXPECT_THAT(known.RangesIn(12, 10), ElementsAre(Pair(12, 3), Pair(16, 6)));
  EXPECT_THAT(known.RangesIn(50, 10), IsEmpty());
  EXPECT_TRUE(known.AreKnown(50, 0)) << "of no bytes, all are";
}

// A kernel that may have written anywhere.
TEST(KnownBytesTest, EverythingIsForgottenAtOnce) {
  KnownBytes known;
  for (std::uint64_t address = 0; address < 1000; address += 2) known.Know(address << 20, 1);
  EXPECT_EQ(known.range_count(), 500U);
  known.Forget(0, std::uint64_t{1} << 62);
  EXPECT_EQ(known.range_count(), 0U);
}

}  // namespace
}  // namespace ashlar::hollow
