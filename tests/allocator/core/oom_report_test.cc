// The report of an out-of-memory error: held, number by number, to what `ashlar explain` makes of the same state by way
// of a snapshot file, over random programs; and one state worked out by hand.
#include "allocator/core/oom_report.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/explain/explain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/expect_same_failure.h"

namespace ashlar::tests {
namespace {

using core::CachingAllocator;
using core::FailedAllocation;
using core::OomKind;
using core::OomReport;

constexpr Stream kStreams[] = {Stream{0}, Stream{7}, Stream{11}};
constexpr PoolId kPrivate{1, 0};

policy::Options OptionsFrom(const std::string& conf) {
  return *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
}

// The state and its error as PyTorch would have recorded them, written and read again.
absl::StatusOr<answers::Explanation> OomReportExplainFile(const CachingAllocator& allocator,
                                                          const FailedAllocation& failed) {
  const policy::Options& options = allocator.options();
  trace::Snapshot snapshot;
  snapshot.segments = allocator.Segments();
  trace::Event oom;
  oom.action = trace::Action::kOom;
  oom.address = failed.device_free_bytes;
  oom.size_bytes = failed.rounded_bytes;
  oom.stream = failed.stream;
  oom.pool = failed.pool;
  snapshot.device_traces = {{oom}};
  trace::RecordedSettings settings;
  settings.conf = options.conf;
  if (options.max_split_size_bytes != policy::kUnlimited) settings.max_split_size_bytes = options.max_split_size_bytes;
  settings.expandable_segments = options.expandable_segments;
  settings.values["large_segment_size"] = absl::StrCat(options.large_segment_bytes);
  snapshot.settings = settings;
  const absl::StatusOr<trace::Snapshot> read = formats::ReadTorchSnapshot(formats::WriteTorchSnapshot(snapshot));
  if (!read.ok()) return read.status();
  answers::ExplainSettings explain;
  explain.replay.capacity_bytes = failed.device_total_bytes;
  return answers::ExplainSnapshot(*read, explain);
}

void ExpectZeroError(const OomReport& report) {
  ASSERT_TRUE(report.outside_bytes.has_value());
  EXPECT_EQ(*report.parts.live_bytes + *report.parts.rounding_bytes + report.parts.pending_bytes +
                report.parts.stranded_bytes + report.parts.whole_free_bytes + report.parts.private_pool_bytes +
                *report.outside_bytes + report.failed.device_free_bytes,
            report.failed.device_total_bytes);
}

// A program of random requests that is made to fail again and again.
class RandomFailures {
 public:
  RandomFailures(const std::string& conf, std::uint64_t seed)
      : device_({.capacity_bytes = kGiB, .base_address = 0x7f0000000000}),
        allocator_(&device_, OptionsFrom(conf)),
        rng_(seed) {}

  void Run(int failures) {
    while (failures > 0) {
      if (rng_.Below(5) < 2 && !blocks_.empty()) {
        FreeOne();
      } else if (!Allocate()) {
        --failures;
        for (std::size_t n = blocks_.size() / 3; n > 0; --n) FreeOne();
      }
    }
  }

  const std::set<OomKind>& seen() const { return seen_; }
  bool has_seen_pending() const { return has_seen_pending_; }

 private:
  // A few sizes of every class.
  std::uint64_t SizeOf() {
    if (rng_.Below(20) == 0) return 700 * kMiB;
    switch (rng_.Below(4)) {
      case 0:
        return 1 + rng_.Below(kMiB);
      case 1:
        return kMiB + rng_.Below(9 * kMiB);
      case 2:
        return 10 * kMiB + rng_.Below(30 * kMiB);
      default:
        return 40 * kMiB + rng_.Below(200 * kMiB);
    }
  }

  bool Allocate() {
    FailedAllocation asked = Asked(SizeOf());
    const std::uint64_t rejections = allocator_.stats().num_oom_rejections;
    const absl::StatusOr<core::Block*> block = allocator_.Allocate(asked.request_bytes, asked.stream, asked.pool);
    if (block.ok()) {
      blocks_.push_back(*block);
      if (rng_.Below(8) == 0) allocator_.RecordStream(*block, kStreams[rng_.Below(3)]);
      return true;
    }
    asked.is_rejected = allocator_.stats().num_oom_rejections > rejections;
    Check(asked, block.status());
    return false;
  }

