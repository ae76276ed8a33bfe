// Snapshots that lack something: no events, one event, no frames, several devices. Each still gets a useful answer, and
// what is not known is null. Every snapshot goes through the file format.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/printed.h"
#include "tests/commands/recording.h"

namespace ashlar::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::StatusOr<answers::Explanation> Explain(const trace::Snapshot& made,
                                             const answers::ExplainSettings& options = {}) {
  const absl::StatusOr<trace::Snapshot> read = formats::ReadTorchSnapshot(formats::WriteTorchSnapshot(made));
  EXPECT_TRUE(read.ok()) << read.status();
  return answers::ExplainSnapshot(*read, options);
}

nlohmann::json Explained(const trace::Snapshot& made, const answers::ExplainSettings& options = {}) {
  const absl::StatusOr<answers::Explanation> explanation = Explain(made, options);
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  SchemaCheck schema(ExplainSchema());
  return explanation.ok() ? ExpectSound(*explanation, schema) : nlohmann::json();
}

// 30 MiB live of 40 in two segments: 100 of the 512 bytes of the small one asked for.
trace::Snapshot SmallRun(bool with_events) {
  Recording run("", kGiB);
  run.Allocate(30 * kMiB - 1000);
  run.Allocate(100);
  run.Free(run.Allocate(12 * kMiB));
  if (!with_events) run.ForgetEvents();
  return run.Finish();
}

trace::Event& EventOf(trace::Snapshot& snapshot, trace::Action action) {
  for (trace::Event& event : snapshot.device_traces[0].Mutable()) {
    if (event.action == action) return event;
  }
  ADD_FAILURE() << "no " << trace::ActionName(action);
  return snapshot.device_traces[0].Mutable()[0];
}

trace::Snapshot LabelledRun() {
  trace::Snapshot snapshot = SmallRun(true);
  trace::Event& first = EventOf(snapshot, trace::Action::kAlloc);
  first.label = snapshot.labels.Intern({.user_metadata = "loading", .internal_metadata = "mallocWithAddress"});
  trace::Event annotation = first;
  annotation.action = trace::Action::kAnnotate;
  annotation.label = snapshot.labels.Intern({.user_metadata = "packed"});
  snapshot.device_traces[0].push_back(annotation);
  trace::SnapshotSegment& segment = snapshot.host.segments.emplace_back();
  segment.address = 4096;
  segment.size_bytes = 4 * kMiB;
  segment.blocks.push_back({4096, 4 * kMiB, 4 * kMiB, trace::BlockState::kLive});
  return snapshot;
}

TEST(ExplainSnapshotTest, TextsOnBlocksAndPinnedHostMemoryAreShown) {
  const nlohmann::json json = Explained(LabelledRun());
  EXPECT_EQ(json["labels"].size(), 3u) << json["labels"];
  for (const nlohmann::json& line : json["labels"]) EXPECT_EQ(line["bytes"], 30 * kMiB) << line;
  EXPECT_EQ(json["pinned_host"]["held_bytes"], 4 * kMiB);
  EXPECT_EQ(json["pinned_host"]["in_use_bytes"], 4 * kMiB);
  const absl::StatusOr<answers::Explanation> explanation = Explain(LabelledRun());
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  const std::string text = report::ToText(*explanation);
  EXPECT_THAT(text, HasSubstr("30.00 MiB  in      1 blocks  packed (annotation)"));
  EXPECT_THAT(text, HasSubstr("PINNED HOST MEMORY"));
  EXPECT_THAT(text, HasSubstr("4.00 MiB  in use in 1 block, peak 4.00 MiB"));
}

TEST(ExplainSnapshotTest, WithoutTextsAndHostMemoryNothingIsSaidOfThem) {
  const nlohmann::json json = Explained(SmallRun(true));
  EXPECT_TRUE(json["labels"].empty());
  EXPECT_TRUE(json["pinned_host"].is_null());
}

