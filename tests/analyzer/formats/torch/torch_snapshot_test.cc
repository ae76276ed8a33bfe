// The snapshot reader on small files made by hand, one per trap of the format.
#include "analyzer/formats/torch/torch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/analyzer/formats/pickle/pickle_emitter.h"
#include "tests/analyzer/formats/torch/snapshot_parts.h"

namespace ashlar::formats {
namespace {

using namespace torch_parts;  // NOLINT(google-build-using-namespace): the parts are this test's words

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TorchSnapshotTest, ReadsASegmentAndItsBlocks) {
  const auto snapshot = TorchSnapshotLoad(Top({Segment(
      4096, 2048,
      {Block(4096, 512, "active_allocated", {{"requested_size", Int(500)}, {"frames", List({Frame("f", 7)})}}),
       Block(4608, 512, "active_pending_free"), Block(5120, 1024, "inactive", {{"requested_size", Int(9999)}})},
      {{"segment_pool_id", Pair(Int(0), Int(3))}, {"is_expandable", Bool(true)}, {"stream", Int(77)}})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->segments.size(), 1u);
  const trace::SnapshotSegment& segment = snapshot->segments[0];
  EXPECT_EQ(segment.address, 4096u);
  EXPECT_EQ(segment.size_bytes, 2048u);
  EXPECT_EQ(segment.stream, Stream{77});  // the later of two equal keys counts, as in Python
  EXPECT_EQ(segment.pool, (PoolId{0, 3}));
  EXPECT_TRUE(segment.is_expandable);
  EXPECT_FALSE(segment.is_small_pool);
  ASSERT_EQ(segment.blocks.size(), 3u);
  EXPECT_EQ(segment.blocks[0].state, BlockState::kLive);
  EXPECT_EQ(segment.blocks[0].requested_bytes, 500u);
  EXPECT_EQ(segment.blocks[1].state, BlockState::kPending);
  EXPECT_EQ(segment.blocks[1].requested_bytes, std::nullopt);
  EXPECT_EQ(segment.blocks[2].state, BlockState::kFree);
  EXPECT_EQ(segment.blocks[2].address, 5120u);
  const auto stack = snapshot->stacks.stack(segment.blocks[0].stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(snapshot->stacks.frame(stack[0]).function, "f");
  EXPECT_EQ(snapshot->stacks.frame(stack[0]).file, "train.py");
  EXPECT_EQ(snapshot->stacks.frame(stack[0]).line, 7);
  EXPECT_EQ(snapshot->traits.generation, "frames (2.1, 2.2)");
  EXPECT_TRUE(snapshot->traits.has_requested_bytes);
  EXPECT_TRUE(snapshot->traits.has_stacks);
  EXPECT_FALSE(snapshot->traits.has_time);
}

TEST(TorchSnapshotTest, AListOfSegmentsIsTheOldestGeneration) {
  const std::string segment = Dict({{"device", Int(0)},
                                    {"address", Int(4096)},
                                    {"total_size", Int(512)},
                                    {"segment_type", Text("small")},
                                    {"blocks", List({Dict({{"size", Int(512)}, {"state", Text("inactive")}})})}});
  const auto snapshot = TorchSnapshotLoad(List({segment}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->traits.generation, "segment list (up to 1.12)");
  EXPECT_TRUE(snapshot->segments[0].is_small_pool);
  EXPECT_FALSE(snapshot->traits.has_block_addresses);
  EXPECT_TRUE(TorchSnapshotLoad(List({})).ok());
}

// 2.0: no addresses; history[0] is the newest, and its size is about this block only if its address is.
TEST(TorchSnapshotTest, BlocksWithHistory) {
  const auto history = [](std::uint64_t addr, std::uint64_t size, const std::string& name) {
    return Dict({{"addr", Int(addr)}, {"real_size", Int(size)}, {"frames", List({Frame(name, 1)})}});
  };
  const auto block = [](std::uint64_t size, const std::string& state, const std::string& entries) {
    return Dict({{"size", Int(size)}, {"state", Text(state)}, {"history", entries}});
  };
  const auto snapshot = TorchSnapshotLoad(
      Top({Segment(4096, 2048,
                   {block(512, "active_allocated", List({history(4096, 500, "new"), history(4096, 400, "old")})),
                    block(512, "active_allocated", List({history(4096, 300, "other")})),
                    block(1024, "inactive", List({history(5120, 900, "freed")}))})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const auto& blocks = snapshot->segments[0].blocks;
  EXPECT_EQ(blocks[1].address, 4608u);
  EXPECT_EQ(blocks[0].requested_bytes, 500u);
  EXPECT_EQ(blocks[1].requested_bytes, std::nullopt);
  EXPECT_EQ(blocks[2].requested_bytes, std::nullopt);
  EXPECT_EQ(snapshot->stacks.frame(snapshot->stacks.stack(blocks[0].stack)[0]).function, "new");
  EXPECT_EQ(snapshot->traits.generation, "history (2.0)");
  EXPECT_FALSE(snapshot->traits.has_block_addresses);
}

TEST(TorchSnapshotTest, BothSpellingsOfPending) {
  const auto snapshot = TorchSnapshotLoad(Top({Segment(4096, 512, {Block(4096, 512, "active_awaiting_free")})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->segments[0].blocks[0].state, BlockState::kPending);
}

TEST(TorchSnapshotTest, ReadsEveryAction) {
  const auto snapshot = TorchSnapshotLoad(Top(
      {}, {List({}), List({Entry("alloc", {{"addr", Int(4096)},
                                           {"size", Int(2592136)},
                                           {"stream", Int(5)},
                                           {"time_us", Int(1772688692031317)},
                                           {"frames", List({Frame("g", 2)})},
                                           {"pool_id", Pair(Int(1), Int(2))}}),
                           Plain("free_requested", 1, 2), Plain("free_completed", 3, 4), Plain("segment_alloc", 5, 6),
                           Plain("segment_free", 7, 8), Plain("segment_map", 9, 10), Plain("segment_unmap", 11, 12),
                           Entry("oom", {{"device_free", Int(1000)}, {"size", Int(2097152)}, {"stream", Int(0)}}),
                           Entry("snapshot", {{"addr", Int(0)}, {"size", Int(11)}, {"stream", Int(0)}})})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->device_traces.size(), 2u);
  EXPECT_TRUE(snapshot->device_traces[0].empty());
  const std::vector<Event>& events = snapshot->device_traces[1];
  std::vector<Action> actions;
  for (const Event& event : events) actions.push_back(event.action);
  EXPECT_THAT(actions, ElementsAre(Action::kAlloc, Action::kFreeRequested, Action::kFreeCompleted,
                                   Action::kSegmentAlloc, Action::kSegmentFree, Action::kSegmentMap,
                                   Action::kSegmentUnmap, Action::kOom, Action::kSnapshot));
  EXPECT_EQ(events[0].size_bytes, 2592136u);
  EXPECT_EQ(events[0].stream, Stream{5});
  EXPECT_EQ(events[0].time_us, 1772688692031317);
  EXPECT_EQ(events[0].pool, (PoolId{1, 2}));
  EXPECT_NE(events[0].stack, trace::kNoStack);
  EXPECT_EQ(events[1].time_us, trace::kNoTime);
  EXPECT_EQ(events[1].stack, trace::kNoStack);
  EXPECT_EQ(events[7].address, 1000u);
  EXPECT_EQ(events[7].size_bytes, 2097152u);
  EXPECT_TRUE(snapshot->notes.empty());
  EXPECT_TRUE(snapshot->traits.has_time);
  EXPECT_TRUE(snapshot->traits.has_pool_ids);
  EXPECT_TRUE(snapshot->traits.has_stacks);
}

TEST(TorchSnapshotTest, SegmentsAreSortedByDeviceThenAddress) {
  const auto on = [](std::uint64_t device, std::uint64_t address) {
    return Segment(address, 512, {Block(address, 512, "inactive")}, {{"device", Int(device)}});
  };
  const auto snapshot = TorchSnapshotLoad(Top({on(1, 4096), on(0, 8192), on(0, 4096)}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->segments[0].address, 4096u);
  EXPECT_EQ(snapshot->segments[0].device, 0);
  EXPECT_EQ(snapshot->segments[1].address, 8192u);
  EXPECT_EQ(snapshot->segments[2].device, 1);
}

TEST(TorchSnapshotTest, EmptySnapshotsAreSnapshots) {
  const auto snapshot = TorchSnapshotLoad(Top({}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(snapshot->segments.empty());
  const auto half = TorchSnapshotLoad(Dict({{"segments", List({})}}));
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_THAT(NoteNames(*half), ElementsAre("missing_part 1"));
}

TEST(TorchSnapshotTest, OtherProgramsPicklesAreRefusedPolitely) {
  EXPECT_EQ(ErrorOf(Dict({{"episodes", Int(1)}, {"rewards", List({})}})),
            "this pickle is not a PyTorch memory snapshot: it is a dict without 'segments'; its keys are 'episodes', "
            "'rewards'");
  EXPECT_EQ(ErrorOf(Dict({})),
            "this pickle is not a PyTorch memory snapshot: it is a dict without 'segments'; it is empty");
  EXPECT_EQ(ErrorOf(List({Int(1)})),
            "this pickle is not a PyTorch memory snapshot: it is a list of which the first item is a number");
  EXPECT_EQ(ErrorOf(List({Dict({{"role", Text("user")}})})),
            "this pickle is not a PyTorch memory snapshot: it is a list of dicts that have no 'blocks'");
  EXPECT_EQ(ErrorOf(Int(1)), "this pickle is not a PyTorch memory snapshot: its top level is a number");
}

// The byte offsets below were counted in the emitted files: a dict starts where its '}' stands.
TEST(TorchSnapshotTest, StructureErrorsNameThePathAndTheByte) {
  const auto error = [](const std::vector<Item>& items) { return ErrorOf(Top({}, {List({Entry("alloc", items)})})); };
  EXPECT_THAT(error({{"size", Int(1)}, {"stream", Int(0)}}),
              testing::Eq("device_traces[0][0]: 'addr' is missing (byte 42)"));
  EXPECT_THAT(error({{"addr", Text("x")}, {"size", Int(1)}}),
              HasSubstr("device_traces[0][0]: 'addr' is a string, expected a number (byte "));
  EXPECT_THAT(error({{"addr", Int(1)}, {"size", Int(std::uint64_t{1} << 63)}}),
              HasSubstr("device_traces[0][0]: 'size' is 2^63 or more (byte "));
  EXPECT_THAT(error({{"addr", Int(1)}, {"size", Negative(-5)}}), HasSubstr("'size' is negative (byte "));
  EXPECT_THAT(error({{"addr", Int(1)}, {"size", Int(1)}, {"frames", Int(1)}}),
              HasSubstr("device_traces[0][0]: frames: expected a list, found a number"));
  EXPECT_THAT(error({{"addr", Int(1)}, {"size", Int(1)}, {"frames", List({Dict({{"line", Int(1)}})})}}),
              HasSubstr("device_traces[0][0]: frames[]: 'filename' is missing"));
  EXPECT_THAT(ErrorOf(Top({}, {Int(1)})), HasSubstr("device_traces[0]: expected a list, found a number"));
  EXPECT_THAT(ErrorOf(Top({}, {List({Int(1)})})), HasSubstr("device_traces[0][0]: expected a dict, found a number"));
  EXPECT_THAT(ErrorOf(Top({Int(1)})), HasSubstr("segments[0]: expected a dict, found a number"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 512, {Int(1)})})), HasSubstr("segments[0]: blocks[0]: expected a dict"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 512, {Block(4096, 512, "happy")})})), HasSubstr("'state' is 'happy'"));
}

TEST(TorchSnapshotTest, BlocksMustTileTheirSegment) {
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 1024, {Block(4096, 512, "inactive")})})),
              HasSubstr("segments[0]: the blocks end 512 bytes before the segment does"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 512, {Block(4096, 1024, "inactive")})})),
              HasSubstr("segments[0]: blocks[0]: 'size' is 1024, but 512 bytes of the segment are left"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 512, {Block(4096, 0, "inactive")})})), HasSubstr("'size' is 0"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 1024, {Block(4096, 512, "inactive"), Block(4609, 511, "inactive")})})),
              HasSubstr("segments[0]: blocks[1]: 'address' is 0x1201, but the block before ends at 0x1200"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 512, {})})), HasSubstr("the blocks end 512 bytes before"));
}