  FailedAllocation Asked(std::uint64_t bytes) {
    FailedAllocation out;
    out.request_bytes = bytes;
    out.rounded_bytes = policy::RoundedBytes(bytes, allocator_.options());
    out.segment_bytes = policy::SegmentBytes(out.rounded_bytes, allocator_.options());
    out.stream = kStreams[rng_.Below(3)];
    if (rng_.Below(6) == 0) out.pool = kPrivate;
    return out;
  }

  void Check(FailedAllocation failed, const absl::Status& status) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    const device::MemoryInfo info = device_.GetMemoryInfo();
    failed.device_free_bytes = info.free_bytes;
    failed.device_total_bytes = info.total_bytes;
    failed.limit_bytes = allocator_.limit_bytes();
    const OomReport report = core::MakeOomReport(failed, allocator_.Segments(), allocator_.options());
    // What the error said is this report, and at most 12 lines.
    std::vector<std::string> lines = {core::OomMessage(failed, report.parts.reserved_bytes)};
    for (const std::string& line : core::OomLines(report)) lines.push_back(line);
    EXPECT_EQ(status.message(), absl::StrJoin(lines, "\n"));
    EXPECT_LE(lines.size(), 11u);
    EXPECT_FALSE(absl::StrContains(lines[0], "\n"));
    ExpectZeroError(report);
    has_seen_pending_ |= report.parts.pending_bytes > 0;
    const absl::StatusOr<answers::Explanation> explained = OomReportExplainFile(allocator_, failed);
    ASSERT_TRUE(explained.ok()) << explained.status();
    ExpectSameFailure(report, *explained);
    seen_.insert(report.judgement.kind);
  }

  void FreeOne() {
    const std::size_t at = rng_.Below(blocks_.size());
    allocator_.Free(blocks_[at]);
    blocks_[at] = blocks_.back();
    blocks_.pop_back();
  }

