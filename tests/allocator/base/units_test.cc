#include "allocator/base/units.h"

#include <cstdint>
#include <ostream>

#include "gtest/gtest.h"

namespace ashlar {
namespace {

TEST(FormatBytes, KeepsTheFigureAtLeastOne) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(220 * kMiB), "220.00 MiB");
  EXPECT_EQ(FormatBytes(kGiB * 3 / 2), "1.50 GiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16777216.00 TiB");
}

TEST(FormatSignedBytes, ReachesTheSmallestValue) {
  EXPECT_EQ(FormatSignedBytes(-2048), "-2.00 KiB");
  EXPECT_EQ(FormatSignedBytes(INT64_MIN), "-8388608.00 TiB");
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(81402), "81,402");
  EXPECT_EQ(FormatCount(UINT64_MAX), "18,446,744,073,709,551,615");
}

struct Reading {
  const char* text;
  std::uint64_t bytes;
};
std::ostream& operator<<(std::ostream& out, const Reading& reading) { return out << reading.text; }

class ParseBytesReads : public testing::TestWithParam<Reading> {};

TEST_P(ParseBytesReads, Value) {
  const auto bytes = ParseBytes(GetParam().text);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, GetParam().bytes);
}

INSTANTIATE_TEST_SUITE_P(All, ParseBytesReads,
                         testing::Values(Reading{"0", 0}, Reading{"1073741824", 1073741824},
                                         Reading{"16GiB", 17179869184}, Reading{"1.5 GB", 1500000000},
                                         Reading{"10GB", 10000000000}, Reading{"1.5G", 1610612736},
                                         Reading{"2MB", 2000000}, Reading{"3kb", 3000}, Reading{"1TB", 1000000000000},
                                         Reading{" 512 mib ", 536870912}, Reading{"2k", 2048}, Reading{"7 bytes", 7},
                                         Reading{"18446744073709551615", UINT64_MAX}));

class ParseBytesRefuses : public testing::TestWithParam<const char*> {};

TEST_P(ParseBytesRefuses, WithTheTextAndTheForms) {
  const auto bytes = ParseBytes(GetParam());
  ASSERT_FALSE(bytes.ok()) << *bytes;
  EXPECT_NE(bytes.status().message().find(GetParam()), absl::string_view::npos);
  EXPECT_NE(bytes.status().message().find("GiB"), absl::string_view::npos);
}

INSTANTIATE_TEST_SUITE_P(All, ParseBytesRefuses,
                         testing::Values("", "GiB", "-1", "1.5 XB", "0x10", "nan", "inf", "1 2", "16777216TiB",
                                         "18446744073709551616", "1e30"));

}  // namespace
}  // namespace ashlar
