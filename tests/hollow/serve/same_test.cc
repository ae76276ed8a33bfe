// A program sees the same with and without the serving library under it: results, errors, answers.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "tests/hollow/serve/served_client.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The served run, when its output is that of the other.
ClientRun SameAs(const std::string& arguments, int code = 0) {
  const ClientRun bare = RunServed({.client = ASHLAR_SAME_CLIENT, .arguments = arguments, .is_served = false});
  const ClientRun served = RunServed({.client = ASHLAR_SAME_CLIENT, .arguments = arguments});
  EXPECT_EQ(bare.code, code) << bare.error;
  EXPECT_EQ(served.code, code) << served.error;
  EXPECT_FALSE(bare.out.empty()) << bare.error;
  EXPECT_EQ(served.out, bare.out);
  EXPECT_THAT(bare.counts, IsEmpty());
  return served;
}

serve::ServedCounts OnlyCounts(const ClientRun& run) {
  EXPECT_THAT(run.counts, SizeIs(1)) << run.error;
  return run.counts.empty() ? serve::ServedCounts{} : run.counts.front();
}

TEST(SameTest, WrongCallsGetCudasOwnErrors) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("errors"));
  EXPECT_EQ(counts.served_allocations, 3u);
  EXPECT_EQ(counts.served_frees, 3u);
  EXPECT_EQ(counts.allocated_bytes, 0u);
}

TEST(SameTest, AnswersAreOfTheProgramsOwnMemory) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("answers"));
  EXPECT_EQ(counts.served_allocations, 2u);
  EXPECT_EQ(counts.allocated_bytes, 0u);
}

TEST(SameTest, EitherFreeFreesEitherMemory) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("frees"));
  EXPECT_EQ(counts.served_allocations, 6u);
  EXPECT_EQ(counts.served_frees, 6u);
  EXPECT_EQ(counts.passed_frees, 1u);  // of the program's own pool
  EXPECT_EQ(counts.allocated_bytes, 0u);
}

TEST(SameTest, CapturesForbidAndAllowWhatTheyDid) {
  for (const char* mode : {"capture 0", "capture 1", "capture 2"}) SameAs(mode);
}

TEST(SameTest, SeveralDevices) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("devices"));
  EXPECT_EQ(counts.served_allocations, 3u);
  EXPECT_EQ(counts.served_frees, 3u);
}

TEST(SameTest, AfterAResetTheDriverServes) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("reset"));
  EXPECT_EQ(counts.served_allocations, 1u);
  EXPECT_EQ(counts.passed_allocations, 1u);
}

TEST(SameTest, AContextOfTheProgramsOwnIsTheDrivers) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("own-context"));
  EXPECT_EQ(counts.served_allocations, 0u);
}

TEST(SameTest, ThreadsLeaveNothing) {
  const ClientRun served = SameAs("threads");
  const serve::ServedCounts counts = OnlyCounts(served);
  EXPECT_EQ(counts.served_allocations, 4000u);
  EXPECT_EQ(counts.served_frees, 4000u);
  EXPECT_EQ(counts.allocated_bytes, 0u);
  EXPECT_EQ(counts.has_ended, 1u);
  EXPECT_LT(served.device_allocations, 100);
  EXPECT_EQ(counts.device_allocations, static_cast<std::uint64_t>(served.device_allocations));
}

TEST(SameTest, NoBlockHasTwoOwnersHoweverItIsTakenAndFreed) {
  const serve::ServedCounts counts = OnlyCounts(SameAs("mixes"));
  EXPECT_GT(counts.served_allocations, 2000u);
  EXPECT_EQ(counts.served_frees + counts.passed_frees, counts.served_allocations + counts.passed_allocations);
  EXPECT_EQ(counts.allocated_bytes, 0u);
}

TEST(SameTest, AChildHasNoCudaWhereItsParentHadAndHasItWhereItIsTheFirst) {
  const ClientRun after = SameAs("fork after");
  ASSERT_THAT(after.counts, SizeIs(2));
  EXPECT_EQ(after.counts[0].served_allocations + after.counts[1].served_allocations, 2u);  // all the parent's
  EXPECT_EQ(std::min(after.counts[0].device_allocations, after.counts[1].device_allocations), 0u);
  const ClientRun before = SameAs("fork before");
  ASSERT_THAT(before.counts, SizeIs(2));
  for (const serve::ServedCounts& counts : before.counts) EXPECT_EQ(counts.served_allocations, 1u);
}

TEST(SameTest, AProgramThatBecomesAnotherIsServedBothTimes) {
  const ClientRun run = SameAs("exec");
  ASSERT_THAT(run.counts, SizeIs(2));
  EXPECT_EQ(run.counts[0].served_allocations + run.counts[1].served_allocations, 7u);
}

TEST(SameTest, HoweverAProcessEndsWhatItDidIsCounted) {
  EXPECT_EQ(OnlyCounts(SameAs("end return")).served_frees, 2u);  // one of them by a destructor, at the very end
  const ClientRun left = RunServed({.client = ASHLAR_SAME_CLIENT, .arguments = "end _exit"});
  EXPECT_EQ(left.code, 0);
  EXPECT_EQ(OnlyCounts(left).served_allocations, 2u);
  EXPECT_EQ(OnlyCounts(left).has_ended, 0u);
  const ClientRun aborted = RunServed({.client = ASHLAR_SAME_CLIENT, .arguments = "end abort"});
  EXPECT_EQ(aborted.code, 134);
  EXPECT_EQ(OnlyCounts(aborted).served_allocations, 2u);
}

TEST(SameTest, SettingsAreOfTheEnvironment) {
  const ClientRun wrong =
      RunServed({.client = ASHLAR_SAME_CLIENT, .arguments = "frees", .environment = "ASHLAR_CONF=no_such_key:1"});
  EXPECT_EQ(wrong.code, 0);
  EXPECT_THAT(wrong.error, HasSubstr("ashlar: device 0 is not served: "));
  EXPECT_THAT(wrong.error, HasSubstr("no_such_key"));
  EXPECT_EQ(OnlyCounts(wrong).served_allocations, 0u);
}

}  // namespace
}  // namespace ashlar
