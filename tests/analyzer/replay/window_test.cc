// Parts of traces: what a window shows is what the whole trace shows there, and its replay is as exact.
#include "analyzer/timeline/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/trace/codec.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/replay/recorded_window.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"
#include "tests/analyzer/replay/random_program.h"
#include "tests/analyzer/replay/random_requests.h"
#include "tests/analyzer/replay/recorder.h"
#include "tests/analyzer/replay/timeline_difference.h"

namespace ashlar::replay {
namespace {

using timeline::AskedWindow;
using timeline::EventIndex;
using timeline::EventWindow;
using timeline::Timeline;
using timeline::WindowEnd;

AskedWindow Asked(const std::string& text) {
  const absl::StatusOr<AskedWindow> out = timeline::ParseWindow(text);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.value_or(AskedWindow{});
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<AskedWindow> out = timeline::ParseWindow(text);
  return out.ok() ? "" : std::string(out.status().message());
}

TEST(ParseWindowTest, ReadsEventsTimesAndShares) {
  const AskedWindow both = Asked("100:2.5s");
  EXPECT_EQ(both.from->kind, WindowEnd::Kind::kEvent);
  EXPECT_EQ(both.from->value, 100);
  EXPECT_EQ(both.to->kind, WindowEnd::Kind::kTime);
  EXPECT_EQ(both.to->value, 2.5e6);
  EXPECT_EQ(Asked("300ms:").from->value, 3e5);
  EXPECT_FALSE(Asked("300ms:").to.has_value());
  EXPECT_EQ(Asked(":40us").to->value, 40);
  EXPECT_DOUBLE_EQ(Asked(":20%").to->value, 0.2);
}

TEST(ParseWindowTest, RefusesWhatIsNoWindow) {
  for (const char* text : {"", ":", "5", "a:b", "1:2:3", "-1:5", "1.5:3", "120%:", "nan:", "inf:", "5x:", "s:"}) {
    EXPECT_NE(ErrorOf(text).find("is not FROM:TO"), std::string::npos) << text;
  }
}

trace::Event Made(trace::Action action, std::uint64_t address, std::int64_t time_us) {
  trace::Event event;
  event.action = action;
  event.address = address;
  event.size_bytes = 512;
  event.time_us = time_us;
  return event;
}

// Two requests that each obtain a segment, and a free.
std::vector<trace::Event> Requests() {
  using trace::Action;
  return {Made(Action::kSegmentAlloc, 0, 1000),    Made(Action::kAlloc, 0, 1000),
          Made(Action::kSegmentAlloc, 4096, 2000), Made(Action::kSegmentAlloc, 8192, 2000),
          Made(Action::kAlloc, 4096, 2000),        Made(Action::kFreeRequested, 0, 3500),
          Made(Action::kFreeCompleted, 0, 3500)};
}

TEST(FindWindowTest, EndsLieBetweenRequests) {
  const std::vector<trace::Event> events = Requests();
  const auto found = [&](const std::string& text) { return timeline::FindWindow(events, Asked(text)); };
  EXPECT_EQ(*found("2:5"), (EventWindow{2, 5}));
  EXPECT_EQ(*found("3:6"), (EventWindow{2, 5}));  // in the second request; in the free
  EXPECT_EQ(*found("4:"), (EventWindow{2, 7}));
  EXPECT_EQ(*found("1ms:"), (EventWindow{2, 7}));
  EXPECT_EQ(*found(":2ms"), (EventWindow{0, 5}));
  EXPECT_EQ(*found("50%:"), (EventWindow{2, 7}));
  EXPECT_NE(found("3:4").status().message().find("no request lies between"), std::string::npos);
  EXPECT_NE(found("8:").status().message().find("has 7 events"), std::string::npos);
  EXPECT_NE(found("1s:").status().message().find("ends 0.0025s after"), std::string::npos);
}

TEST(FindWindowTest, TimesNeedTimes) {
  std::vector<trace::Event> events = Requests();
  for (trace::Event& event : events) event.time_us = trace::kNoTime;
  EXPECT_NE(timeline::FindWindow(events, Asked("1s:")).status().message().find("no times"), std::string::npos);
}

// Cuts at two random places. Empty where all holds; `is_exact_asked`: the replay of the part too.
std::string Judge(const trace::Snapshot& snapshot, Rng& rng, bool is_exact_asked) {
  const trace::EventList events = timeline::DeviceTrace(snapshot, 0).events;
  const std::uint64_t a = rng.Below(events.size() + 1), b = rng.Below(events.size() + 1);
  const AskedWindow asked = Asked(absl::StrCat(std::min(a, b), ":", std::max(a, b)));
  const absl::StatusOr<trace::Snapshot> part = CutTrace({snapshot, 0}, asked);
  if (!part.ok()) {
    return part.status().message().find("no request lies") != std::string::npos ? "" : part.status().ToString();
  }
  const auto compat = GuessCompat(snapshot);
  const timeline::BlockSizeRule rule = SizeRuleOf(*RecordedOptions(snapshot, compat));
  const absl::StatusOr<Timeline> whole = timeline::MakeObservedTimeline({snapshot, 0}, rule);
  const absl::StatusOr<Timeline> cut = timeline::MakeObservedTimeline({*part, 0}, rule);
  if (!whole.ok()) return whole.status().ToString();
  if (!cut.ok()) return cut.status().ToString();
  if (absl::Status valid = cut->Validate(); !valid.ok()) return valid.ToString();
  // Found by its first event: a cut may begin a little later than asked.
  EventIndex from = 0;
  const auto is_here = [&](EventIndex at) {
    for (std::size_t i = 0; i < part->device_traces[0].size(); ++i) {
      const trace::Event& x = part->device_traces[0][i];
      const trace::Event& y = events[static_cast<std::size_t>(at) + i];
      if (x.action != y.action || x.address != y.address || x.size_bytes != y.size_bytes) return false;
    }
    return true;
  };
  const auto last = static_cast<EventIndex>(events.size() - part->device_traces[0].size());
  std::string difference = "it is no part";
  for (; from <= last && !difference.empty(); ++from) {
    if (is_here(from)) difference = Difference(*whole, *cut, from);
  }
  if (!difference.empty()) return absl::StrCat(asked.text, " of ", events.size(), ": ", difference);
  const absl::StatusOr<RecordedReplay> replay = ReplayAsRecorded({*part, 0});
  if (!replay.ok()) return replay.status().ToString();
  const Fidelity& fidelity = replay->warm.fidelity;
  if (fidelity.IsExact() || !is_exact_asked) return "";
  return absl::StrCat(asked.text, " of ", events.size(), ": ", fidelity.matched, " of ", fidelity.total, ", segments ",
                      fidelity.segments_matched, " of ", fidelity.segments_total, "; ",
                      fidelity.final_state_difference);
}

TEST(WindowTest, OfASnapshotIsThatPartOfIt) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    Program program{.compat = policy::Compat::kTorch210, .conf = seed % 3 == 0 ? "expandable_segments:True" : ""};
    program.capacity_bytes = seed % 2 == 0 ? 16 * kGiB : 200 * kMiB;
    AddRandomOps({.op_count = 200, .streams = 2, .pools = 2, .record_stream_in_1000 = 100}, rng, program);
    const trace::Snapshot snapshot = MakeSnapshot(Record(program), {});
    // How far a reservation reached no snapshot tells.
    EXPECT_EQ(Judge(snapshot, rng, /*is_exact_asked=*/program.conf.empty()), "") << "seed " << seed;
  }
}

