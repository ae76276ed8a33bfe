// The codec against snapshots printed field by field, and against every cut and every flipped bit of small recordings.
#include "allocator/trace/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/base/rng.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/codec_settings.h"
#include "allocator/trace/encoder.h"
#include "tests/allocator/trace/printed_snapshot.h"

namespace ashlar::trace {
namespace {

// Small numbers, large ones, and the ends of their range.
std::uint64_t AnyNumber(Rng& rng) {
  switch (rng.Below(5)) {
    case 0:
      return rng.Below(3);
    case 1:
      return 512 * rng.Below(1 << 20);
    case 2:
      return rng.Below(std::uint64_t{1} << rng.Between(1, 63));
    case 3:
      return std::numeric_limits<std::uint64_t>::max() - rng.Below(3);
    default:
      return 0x7f0000000000 + 512 * rng.Below(1 << 24);
  }
}

std::string AnyText(Rng& rng) {
  std::string out;
  for (std::uint64_t i = rng.Below(12); i > 0; --i) out += static_cast<char>(rng.Below(256));
  return out;
}

StackId AnyStack(const Snapshot& snapshot, Rng& rng) {
  const std::size_t count = snapshot.stacks.stack_count();
  return count == 0 || rng.Below(3) == 0 ? kNoStack : static_cast<StackId>(rng.Below(count));
}

Event AnyEvent(const Snapshot& snapshot, Rng& rng) {
  Event event;
  event.action = static_cast<Action>(rng.Below(static_cast<std::uint64_t>(Action::kUnknown) + 1));
  event.address = AnyNumber(rng);
  event.size_bytes = AnyNumber(rng);
  event.block_size_bytes = rng.Below(2) == 0 ? 0 : AnyNumber(rng);
  event.stream = Stream{AnyNumber(rng)};
  event.time_us = rng.Below(4) == 0 ? kNoTime : static_cast<std::int64_t>(AnyNumber(rng) / 2);
  event.stack = AnyStack(snapshot, rng);
  if (rng.Below(2) == 0) event.pool = PoolId{AnyNumber(rng), AnyNumber(rng)};
  if (snapshot.labels.size() > 0 && rng.Below(2) == 0) {
    event.label = static_cast<LabelId>(rng.Below(snapshot.labels.size()));
  }
  return event;
}

void AddStacks(Rng& rng, Snapshot& out) {
  for (std::uint64_t i = rng.Below(20); i > 0; --i) {
    std::vector<FrameId> frames;
    for (std::uint64_t depth = rng.Below(6); depth > 0; --depth) {
      const FxNode fx = rng.Below(3) > 0 ? FxNode{} : FxNode{AnyText(rng), AnyText(rng), AnyText(rng), AnyText(rng)};
      frames.push_back(out.stacks.InternFrame(absl::StrCat(rng.Below(4) == 0 ? "C:\\" : "", AnyText(rng)),
                                              static_cast<std::int64_t>(AnyNumber(rng)), AnyText(rng), fx));
    }
    out.stacks.InternStack(frames);
  }
}

void AddSegments(Rng& rng, Snapshot& out) {
  for (int device = 0; device < 3; ++device) {
    std::uint64_t at = AnyNumber(rng) / 4;
    for (std::uint64_t count = rng.Below(5); count > 0; --count) {
      SnapshotSegment& segment = out.segments.emplace_back();
      segment.device = device;
      segment.address = at += rng.Below(3) * 512;
      segment.stream = Stream{AnyNumber(rng)};
      segment.is_small_pool = rng.Below(2) == 0;
      segment.is_expandable = rng.Below(2) == 0;
      segment.pool = {AnyNumber(rng), AnyNumber(rng)};
      segment.stack = AnyStack(out, rng);
      for (std::uint64_t blocks = rng.Between(1, 6); blocks > 0; --blocks) {
        SnapshotBlock& block = segment.blocks.emplace_back();
        block.address = at;
        block.size_bytes = 512 * rng.Between(1, 1 << 20);
        if (rng.Below(3) > 0) block.requested_bytes = rng.Below(block.size_bytes + 1);
        block.state = static_cast<BlockState>(rng.Below(3));
        block.stack = AnyStack(out, rng);
        at += block.size_bytes;
        segment.size_bytes += block.size_bytes;
      }
    }
  }
}

void AddHost(Rng& rng, Snapshot& out) {
  SnapshotSegment& segment = out.host.segments.emplace_back();
  segment.address = AnyNumber(rng) / 4;
  segment.size_bytes = 4 * kMiB;
  segment.blocks.push_back({segment.address, segment.size_bytes, kMiB, BlockState::kLive, AnyStack(out, rng)});
  for (std::uint64_t count = rng.Below(3000); count > 0; --count) out.host.events.push_back(AnyEvent(out, rng));
}

ReservedRange AnyRange(Rng& rng, std::uint64_t address) {
  ReservedRange range{address, AnyNumber(rng)};
  if (rng.Below(2) == 0) {
    range.lane = ReservedRange::Lane{Stream{AnyNumber(rng)}, rng.Below(2) == 0, {AnyNumber(rng), rng.Below(9)}};
  }
  return range;
}

// Of the recording's own device; the end says its reservations too.
void AddStart(Rng& rng, RecordingInfo& info) {
  RecordedStart& start = info.start.emplace();
  start.reservations = info.reservations;
  std::reverse(start.reservations.begin(), start.reservations.end());
  start.has_segments = rng.Below(2) == 0;
  for (std::uint64_t i = rng.Below(4), at = 0; i > 0; --i, at += 100 * kMiB) {
    start.large_pages.push_back({at + rng.Below(9) * kMiB, rng.Between(2, 64) * kMiB});
  }
  for (std::uint64_t i = rng.Below(4); i > 0; --i) {  // the highest first: their order is their age
    SnapshotSegment& segment = start.segments.emplace_back();
    segment.device = info.device;
    segment.address = i << 32;
    segment.size_bytes = rng.Between(1, 9) * kMiB;
    segment.blocks.push_back({segment.address, segment.size_bytes, {}});
  }
}

Holders AnyHolders(Rng& rng) {
  Holders out;
  out.when = AnyText(rng);
  out.bound = AnyText(rng);
  out.seconds = static_cast<double>(rng.Below(1 << 20)) / 1e6;
  out.objects = AnyNumber(rng);
  const auto any_texts = [&rng] {
    std::vector<std::string> texts(rng.Below(3));
    for (std::string& text : texts) text = AnyText(rng);
    return texts;
  };
  for (std::uint64_t count = rng.Below(30); count > 0; --count) {
    out.holders.push_back({AnyText(rng), AnyText(rng), AnyText(rng), static_cast<std::int64_t>(AnyNumber(rng)),
                           AnyText(rng), AnyNumber(rng), AnyText(rng), AnyText(rng), any_texts(), any_texts()});
  }
  for (std::uint64_t count = out.holders.empty() ? 0 : rng.Below(2000); count > 0; --count) {
    HeldBlock& block = out.blocks.emplace_back();
    block.address = AnyNumber(rng);
    block.owner = static_cast<std::uint32_t>(rng.Below(out.holders.size()));
    for (std::uint64_t others = rng.Below(3); others > 0; --others) {
      block.others.push_back(static_cast<std::uint32_t>(rng.Below(out.holders.size())));
    }
  }
  return out;
}

Snapshot AnySnapshot(std::uint64_t seed) {
  Rng rng(seed);
  Snapshot out;
  if (rng.Below(2) == 0) AddStacks(rng, out);
  for (std::uint64_t count = rng.Below(4); count > 0; --count) {
    out.labels.Intern({AnyText(rng), AnyText(rng), AnyText(rng)});
  }
  AddSegments(rng, out);
  if (rng.Below(2) == 0) AddHost(rng, out);
  out.device_traces.resize(rng.Below(4));
  for (EventList& events : out.device_traces) {
    for (std::uint64_t count = rng.Below(6000); count > 0; --count) events.push_back(AnyEvent(out, rng));
  }
  for (std::uint64_t count = rng.Below(20); count > 0; --count) {
    const auto time = rng.Below(5) == 0 ? kNoTime : static_cast<std::int64_t>(AnyNumber(rng));
    out.annotations.push_back({AnyText(rng), AnyText(rng), static_cast<int>(rng.Below(3)), time});
  }
  if (rng.Below(2) == 0) {
    out.settings = RecordedSettings{AnyText(rng), AnyNumber(rng), 0.1 * static_cast<double>(rng.Below(10)), true, {}};
    for (std::uint64_t count = rng.Below(6); count > 0; --count) out.settings->values[AnyText(rng)] = AnyText(rng);
  }
  out.traits = {.has_time = true,
                .has_stacks = rng.Below(2) == 0,
                .has_requested_bytes = true,
                .has_labels = rng.Below(2) == 0,
                .has_host = rng.Below(2) == 0,
                .has_settings = out.settings.has_value(),
                .generation = AnyText(rng)};
  // With stacks, the blocks of a recording are given those of their allocations: another test's matter.
  if (!out.device_traces.empty() && out.stacks.stack_count() == 0) {
    RecordingInfo& info = out.recording.emplace();
    info.compat = AnyText(rng);
    info.free_order = AnyText(rng);
    info.device = static_cast<int>(rng.Below(out.device_traces.size()));
    info.device_total_bytes = AnyNumber(rng);
    if (rng.Below(2) == 0) info.limit_bytes = AnyNumber(rng);
    info.is_complete = rng.Below(3) > 0;
    info.events_before = AnyNumber(rng);
    for (std::uint64_t at = 0, count = rng.Below(4); count > 0; --count) {
      info.reservations.push_back(AnyRange(rng, at += 1 + AnyNumber(rng) / 8));
    }
    const std::size_t events = out.device_traces[static_cast<std::size_t>(info.device)].size();
    for (std::uint64_t at = 0; at <= events && info.facts.size() < 50; at += rng.Below(events / 20 + 2)) {
      info.facts.push_back(
          {codec::FactOf({rng.Below(codec::kFactKinds), AnyNumber(rng), PoolId{AnyNumber(rng), AnyNumber(rng)}}), at});
    }
    info.has_calls = rng.Below(2) == 0;
    if (rng.Below(2) == 0) AddStart(rng, info);
  }
  if (rng.Below(2) == 0) out.holders = AnyHolders(rng);
  if (rng.Below(2) == 0) out.peak_holders = AnyHolders(rng);
  return out;
}

TEST(CodecTest, AnySnapshotComesBack) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Snapshot snapshot = AnySnapshot(seed);
    const absl::StatusOr<Snapshot> again = Decode(Encode(snapshot));
    ASSERT_TRUE(again.ok()) << seed << ": " << again.status();
    ASSERT_EQ(PrintedSnapshot(*again), PrintedSnapshot(snapshot)) << seed;
    // Nothing is odd but that pools slept, which events do not show.
    const std::vector<Fact> facts = again->recording.has_value() ? again->recording->facts : std::vector<Fact>();
    const bool slept =
        std::any_of(facts.begin(), facts.end(), [](const Fact& fact) { return IsAny<fact::PoolSlept>(fact.what); });
    ASSERT_EQ(again->notes.size(), slept ? 1u : 0u) << seed;
    for (const Note& note : again->notes) ASSERT_EQ(note.name, "pools_slept") << seed;
  }
}