  device::SimDevice device_;
  CachingAllocator allocator_;
  Rng rng_;
  std::vector<core::Block*> blocks_;
  std::set<OomKind> seen_;
  bool has_seen_pending_ = false;
};

TEST(OomReportTest, SaysOfEveryStateWhatExplainSaysOfItsFile) {
  std::set<OomKind> seen;
  bool has_seen_pending = false;
  for (const char* conf :
       {"", "max_split_size_mb:32", "expandable_segments:True", "policy:ashlar", "per_process_memory_fraction:0.6",
        "large_segment_size_mb:32", "throw_on_cudamalloc_oom:True",
        "expandable_segments:True,per_process_memory_fraction:0.5"}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(absl::StrCat("conf '", conf, "', seed ", seed));
      RandomFailures program(conf, seed);
      program.Run(6);
      has_seen_pending |= program.has_seen_pending();
      seen.insert(program.seen().begin(), program.seen().end());
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GE(seen.size(), 4u) << "every kind of failure of one process was met";
  EXPECT_TRUE(has_seen_pending) << "a request was refused while blocks waited for other streams";
}

// 64 MiB: two segments of 20, each with 2 MiB at its front and 18 MiB of hole, one of 12 MiB full, 12 left.
TEST(OomReportTest, ASmallStateByHand) {
  device::SimDevice device({.capacity_bytes = 64 * kMiB, .base_address = 0x7f0000000000});
  CachingAllocator allocator(&device, OptionsFrom(""));
  const auto first = *allocator.Allocate(2 * kMiB, Stream{0});
  const auto filler = *allocator.Allocate(9 * kMiB, Stream{0});
  (void)*allocator.Allocate(9 * kMiB, Stream{0});
  const auto second = *allocator.Allocate(2 * kMiB - 1000, Stream{7});
  (void)*allocator.Allocate(12 * kMiB, Stream{0});
  allocator.Free(filler);
  (void)first;
  (void)second;
  const absl::Status status = allocator.Allocate(15 * kMiB, Stream{0}).status();
  EXPECT_EQ(
      std::vector<std::string>(absl::StrSplit(status.message(), '\n')),
      (std::vector<std::string>{
          "out of memory: 15.00 MiB requested (a segment of 16.00 MiB), device free 12.00 MiB of 64.00 MiB, "
          "reserved 52.00 MiB",
          "verdict: fragmentation: without holes (free pieces) the request fits with 24.00 MiB to spare; the "
          "free memory "
          "misses the new segment of 16.00 MiB by 4.00 MiB",
          "streams: another stream has 18.00 MiB free in one piece; streams do not share what the cache holds",
          "largest size that would have been served: 12.00 MiB (from the cache 9.00 MiB), stream 0, large pool",
          "where 64.00 MiB went (parts sum exactly):",
          "  live 25.00 MiB, rounding 488 B, pending 0 B, stranded 27.00 MiB in 2 segments behind 3 blocks",
          "  whole-free 0 B, private pools 0 B, outside 0 B, free on the device 12.00 MiB",
          "what pins the segments, the worst of 3 blocks:", "  18.00 MiB behind 2.00 MiB at 0x7f0001400000, stream 7",
          "  7.36 MiB behind 2.00 MiB at 0x7f0000000000, stream 0",
          "  1.64 MiB behind 9.00 MiB at 0x7f0000b00000, stream 0"}));
  EXPECT_TRUE(allocator.Validate().ok());
}

TEST(OomReportTest, WithoutReportsTheErrorIsOneLine) {
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  CachingAllocator allocator(&device, OptionsFrom(""));
  allocator.SetFailureReports(false);
  EXPECT_EQ(
      allocator.Allocate(kGiB, Stream{0}).status().message(),
      "out of memory: 1.00 GiB requested (a segment of 1.00 GiB), device free 64.00 MiB of 64.00 MiB, reserved 0 B");
}

TEST(OomReportTest, TheLimitIsNamed) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, OptionsFrom("per_process_memory_fraction:0.25"));
  const absl::Status status = allocator.Allocate(300 * kMiB, Stream{0}).status();
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("\nverdict: limit: the device still had 1.00 GiB free"));
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("\nlimit: this allocator may hold 256.00 MiB of the device in all\n"));
}

// What others hold is outside: the report says so where their memory would be enough.
TEST(OomReportTest, WhatIsOutsideIsNamedWhereItIsMoreThanAContextTakes) {
  FailedAllocation failed{12 * kMiB, 12 * kMiB, 12 * kMiB};
  failed.device_free_bytes = 2 * kMiB;
  failed.device_total_bytes = 4 * kGiB;
  const OomReport report = core::MakeOomReport(failed, {}, OptionsFrom(""));
  EXPECT_EQ(report.outside_bytes, 4 * kGiB - 2 * kMiB);
  EXPECT_EQ(report.judgement.kind, OomKind::kOutside);
  EXPECT_THAT(core::OomLines(report),
              testing::Contains(testing::HasSubstr("another process or library: 4.00 GiB of the device are held")));
  // 64 MiB outside are this process's own context.
  failed.device_total_bytes = 64 * kMiB;
  EXPECT_EQ(core::MakeOomReport(failed, {}, OptionsFrom("")).judgement.kind, OomKind::kCapacity);
}

// A device that counts less than the allocator holds (adopted memory): no part is made up.
TEST(OomReportTest, AnImpossibleTotalIsNotReckonedWith) {
  FailedAllocation failed{12 * kMiB, 12 * kMiB, 12 * kMiB};
  failed.device_free_bytes = 8 * kMiB;
  failed.device_total_bytes = 4 * kMiB;
  const OomReport report = core::MakeOomReport(failed, {}, OptionsFrom(""));
  EXPECT_EQ(report.outside_bytes, std::nullopt);
  EXPECT_THAT(core::OomLines(report), testing::Contains(testing::HasSubstr("outside not known")));
}

}  // namespace
}  // namespace ashlar::tests
