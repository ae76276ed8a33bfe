// Every recorded file must rewind, agree with its own final segments, and follow the rule throughout. The figures of
// the table were counted by a separate program (a plain forward and backward walk over the same files).
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"
#include "tests/corpus_files.h"
#include "tests/shared_dir.h"

namespace ashlar::timeline {
namespace {

struct Figures {
  std::uint64_t events = 0, start_blocks = 0, inferred_tails = 0, unknown_tails = 0;
  bool operator==(const Figures&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Figures& figures) {
  return out << "{" << figures.events << ", " << figures.start_blocks << ", " << figures.inferred_tails << ", "
             << figures.unknown_tails << "}";
}

// By the eight digits of the file's name.
const std::map<std::string, Figures>& Expected() {
  static const auto* const kExpected = new std::map<std::string, Figures>{
      {"001e30bf", {0, 543, 0, 0}},        {"06f51ae4", {6486, 447, 7, 15}},  {"075dd064", {9670, 113, 0, 0}},
      {"08fa910c", {1, 542, 0, 1}},        {"0db7d8c0", {19136, 664, 6, 0}},  {"1cfc21cd", {3840, 223, 0, 0}},
      {"27533b77", {8948, 1745, 1, 0}},    {"2afd8bc6", {4998, 223, 0, 0}},   {"335945ae", {7600, 1745, 1, 0}},
      {"4bf3cd41", {1, 786, 0, 1}},        {"5741975d", {0, 105, 0, 0}},      {"61dcd14d", {22332, 664, 33, 0}},
      {"658ce379", {1, 840, 0, 0}},        {"66f06b43", {1, 542, 0, 1}},      {"769df2d4", {2043, 137, 0, 0}},
      {"77da8fef", {3840, 223, 0, 0}},     {"83e7cb0c", {22331, 664, 36, 0}}, {"8a4284c4", {19430, 664, 15, 0}},
      {"96f7f9d4", {19464, 1313, 36, 80}}, {"9e5bfb67", {0, 2799, 0, 0}},     {"a228b8e3", {1, 716, 0, 1}},
      {"a632ffbe", {0, 2754, 0, 0}},       {"a80ccc7b", {5163, 229, 0, 1}},   {"b61be409", {97, 0, 0, 0}},
      {"c005a26b", {0, 2524, 0, 0}},       {"c0cf1a83", {1, 550, 0, 1}},      {"d9ecf8be", {2811, 137, 0, 0}},
      {"e0143d82", {3840, 223, 0, 0}},     {"fc31f1ea", {1, 460, 0, 0}},
  };
  return *kExpected;
}

std::string Digits(const std::string& file) { return file.substr(file.size() - 18, 8); }

trace::Snapshot MustRead(const std::string& file) {
  const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(bytes.ok() ? *bytes : "");
  EXPECT_TRUE(snapshot.ok()) << file << ": " << snapshot.status();
  return snapshot.ok() ? *std::move(snapshot) : trace::Snapshot{};
}

TEST(TimelineCorpusTest, EveryFileRewindsAndValidates) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  for (const std::string& file : SnapshotFiles()) {
    const trace::Snapshot snapshot = MustRead(file);
    const absl::StatusOr<Timeline> timeline = MakeObservedTimeline({snapshot, 0}, TorchRule());
    ASSERT_TRUE(timeline.ok()) << file << ": " << timeline.status();
    const absl::StatusOr<StartState> start = Rewind({snapshot, 0}, TorchRule());
    ASSERT_TRUE(start.ok());
    Figures figures{.events = static_cast<std::uint64_t>(timeline->event_count()),
                    .inferred_tails = start->inferred_tails,
                    .unknown_tails = start->unknown_tails};
    for (const StateSegment& segment : start->segments) figures.start_blocks += segment.blocks.size();
    const auto expected = Expected().find(Digits(file));
    ASSERT_TRUE(expected != Expected().end()) << file << ": not in the table, here " << figures;
    EXPECT_EQ(figures, expected->second) << file;
    for (const trace::Note& note : timeline->notes()) EXPECT_EQ(note.name, "unknown_tails") << file;
  }
}

// A trace of one file cannot have led to the segments of another.
TEST(TimelineCorpusTest, AForeignTraceIsRefused) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  std::vector<trace::Snapshot> snapshots;
  for (const std::string& file : SnapshotFiles()) snapshots.push_back(MustRead(file));
  for (std::size_t i = 1; i < snapshots.size(); ++i) {
    trace::Snapshot mixed = snapshots[i];
    mixed.device_traces = snapshots[i - 1].device_traces;
    if (DeviceTrace(mixed, 0).events.size() < 2) continue;
    EXPECT_EQ(Rewind({mixed, 0}, TorchRule()).status().code(), absl::StatusCode::kFailedPrecondition)
        << SnapshotFiles()[i];
  }
}

// A trace that has one event twice, or lost a free_completed, contradicts itself.
TEST(TimelineCorpusTest, ADoubledOrLostEventIsSeen) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  for (const std::string& file : SnapshotFiles()) {
    const trace::Snapshot snapshot = MustRead(file);
    const std::size_t count = DeviceTrace(snapshot, 0).events.size();
    if (count < 90) continue;
    for (std::size_t at = count / 3; at < count; at += count / 3) {
      trace::Snapshot doubled = snapshot;
      auto& events = doubled.device_traces[0].Mutable();
      events.insert(events.begin() + static_cast<std::ptrdiff_t>(at), events[at]);
      EXPECT_FALSE(Rewind({doubled, 0}, TorchRule()).ok()) << file << ", event " << at << " twice";
      if (events[at].action != trace::Action::kFreeCompleted) continue;
      events.erase(events.begin() + static_cast<std::ptrdiff_t>(at),
                   events.begin() + static_cast<std::ptrdiff_t>(at) + 2);
      EXPECT_FALSE(Rewind({doubled, 0}, TorchRule()).ok()) << file << ", event " << at << " lost";
    }
  }
}

}  // namespace
}  // namespace ashlar::timeline