// A recording as a recorder writes it, in chunks of about a thousand bytes: the state first, then events that fit it.
Snapshot Story(std::uint64_t seed) {
  Snapshot out;
  out.device_traces.resize(1);
  RecordingInfo& info = out.recording.emplace();
  info.compat = "torch-2.10";
  info.free_order = "address";
  info.device_total_bytes = 16 * kGiB;
  info.is_complete = true;
  out.settings.emplace();
  out.traits.has_settings = out.traits.has_time = true;
  out.traits.generation = "our own";
  const StackId stack = out.stacks.InternStack({out.stacks.InternFrame("a.cc", 3, "main")});
  Rng rng(seed);
  std::vector<std::uint64_t> live;
  const auto add = [&](Action action, std::uint64_t address) {
    Event event;
    event.action = action;
    event.address = address;
    event.size_bytes = 500;
    event.block_size_bytes = 512;
    event.time_us = 1000 + static_cast<std::int64_t>(out.device_traces[0].size() / 10);
    event.stack = stack;
    event.pool = PoolId{};
    out.device_traces[0].push_back(event);
  };
  std::uint64_t next = 1 << 20;
  for (int i = 0; i < 250; ++i) {
    if (live.size() < 20 || rng.Below(2) == 0) {
      live.push_back(next += 512);
      add(Action::kAlloc, live.back());
    } else {
      std::swap(live[rng.Below(live.size())], live.back());
      add(Action::kFreeRequested, live.back());
      add(Action::kFreeCompleted, live.back());
      live.pop_back();
    }
  }
  return out;
}

