// Shared by tests of recordings: the file as it lies on the disk, and its replay, which must make every recorded
// decision again, in the recorded order.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_RECORDED_FILE_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_RECORDED_FILE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/fingerprint.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/recorded_replay.h"
#include "tests/analyzer/replay/replayed_snapshot.h"

namespace ashlar::core {

inline std::string TempFile(const std::string& name) {
  return testing::TempDir() + "/recorder_test_" + std::to_string(getpid()) + "_" + name;
}

inline std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline policy::Options Options(const std::string& conf, policy::Compat compat = policy::Compat::kTorch210) {
  return *policy::ParseConf(conf, compat, policy::Keys::kAshlar);
}

// Of every recorded decision, in order, as replay::FingerprintOf takes it.
inline std::uint64_t FingerprintOf(const std::vector<trace::Event>& events) {
  Fingerprint fingerprint;
  for (const trace::Event& event : events) {
    fingerprint.Add(static_cast<std::uint64_t>(event.action));
    fingerprint.Add(event.address);
    fingerprint.Add(event.size_bytes);
    fingerprint.Add(Handle(event.stream));
  }
  return fingerprint.value();
}

// The first event in which the two differ, in words.
inline std::string FirstDifference(const std::vector<trace::Event>& recorded, absl::Span<const trace::Event> replayed) {
  const auto text = [](const trace::Event& e) {
    return absl::StrCat(trace::ActionName(e.action), " 0x", absl::Hex(e.address), " ", e.size_bytes, " stream ",
                        Handle(e.stream), " pool ", e.pool.value_or({}).second);
  };
  for (std::size_t i = 0; i < std::max(recorded.size(), replayed.size()); ++i) {
    const std::string a = i < recorded.size() ? text(recorded[i]) : "nothing";
    const std::string b = i < replayed.size() ? text(replayed[i]) : "nothing";
    if (a == b) continue;
    std::string before;
    for (std::size_t j = i < 12 ? 0 : i - 12; j < i; ++j) absl::StrAppend(&before, "  ", text(recorded[j]), "\n");
    absl::StrAppend(&before, "recorded next\n");
    for (std::size_t j = i; j < std::min(i + 10, recorded.size()); ++j)
      absl::StrAppend(&before, "  ", text(recorded[j]), "\n");
    absl::StrAppend(&before, "replayed next\n");
    for (std::size_t j = i; j < std::min(i + 10, replayed.size()); ++j)
      absl::StrAppend(&before, "  ", text(replayed[j]), "\n");
    return absl::StrCat("event ", i, " of ", recorded.size(), ": recorded ", a, ", replayed ", b, ", after\n", before);
  }
  return "";
}

inline void ExpectReplaysExactly(const trace::Snapshot& recording) {
  ASSERT_EQ(recording.device_traces.size(), 1u);
  const std::vector<trace::Event>& events = recording.device_traces[0];
  const absl::StatusOr<replay::RecordedReplay> replay =
      replay::ReplayAsRecorded({recording, 0}, {.keeps_timeline = true});
  ASSERT_TRUE(replay.ok()) << replay.status();
  const replay::Fidelity& fidelity = replay->warm.fidelity;
  EXPECT_TRUE(fidelity.IsExact()) << fidelity.matched << " of " << fidelity.total << " addresses, "
                                  << fidelity.segments_matched << " of " << fidelity.segments_total << " segments; "
                                  << fidelity.final_state_difference;
  EXPECT_EQ(replay->program.start.inferred_tails + replay->program.start.unknown_tails, 0u);
  EXPECT_EQ(FirstDifference(events, replay->warm.timeline.events()), "");
  EXPECT_EQ(FingerprintOf(events), replay::FingerprintOf(replay->warm.timeline));
}

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_RECORDED_FILE_H_
