// Which release's rules a snapshot is replayed under: told from its fields, the same for all files of a release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/readers/input_file.h"
#include "analyzer/readers/torch/torch_snapshot.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/recorded_replay.h"
#include "tests/shared_dir.h"

namespace ashlar::replay {
namespace {

using policy::Compat;

trace::Snapshot WithSettings(std::vector<std::string> keys) {
  trace::Snapshot out;
  out.settings.emplace();
  for (const std::string& key : keys) out.settings->values[key] = "-1";
  return out;
}

TEST(GuessCompatTest, ByTheFieldsThatEachReleaseBrought) {
  EXPECT_EQ(GuessCompat(WithSettings({"max_split_size"})), Compat::kTorch26);
  EXPECT_EQ(GuessCompat(WithSettings({"graph_capture_record_stream_reuse"})), Compat::kTorch210);
  EXPECT_EQ(GuessCompat(WithSettings({"large_segment_size"})), Compat::kTorch210);
  trace::Snapshot of_212 = WithSettings({"graph_capture_record_stream_reuse"});
  of_212.traits.has_pool_ids = true;
  EXPECT_EQ(GuessCompat(of_212), Compat::kTorch212);
  EXPECT_EQ(GuessCompat(WithSettings({"max_cached_size"})), Compat::kTorchLatest);
  trace::Snapshot of_214;
  of_214.traits.has_host = true;
  EXPECT_EQ(GuessCompat(of_214), Compat::kTorchLatest);
}

TEST(GuessCompatTest, ARecordingOfOurOwnSaysIt) {
  trace::Snapshot snapshot = WithSettings({"max_cached_size"});
  snapshot.recording.emplace().compat = "torch-2.6";
  EXPECT_EQ(GuessCompat(snapshot), Compat::kTorch26);
}

Compat CompatOfRelease(const std::string& file) {
  if (file.starts_with("torch-2.6")) return Compat::kTorch26;
  return file.starts_with("torch-2.12") ? Compat::kTorch212 : Compat::kTorchLatest;
}

// Real recordings of five releases; those with descending addresses tell the order of free blocks as well.
// What `convert` makes of a recording of ours keeps its settings, keys of ours among them.
TEST(GuessCompatTest, SettingsMayNameTheRules) {
  trace::Snapshot snapshot = WithSettings({"max_split_size"});
  snapshot.settings->conf = "compat:torch-2.12,max_split_size_mb:64,search_after_sync:True";
  EXPECT_EQ(GuessCompat(snapshot), Compat::kTorch212);
  const auto options = RecordedOptions(snapshot, GuessCompat(snapshot));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->search_after_sync);
  snapshot.settings->conf = "compat:torch-9";
  EXPECT_FALSE(RecordedOptions(snapshot, GuessCompat(snapshot)).ok());
}

TEST(GuessCompatTest, AllFilesOfAReleaseHaveItsRules) {
  const std::optional<std::string> shared = SharedDir();
  const std::string folder = shared.value_or("") + "/captures";
  if (!shared || !std::filesystem::exists(folder)) GTEST_SKIP() << kNoSharedDir;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with(".pickle.gz")) files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  EXPECT_GE(files.size(), 30u);
  for (const std::string& file : files) {
    const auto bytes = readers::ReadInput(folder + "/" + file);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto snapshot = readers::ReadTorchSnapshot(*bytes);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ(GuessCompat(*snapshot), CompatOfRelease(file)) << file;
    if (!file.ends_with("descending.pickle.gz")) continue;
    const auto replayed = ReplayAsRecorded(*snapshot, 0, {});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(replayed->options.compat, CompatOfRelease(file)) << file;
    EXPECT_EQ(replayed->options.free_order, policy::DefaultFreeOrder(CompatOfRelease(file))) << file;
    EXPECT_EQ(replayed->warm.fidelity.matched, replayed->warm.fidelity.total) << file;
  }
}

}  // namespace
}  // namespace ashlar::replay