std::vector<SnapshotSegment> StartOfStory() {
  SnapshotSegment segment;
  segment.address = 1 << 20;
  segment.size_bytes = 2 * kMiB;
  segment.is_small_pool = true;
  segment.blocks.push_back({segment.address, segment.size_bytes, {}, BlockState::kFree, kNoStack});
  return {segment};
}

std::string AsRecorded(const Snapshot& story) {
  codec::ChunkBytes chunks;
  std::string out = codec::ChunkBytes::FileHeader();
  codec::Encoder encoder(1024, [&](codec::ChunkKind, absl::string_view payload) {
    out += chunks.HeaderOf(payload);
    out.append(payload.data(), payload.size());
  });
  codec::PutHead(story, encoder);
  encoder.DefineStacks(story.stacks);
  codec::PutSegments(codec::StateAt::kStart, StartOfStory(), encoder);
  for (const Event& event : story.device_traces[0]) {
    encoder.Add(event, event.block_size_bytes, event.time_us, event.stack);
  }
  encoder.End(encoder.event_count());
  return out;
}

// What is given back of damaged bytes is the beginning of what was recorded, and says that it is not all.
void ExpectNoticed(const Snapshot& story, const absl::StatusOr<Snapshot>& read, const std::string& what) {
  if (!read.ok()) {
    ASSERT_FALSE(read.status().message().empty()) << what;
    return;
  }
  ASSERT_FALSE(read->notes.empty()) << what;
  const std::string& name = read->notes.front().name;
  ASSERT_TRUE(name == "damaged" || name == "unfinished") << what << ": " << name;
  ASSERT_TRUE(!read->recording.has_value() || !read->recording->is_complete) << what;
  const std::string all = PrintedEvents(story);
  const std::string some = PrintedEvents(*read);
  if (read->device_traces.empty()) return;
  const std::string events = some.substr(some.find('\n') + 1);
  ASSERT_TRUE(absl::StartsWith(absl::string_view(all).substr(all.find('\n') + 1), events)) << what;
}

