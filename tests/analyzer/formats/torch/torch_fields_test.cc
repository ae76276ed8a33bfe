// The snapshot reader: what the fields of the newer releases hold, and what is done with those that are not known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/formats/torch/torch_snapshot.h"
#include "tests/analyzer/formats/pickle/pickle_emitter.h"
#include "tests/analyzer/formats/torch/snapshot_parts.h"

namespace ashlar::formats {
namespace {

using namespace torch_parts;  // NOLINT(google-build-using-namespace): the parts are this test's words

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TorchFieldsTest, WhatIsNotKnownIsCountedAndNamed) {
  const auto snapshot = TorchSnapshotLoad(
      Top({Segment(4096, 512, {Block(4096, 512, "inactive", {{"colour", Int(1)}})}, {{"allocated_size", Int(512)}})},
          {List({Entry("workspace_snapshot", {{"addr", Int(0)}}), Entry("workspace_snapshot", {{"x", None()}}),
                 Entry("alloc", {{"addr", Int(1)},
                                 {"size", Int(2)},
                                 {"compile_context", Text("0/0")},
                                 {"user_metadata", Text("step 1")}})})},
          {{"host_segments", List({None(), None()})}, {"host_traces", List({})}, {"new_part", Int(3)}}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT(NoteNames(*snapshot), ElementsAre("host_segments 1", "missing_stream 1", "segment_sum_differs 1",
                                                "unknown_action 2", "unknown_key 1", "unknown_key 1", "unknown_key 1"));
  EXPECT_EQ(snapshot->device_traces[0][0].action, Action::kUnknown);
  EXPECT_THAT(snapshot->notes[0].message, HasSubstr("host_segments[0]: expected a dict"));
  EXPECT_THAT(snapshot->notes[3].message, HasSubstr("'workspace_snapshot'"));
  EXPECT_THAT(snapshot->notes[4].message, HasSubstr("blocks have a key 'colour'"));
  EXPECT_EQ(snapshot->traits.generation, "host memory (2.14, 2.15)");
}

TEST(TorchFieldsTest, LabelsOfEntriesAreKept) {
  const auto with = [](std::vector<Item> more) {
    std::vector<Item> items = {{"addr", Int(4096)}, {"size", Int(8)}, {"stream", Int(0)}};
    items.insert(items.end(), more.begin(), more.end());
    return Entry("annotate", items);
  };
  const auto snapshot = TorchSnapshotLoad(
      Top({}, {List({with({{"user_metadata", Text("packed")}, {"compile_context", Text("N/A")}}),
                     with({{"user_metadata", Text("")}, {"compile_context", Text("0/1")}}),
                     with({{"user_metadata", Text("packed")}, {"internal_metadata", Text("mallocWithAddress")}}),
                     with({{"user_metadata", Text("")}, {"compile_context", Text("N/A")}}),
                     with({{"user_metadata", Dict({{"phase", Text("forward")}, {"step", Int(1)}})}})})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const std::vector<Event>& events = snapshot->device_traces[0];
  EXPECT_EQ(snapshot->labels.label(events[0].label), (trace::Label{.user_metadata = "packed"}));
  EXPECT_EQ(snapshot->labels.label(events[1].label), (trace::Label{.compile_context = "0/1"}));
  EXPECT_EQ(snapshot->labels.label(events[2].label),
            (trace::Label{.user_metadata = "packed", .internal_metadata = "mallocWithAddress"}));
  EXPECT_EQ(events[3].label, trace::kNoLabel);
  EXPECT_EQ(snapshot->labels.label(events[4].label).user_metadata, "phase:forward,step:1");
  EXPECT_TRUE(snapshot->traits.has_labels);
  EXPECT_THAT(NoteNames(*snapshot), testing::IsEmpty());
}

TEST(TorchFieldsTest, AFrameWithoutALineIsAFrame) {
  const std::string frames = List({Frame("f", ~std::uint64_t{0}), Frame("g", 3)});
  const auto snapshot =
      TorchSnapshotLoad(Top({Segment(4096, 512, {Block(4096, 512, "active_allocated", {{"frames", frames}})})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const auto stack = snapshot->stacks.stack(snapshot->segments[0].blocks[0].stack);
  EXPECT_EQ(snapshot->stacks.frame(stack[0]).line, -1);
  EXPECT_EQ(snapshot->stacks.frame(stack[1]).line, 3);
  EXPECT_THAT(NoteNames(*snapshot), ElementsAre("unknown_line 1"));
}

TEST(TorchFieldsTest, FramesOfCompiledProgramsKeepTheirNode) {
  const std::string frame = Dict({{"name", Text("forward")},
                                  {"filename", Text("fx_graph_module_1.py")},
                                  {"line", Int(9)},
                                  {"fx_node_op", Text("call_function")},
                                  {"fx_node_name", Text("linear_1")},
                                  {"fx_node_target", Text("aten.linear")},
                                  {"fx_original_trace", Text("File \"model.py\", line 12, in forward")}});
  const auto snapshot =
      TorchSnapshotLoad(Top({Segment(4096, 512, {Block(4096, 512, "active_allocated", {{"frames", List({frame})}})})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->stacks.frame(0).fx,
            (trace::FxNode{"call_function", "linear_1", "aten.linear", "File \"model.py\", line 12, in forward"}));
  EXPECT_THAT(NoteNames(*snapshot), testing::IsEmpty());
}

TEST(TorchFieldsTest, PinnedHostMemoryIsAPartOfItsOwn) {
  const std::string segment = Segment(4096, 1024, {Block(4096, 1024, "active_allocated")}, {{"device", Negative(-1)}});
  const auto snapshot = TorchSnapshotLoad(
      Top({}, {}, {{"host_segments", List({segment})}, {"host_traces", List({Plain("segment_alloc", 4096, 1024)})}}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(snapshot->segments.empty());
  ASSERT_EQ(snapshot->host.segments.size(), 1u);
  EXPECT_EQ(snapshot->host.segments[0].size_bytes, 1024u);
  ASSERT_EQ(snapshot->host.events.size(), 1u);
  EXPECT_EQ(snapshot->host.events[0].action, Action::kSegmentAlloc);
  EXPECT_THAT(NoteNames(*snapshot), testing::IsEmpty());
}

TEST(TorchFieldsTest, DamageInTheHostsPartLeavesTheDevicesPart) {
  const auto snapshot = TorchSnapshotLoad(
      Top({Segment(4096, 512, {Block(4096, 512, "inactive")})}, {},
          {{"host_segments", List({Segment(4096, 512, {})})}, {"host_traces", List({Entry("alloc", {})})}}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->segments.size(), 1u);
  EXPECT_TRUE(snapshot->host.IsEmpty());
  EXPECT_THAT(NoteNames(*snapshot), ElementsAre("host_segments 1", "host_traces 1"));
  EXPECT_THAT(snapshot->notes[1].message, HasSubstr("host_traces[0]: 'addr' is missing"));
}

TEST(TorchFieldsTest, ReadsSettingsAndAnnotations) {
  const std::string settings = Dict({{"PYTORCH_CUDA_ALLOC_CONF", Text("max_split_size_mb:128")},
                                     {"max_split_size", Int(134217728)},
                                     {"garbage_collection_threshold", std::string("G?\xe9\x99\x99\x99\x99\x99\x9a", 9)},
                                     {"expandable_segments", Bool(true)},
                                     {"roundup_power2_divisions", Dict({{"1", Int(0)}, {"256", Int(4)}})},
                                     {"brand_new", Negative(-3)}});
  const std::string annotation =
      Dict({{"stage", Text("START")}, {"name", Text("step")}, {"device", Int(1)}, {"time_us", Int(12)}});
  const auto snapshot =
      TorchSnapshotLoad(Top({}, {}, {{"allocator_settings", settings}, {"external_annotations", List({annotation})}}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_TRUE(snapshot->settings.has_value());
  EXPECT_EQ(snapshot->settings->conf, "max_split_size_mb:128");
  EXPECT_EQ(snapshot->settings->max_split_size_bytes, 134217728u);
  EXPECT_DOUBLE_EQ(snapshot->settings->garbage_collection_threshold, 0.8);
  EXPECT_TRUE(snapshot->settings->expandable_segments);
  EXPECT_EQ(snapshot->settings->values.at("roundup_power2_divisions"), "1:0,256:4");
  EXPECT_EQ(snapshot->settings->values.at("garbage_collection_threshold"), "0.8");
  EXPECT_EQ(snapshot->settings->values.at("brand_new"), "-3");
  ASSERT_EQ(snapshot->annotations.size(), 1u);
  EXPECT_EQ(snapshot->annotations[0].stage, "START");
  EXPECT_EQ(snapshot->annotations[0].device, 1);
  EXPECT_EQ(snapshot->annotations[0].time_us, 12);
}

TEST(TorchFieldsTest, UnlimitedSplitSizeIsMinusOne) {
  const auto snapshot =
      TorchSnapshotLoad(Top({}, {}, {{"allocator_settings", Dict({{"max_split_size", Negative(-1)}})}}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->settings->max_split_size_bytes, std::nullopt);
  EXPECT_EQ(snapshot->settings->values.at("max_split_size"), "-1");
}

}  // namespace
}  // namespace ashlar::formats
