// Each seeded cause's fix test takes the symptom away, no fix test changes a healthy program, and the transforms of
// requests do what their names say, on hand-made lists.
#include "analyzer/whatif/fix_tests.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/whatif/request_transforms.h"
#include "analyzer/whatif/what_if_input.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using analyses::CauseFinding;
using analyses::CauseKind;
using analyses::CauseName;
using analyses::Finding;
using tests::Diagnosis;
using tests::SeededInput;
using trace::Op;
using trace::OpKind;
using trace::RequestTrace;

// The capacity a failed request tells, as `ashlar explain` takes it.
std::optional<std::uint64_t> CapacityOf(const timeline::Timeline& timeline) {
  if (timeline.oom_events().empty()) return std::nullopt;
  const timeline::EventIndex moment = timeline.oom_events().back();
  return timeline.TotalsAfter(moment).reserved_bytes + timeline.events()[static_cast<std::size_t>(moment)].address;
}

std::vector<TestedCause> MustTest(const SeededInput& input, const Diagnosis& diagnosis,
                                  const std::vector<CauseFinding>& findings) {
  const absl::StatusOr<replay::SnapshotProgram> program =
      replay::MakeProgram({input.snapshot, 0}, replay::SizeRuleOf(diagnosis.options()));
  EXPECT_TRUE(program.ok()) << program.status();
  const RequestTrace without_retries = whatif::WhatIfRequests(*program, true);
  const RequestTrace as_recorded = whatif::WhatIfRequests(*program, false);
  WhatIfSettings settings;
  settings.baseline = diagnosis.options();
  settings.capacity_bytes = CapacityOf(diagnosis.timeline());
  absl::StatusOr<std::vector<TestedCause>> tested =
      TestFixes(findings, diagnosis.context(), {&without_retries, &as_recorded}, settings);
  EXPECT_TRUE(tested.ok()) << tested.status();
  EXPECT_EQ(tested->size(), findings.size());
  return *std::move(tested);
}

const TestedCause& Of(CauseKind kind, const std::vector<TestedCause>& tested) {
  for (const TestedCause& cause : tested) {
    if (cause.finding.kind == kind) return cause;
  }
  ADD_FAILURE() << CauseName(kind);
  return tested.front();
}

// Causes that no replay can take away: nothing helps against a full device; what lies outside shows only where a
// request failed; and without the blocks of a library there is less of everything, which says nothing.
bool IsOutside(CauseKind kind) {
  return kind == CauseKind::kOtherProcess || kind == CauseKind::kOtherRanksContexts || kind == CauseKind::kWorkspaces;
}

bool CanBeTested(CauseKind kind, const Diagnosis& diagnosis) {
  const bool failed = !diagnosis.timeline().oom_events().empty();
  if (kind == CauseKind::kWorkspaces && !diagnosis.Of(kind).blocks.empty()) return false;
  return kind != CauseKind::kCapacity && (!IsOutside(kind) || failed);
}

// A replay with its blocks elsewhere speaks for a cause, and does not prove it.
bool IsToldByPlace(CauseKind kind) {
  return kind == CauseKind::kPinnedSegment || kind == CauseKind::kSmallLargeSplit || kind == CauseKind::kMediumRequests;
}

std::string Figures(const FixTest& fix) {
  return FormatBytes(fix.before.peak_reserved_bytes) + " -> " + FormatBytes(fix.after.peak_reserved_bytes) + ", " +
         std::to_string(fix.before.ooms) + " -> " + std::to_string(fix.after.ooms) + " failed, " +
         std::to_string(fix.before.retries) + " -> " + std::to_string(fix.after.retries) + " retries";
}

// Seeded causes of the allocator and the device; those of the program have no replay that takes them away.
TEST(FixTestsTest, TheFixOfEachSeededCauseRemovesItsSymptom) {
  for (const auto& list : {tests::DeviceCases(), tests::HoleCases(), tests::PoolCases(), tests::SettingsCases()}) {
    for (const tests::SeededCase& seeded : list) {
      SCOPED_TRACE(seeded.name);
      const SeededInput input = seeded.make();
      const Diagnosis diagnosis(input);
      const std::vector<TestedCause> tested = MustTest(input, diagnosis, diagnosis.causes());
      const TestedCause& cause = Of(seeded.truth, tested);
      ASSERT_EQ(cause.finding.finding, Finding::kFound);
      if (!CanBeTested(seeded.truth, diagnosis)) {
        EXPECT_FALSE(cause.fix.has_value());
        continue;
      }
      ASSERT_TRUE(cause.fix.has_value());
      std::printf("%-32s %-22s %-56s %s\n", seeded.name.c_str(), std::string(CauseName(seeded.truth)).c_str(),
                  cause.fix->change.c_str(), Figures(*cause.fix).c_str());
      EXPECT_TRUE(cause.fix->removes_symptom) << cause.fix->change << ": " << Figures(*cause.fix);
      const analyses::Confidence before = diagnosis.Of(seeded.truth).confidence;
      const analyses::Confidence supported = std::max(before, analyses::Confidence::kLikely);
      EXPECT_EQ(cause.finding.confidence, IsOutside(seeded.truth)       ? before
                                          : IsToldByPlace(seeded.truth) ? supported
                                                                        : analyses::Confidence::kProven);
    }
  }
}

