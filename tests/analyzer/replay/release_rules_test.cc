// Which release's rules a snapshot is replayed under: told from its fields, the same for all files of a release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/backend.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
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

trace::Snapshot OfXpu() {
  trace::Snapshot out;
  out.settings.emplace().values = {{"PYTORCH_ALLOC_CONF", ""}, {"expandable_segments", "False"}};
  return out;
}

TEST(GuessCompatTest, IntelsAllocatorIsKnownByTheSettingsThatItHas) {
  EXPECT_EQ(trace::BackendOf(OfXpu()), trace::Backend::kXpu);
  EXPECT_EQ(GuessCompat(OfXpu()), Compat::kTorchXpu);
  EXPECT_EQ(RecordedOptions(OfXpu(), Compat::kTorchXpu)->max_split_size_bytes, policy::kUnlimited);
  trace::Snapshot of_cuda = OfXpu();
  of_cuda.settings->values["max_split_size"] = "-1";
  EXPECT_EQ(trace::BackendOf(of_cuda), trace::Backend::kCuda);
}

TEST(GuessCompatTest, RocmHasTheRulesOfCuda) {
  trace::Snapshot snapshot = WithSettings({"max_cached_size", "PYTORCH_HIP_ALLOC_CONF"});
  EXPECT_EQ(trace::BackendOf(snapshot), trace::Backend::kHip);
  EXPECT_EQ(GuessCompat(snapshot), Compat::kTorchLatest);
  trace::Snapshot by_frame = WithSettings({"max_split_size"});
  EXPECT_EQ(trace::BackendOf(by_frame), trace::Backend::kCuda);
  by_frame.stacks.InternFrame("??", 0, "c10::hip::HIPCachingAllocator::Native::DeviceCachingAllocator::malloc");
  EXPECT_EQ(trace::BackendOf(by_frame), trace::Backend::kHip);
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
  const auto unknown = RecordedOptions(snapshot, GuessCompat(snapshot));
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_EQ(unknown->compat, Compat::kTorch26) << "as the fields say";
  EXPECT_THAT(unknown->notes, testing::ElementsAre(testing::HasSubstr("'torch-9'")));
}

// A program may change its settings; PyTorch writes what was in force. Where it wrote no such value, the text counts.
TEST(RecordedOptionsTest, ValuesWinOverTheText) {
  trace::Snapshot snapshot;
  trace::RecordedSettings& settings = snapshot.settings.emplace();
  settings.conf =
      "max_split_size_mb:64,expandable_segments:True,garbage_collection_threshold:0.5,some_future_key:[1,2]";
  const auto of_text = RecordedOptions(snapshot, Compat::kTorchLatest);
  EXPECT_EQ(of_text->max_split_size_bytes, 64 * kMiB);
  EXPECT_TRUE(of_text->expandable_segments);
  settings.values = {{"max_split_size", "134217728"}, {"expandable_segments", "False"}};
  settings.max_split_size_bytes = 128 * kMiB;
  const auto of_values = RecordedOptions(snapshot, Compat::kTorchLatest);
  EXPECT_EQ(of_values->max_split_size_bytes, 128 * kMiB);
  EXPECT_FALSE(of_values->expandable_segments);
  EXPECT_DOUBLE_EQ(of_values->garbage_collection_threshold, 0.5);
  EXPECT_EQ(of_values->conf, "max_split_size_mb:64,expandable_segments:True,garbage_collection_threshold:0.5");
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
    const auto bytes = formats::ReadInput(folder + "/" + file);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto snapshot = formats::ReadTorchSnapshot(*bytes);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ(GuessCompat(*snapshot), CompatOfRelease(file)) << file;
    if (!file.ends_with("descending.pickle.gz")) continue;
    const auto replayed = ReplayAsRecorded({*snapshot, 0}, {});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(replayed->options.compat, CompatOfRelease(file)) << file;
    EXPECT_EQ(replayed->options.free_order, policy::RulesOf(CompatOfRelease(file)).free_order) << file;
    EXPECT_EQ(replayed->warm.fidelity.matched, replayed->warm.fidelity.total) << file;
  }
}

// A release that nobody has seen: a row is all that a snapshot of it needs to be told.
TEST(GuessCompatTest, ARowIsWhatANewReleaseNeeds) {
  std::vector<policy::TorchRules> rules(policy::AllTorchRules().begin(), policy::AllTorchRules().end());
  rules.push_back({.compat = Compat::kTorchLatest,
                   .name = "torch-3.1",
                   .since = {3, 1},
                   .free_order = policy::FreeOrder::kAddress,
                   .shown_by_settings = {"pool_of_tomorrow"}});
  EXPECT_EQ(RulesShownBy(WithSettings({"max_split_size", "pool_of_tomorrow"}), rules).name, "torch-3.1");
  EXPECT_EQ(RulesShownBy(WithSettings({"max_split_size"}), rules).name, "torch-2.6");
  EXPECT_EQ(RulesShownBy(WithSettings({"max_cached_size"}), rules).name, "torch-latest");
  EXPECT_EQ(RulesShownBy(trace::Snapshot{}, rules).name, "torch-1.13");
}

}  // namespace
}  // namespace ashlar::replay