TEST(TorchSnapshotTest, SegmentsMustNotOverlap) {
  const std::string first = Segment(4096, 1024, {Block(4096, 1024, "inactive")});
  const std::string inside = Segment(4608, 1024, {Block(4608, 1024, "inactive")});
  EXPECT_EQ(ErrorOf(Top({inside, first})), "segments[0]: starts at 0x1200, inside segments[1], which ends at 0x1400");
}

TEST(TorchSnapshotTest, RangesBeyondTheAddressSpaceAreErrors) {
  const std::uint64_t high = (std::uint64_t{1} << 63) - 512;
  EXPECT_TRUE(TorchSnapshotLoad(Top({Segment(high, 512, {Block(high, 512, "inactive")})})).ok());
  EXPECT_THAT(ErrorOf(Top({Segment(high, 513, {Block(high, 513, "inactive")})})), HasSubstr("no such range"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 0, {})})), HasSubstr("no such range"));
  EXPECT_THAT(ErrorOf(Top({Segment(4096, 512, {Block(4096, 512, "inactive")}, {{"device", Int(1u << 31)}})})),
              HasSubstr("expected a device number"));
}

// One long list referred to from many places would unfold to far more than the file's size.
TEST(TorchSnapshotTest, ASharedTraceIsRefusedInsteadOfUnfolded) {
  std::string entries = "](";
  for (int i = 0; i < 300; ++i) entries += Plain("alloc", 1, 2);
  std::string traces = "](" + entries + "eq" + '\x01';
  for (int i = 0; i < 100000; ++i) traces += std::string("h") + '\x01';
  const auto snapshot = TorchSnapshotLoad(Dict({{"segments", List({})}, {"device_traces", traces + "e"}}));
  EXPECT_THAT(snapshot.status().message(), HasSubstr("is shared by several places"));
}