// Whatever a detector would say of a healthy program, that a quarter of what it reserves is too much, no replay
// confirms it. (Some gain a few percent by expandable segments all the same.)
TEST(FixTestsTest, NoFixHelpsAHealthyProgram) {
  for (const tests::HealthyCase& healthy : tests::AllHealthy()) {
    SCOPED_TRACE(healthy.name);
    const SeededInput input = healthy.make();
    const Diagnosis diagnosis(input);
    std::vector<CauseFinding> claims;
    for (const CauseFinding& absent : diagnosis.causes()) {
      CauseFinding claim;
      claim.kind = absent.kind;
      claim.finding = Finding::kFound;
      claim.bytes = std::max(256 * kMiB, diagnosis.timeline().reserved_peak().bytes / 4);
      claim.blocks = {0};
      claims.push_back(claim);
    }
    for (const TestedCause& tested : MustTest(input, diagnosis, claims)) {
      EXPECT_NE(tested.finding.confidence, analyses::Confidence::kProven) << CauseName(tested.finding.kind);
      if (tested.fix.has_value()) {
        EXPECT_FALSE(tested.fix->removes_symptom) << CauseName(tested.finding.kind) << ": " << Figures(*tested.fix);
      }
    }
  }
}

// A claim that the replay refutes is no cause any more, or at most a possible one.
TEST(FixTestsTest, ARefutedClaimLosesItsConfidence) {
  tests::SeededRun run({.capacity_bytes = 1 * kGiB});
  while (!run.is_out_of_memory()) run.Allocate(100 * kMiB);
  const SeededInput input = run.Finish();
  const Diagnosis diagnosis(input);
  std::vector<CauseFinding> claims(2);
  claims[0].kind = CauseKind::kRecordStream;
  claims[1].kind = CauseKind::kNotExpandable;
  for (CauseFinding& claim : claims) {
    claim.finding = Finding::kFound;
    claim.confidence = analyses::Confidence::kLikely;
    claim.bytes = 100 * kMiB;
  }
  const std::vector<TestedCause> tested = MustTest(input, diagnosis, claims);
  EXPECT_EQ(Of(CauseKind::kRecordStream, tested).finding.confidence, analyses::Confidence::kPossible);
  EXPECT_EQ(Of(CauseKind::kNotExpandable, tested).finding.finding, Finding::kAbsent);
  for (const TestedCause& cause : tested) {
    EXPECT_FALSE(cause.fix->removes_symptom);
    EXPECT_GT(cause.fix->before.ooms, 0u);
    EXPECT_THAT(cause.finding.counter_evidence.back(), testing::HasSubstr("the symptom stays"));
  }
}

// The optimizer's state lies in segments of activations: an emptied cache leaves those, and an evaluation still does
// not fit. With its state asleep it does.
SeededInput StatePinsTheCache(std::uint64_t capacity_bytes, std::uint64_t evaluated_bytes = 400 * kMiB) {
  const tests::SeededFrame main{"train.py", 50, "main"};
  tests::SeededRun run({.capacity_bytes = capacity_bytes});
  run.At({{"model.py", 10, "__init__"}, main});
  for (int i = 0; i < 6; ++i) run.Allocate(32 * kMiB);
  for (int step = 0; step < 3; ++step) {
    std::vector<core::Block*> saved;
    run.At({{"model.py", 40, "forward"}, main});
    for (int i = 0; i < 10; ++i) saved.push_back(run.Allocate(200 * kMiB));
    run.Free(saved);
    run.At({{"torch/optim/adamw.py", 180, "_init_group"}, main});
    for (int i = 0; step == 0 && i < 10; ++i) run.Allocate(64 * kMiB);
  }
  run.At({{"model.py", 40, "forward"}, {"eval.py", 20, "evaluate"}, main});
  for (int i = 0; i < 6; ++i) run.Allocate(evaluated_bytes);
  return run.Finish();
}

