// A recording that is longer than may be held: what is read of it is its end, as the whole shows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/trace/codec.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/timeline/observed.h"
#include "tests/analyzer/replay/random_requests.h"
#include "tests/analyzer/replay/timeline_difference.h"

namespace ashlar::replay {
namespace {

using timeline::Timeline;
using trace::Action;

trace::Snapshot Read(const std::string& bytes, const trace::DecodeLimits& limits = {}) {
  absl::StatusOr<trace::Snapshot> out = trace::Decode(bytes, limits);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : trace::Snapshot{};
}

// Of some chunks, with stacks.
trace::Snapshot RecordedAtRandom(std::uint64_t seed, int requests, const char* conf = nullptr) {
  const char* const confs[] = {"", "expandable_segments:True", "max_split_size_mb:21"};
  Rng rng(seed);
  RequestReplayOptions options{
      *policy::ParseConf(conf != nullptr ? conf : confs[seed % 3], policy::Compat::kTorch210, policy::Keys::kAshlar),
      {},
      {}};
  options.device.capacity_bytes = seed % 2 == 0 ? 16 * kGiB : 220 * kMiB;
  absl::StatusOr<trace::Snapshot> out = RecordRequests(RandomRequests(rng, requests), std::move(options));
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return {};
  std::vector<trace::StackId> stacks;
  for (int line = 0; line < 50; ++line) {
    stacks.push_back(out->stacks.InternStack({out->stacks.InternFrame("run.py", line, "step")}));
  }
  for (trace::Event& event : out->device_traces[0].Mutable()) event.stack = stacks[rng.Below(stacks.size())];
  out->traits.has_stacks = true;
  return *std::move(out);
}

// The most that was there at once, from the first event on: these recordings begin with nothing.
std::uint64_t SlowPeak(const trace::EventList& events, std::vector<Action> up, std::vector<Action> down) {
  std::uint64_t now = 0, most = 0;
  const auto is_in = [](const std::vector<Action>& of, Action action) {
    return std::find(of.begin(), of.end(), action) != of.end();
  };
  for (const trace::Event& event : events) {
    if (is_in(up, event.action)) now += event.size_bytes;
    if (is_in(down, event.action)) now -= event.size_bytes;
    most = std::max(most, now);
  }
  return most;
}

bool IsSame(const trace::Event& a, const trace::Event& b) {
  return a.action == b.action && a.address == b.address && a.size_bytes == b.size_bytes && a.stream == b.stream &&
         a.stack == b.stack && a.file_byte == b.file_byte;
}

// Those of the window, behind what stands of pools where it begins.
std::vector<trace::Fact> FactsFrom(const trace::Snapshot& whole, std::uint64_t from) {
  std::vector<trace::Fact> out;
  std::map<PoolId, trace::Fact> users;
  for (const trace::Fact& fact : whole.recording->facts) {
    const auto* const of = std::get_if<trace::fact::PoolUsers>(&fact.what);
    if (fact.event < from && of != nullptr) users[of->pool] = {fact.what, 0};
  }
  for (const auto& [pool, fact] : users) out.push_back(fact);
  for (trace::Fact fact : whole.recording->facts) {
    if (fact.event < from) continue;
    fact.event -= from;
    out.push_back(fact);
  }
  return out;
}

void ExpectTheEnd(const trace::Snapshot& whole, const trace::Snapshot& part, std::uint64_t most) {
  const trace::EventList& all = whole.device_traces[0];
  const trace::EventList& held = part.device_traces[0];
  ASSERT_GE(held.size(), most);
  ASSERT_LE(held.size(), most + most / 8 + 64);
  const std::size_t from = all.size() - held.size();
  for (std::size_t i = 0; i < held.size(); ++i) ASSERT_TRUE(IsSame(held[i], all[from + i])) << i;
  EXPECT_EQ(part.segments, whole.segments);  // with their stacks
  EXPECT_EQ(part.recording->events_before, from);
  EXPECT_EQ(part.recording->facts, FactsFrom(whole, from));
  ASSERT_EQ(part.windows.size(), 1u);
  EXPECT_EQ(part.windows[0].events_before, from);
  EXPECT_EQ(part.windows[0].allocated_peak_bytes, SlowPeak(all, {Action::kAlloc}, {Action::kFreeRequested}));
  EXPECT_EQ(part.windows[0].reserved_peak_bytes,
            SlowPeak(all, {Action::kSegmentAlloc, Action::kSegmentMap}, {Action::kSegmentFree, Action::kSegmentUnmap}));
  EXPECT_EQ(part.windows[0].failures, FailedRequests({whole, 0}));
  EXPECT_EQ(part.notes.size(), whole.notes.size() + 1);
}

TEST(HeldWindowTest, OfARecordingIsItsEnd) {
  int exact = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const std::string bytes = trace::Encode(RecordedAtRandom(seed, seed % 5 == 0 ? 30'000 : 400));
    const trace::Snapshot whole = Read(bytes);
    const std::uint64_t most = 1 + seed * 37 % (whole.device_traces[0].size() / 2);
    const trace::Snapshot part = Read(bytes, {.max_events = most});
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", most, " of ", whole.device_traces[0].size(), " events"));
    ExpectTheEnd(whole, part, most);
    const timeline::BlockSizeRule rule = SizeRuleOf(*RecordedOptions(whole, policy::Compat::kTorch210));
    const absl::StatusOr<Timeline> all = timeline::MakeObservedTimeline({whole, 0}, rule);
    const absl::StatusOr<Timeline> held = timeline::MakeObservedTimeline({part, 0}, rule);
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ(Difference(*all, *held, all->event_count() - held->event_count(), 20), "");
    const absl::StatusOr<RecordedReplay> replay = ReplayAsRecorded({part, 0});
    ASSERT_TRUE(replay.ok()) << replay.status();
    exact += replay->warm.fidelity.IsExact() ? 1 : 0;
  }
  EXPECT_GE(exact, 25);  // not told: how far a reservation reached
}

// Page by page, from the first event on.
std::vector<trace::LargePage> SlowLargePages(const trace::Snapshot& whole, std::uint64_t until) {
  std::map<std::uint64_t, std::uint64_t> pages;
  std::map<std::uint64_t, std::uint64_t> sizes;  // by the number of the event that maps them
  for (const trace::Fact& fact : whole.recording->facts) {
    const auto* const mapped = std::get_if<trace::fact::PagesMapped>(&fact.what);
    if (mapped != nullptr) sizes[fact.event] = mapped->large_page_bytes;
  }
  const trace::EventList& events = whole.device_traces[0];
  for (std::uint64_t i = 0; i < until; ++i) {
    for (std::uint64_t at = 0; at < events[i].size_bytes; at += 2 * kMiB) {
      if (events[i].action == Action::kSegmentUnmap) pages.erase(events[i].address + at);
      const bool is_map = events[i].action == Action::kSegmentMap && sizes[i] > 0;
      if (is_map && at % sizes[i] == 0) pages[events[i].address + at] = sizes[i];
    }
  }
  std::vector<trace::LargePage> out;
  for (const auto& [address, size_bytes] : pages) out.push_back({address, size_bytes});
  return out;
}

// A page that is one handle moves as a whole: which are is told where what is held begins.
TEST(HeldWindowTest, UnderOurPolicyItKnowsWhichPagesAreOne) {
  int with_pages = 0;
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const std::string bytes = trace::Encode(RecordedAtRandom(seed, seed % 3 == 0 ? 3000 : 400, "policy:ashlar"));
    const trace::Snapshot whole = Read(bytes);
    const trace::EventList& events = whole.device_traces[0];
    const trace::Snapshot part = Read(bytes, {.max_events = 1 + seed * 37 % (events.size() / 2)});
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", from ", part.recording->events_before, " of ", events.size()));
    const std::vector<trace::LargePage> pages = SlowLargePages(whole, part.recording->events_before);
    const std::optional<trace::RecordedStart>& start = part.recording->start;
    EXPECT_EQ(start.has_value() ? start->large_pages : std::vector<trace::LargePage>{}, pages);
    with_pages += pages.empty() ? 0 : 1;
    const auto is_unmap = [](const trace::Event& event) { return event.action == Action::kSegmentUnmap; };
    const auto first = events.begin() + static_cast<std::ptrdiff_t>(part.recording->events_before);
    moved += std::any_of(first, events.end(), is_unmap) ? 1 : 0;
    EXPECT_EQ(Read(trace::Encode(part)).recording->start, start);
    const absl::StatusOr<RecordedReplay> replay = ReplayAsRecorded({part, 0});
    ASSERT_TRUE(replay.ok()) << replay.status();
    EXPECT_TRUE(replay->warm.fidelity.IsExact())
        << replay->warm.fidelity.matched << " of " << replay->warm.fidelity.total;
  }
  EXPECT_GT(with_pages, 10);
  EXPECT_GT(moved, 10);
}

