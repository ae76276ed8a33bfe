// Every snapshot of the shared corpus against figures that CPython's own pickle module counted (not this reader).
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "allocator/trace/codec.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "tests/shared_dir.h"

namespace ashlar::formats {
namespace {

struct Expected {
  const char* file;
  std::uint64_t segments, live, pending, free, devices, events;
  std::uint64_t reserved_bytes, active_bytes, requested_bytes;  // requested: of live and pending blocks
  std::uint64_t address_sum, size_sum, time_sum;                // over all events, modulo 2^64
  std::uint64_t frames, line_sum;                               // over the stacks of all events and blocks
  std::uint64_t annotations, settings;
};
std::ostream& operator<<(std::ostream& out, const Expected& e) { return out << e.file; }

constexpr Expected kExpected[] = {
    {"Charan6924__assignment2-systems__cs336_systems__memory_snapshot.075dd064.pickle.gz", 36, 114, 0, 34, 1, 9670,
     937426944, 524643328, 523168768, 1355362907619744768, 106298335952, 17239946284896559587u, 608938, 123829577, 0,
     9},
    {"Charran78__DocuBox__dump_snapshot.5741975d.pickle.gz", 12, 105, 0, 11, 1, 0, 109051904, 90861056, 90861056, 0, 0,
     0, 0, 0, 0, 8},
    {"LfieLike__SketchKV2__my_snapshot.658ce379.pickle.gz", 259, 839, 0, 29, 1, 1, 17133731840, 16397578240,
     16380108168, 139937209607680, 8, 1729931410850299, 9492, 11220962, 0, 8},
    {"MAGMA27__assignment2-systems__memory_snapshot.a80ccc7b.pickle.gz", 216, 229, 0, 226, 1, 5163, 14180941824,
     1377753600, 1373919236, 274689604375040, 176670901821, 9171964387590585046, 15978, 18429546, 0, 9},
    {"Wedsonlin__assignment2-systems__results__medium_1024_inference_memory_snapshot.1cfc21cd.pickle.gz", 108, 223, 0,
     16, 1, 3840, 3204448256, 1703677952, 1701711872, 118401123274752, 169965994272, 6850078418837379937, 240748,
     49484850, 0, 9},
    {"Wedsonlin__assignment2-systems__results__medium_1024_training_memory_snapshot.83e7cb0c.pickle.gz", 234, 885, 0,
     146, 1, 22331, 25178406912, 6874481152, 6870548484, 885003719554560, 496016003469, 2942211584727934241, 736511,
     56799612, 2, 9},
    {"Wedsonlin__assignment2-systems__results__medium_128_inference_memory_snapshot.77da8fef.pickle.gz", 98, 223, 0, 7,
     1, 3840, 1763704832, 1703276544, 1701310464, 117440440412160, 8553916704, 6850076320826057478, 240748, 49484850, 0,
     9},
    {"Wedsonlin__assignment2-systems__results__medium_128_training_memory_snapshot.0db7d8c0.pickle.gz", 377, 885, 0, 33,
     1, 19136, 7235174400, 6816891392, 6808535044, 620636190651392, 99917847123, 15689478280764104290u, 632691,
     47318666, 2, 9},
    {"Wedsonlin__assignment2-systems__results__medium_256_inference_memory_snapshot.e0143d82.pickle.gz", 101, 223, 0, 9,
     1, 3840, 1864368128, 1703333888, 1701367808, 116169245442048, 20734071072, 6850069735489942894, 240748, 49461810,
     0, 9},
    {"Wedsonlin__assignment2-systems__results__medium_256_training_memory_snapshot.8a4284c4.pickle.gz", 495, 885, 0,
     138, 1, 19430, 9265217536, 6837944832, 6829096964, 671724569816064, 133596583091, 16213937007518060951u, 639355,
     47318666, 2, 9},
    {"Wedsonlin__assignment2-systems__results__medium_512_inference_memory_snapshot.2afd8bc6.pickle.gz", 101, 223, 0,
     10, 1, 4998, 1981808640, 1703448576, 1701482496, 151992981909504, 49577730192, 8915805507605653991, 331779,
     68548332, 0, 9},
    {"Wedsonlin__assignment2-systems__results__medium_512_training_memory_snapshot.61dcd14d.pickle.gz", 400, 885, 0,
     156, 1, 22332, 12660506624, 6838108672, 6829260804, 800714554764800, 214511125395, 2944000933466672887, 736543,
     56799612, 2, 9},
    {"Yiyi-philosophy__LLM-inference__1.3b_snapshot.4bf3cd41.pickle.gz", 257, 785, 0, 163, 1, 1, 7608467456, 5683450880,
     5683449864, 140500535853056, 8896512, 0, 8402, 5546428, 0, 0},
    {"Yiyi-philosophy__LLM-inference__1.3b_snapshot.66f06b43.pickle.gz", 112, 541, 0, 52, 1, 1, 1851785216, 809461760,
     807625200, 140402178916352, 2224128, 0, 6204, 3563006, 0, 0},
    {"Yiyi-philosophy__LLM-inference__1.3b_snapshot.a228b8e3.pickle.gz", 266, 715, 0, 76, 1, 1, 6658457600, 3872498688,
     3872498160, 139686137346048, 8896512, 0, 8289, 4578766, 0, 0},
    {"Yiyi-philosophy__LLM-inference__1.3b_snapshot.c0cf1a83.pickle.gz", 112, 549, 0, 56, 1, 1, 1851785216, 809536512,
     807699472, 139822190559232, 2224128, 0, 6310, 3551800, 0, 0},
    {"Yiyi-philosophy__LLM-inference__log1__1.3b_snapshot.08fa910c.pickle.gz", 112, 541, 0, 52, 1, 1, 1851785216,
     809461760, 807625200, 140446604984320, 2224128, 0, 6204, 3459926, 0, 0},
    {"Yiyi-philosophy__LLM-inference__oom_snapshot.fc31f1ea.pickle.gz", 176, 460, 0, 3, 1, 1, 11844714496, 11840159744,
     11840159744, 0, 11840159744, 0, 4600, 2616948, 0, 0},
    {"ZijianDu__Attention__memory.9e5bfb67.pickle.gz", 370, 2799, 0, 220, 2, 0, 8143241216, 7626237952, 7575726912, 0,
     0, 0, 152, 102903, 0, 0},
    {"ZijianDu__Attention__memory.a632ffbe.pickle.gz", 449, 2754, 0, 351, 2, 0, 9225371648, 8537305088, 8509089292, 0,
     0, 0, 152, 102883, 0, 0},
    {"ZijianDu__Attention__memory.c005a26b.pickle.gz", 499, 2524, 0, 450, 2, 0, 16236150784, 8548367872, 8521811504, 0,
     0, 0, 127, 68940, 0, 0},
    {"bcrafton__assignment2-systems__memory_snapshot.06f51ae4.pickle.gz", 96, 447, 0, 103, 1, 6486, 4238344192,
     3072871424, 3064418304, 823534907519299584, 35042910744, 11501429569507416398u, 289778, 28146625, 2, 9},
    {"notHanmin__assignment2-systems__memory_snapshot.96f7f9d4.pickle.gz", 999, 1313, 0, 674, 1, 19464, 23842521088,
     16019091968, 15568596996, 2734876527351597568, 134488820295, 15705594743676730906u, 765524, 403348239, 4, 8},
    {"notHanmin__assignment2-systems__memory_snapshot_forward.27533b77.pickle.gz", 1722, 3478, 0, 680, 1, 8948,
     47234154496, 44607570432, 43727739906, 1257052950869491200, 37326498208, 15700549781320726044u, 842578, 705086055,
     0, 8},
    {"notHanmin__assignment2-systems__memory_snapshot_forward_without_mixed.335945ae.pickle.gz", 1423, 2997, 0, 214, 1,
     7600, 45730496512, 45107911168, 44046652420, 1061986031503638016, 42399669952, 13335293289871238201u, 687589,
     593099170, 0, 8},
    {"silmont2000__assignment2-systems__mem_snapshot.b61be409.pickle.gz", 9, 10, 0, 10, 1, 97, 3781165056, 31719936,
     31719428, 13558614913062912, 27993309980, 171950803214544430, 3160, 507259, 0, 8},
    {"silmont2000__assignment2-systems__memory_forward_bf16_128.d9ecf8be.pickle.gz", 43, 137, 0, 41, 1, 2811, 861929472,
     525286400, 523811840, 395191689953590272, 3396197376, 4982646186779887164, 108493, 36861614, 2, 8},
    {"silmont2000__assignment2-systems__memory_forward_fp32_128.769df2d4.pickle.gz", 29, 137, 0, 27, 1, 2043, 610271232,
     525286400, 523811840, 286002710769417216, 3317885952, 3621325684795303293, 73771, 26358212, 2, 8},
    {"volcengine__verl__mem.001e30bf.pickle.gz", 127, 534, 9, 95, 1, 0, 26189234176, 25513411584, 25483614352, 0, 0, 0,
     87780, 6347041, 0, 8},
};

void CountStack(const trace::Snapshot& snapshot, trace::StackId stack, Expected* count) {
  for (trace::FrameId id : snapshot.stacks.stack(stack)) {
    ++count->frames;
    count->line_sum += static_cast<std::uint64_t>(snapshot.stacks.frame(id).line);
  }
}

void CountBlock(const trace::Snapshot& snapshot, const trace::SnapshotBlock& block, Expected* count) {
  CountStack(snapshot, block.stack, count);
  count->live += block.state == trace::BlockState::kLive;
  count->pending += block.state == trace::BlockState::kPending;
  count->free += block.state == trace::BlockState::kFree;
  if (block.state == trace::BlockState::kFree) return;
  count->active_bytes += block.size_bytes;
  count->requested_bytes += block.requested_bytes.value_or(0);
}

void CountEvent(const trace::Snapshot& snapshot, const trace::Event& event, Expected* count) {
  ++count->events;
  count->address_sum += event.address;
  count->size_sum += event.size_bytes;
  if (event.time_us != trace::kNoTime) count->time_sum += static_cast<std::uint64_t>(event.time_us);
  CountStack(snapshot, event.stack, count);
}

Expected Count(const trace::Snapshot& snapshot) {
  Expected count{};
  count.segments = snapshot.segments.size();
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    count.reserved_bytes += segment.size_bytes;
    for (const trace::SnapshotBlock& block : segment.blocks) CountBlock(snapshot, block, &count);
  }
  count.devices = snapshot.device_traces.size();
  for (const auto& events : snapshot.device_traces) {
    for (const trace::Event& event : events) CountEvent(snapshot, event, &count);
  }
  count.annotations = snapshot.annotations.size();
  count.settings = snapshot.settings ? snapshot.settings->values.size() : 0;
  return count;
}

class TorchCorpusTest : public testing::TestWithParam<Expected> {};

TEST_P(TorchCorpusTest, CountsWhatPythonCounts) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  const Expected& want = GetParam();
  const auto bytes = ReadInput(*shared + "/corpus/" + want.file);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(Sniff(*bytes), InputKind::kPickle);
  const auto snapshot = ReadTorchSnapshot(*bytes);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const Expected got = Count(*snapshot);
  EXPECT_EQ(got.segments, want.segments);
  EXPECT_EQ(got.live, want.live);
  EXPECT_EQ(got.pending, want.pending);
  EXPECT_EQ(got.free, want.free);
  EXPECT_EQ(got.devices, want.devices);
  EXPECT_EQ(got.events, want.events);
  EXPECT_EQ(got.reserved_bytes, want.reserved_bytes);
  EXPECT_EQ(got.active_bytes, want.active_bytes);
  EXPECT_EQ(got.requested_bytes, want.requested_bytes);
  EXPECT_EQ(got.address_sum, want.address_sum);
  EXPECT_EQ(got.size_sum, want.size_sum);
  EXPECT_EQ(got.time_sum, want.time_sum);
  EXPECT_EQ(got.frames, want.frames);
  EXPECT_EQ(got.line_sum, want.line_sum);
  EXPECT_EQ(got.annotations, want.annotations);
  EXPECT_EQ(got.settings, want.settings);
  const auto recoded = trace::Decode(trace::Encode(*snapshot));
  ASSERT_TRUE(recoded.ok()) << recoded.status();
  EXPECT_EQ(WriteTorchSnapshot(*recoded), WriteTorchSnapshot(*snapshot));
  for (const trace::Note& note : snapshot->notes) ADD_FAILURE() << note.name << ": " << note.message;
}

INSTANTIATE_TEST_SUITE_P(Files, TorchCorpusTest, testing::ValuesIn(kExpected));

}  // namespace
}  // namespace ashlar::formats