TEST(ExplainSnapshotTest, AHistoryThatLacksEventsIsExplainedByItsState) {
  trace::Snapshot snapshot = SmallRun(true);
  std::erase_if(snapshot.device_traces[0].Mutable(),
                [](const trace::Event& event) { return event.action == trace::Action::kFreeRequested; });
  const nlohmann::json json = Explained(snapshot);
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_EQ(json["accounting"]["live_bytes"], 30 * kMiB - 1000 + 100);
  EXPECT_TRUE(json["fidelity"].is_null());
  EXPECT_THAT(json["notes"].dump(), HasSubstr("this history lacks free_requested events"));
}

TEST(ExplainSnapshotTest, WithoutATraceTheFinalStateIsAccounted) {
  const nlohmann::json json = Explained(SmallRun(false));
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_THAT(json["headline"].get<std::string>(), HasSubstr("NO HISTORY RECORDED"));
  const nlohmann::json& parts = json["accounting"];
  EXPECT_EQ(parts["reserved_bytes"], 44 * kMiB);
  EXPECT_EQ(parts["live_bytes"], 30 * kMiB - 1000 + 100);
  EXPECT_EQ(parts["rounding_bytes"], 1000 + 412);  // a rest of 512 is not split off; 100 takes 512
  EXPECT_EQ(parts["whole_free_bytes"], 12 * kMiB);
  EXPECT_EQ(parts["stranded_bytes"], 2 * kMiB - 512);
  for (const char* unknown : {"total_bytes", "outside_bytes", "free_bytes"}) EXPECT_TRUE(parts[unknown].is_null());
  EXPECT_TRUE(json["fidelity"].is_null());
  EXPECT_TRUE(json["what_if"].empty());
  EXPECT_TRUE(json["paste"].is_null());
  EXPECT_TRUE(json["tried_bytes"].is_null());
  EXPECT_TRUE(json["headroom_bytes"].is_null());
  EXPECT_THAT(json["advice"].get<std::string>(), HasSubstr("not in this trace"));
}

TEST(ExplainSnapshotTest, OneEntryThatIsTheSnapshotItself) {
  trace::Snapshot snapshot = SmallRun(false);
  trace::Event event;
  event.action = trace::Action::kSnapshot;
  event.time_us = 5;
  snapshot.device_traces[0].push_back(event);
  const nlohmann::json json = Explained(snapshot);
  EXPECT_EQ(json["accounting"]["reserved_bytes"], 44 * kMiB);
  EXPECT_TRUE(json["fidelity"].is_null());
  EXPECT_TRUE(json["what_if"].empty());
}

TEST(ExplainSnapshotTest, AHealthyRunHasFidelityAndNoFailure) {
  const nlohmann::json json = Explained(SmallRun(true));
  EXPECT_EQ(json["verdict"], "healthy");
  EXPECT_EQ(json["fidelity"]["matched"], 3);
  EXPECT_EQ(json["fidelity"]["total"], 3);
  EXPECT_EQ(json["fidelity"]["final_state_matches"], true);
  EXPECT_EQ(json["peak"]["reserved_bytes"], 44 * kMiB);
  EXPECT_TRUE(json["stacks"].empty());  // no frames in this file
  for (const nlohmann::json& row : json["what_if"]) EXPECT_TRUE(row["feasible"].is_null());
  EXPECT_TRUE(json["what_if_capacity_bytes"].is_null());
}

TEST(ExplainSnapshotTest, FreeBytesOfPrivatePoolsHaveTheirOwnPart) {
  Recording run("", kGiB);
  run.Allocate(8 * kMiB, {}, PoolId{0, 7});
  run.Allocate(8 * kMiB);
  const nlohmann::json json = Explained(run.Finish());
  EXPECT_EQ(json["accounting"]["private_pool_bytes"], 12 * kMiB);
  EXPECT_EQ(json["accounting"]["stranded_bytes"], 12 * kMiB);
  EXPECT_EQ(json["accounting"]["reserved_bytes"], 40 * kMiB);
}