TEST(WindowTest, OfARecordingIsThatPartOfItAndReplaysExactly) {
  const char* const confs[] = {"", "expandable_segments:True", "max_split_size_mb:21",
                               "garbage_collection_threshold:0.6,max_split_size_mb:24", "policy:ashlar"};
  std::size_t cut = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const auto compat = seed % 3 == 0 ? policy::Compat::kTorchLatest : policy::Compat::kTorch210;
    RequestReplayOptions options{*policy::ParseConf(confs[seed % 5], compat, policy::Keys::kAshlar), {}, {}};
    options.device.capacity_bytes = seed % 2 == 0 ? 16 * kGiB : 220 * kMiB;
    if (seed % 5 == 3) options.memory_fraction = 0.9;
    const absl::StatusOr<trace::Snapshot> snapshot = RecordRequests(RandomRequests(rng), std::move(options));
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    const absl::StatusOr<RecordedReplay> whole = ReplayAsRecorded({*snapshot, 0});
    ASSERT_TRUE(whole.ok()) << whole.status();
    const bool is_exact = whole->warm.fidelity.IsExact();
    cut += is_exact ? 1 : 0;
    EXPECT_EQ(Judge(*snapshot, rng, is_exact), "") << "seed " << seed << ", conf " << confs[seed % 4];
  }
  EXPECT_GE(cut, 150u);  // else nothing was asked of most
}

// What is written of a part is read again as that part.
TEST(WindowTest, APartOfARecordingIsARecording) {
  Rng rng(5);
  RequestReplayOptions options;
  options.device.capacity_bytes = 300 * kMiB;
  const absl::StatusOr<trace::Snapshot> snapshot = RecordRequests(RandomRequests(rng), std::move(options));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const absl::StatusOr<trace::Snapshot> part = CutTrace({*snapshot, 0}, Asked("30%:70%"));
  ASSERT_TRUE(part.ok()) << part.status();
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(trace::Encode(*part));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->segments, part->segments);
  EXPECT_EQ(read->recording->facts, part->recording->facts);
  EXPECT_EQ(read->recording->start, part->recording->start);
  const absl::StatusOr<RecordedReplay> replay = ReplayAsRecorded({*read, 0});
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->warm.fidelity.IsExact()) << replay->warm.fidelity.final_state_difference;
}

}  // namespace
}  // namespace ashlar::replay
