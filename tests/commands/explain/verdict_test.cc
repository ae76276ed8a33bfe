// The last word on a failure never stands beside a row of the table that says otherwise.
#include "commands/explain/verdict.h"

#include <string>

#include "allocator/core/oom_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::answers {
namespace {

using testing::HasSubstr;
using testing::Not;

whatif::WhatIfRow CutOffRow(std::uint64_t ooms) {
  whatif::WhatIfRow out;
  out.conf = "expandable_segments:True";
  out.is_cut_off = true;
  out.ooms = ooms;
  out.gets_past = ooms == 0;
  return out;
}

Explanation Failed(OomVerdict verdict, const std::string& sentence, std::uint64_t ooms_of_row) {
  Explanation out;
  out.verdict = verdict;
  out.evidence = {sentence};
  out.headroom = ByteSpan{10, 10, 10};
  whatif::WhatIfRow recorded = CutOffRow(1);
  recorded.conf = "";
  recorded.is_baseline = true;
  out.what_if = {recorded, CutOffRow(ooms_of_row)};
  return out;
}

std::string AllEvidence(const Explanation& e) {
  std::string out;
  for (const std::string& sentence : e.evidence) out += sentence + "\n";
  return out;
}

TEST(VerdictTest, AClaimOfTheRequestAloneGoesWhereARowGetsPast) {
  const std::string full = std::string("nearly full: it would fit") + core::kNonePacksAsWell;
  for (const std::uint64_t ooms : {std::uint64_t{0}, std::uint64_t{1}}) {
    Explanation e = Failed(OomVerdict::kNearlyFull, full, ooms);
    SetLastVerdict(e);
    EXPECT_EQ(e.verdict, OomVerdict::kNearlyFull);
    const bool is_claimed = AllEvidence(e).find("packs as well") != std::string::npos;
    EXPECT_EQ(is_claimed, ooms > 0);
    EXPECT_EQ(AllEvidence(e).find("expandable_segments:True just gets past") != std::string::npos, ooms == 0);
  }
  Explanation e = Failed(OomVerdict::kCapacity, std::string("capacity: short by 1") + core::kNoSettingHelps, 1);
  e.own.emplace().row = CutOffRow(0);  // our own allocator's
  SetLastVerdict(e);
  EXPECT_THAT(AllEvidence(e), Not(HasSubstr("can help")));
}

TEST(VerdictTest, StepsLeftOfALeakAreThoseOfTheRow) {
  Explanation e = Failed(OomVerdict::kFragmentation, "fragmentation: x", 0);
  e.accounting.live_bytes = 1000;
  e.growing = GrowingBytes{.bytes = 900, .bytes_per_step = 10};
  e.what_if_capacity_bytes = 100000;  // room for thousands of steps of that growth
  SetLastVerdict(e);
  EXPECT_EQ(e.verdict, OomVerdict::kLeak);
  EXPECT_THAT(e.advice.sentence, HasSubstr("how long it lasts is not known"));

  e.what_if[1].projected.emplace().ooms = 1;
  e.what_if[1].projected->failed_steps_later = 3;
  SetLastVerdict(e);
  EXPECT_THAT(e.advice.sentence, HasSubstr("fails about 3 steps later (projected)"));
  e.what_if[1].projected->failed_steps_later = 0;
  SetLastVerdict(e);
  EXPECT_THAT(e.advice.sentence, HasSubstr("fails in the same step (projected)"));
}

TEST(VerdictTest, GrowthThatEndsIsNoLeak) {
  Explanation e = Failed(OomVerdict::kFragmentation, "fragmentation: x", 0);
  e.accounting.live_bytes = 1000;
  e.growing = GrowingBytes{.bytes = 900, .bytes_per_step = 10};
  e.what_if[1].projected.emplace().available_bytes = 1000;
  e.what_if[1].projected->peak_reserved_bytes = 900;
  SetLastVerdict(e);
  EXPECT_EQ(e.verdict, OomVerdict::kFragmentation);
  e.what_if[1].projected->growth_bytes_per_step = 10;
  SetLastVerdict(e);
  EXPECT_EQ(e.verdict, OomVerdict::kLeak);
}

}  // namespace
}  // namespace ashlar::answers