TEST(ExplainSnapshotTest, ExpandableSegmentsAreReadAndReplayed) {
  Recording run("expandable_segments:True", kGiB);
  core::Block* a = run.Allocate(30 * kMiB);
  run.Allocate(50 * kMiB);
  run.Free(a);
  run.Allocate(25 * kMiB);
  const nlohmann::json json = Explained(run.Finish());
  EXPECT_EQ(json["fidelity"]["matched"], 3);
  EXPECT_EQ(json["fidelity"]["final_state_matches"], true);
  EXPECT_EQ(json["accounting"]["live_bytes"], 80 * kMiB);  // at the peak: 30 + 50
  EXPECT_EQ(json["what_if"][0]["conf"], "expandable_segments:True");
  EXPECT_EQ(json["what_if"][0]["is_recorded_setting"], true);
}

// A setting that this version does not know, odd values, and a text that is none at all: each explains, says so, and
// the values beside the text decide.
TEST(ExplainSnapshotTest, NoRecordedSettingMakesASnapshotUnreadable) {
  trace::Snapshot snapshot = SmallRun(true);
  snapshot.recording.reset();
  const auto with = [&snapshot](const char* conf) {
    snapshot.settings->conf = conf;
    snapshot.settings->values.erase("PYTORCH_ALLOC_CONF");
    snapshot.settings->values["PYTORCH_CUDA_ALLOC_CONF"] = conf;
    return Explained(snapshot);
  };
  const nlohmann::json plain = with("");
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"some_future_key:1", "a recorded setting is left out: 'some_future_key' is no setting of"},
      {"max_split_size_mb:128MB", "max_split_size_mb: '128MB' is read as 128, as PyTorch reads it"},
      {"max_split_size_mb:banana", "a recorded setting is left out: max_split_size_mb: 'banana' is no number"},
      {"expandable_segments:maybe,pinned_free_catch_all:True", "expandable_segments: 'maybe'"},
      {"[", "is no setting: write key:value"},
  };
  for (const auto& [conf, note] : cases) {
    const nlohmann::json json = with(conf);
    EXPECT_THAT(json["notes"].dump(), HasSubstr(note)) << conf;
    EXPECT_EQ(json["fidelity"], plain["fidelity"]) << conf << ": the values say that nothing was set";
    EXPECT_THAT(report::ToText(*Explain(snapshot)), HasSubstr(note)) << conf;
  }
}