TEST(FixTestsTest, StateAsleepCuresWhatAnEmptiedCacheDoesNot) {
  const SeededInput input = StatePinsTheCache(3300 * kMiB);
  const Diagnosis diagnosis(input);
  const std::vector<TestedCause> tested = MustTest(input, diagnosis, diagnosis.causes());
  const TestedCause& cause = Of(CauseKind::kCacheBetweenPhases, tested);
  ASSERT_EQ(cause.finding.finding, Finding::kFound);
  ASSERT_TRUE(cause.fix.has_value());
  EXPECT_THAT(cause.fix->change, testing::HasSubstr("asleep"));
  EXPECT_TRUE(cause.fix->removes_symptom) << Figures(*cause.fix);
  EXPECT_EQ(cause.finding.change, &analyses::changes::kStateAsleep);
  EXPECT_EQ(cause.finding.confidence, analyses::Confidence::kLikely) << "it says nothing of the cache";
}

// 192 MiB of weights, 640 of state and 6 times 500 are more than there is, and without the state they are not.
TEST(FixTestsTest, StateAsleepMakesRoomWhereAnEvaluationIsTooLarge) {
  const SeededInput input = StatePinsTheCache(3300 * kMiB, 500 * kMiB);
  const Diagnosis diagnosis(input);
  const std::vector<TestedCause> tested = MustTest(input, diagnosis, diagnosis.causes());
  const TestedCause& cause = Of(CauseKind::kCapacity, tested);
  ASSERT_EQ(cause.finding.finding, Finding::kFound);
  EXPECT_EQ(cause.finding.confidence, analyses::Confidence::kProven);
  EXPECT_EQ(cause.finding.change, &analyses::changes::kStateAsleep);
  ASSERT_TRUE(cause.fix.has_value());
  EXPECT_EQ(cause.fix->after.ooms, 0u);

  const SeededInput too_large = StatePinsTheCache(3300 * kMiB, 1700 * kMiB);
  const Diagnosis other(too_large);
  const std::vector<TestedCause> untouched = MustTest(too_large, other, other.causes());
  EXPECT_EQ(Of(CauseKind::kCapacity, untouched).finding.confidence, analyses::Confidence::kProven);
  EXPECT_FALSE(Of(CauseKind::kCapacity, untouched).fix.has_value()) << "a remedy that fails says nothing of the cause";
}

TEST(FixTestsTest, AWakeThatFindsNoMemoryIsAFailure) {
  tests::RequestList list;
  const std::uint16_t pool = list.AddPool(PoolId{7, 7});
  trace::RequestTrace requests = list.trace();
  requests.id_count = 3;
  requests.requests = {
      {.kind = OpKind::kTagPool, .pool = pool}, {.bytes = 600 * kMiB, .id = 0, .kind = OpKind::kAlloc, .pool = pool},
      {.kind = OpKind::kSleep, .pool = pool},   {.bytes = 600 * kMiB, .id = 1, .kind = OpKind::kAlloc},
      {.kind = OpKind::kWake, .pool = pool},    {.bytes = 2 * kMiB, .id = 2, .kind = OpKind::kAlloc, .pool = pool},
  };
  WhatIfSettings settings;
  settings.capacity_bytes = 1 * kGiB;
  absl::StatusOr<WhatIfRow> row = RunWhatIf(requests, settings, settings.baseline);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->ooms, 1u);
  EXPECT_EQ(row->peak_reserved_bytes, 600 * kMiB);
  settings.capacity_bytes = 2 * kGiB;
  row = RunWhatIf(requests, settings, settings.baseline);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->ooms, 0u);
  EXPECT_EQ(row->peak_reserved_bytes, 1220 * kMiB) << "a page of 20 MiB more";
}

RequestTrace Sample() {
  RequestTrace out;
  out.pools = {PoolId{}, PoolId{0, 1}};
  out.id_count = 2;
  out.requests = {
      {.bytes = 5, .stream = Stream{3}, .id = 0, .kind = OpKind::kAlloc, .pool = 0},
      {.bytes = 6, .stream = Stream{4}, .id = 1, .kind = OpKind::kAlloc, .pool = 1},
      {.stream = Stream{9}, .id = 0, .kind = OpKind::kRecordStream},
      {.id = 0, .kind = OpKind::kFree},
      {.stream = Stream{9}, .kind = OpKind::kStreamSync},
      {.id = 1, .kind = OpKind::kFree},
  };
  return out;
}

std::vector<OpKind> KindsOf(const RequestTrace& requests) {
  std::vector<OpKind> out;
  for (const Op& request : requests.requests) out.push_back(request.kind);
  return out;
}