TEST(CodecTest, EveryFlippedBitIsNoticed) {
  const Snapshot story = Story(1);
  std::string bytes = AsRecorded(story);
  ASSERT_EQ(PrintedEvents(*Decode(bytes)), PrintedEvents(story));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      ExpectNoticed(story, Decode(bytes), absl::StrCat("bit ", bit, " of byte ", i));
      if (HasFatalFailure()) return;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
  }
}

TEST(CodecTest, EveryCutIsNoticed) {
  const Snapshot story = Story(2);
  const std::string bytes = AsRecorded(story);
  std::size_t most_events = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const absl::StatusOr<Snapshot> read = Decode(bytes.substr(0, size));
    ExpectNoticed(story, read, absl::StrCat("the first ", size, " bytes"));
    if (HasFatalFailure()) return;
    if (read.ok() && !read->device_traces.empty()) most_events = std::max(most_events, read->device_traces[0].size());
  }
  EXPECT_GT(most_events, story.device_traces[0].size() / 2);  // whole chunks are kept
  const absl::StatusOr<Snapshot> longer = Decode(bytes + "tail");
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->notes.front().name, "trailing_bytes");
}

TEST(CodecTest, SaysWhatIsWrong) {
  EXPECT_EQ(Decode("hello").status().code(), absl::StatusCode::kInvalidArgument);
  std::string bytes = AsRecorded(Story(3));
  std::string cut = bytes.substr(0, bytes.size() - 5);
  const absl::StatusOr<Snapshot> read = Decode(cut);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(absl::StrContains(read->notes[0].message, "is cut off")) << read->notes[0].message;
  std::string newer = bytes;
  ++newer[8];
  EXPECT_TRUE(absl::StrContains(Decode(newer).status().message(), "checksum")) << Decode(newer).status();
}

// The state at the end is that of the events, cut off or not.
TEST(CodecTest, ACutOffRecordingEndsInTheStateOfItsEvents) {
  const Snapshot story = Story(4);
  const absl::StatusOr<Snapshot> read = Decode(AsRecorded(story));
  ASSERT_TRUE(read.ok());
  std::uint64_t live = 0;
  for (const Event& event : story.device_traces[0]) {
    if (event.action == Action::kAlloc) ++live;
    if (event.action == Action::kFreeCompleted) --live;
  }
  ASSERT_EQ(read->segments.size(), 1u);
  std::uint64_t found = 0;
  std::uint64_t at = read->segments[0].address;
  for (const SnapshotBlock& block : read->segments[0].blocks) {
    EXPECT_EQ(block.address, at);
    at += block.size_bytes;
    if (block.state != BlockState::kLive) continue;
    ++found;
    EXPECT_EQ(PrintedStack(*read, block.stack), "stack a.cc:3:main");
  }
  EXPECT_EQ(found, live);
  EXPECT_EQ(at, read->segments[0].address + read->segments[0].size_bytes);
}

}  // namespace
}  // namespace ashlar::trace