// Default settings on a tiny device: two live blocks leave two holes that a third request cannot use.
trace::Snapshot Fragmented(std::uint64_t capacity_bytes) {
  Recording run("", capacity_bytes);
  std::vector<core::Block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(run.Allocate(5 * kMiB));
  for (int i = 0; i < 8; ++i) {
    if (i % 4 != 3) run.Free(blocks[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(run.Allocate(20 * kMiB), nullptr);
  return run.Finish();
}

TEST(ExplainSnapshotTest, AnOutOfMemoryErrorIsJudgedToTheByte) {
  const nlohmann::json json = Explained(Fragmented(50 * kMiB), WithCapacity(60 * kMiB));
  EXPECT_EQ(json["verdict"], "fragmentation");
  EXPECT_EQ(json["tried_bytes"], 20 * kMiB);
  EXPECT_EQ(json["request_interval_bytes"], nlohmann::json::array({20 * kMiB - 511, 20 * kMiB}));
  EXPECT_EQ(json["headroom_bytes"], 20 * kMiB);  // 50 - 10 live - 20
  EXPECT_EQ(json["headroom_interval_bytes"], nlohmann::json::array({20 * kMiB, 20 * kMiB}));
  const nlohmann::json& parts = json["accounting"];
  EXPECT_EQ(parts["total_bytes"], 60 * kMiB);
  EXPECT_EQ(parts["outside_bytes"], 10 * kMiB);
  EXPECT_EQ(parts["free_bytes"], 10 * kMiB);
  EXPECT_EQ(parts["live_bytes"], 10 * kMiB);
  EXPECT_EQ(parts["stranded_bytes"], 30 * kMiB);
  EXPECT_EQ(json["what_if_capacity_bytes"], 50 * kMiB);
  EXPECT_EQ(json["what_if"][0]["feasible"], false);
  EXPECT_THAT(json["headline"].get<std::string>(), HasSubstr("15.00 MiB"));  // the largest free block
  const nlohmann::json& failure = json["failure"];
  EXPECT_EQ(failure["segment_bytes"], 20 * kMiB);
  EXPECT_EQ(failure["largest_servable_bytes"], 15 * kMiB);
  EXPECT_EQ(failure["release"]["bytes"], 5 * kMiB);  // the block at the end of either segment
  EXPECT_EQ(failure["release"]["is_minimal"], true);
  const nlohmann::json& pins = json["pins"];
  ASSERT_EQ(pins["lines"].size(), 2u);  // no stacks: a line for each block
  EXPECT_EQ(pins["lines"][0]["blame_bytes"], 15 * kMiB);
  EXPECT_EQ(pins["lines"][0]["size_bytes"], 5 * kMiB);
  EXPECT_EQ(pins["lines"][0]["oldest_event"], 4);  // segment, three blocks, then it
  EXPECT_EQ(pins["other_blocks"], 0);
}

TEST(ExplainSnapshotTest, AFileWithoutNamesIsToldHowToHaveThem) {
  trace::Snapshot snapshot = Fragmented(50 * kMiB);
  EXPECT_EQ(Explained(snapshot, WithCapacity(60 * kMiB))["next_step"], nullptr) << "no program of Python's";
  const trace::StackId stack = snapshot.stacks.InternStack({snapshot.stacks.InternFrame("train.py", 3, "main")});
  for (trace::Event& event : snapshot.device_traces[0].Mutable()) event.stack = stack;
  snapshot.traits.has_stacks = true;
  const nlohmann::json without = Explained(snapshot, WithCapacity(60 * kMiB));
  EXPECT_THAT(without["next_step"].get<std::string>(), HasSubstr("who holds the memory by name"));
  EXPECT_THAT(without["next_lines"].dump(), HasSubstr("ashlar_gpu.names(f'oom-{device}.pickle')"));
  snapshot.holders.emplace().when = "out_of_memory";
  EXPECT_EQ(Explained(snapshot, WithCapacity(60 * kMiB))["next_step"], nullptr);
}

// With divisions a request is rounded further than to 512 bytes: the interval must hold what was asked for.
TEST(ExplainSnapshotTest, TheRequestIntervalKnowsTheRounding) {
  Recording run("roundup_power2_divisions:4", 100 * kMiB);
  run.Allocate(60 * kMiB);
  EXPECT_EQ(run.Allocate(66 * kMiB), nullptr);  // 66 becomes 80
  const nlohmann::json json = Explained(run.Finish());
  EXPECT_EQ(json["request_interval_bytes"], nlohmann::json::array({64 * kMiB + 1, 80 * kMiB}));
}

TEST(ExplainSnapshotTest, TheDeviceThatFailedComesBeforeABusierOne) {
  Recording busy("", kGiB);
  busy.Allocate(300 * kMiB);
  trace::Snapshot snapshot = busy.Finish();
  Recording failing("", 256 * kMiB);
  failing.Allocate(100 * kMiB);
  EXPECT_EQ(failing.Allocate(200 * kMiB), nullptr);
  AddDevice(failing.Finish(), 1, snapshot);
  const nlohmann::json failed = Explained(snapshot);
  EXPECT_THAT(failed["source"].get<std::string>(), HasSubstr("device 1"));
  EXPECT_EQ(failed["accounting"]["reserved_bytes"], 100 * kMiB);
  EXPECT_THAT(failed["notes"].dump(), HasSubstr("where a request failed last; device 0 has 300.00 MiB reserved;"));
  EXPECT_THAT(Explained(snapshot, WithDevice(0))["source"].get<std::string>(), HasSubstr("device 0"));
}

TEST(ExplainSnapshotTest, OfSeveralDevicesTheBusiestOrTheOneAskedFor) {
  trace::Snapshot snapshot = SmallRun(false);
  Recording second("", kGiB);
  second.Allocate(100 * kMiB);
  AddDevice(second.Finish(), 1, snapshot);
  const nlohmann::json busiest = Explained(snapshot);
  EXPECT_EQ(busiest["accounting"]["reserved_bytes"], 100 * kMiB);
  EXPECT_THAT(busiest["notes"].dump(), HasSubstr("several_devices"));
  EXPECT_THAT(busiest["source"].get<std::string>(), HasSubstr("device 1"));
  const nlohmann::json asked = Explained(snapshot, WithDevice(0));
  EXPECT_EQ(asked["accounting"]["reserved_bytes"], 44 * kMiB);
  EXPECT_THAT(asked["notes"].dump(), Not(HasSubstr("several_devices")));
  for (const int device : {-1, 2}) {
    const absl::Status status = Explain(snapshot, WithDevice(device)).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("no device " + std::to_string(device)));
  }
}

// 124 MiB of 1 GiB are free beside 880 MiB of the allocator's and 15 of NCCL's.
trace::Snapshot FailedBesideNccl() {
  Recording run("", kGiB);
  for (int i = 0; i < 9; ++i) run.Allocate(100 * kMiB);
  EXPECT_EQ(run.Allocate(200 * kMiB), nullptr);
  trace::Snapshot snapshot = run.Finish();
  std::map<std::string, std::string>& values = snapshot.settings->values;
  values[trace::DeviceLibraryKey(0) + "0"] = absl::StrCat(880 * kMiB, " 9 /lib/libc10_cuda.so");
  values[trace::DeviceLibraryKey(0) + "1"] = absl::StrCat(15 * kMiB, " 3 /lib/libnccl.so.2");
  values[trace::DeviceLibraryKey(1) + "0"] = "5 1 of another device";
  return snapshot;
}

TEST(ExplainSnapshotTest, LibrariesBesideTheAllocatorHaveTheirBytes) {
  const nlohmann::json of = Explained(FailedBesideNccl())["by_library"];
  ASSERT_EQ(of["owners"].size(), 2u);
  EXPECT_EQ(of["owners"][0]["owner"], "PyTorch's allocator");
  EXPECT_EQ(of["owners"][1]["owner"], "NCCL");
  EXPECT_EQ(of["owners"][1]["bytes"], 15 * kMiB);
  EXPECT_EQ(of["owners"][1]["blocks"], 3);
}

TEST(ExplainSnapshotTest, WhatNoLibraryHasIsToldWhereTheSnapshotWasMadeAtTheFailure) {
  trace::Snapshot snapshot = FailedBesideNccl();
  answers::ExplainSettings options;
  options.replay.capacity_bytes = kGiB;
  const absl::StatusOr<answers::Explanation> then = Explain(snapshot, options);
  ASSERT_TRUE(then.ok()) << then.status();
  ASSERT_TRUE(then->memory.by_library.has_value());
  EXPECT_EQ(then->memory.by_library->in_use_bytes, 900 * kMiB);
  EXPECT_EQ(then->memory.by_library->rest_bytes, 5 * kMiB);
  EXPECT_THAT(report::ToText(*then), HasSubstr("15.00 MiB  in      3 blocks  NCCL (libnccl.so.2)"));
  trace::Event later = snapshot.device_traces[0].back();
  later.action = trace::Action::kAnnotate;
  snapshot.device_traces[0].push_back(later);
  EXPECT_TRUE(Explained(snapshot, options)["by_library"]["rest_bytes"].is_null());
}

TEST(ExplainSnapshotTest, LinesOfLibrariesThatAreNoneAndTheAllocatorAloneAreNoSection) {
  trace::Snapshot snapshot = FailedBesideNccl();
  snapshot.settings->values[trace::DeviceLibraryKey(0) + "1"] = "20 libnccl.so.2";
  EXPECT_TRUE(Explained(snapshot)["by_library"].is_null());
}

// Nine blocks of 100 MiB, each second one freed, and a request that no hole serves.
trace::Snapshot FailedBetweenHoles() {
  Recording run("", kGiB);
  std::vector<core::Block*> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(run.Allocate(60 * kMiB));
  core::Block* large = run.Allocate(300 * kMiB);
  core::Block* part = run.Allocate(100 * kMiB);
  run.Free(large);
  large = run.Allocate(30 * kMiB);  // of the 300
  run.Free(part);
  EXPECT_EQ(run.Allocate(400 * kMiB), nullptr);
  return run.Finish();
}

trace::Snapshot OnXpu(trace::Snapshot snapshot) {
  snapshot.settings->values = {{"PYTORCH_ALLOC_CONF", ""}, {"expandable_segments", "False"}};
  return snapshot;
}

TEST(ExplainSnapshotTest, IntelsPyTorchIsAnsweredInItsOwnWords) {
  answers::ExplainSettings options;
  options.replay.capacity_bytes = kGiB;
  const nlohmann::json json = Explained(OnXpu(FailedBetweenHoles()), options);
  EXPECT_THAT(json["source"].get<std::string>(), HasSubstr("XPU"));
  EXPECT_THAT(json["replayed_as"].get<std::string>(), HasSubstr("torch-xpu"));
  EXPECT_EQ(json["fidelity"]["matched"], json["fidelity"]["total"]);
  for (const nlohmann::json& row : json["what_if"]) {
    const std::string conf = row["conf"];
    EXPECT_TRUE(conf.empty() || conf == "expandable_segments:True") << conf;
  }
  EXPECT_THAT(json.dump(), Not(HasSubstr("torch.cuda")));
  EXPECT_THAT(json.dump(), Not(HasSubstr("PYTORCH_CUDA_ALLOC_CONF")));
  EXPECT_TRUE(json["own_allocator"].is_null());
}

TEST(ExplainSnapshotTest, AStateOfIntelsPyTorchIsRecordedByItsOwnFunction) {
  const absl::StatusOr<answers::Explanation> explanation = Explain(OnXpu(SmallRun(false)));
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  const std::string text = report::ToText(*explanation);
  EXPECT_THAT(text, HasSubstr("torch.xpu.memory._record_memory_history"));
  EXPECT_THAT(text, Not(HasSubstr("ashlar record")));
}

TEST(ExplainSnapshotTest, RocmsPyTorchHasCudasNamesAndItsOwnListOfProcesses) {
  answers::ExplainSettings options;
  options.replay.capacity_bytes = kGiB;
  trace::Snapshot snapshot = FailedBetweenHoles();
  snapshot.settings->values["PYTORCH_HIP_ALLOC_CONF"] = "";
  const nlohmann::json json = Explained(snapshot, options);
  EXPECT_THAT(json["source"].get<std::string>(), HasSubstr("ROCm"));
  EXPECT_THAT(json.dump(), Not(HasSubstr("nvidia-smi")));
  EXPECT_TRUE(json["own_allocator"].is_null());
}

TEST(ExplainSnapshotTest, AnEmptySnapshotIsAnAnswerToo) {
  trace::Snapshot snapshot;
  snapshot.device_traces.resize(1);
  const nlohmann::json json = Explained(snapshot);
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_EQ(json["accounting"]["reserved_bytes"], 0);
  EXPECT_TRUE(json["peak"]["utilisation"].is_null());
}

// What a file names may hold anything: the text stays within its lines.
TEST(ExplainSnapshotTest, ControlCharactersAndLongNamesStayInTheirLine) {
  trace::Snapshot snapshot = SmallRun(false);
  const trace::FrameId hostile = snapshot.stacks.InternFrame("/home/a/\x1b[31mred\n.py", 3, "f\nVERDICT\r\x07");
  const trace::FrameId wide = snapshot.stacks.InternFrame("/home/a/b.py", 4, std::string(500, 'x'));
  std::size_t index = 0;
  for (trace::SnapshotSegment& segment : snapshot.segments) {
    for (trace::SnapshotBlock& block : segment.blocks) {
      block.stack = snapshot.stacks.InternStack({index++ == 0 ? hostile : wide});
    }
  }
  snapshot.traits.has_stacks = true;
  const nlohmann::json json = Explained(snapshot);  // checks the text for control characters and its width
  ASSERT_EQ(json["stacks"].size(), 2u);
}

}  // namespace
}  // namespace ashlar::tests