TEST(HeldWindowTest, OfARecordingThatWasCutOffHasTheStateOfTheWhole) {
  int cut_in_the_trace = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const std::string bytes = trace::Encode(RecordedAtRandom(seed, 30'000));
    const std::string cut = bytes.substr(0, bytes.size() / 16 * (seed + 3));
    const trace::Snapshot whole = Read(cut);
    const std::uint64_t most = 1 + seed * 311;
    if (whole.device_traces.empty() || whole.device_traces[0].size() <= most) continue;
    ++cut_in_the_trace;
    const trace::Snapshot part = Read(cut, {.max_events = most});
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", most, " of ", whole.device_traces[0].size(), " events"));
    EXPECT_FALSE(part.recording->is_complete);
    ExpectTheEnd(whole, part, most);
  }
  EXPECT_GT(cut_in_the_trace, 8);
}

TEST(HeldWindowTest, WhatMayBeHeldIsTheWhole) {
  const std::string bytes = trace::Encode(RecordedAtRandom(3, 400));
  const trace::Snapshot whole = Read(bytes);
  const trace::Snapshot part = Read(bytes, {.max_events = whole.device_traces[0].size()});
  EXPECT_TRUE(part.windows.empty());
  EXPECT_EQ(part.notes, whole.notes);
  EXPECT_EQ(trace::Encode(part), trace::Encode(whole));
}

// The limit that was in force where what is held begins.
TEST(HeldWindowTest, TheLastLimitBeforeIsTheRecordings) {
  trace::Snapshot snapshot = RecordedAtRandom(2, 400);
  const std::uint64_t count = snapshot.device_traces[0].size();
  for (const std::uint64_t at : {count / 8, count / 4, count - 3}) {
    snapshot.recording->facts.push_back({trace::fact::LimitSet{at * kMiB}, at});
  }
  std::stable_sort(snapshot.recording->facts.begin(), snapshot.recording->facts.end(),
                   [](const auto& a, const auto& b) { return a.event < b.event; });
  const trace::Snapshot part = Read(trace::Encode(snapshot), {.max_events = count / 2});
  EXPECT_EQ(part.recording->limit_bytes, count / 4 * kMiB);
}

// The settings in force there, and what waits of streams owe: the last wait, and the requests served since.
TEST(HeldWindowTest, SettingsAndOwedWaitsStand) {
  trace::Snapshot snapshot = RecordedAtRandom(2, 400);
  const trace::EventList& events = snapshot.device_traces[0];
  const std::uint64_t count = events.size();
  for (const std::uint64_t at : {count / 8, count / 4, count - 3}) {
    snapshot.recording->facts.push_back({trace::fact::SettingsChanged{absl::StrCat("max_split_size_mb:", at)}, at});
    snapshot.recording->facts.push_back({trace::fact::StreamWaited{static_cast<std::uint32_t>(at)}, at});
  }
  std::stable_sort(snapshot.recording->facts.begin(), snapshot.recording->facts.end(),
                   [](const auto& a, const auto& b) { return a.event < b.event; });
  const trace::Snapshot part = Read(trace::Encode(snapshot), {.max_events = count / 2});
  const std::uint64_t from = part.recording->events_before;
  ASSERT_GT(from, count / 4);
  const auto served = std::count_if(events.begin() + static_cast<std::ptrdiff_t>(count / 4),
                                    events.begin() + static_cast<std::ptrdiff_t>(from),
                                    [](const trace::Event& event) { return event.action == Action::kAlloc; });
  const trace::fact::WaitsOwed owed{static_cast<std::uint32_t>(count / 4), static_cast<std::uint32_t>(served)};
  const std::vector<trace::Fact>& facts = part.recording->facts;
  const auto has = [&facts](const trace::Fact& fact) {
    return std::find(facts.begin(), facts.end(), fact) != facts.end();
  };
  EXPECT_TRUE(has({trace::fact::SettingsChanged{absl::StrCat("max_split_size_mb:", count / 4)}, 0}));
  EXPECT_FALSE(has({trace::fact::SettingsChanged{absl::StrCat("max_split_size_mb:", count / 8)}, 0}));
  EXPECT_TRUE(has({trace::fact::SettingsChanged{absl::StrCat("max_split_size_mb:", count - 3)}, count - 3 - from}));
  EXPECT_TRUE(has({owed, 0}));
}

std::uint64_t told_bytes = 0;

TEST(HeldWindowTest, TheReaderIsToldOfEveryByte) {
  const std::string bytes = trace::Encode(RecordedAtRandom(1, 400));
  Read(bytes, {.is_read = [](absl::string_view part) { told_bytes += part.size(); }});
  EXPECT_EQ(told_bytes, bytes.size());
}

}  // namespace
}  // namespace ashlar::replay
