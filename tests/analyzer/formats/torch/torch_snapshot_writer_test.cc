// What is written reads back the same in every field; and Python's own pickle module, which shares nothing with this
// writer, loads it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "tests/shared_dir.h"

namespace ashlar::formats {
namespace {

using trace::Action;
using trace::BlockState;
using trace::Event;
using trace::Snapshot;
using trace::StackId;

// A stack as text, innermost first; "-" for none.
std::string Stack(const Snapshot& snapshot, StackId id) {
  if (id == trace::kNoStack) return "-";
  std::string out;
  for (trace::FrameId frame : snapshot.stacks.stack(id)) {
    const trace::Frame& f = snapshot.stacks.frame(frame);
    absl::StrAppend(&out, snapshot.stacks.RecordedFile(frame), ":", f.line, " ", f.function, f.fx.op, f.fx.name,
                    f.fx.target, f.fx.original_trace, ";");
  }
  return out;
}

std::string Number(const std::optional<std::uint64_t>& value) { return value ? absl::StrCat(*value) : "none"; }
std::string Pool(const PoolId& pool) { return absl::StrCat(pool.first, "/", pool.second); }

void PrintSegments(const Snapshot& snapshot, const std::vector<trace::SnapshotSegment>& segments,
                   std::vector<std::string>* lines) {
  for (const trace::SnapshotSegment& s : segments) {
    lines->push_back(absl::StrCat("segment ", s.device, " ", s.address, " ", s.size_bytes, " ", Handle(s.stream), " ",
                                  s.is_small_pool, s.is_expandable, " ", Pool(s.pool), " ", Stack(snapshot, s.stack)));
    for (const trace::SnapshotBlock& b : s.blocks) {
      lines->push_back(absl::StrCat("block ", b.address, " ", b.size_bytes, " ", Number(b.requested_bytes), " ",
                                    static_cast<int>(b.state), " ", Stack(snapshot, b.stack)));
    }
  }
}

void PrintEvents(const Snapshot& snapshot, const std::vector<Event>& events, std::vector<std::string>* lines) {
  for (const Event& e : events) {
    const trace::Label& label = snapshot.labels.label(e.label);
    lines->push_back(absl::StrCat(trace::ActionName(e.action), " ", e.address, " ", e.size_bytes, " ", Handle(e.stream),
                                  " ", e.time_us, " ", e.pool.has_value() ? Pool(*e.pool) : "-", " ",
                                  label.user_metadata, "|", label.internal_metadata, "|", label.compile_context, " ",
                                  Stack(snapshot, e.stack)));
  }
}

void PrintTraces(const Snapshot& snapshot, std::vector<std::string>* lines) {
  for (const trace::EventList& events : snapshot.device_traces) {
    lines->push_back("device");
    PrintEvents(snapshot, events, lines);
  }
  lines->push_back("host");
  PrintEvents(snapshot, snapshot.host.events, lines);
  for (const trace::Annotation& a : snapshot.annotations) {
    lines->push_back(absl::StrCat("annotation ", a.stage, " ", a.name, " ", a.device, " ", a.time_us));
  }
}

void PrintSettings(const Snapshot& snapshot, std::vector<std::string>* lines) {
  if (!snapshot.settings) return;
  const trace::RecordedSettings& s = *snapshot.settings;
  lines->push_back(absl::StrCat("conf ", s.conf, " ", Number(s.max_split_size_bytes), " ",
                                s.garbage_collection_threshold, " ", s.expandable_segments));
  for (const auto& [key, value] : s.values) lines->push_back(absl::StrCat("setting ", key, " = ", value));
}

// Every field but notes and traits, one line an object.
std::vector<std::string> Lines(const Snapshot& snapshot) {
  std::vector<std::string> lines;
  PrintSegments(snapshot, snapshot.segments, &lines);
  PrintSegments(snapshot, snapshot.host.segments, &lines);
  PrintTraces(snapshot, &lines);
  PrintSettings(snapshot, &lines);
  return lines;
}

void ExpectRoundTrip(const Snapshot& snapshot) {
  const auto again = ReadTorchSnapshot(WriteTorchSnapshot(snapshot));
  ASSERT_TRUE(again.ok()) << again.status();
  const std::vector<std::string> want = Lines(snapshot);
  const std::vector<std::string> got = Lines(*again);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(got[i], want[i]) << "line " << i;
}

trace::FxNode SomeFxNode(Rng& rng) {
  return {"call_function", absl::StrCat("linear_", rng.Below(3)), "aten", rng.Below(2) == 0 ? "" : "File \"m.py\""};
}

StackId RandomStack(Rng& rng, Snapshot* snapshot) {
  if (rng.Below(4) == 0) return trace::kNoStack;
  std::vector<trace::FrameId> frames;
  for (std::uint64_t n = rng.Between(1, 5); n > 0; --n) {
    const std::int64_t line = static_cast<std::int64_t>(rng.Below(400)) - 1;
    frames.push_back(
        snapshot->stacks.InternFrame(absl::StrCat(rng.Below(2) == 0 ? "" : "D:\\dev\\", "file", rng.Below(3), ".py"),
                                     line, "f\u00e9", rng.Below(3) == 0 ? SomeFxNode(rng) : trace::FxNode{}));
  }
  return snapshot->stacks.InternStack(frames);
}

trace::SnapshotSegment RandomSegment(Rng& rng, int device, std::uint64_t address, Snapshot* snapshot) {
  trace::SnapshotSegment segment;
  segment.device = device;
  segment.address = address;
  segment.stream = Stream{rng.Next() >> rng.Below(64)};
  segment.is_small_pool = rng.Below(2) == 0;
  segment.is_expandable = rng.Below(2) == 0;
  segment.pool = PoolId{rng.Below(3), rng.Next() >> rng.Between(1, 64)};
  segment.stack = RandomStack(rng, snapshot);
  for (std::uint64_t n = rng.Between(1, 20); n > 0; --n) {
    trace::SnapshotBlock& block = segment.blocks.emplace_back();
    block.address = address + segment.size_bytes;
    block.size_bytes = 512 * rng.Between(1, 100000);
    block.state = static_cast<BlockState>(rng.Below(3));
    if (rng.Below(2) == 0) block.requested_bytes = rng.Below(block.size_bytes);
    block.stack = RandomStack(rng, snapshot);
    segment.size_bytes += block.size_bytes;
  }
  return segment;
}

Event RandomEvent(Rng& rng, Snapshot* snapshot) {
  Event event;
  event.action = static_cast<Action>(rng.Below(10));  // kUnknown becomes a note, as it must
  event.address = rng.Next() >> rng.Between(1, 64);
  event.size_bytes = rng.Next() >> rng.Between(1, 64);
  event.stream = Stream{rng.Next() >> rng.Below(64)};
  if (rng.Below(2) == 0) event.time_us = static_cast<std::int64_t>(rng.Next() >> rng.Below(64));
  if (rng.Below(2) == 0) event.pool = PoolId{rng.Below(300), rng.Below(70000)};
  event.stack = RandomStack(rng, snapshot);
  if (rng.Below(2) == 0) {
    event.label = snapshot->labels.Intern({.user_metadata = rng.Below(2) == 0 ? "" : "step\n1",
                                           .internal_metadata = rng.Below(2) == 0 ? "" : "mallocWithAddress",
                                           .compile_context = rng.Below(2) == 0 ? "" : "0/0"});
  }
  return event;
}

trace::RecordedSettings SomeSettings() {
  trace::RecordedSettings settings;
  settings.conf = "max_split_size_mb:128,garbage_collection_threshold:0.8";
  settings.max_split_size_bytes = 134217728;
  settings.garbage_collection_threshold = 0.8;
  settings.expandable_segments = true;
  settings.values = {{"PYTORCH_CUDA_ALLOC_CONF", settings.conf},
                     {"max_split_size", "134217728"},
                     {"garbage_collection_threshold", "0.8"},
                     {"expandable_segments", "True"},
                     {"roundup_power2_divisions", "1:0,256:4"},
                     {"last_allocator", "native"},
                     {"whole", "2.0"},
                     {"nothing", "None"},
                     {"negative", "-12"}};
  return settings;
}

Snapshot RandomSnapshot(std::uint64_t seed) {
  Rng rng(seed);
  Snapshot snapshot;
  std::uint64_t address = 0x7f0000000000;
  for (int device = 0; device < 3; ++device) {
    for (std::uint64_t n = rng.Below(6); n > 0; --n) {
      snapshot.segments.push_back(RandomSegment(rng, device, address, &snapshot));
      address += snapshot.segments.back().size_bytes + 2 * kMiB * rng.Below(3);
    }
    std::vector<Event>& events = snapshot.device_traces.emplace_back().Mutable();
    for (std::uint64_t n = rng.Below(200); n > 0; --n) events.push_back(RandomEvent(rng, &snapshot));
  }
  if (rng.Below(2) == 0) {
    snapshot.traits.has_host = true;
    for (std::uint64_t n = rng.Below(3); n > 0; --n) {
      snapshot.host.segments.push_back(RandomSegment(rng, 0, address, &snapshot));
      address += snapshot.host.segments.back().size_bytes;
      snapshot.host.events.push_back(RandomEvent(rng, &snapshot));
    }
  }
  if (rng.Below(2) == 0) snapshot.settings = SomeSettings();
  if (rng.Below(2) == 0) snapshot.annotations.push_back({"START", "step", 1, 1772688692031317});
  return snapshot;
}

TEST(TorchSnapshotWriterTest, RandomSnapshotsRoundTripInEveryField) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) ExpectRoundTrip(RandomSnapshot(seed));
}

