// A snapshot that is read as it comes is the one that is read whole: of every real file, and of pickles as they may be
// written by anything, among them those that refer back to what is gone.
#include "analyzer/formats/torch/torch_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "tests/analyzer/formats/torch/wild_pickle.h"
#include "tests/corpus_files.h"

namespace ashlar::formats {
namespace {

std::string ResultOf(const absl::StatusOr<trace::Snapshot>& snapshot) {
  if (!snapshot.ok()) return snapshot.status().ToString();
  std::string out = WriteTorchSnapshot(*snapshot);
  for (const trace::Note& note : snapshot->notes) absl::StrAppend(&out, note.name, " ", note.count, note.message, "\n");
  for (const trace::EventList& events : snapshot->device_traces) {
    for (const trace::Event& e : events) absl::StrAppend(&out, e.stack, " ", e.label, " ", e.file_byte, "\n");
  }
  return out;
}

std::uint64_t EventsOf(const trace::Snapshot& snapshot) {
  std::uint64_t count = 0;
  for (const trace::EventList& events : snapshot.device_traces) count += events.size();
  return count;
}

TEST(TorchStreamTest, RealFilesAreTheSame) {
  int read = 0;
  std::uint64_t decoded_count = 0, event_count = 0;
  if (!SharedDir()) GTEST_SKIP() << "no real files here";
  for (const char* const folder : {"corpus", "captures"}) {
    for (const std::string& file : SnapshotFiles(folder)) {
      const absl::StatusOr<std::string> bytes = ReadInput(file);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      std::uint64_t decoded = 0;
      const absl::StatusOr<trace::Snapshot> streamed = ReadTorchSnapshotStreamed(*bytes, {}, &decoded);
      const std::string whole = ResultOf(ReadTorchSnapshotWhole(*bytes));
      EXPECT_TRUE(ResultOf(ReadTorchSnapshot(*bytes)) == whole) << file;
      if (streamed.ok()) {
        EXPECT_TRUE(ResultOf(streamed) == whole) << file;
      }
      if (absl::StartsWith(whole, "INVALID")) continue;
      EXPECT_TRUE(streamed.ok()) << file << " is read twice: " << streamed.status();
      ++read;
      decoded_count += decoded;
      event_count += EventsOf(*streamed);
    }
  }
  EXPECT_GT(read, 40);
  EXPECT_GT(event_count, 600'000u);
  EXPECT_GE(static_cast<double>(decoded_count), 0.99 * static_cast<double>(event_count)) << "are read the short way";
}

TEST(TorchStreamTest, WildPicklesAreTheSame) {
  int streamed_count = 0, aborted_count = 0, error_count = 0;
  std::uint64_t decoded_count = 0, event_count = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const std::string bytes = WildPickle(seed).Make();
    std::uint64_t decoded = 0;
    const absl::StatusOr<trace::Snapshot> streamed = ReadTorchSnapshotStreamed(bytes, {}, &decoded);
    const std::string whole = ResultOf(ReadTorchSnapshotWhole(bytes));
    ASSERT_TRUE(ResultOf(ReadTorchSnapshot(bytes)) == whole) << "seed " << seed;
    if (streamed.ok()) {
      ASSERT_TRUE(ResultOf(streamed) == whole) << "seed " << seed;
      decoded_count += decoded;
      event_count += EventsOf(*streamed);
    }
    streamed_count += streamed.ok() ? 1 : 0;
    aborted_count += absl::IsAborted(streamed.status()) ? 1 : 0;
    error_count += absl::StartsWith(whole, "INVALID") ? 1 : 0;
  }
  EXPECT_GT(streamed_count, 350) << "tame files are streamed";
  EXPECT_GT(aborted_count, 20) << "some refer back";
  EXPECT_GT(error_count, 5) << "some are wrong";
  EXPECT_GT(decoded_count, event_count / 2) << "many entries are read the short way";
  EXPECT_LT(decoded_count, event_count - event_count / 20) << "and many are not";
}

// The peak of what is requested, found from the end backwards.
std::uint64_t SlowPeak(const trace::EventList& events, trace::Action up, trace::Action down) {
  std::int64_t now = 0, most = 0;  // below 0 where a file frees less than it allocates
  for (auto it = events.rbegin(); it != events.rend(); ++it) {
    if (it->action == up) now -= static_cast<std::int64_t>(it->size_bytes);
    if (it->action == down) now += static_cast<std::int64_t>(it->size_bytes);
    most = std::max(most, now);
  }
  return static_cast<std::uint64_t>(most);
}

TEST(TorchStreamTest, OfALongTraceTheLastEventsAreHeldAndTheOthersSummed) {
  int cut_count = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const std::string bytes = WildPickle(seed).Make();
    const absl::StatusOr<trace::Snapshot> whole = ReadTorchSnapshotStreamed(bytes);
    if (!whole.ok()) continue;
    const std::uint64_t most = 1 + seed % 50;
    const absl::StatusOr<trace::Snapshot> cut = ReadTorchSnapshot(bytes, {.max_events = most});
    ASSERT_TRUE(cut.ok()) << cut.status();
    ASSERT_EQ(cut->device_traces.size(), whole->device_traces.size());
    for (std::size_t device = 0; device < whole->device_traces.size(); ++device) {
      const trace::EventList& all = whole->device_traces[device];
      const trace::EventList& held = cut->device_traces[device];
      ASSERT_EQ(held.size(), std::min<std::uint64_t>(all.size(), most)) << "seed " << seed;
      for (std::size_t i = 0; i < held.size(); ++i) {
        EXPECT_EQ(held[i].file_byte, all[all.size() - held.size() + i].file_byte);
      }
      if (held.size() == all.size()) continue;
      ++cut_count;
      ASSERT_LT(device, cut->windows.size());
      const trace::TraceWindow& window = cut->windows[device];
      EXPECT_EQ(window.events_before, all.size() - held.size());
      // No segment is in these files: at the end nothing is held.
      EXPECT_EQ(window.allocated_peak_bytes, SlowPeak(all, trace::Action::kAlloc, trace::Action::kFreeRequested));
      EXPECT_EQ(window.reserved_peak_bytes, SlowPeak(all, trace::Action::kSegmentAlloc, trace::Action::kSegmentFree));
    }
    EXPECT_EQ(cut->windows.empty(), cut->notes.size() == whole->notes.size());
  }
  EXPECT_GT(cut_count, 100);
}

// Every cut of a file, and every changed byte, is the same error or snapshot.
TEST(TorchStreamTest, DamagedPicklesAreTheSame) {
  int damaged_count = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::string bytes = WildPickle(seed * 1000).Make();
    if (bytes.size() > 60'000) continue;
    ++damaged_count;
    Rng rng(seed);
    for (int i = 0; i < 40; ++i) {
      std::string damaged = bytes.substr(0, i % 2 == 0 ? rng.Below(bytes.size()) : bytes.size());
      if (i % 2 == 1) damaged[rng.Below(damaged.size())] = static_cast<char>(rng.Below(256));
      ASSERT_EQ(ResultOf(ReadTorchSnapshot(damaged)), ResultOf(ReadTorchSnapshotWhole(damaged)))
          << "seed " << seed << " damage " << i;
    }
  }
  EXPECT_GT(damaged_count, 100);
}

}  // namespace
}  // namespace ashlar::formats