TEST(TorchSnapshotTest, TextsThatAreNotUtf8AreMended) {
  const auto snapshot =
      TorchSnapshotLoad(Top({}, {List({Entry("alloc", {{"addr", Int(1)},
                                                       {"size", Int(1)},
                                                       {"stream", Int(0)},
                                                       {"frames", List({Frame("bad\xff\xc3name", 1)})}})})}));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->stacks.frame(0).function, "bad??name");
  EXPECT_THAT(NoteNames(*snapshot), ElementsAre("invalid_utf8 1"));
}

TEST(TorchSnapshotTest, StreamsAboveTwoToThe63AreHandles) {
  for (const std::string& stream : {Negative(-2), Int(0xfffffffffffffffe)}) {
    const auto snapshot =
        TorchSnapshotLoad(Top({}, {List({Entry("alloc", {{"addr", Int(1)}, {"size", Int(1)}, {"stream", stream}})})}));
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ(Handle(snapshot->device_traces[0][0].stream), 0xfffffffffffffffeu);
  }
}

TEST(TorchSnapshotTest, BytesAfterThePickleAreCounted) {
  const auto snapshot = ReadTorchSnapshot(emit::File(Top({})) + "tail");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_THAT(NoteNames(*snapshot), ElementsAre("trailing_bytes 4"));
}