TEST(TorchSnapshotWriterTest, AnEmptySnapshotRoundTrips) { ExpectRoundTrip(Snapshot{}); }

TEST(TorchSnapshotWriterTest, NamedSettingsAreWrittenWithoutValues) {
  Snapshot snapshot;
  snapshot.settings.emplace();
  snapshot.settings->conf = "expandable_segments:True";
  snapshot.settings->expandable_segments = true;
  snapshot.settings->garbage_collection_threshold = 0.6;
  const auto again = ReadTorchSnapshot(WriteTorchSnapshot(snapshot));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->settings->conf, "expandable_segments:True");
  EXPECT_TRUE(again->settings->expandable_segments);
  EXPECT_DOUBLE_EQ(again->settings->garbage_collection_threshold, 0.6);
  EXPECT_EQ(again->settings->max_split_size_bytes, std::nullopt);
}

TEST(TorchSnapshotWriterTest, RealSnapshotsRoundTrip) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  for (const char* file : {"Charan6924__assignment2-systems__cs336_systems__memory_snapshot.075dd064.pickle.gz",
                           "volcengine__verl__mem.001e30bf.pickle.gz",
                           "bcrafton__assignment2-systems__memory_snapshot.06f51ae4.pickle.gz"}) {
    const auto bytes = ReadInput(absl::StrCat(*shared, "/corpus/", file));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto snapshot = ReadTorchSnapshot(*bytes);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    ExpectRoundTrip(*snapshot);
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The script prints figures that the test computes from the snapshot itself.
constexpr char kScript[] = R"(
import pickle, pickletools, sys
data = open(sys.argv[1], 'rb').read()
d = pickle.loads(data)
allowed = set('''PROTO EMPTY_DICT EMPTY_LIST MARK SETITEMS APPENDS SHORT_BINUNICODE BINUNICODE BININT BININT1 BININT2
LONG1 BINGET LONG_BINGET MEMOIZE BINFLOAT TUPLE2 NONE NEWTRUE NEWFALSE STOP'''.split())
assert {op.name for op, arg, pos in pickletools.genops(data)} <= allowed
print(len(d['segments']), sum(s['total_size'] for s in d['segments']),
      sum(s['active_size'] for s in d['segments']), sum(len(t) for t in d['device_traces']),
      sum(e.get('addr', e.get('device_free')) for t in d['device_traces'] for e in t),
      sum(f['line'] for t in d['device_traces'] for e in t for f in e['frames']))
)";