TEST(RequestTransformsTest, EachChangesWhatItsNameSays) {
  using testing::ElementsAre;
  EXPECT_EQ(OnOneStream(Sample()).requests[1].stream, Stream{0});
  EXPECT_EQ(OnOneStream(Sample()).requests[2].stream, Stream{9});
  EXPECT_THAT(KindsOf(WithoutWaits(Sample())),
              ElementsAre(OpKind::kAlloc, OpKind::kAlloc, OpKind::kFree, OpKind::kFree));
  for (const PoolId& pool : InDefaultPool(Sample()).pools) EXPECT_TRUE(pool.IsDefault());
  RequestTrace captured = Sample();
  captured.pools = {PoolId{}, PoolId{0, 1}, PoolId{0, 2}};
  EXPECT_EQ(PrivatePoolCount(captured), 2u);
  EXPECT_THAT(InOnePool(captured).pools, ElementsAre(PoolId{}, PoolId{0, 1}, PoolId{0, 1}));
  const RequestTrace apart = InPoolOfTheirOwn(Sample(), std::vector<std::uint32_t>{1});
  EXPECT_EQ(apart.requests[0].pool, 0);
  EXPECT_EQ(apart.requests[1].pool, 2);
  EXPECT_FALSE(apart.pools[2].IsDefault());
  EXPECT_THAT(KindsOf(WithEmptyCacheAt(Sample(), std::vector<std::size_t>{0, 5})),
              ElementsAre(OpKind::kEmptyCache, OpKind::kAlloc, OpKind::kAlloc, OpKind::kRecordStream, OpKind::kFree,
                          OpKind::kStreamSync, OpKind::kEmptyCache, OpKind::kFree));
}

TEST(RequestTransformsTest, APoolOfTheirOwnSleepsInItsRanges) {
  using testing::ElementsAre;
  const std::vector<std::uint32_t> ids = {1};
  const std::vector<RequestRange> ranges = {{2, 4}, {5, 6}};
  const RequestTrace asleep = AsleepIn(Sample(), ids, ranges);
  EXPECT_THAT(KindsOf(asleep),
              ElementsAre(OpKind::kTagPool, OpKind::kAlloc, OpKind::kAlloc, OpKind::kSleep, OpKind::kRecordStream,
                          OpKind::kFree, OpKind::kWake, OpKind::kStreamSync, OpKind::kSleep, OpKind::kFree));
  for (const std::size_t op : {0, 2, 3, 6, 8}) EXPECT_EQ(asleep.requests[op].pool, 2) << op;
  EXPECT_EQ(asleep.requests[1].pool, 0);
  EXPECT_FALSE(asleep.pools[2].IsDefault());
}

TEST(RequestTransformsTest, BlocksAreFoundAgainInTheRequests) {
  tests::SeededRun run({.capacity_bytes = 1 * kGiB});
  core::Block* first = run.Allocate(100 * kMiB);
  run.Allocate(200 * kMiB);
  run.ForgetEvents();
  run.Free(first);
  run.Allocate(700 * kMiB);
  run.Allocate(300 * kMiB);  // fails
  const SeededInput input = run.Finish();
  const Diagnosis diagnosis(input);
  const absl::StatusOr<replay::SnapshotProgram> program =
      replay::MakeProgram({input.snapshot, 0}, replay::SizeRuleOf(diagnosis.options()));
  ASSERT_TRUE(program.ok());
  const std::optional<RequestPlaces> places = PlaceRequests(diagnosis.timeline(), program->requests);
  ASSERT_TRUE(places.has_value());
  ASSERT_EQ(places->ids.size(), diagnosis.timeline().blocks().size());
  std::map<std::uint32_t, std::uint64_t> bytes_of;
  for (const Op& request : program->requests.requests) {
    if (request.kind == OpKind::kAlloc) bytes_of[request.id] = request.bytes;
  }
  for (std::size_t i = 0; i < places->ids.size(); ++i) {
    EXPECT_EQ(bytes_of.at(places->ids[i]), diagnosis.timeline().blocks()[i].requested_bytes.value_or(0));
  }
  EXPECT_EQ(program->requests.requests[*places->PositionFrom(0)].bytes, 700 * kMiB);
  EXPECT_EQ(places->PositionFrom(diagnosis.timeline().event_count()), std::nullopt);
  RequestTrace other = program->requests;
  other.requests.pop_back();
  EXPECT_FALSE(PlaceRequests(diagnosis.timeline(), other).has_value());
}

}  // namespace
}  // namespace ashlar::whatif
