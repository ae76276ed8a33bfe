// What a program is told of a failure, by itself.
#include "allocator/core/failure_reports.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/parts.h"

namespace ashlar::core {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class FailureReportsTest : public testing::Test {
 protected:
  absl::Status Fail(std::uint64_t bytes, bool is_rejected = false) {
    return reports_.OutOfMemory(parts_.ledger.heap().Decide({bytes, Stream{0}, {}}), parts_.device.GetMemoryInfo(),
                                is_rejected);
  }
  static std::size_t Lines(const absl::Status& status) {
    return std::vector<std::string>(absl::StrSplit(std::string(status.message()), '\n')).size();
  }

  Parts parts_{{.capacity_bytes = 64 * kMiB}};
  FailureReports reports_{parts_.ledger, parts_.limits, parts_.pools};
};

TEST_F(FailureReportsTest, TheFirstLineIsTheMessageAndTheRestSaysWhereEveryByteIs) {
  ASSERT_NE(parts_.Get(40 * kMiB), nullptr);
  const absl::Status status = Fail(30 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  const std::string first = std::string(status.message()).substr(0, status.message().find('\n'));
  EXPECT_THAT(first, HasSubstr("out of memory"));
  EXPECT_THAT(first, HasSubstr("30.00 MiB"));
  EXPECT_GT(Lines(status), 1u);
  EXPECT_LE(Lines(status), 12u);
}

TEST_F(FailureReportsTest, UnwantedItIsTheMessageAlone) {
  ASSERT_NE(parts_.Get(40 * kMiB), nullptr);
  const std::string whole(Fail(30 * kMiB).message());
  reports_.SetWanted(false);
  const absl::Status status = Fail(30 * kMiB);
  EXPECT_EQ(Lines(status), 1u);
  EXPECT_EQ(whole.substr(0, status.message().size()), status.message());
}

TEST_F(FailureReportsTest, LiveBlocksAreToldInOneLine) {
  testing::internal::CaptureStderr();
  reports_.TellLiveBlocks();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  ASSERT_NE(parts_.Get(3 * kMiB), nullptr);
  testing::internal::CaptureStderr();
  reports_.TellLiveBlocks();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ashlar: an allocator ended with 1 live block, 3.00 MiB, not freed; report_leaks:False hides this\n");
}

TEST_F(FailureReportsTest, LeaksAreWantedUnlessSomebodySaysNo) {
  EXPECT_TRUE(reports_.WantsLeaks());
  reports_.SetWanted(false);
  EXPECT_FALSE(reports_.WantsLeaks());
  Parts quiet({}, "report_leaks:False");
  EXPECT_FALSE(FailureReports(quiet.ledger, quiet.limits, quiet.pools).WantsLeaks());
}

}  // namespace
}  // namespace ashlar::core