std::string Figures(const Snapshot& snapshot) {
  std::uint64_t reserved = 0, active = 0, events = 0;
  unsigned __int128 addresses = 0;
  std::int64_t lines = 0;
  for (const auto& segment : snapshot.segments) {
    reserved += segment.size_bytes;
    for (const auto& b : segment.blocks) active += b.state == BlockState::kFree ? 0 : b.size_bytes;
  }
  for (const auto& trace : snapshot.device_traces) {
    events += trace.size();
    for (const Event& event : trace) {
      addresses += event.address;
      for (trace::FrameId id : snapshot.stacks.stack(event.stack)) lines += snapshot.stacks.frame(id).line;
    }
  }
  const auto high = static_cast<std::uint64_t>(addresses / 1000000000),
             low = static_cast<std::uint64_t>(addresses % 1000000000);
  std::string low_digits = absl::StrCat(low);
  if (high > 0) low_digits.insert(0, 9 - low_digits.size(), '0');
  return absl::StrCat(snapshot.segments.size(), " ", reserved, " ", active, " ", events, " ",
                      high > 0 ? absl::StrCat(high) : "", low_digits, " ", lines, "\n");
}

TEST(TorchSnapshotWriterTest, PythonLoadsIt) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/check.py") << kScript;
  for (std::uint64_t seed : {1, 2, 3}) {
    const Snapshot snapshot = RandomSnapshot(seed);
    std::ofstream(folder + "/written.pickle", std::ios::binary) << WriteTorchSnapshot(snapshot);
    const std::string command =
        absl::StrCat("python3 ", folder, "/check.py ", folder, "/written.pickle >", folder, "/figures.txt 2>&1");
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(ReadFile(folder + "/figures.txt"), Figures(snapshot));
  }
}

}  // namespace
}  // namespace ashlar::formats