std::string SmallFile() {
  const std::string settings = Dict({{"PYTORCH_CUDA_ALLOC_CONF", Text("")}, {"max_split_size", Negative(-1)}});
  return emit::File(Top(
      {Segment(
          4096, 1024,
          {Block(4096, 512, "active_allocated", {{"frames", List({Frame("f", 1)})}}), Block(4608, 512, "inactive")})},
      {List({Plain("alloc", 4096, 500), Entry("oom", {{"device_free", Int(7)}, {"size", Int(512)}})})},
      {{"allocator_settings", settings}}));
}

TEST(TorchSnapshotTest, EveryTruncationIsAnError) {
  const std::string bytes = SmallFile();
  ASSERT_TRUE(ReadTorchSnapshot(bytes).ok());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto snapshot = ReadTorchSnapshot(bytes.substr(0, size));
    EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kDataLoss) << "cut at " << size;
  }
}

// No answer is wrong here but a crash: run under the sanitizers.
TEST(TorchSnapshotTest, EveryBitFlipGivesAnAnswer) {
  const std::string bytes = SmallFile();
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    refused += !ReadTorchSnapshot(flipped).ok();
  }
  EXPECT_GT(refused, bytes.size());  // most damage to structure is seen
}

}  // namespace
}  // namespace ashlar::formats
