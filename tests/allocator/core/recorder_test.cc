// The recorder's promises: what is on the disk after a kill, in a ring, on a full disk; scopes and stacks.
#include "allocator/core/recorder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/base/rng.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "analyzer/analyses/steps/program_phases.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/timeline/observed.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/trace/printed_snapshot.h"

namespace ashlar::core {
namespace {

// A program of one thread, the same for the same seed.
class Program {
 public:
  Program(CachingAllocator& allocator, device::SimDevice& device) : allocator_(allocator), device_(device) {}

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }

 private:
  void Step() {
    const std::uint64_t dice = rng_.Below(100);
    if (dice < 50) {
      const std::uint64_t bytes = rng_.Below(3) == 0 ? rng_.Between(1, 30 * kMiB) : rng_.Between(1, 200 * kKiB);
      const absl::StatusOr<Block*> block = allocator_.Allocate(bytes, Stream{rng_.Below(2)});
      if (block.ok()) blocks_.push_back(*block);
    } else if (dice < 95 && !blocks_.empty()) {
      std::swap(blocks_[rng_.Below(blocks_.size())], blocks_.back());
      if (dice < 60) allocator_.RecordStream(blocks_.back(), Stream{7});
      allocator_.Free(blocks_.back());
      blocks_.pop_back();
    } else if (dice < 98) {
      device_.CompleteAllWork();
    } else {
      allocator_.EmptyCache();
    }
  }

  CachingAllocator& allocator_;
  device::SimDevice& device_;
  Rng rng_{5};
  std::vector<Block*> blocks_;
};

struct Rig {
  explicit Rig(const std::string& conf = "", std::uint64_t capacity_bytes = 400 * kMiB)
      : device({.capacity_bytes = capacity_bytes}), allocator(&device, Options(conf)), program(allocator, device) {}
  device::SimDevice device;
  CachingAllocator allocator;
  Program program;
};

// What is on the disk without the end says which state it leads to, and that is the allocator's.
TEST(RecorderTest, ACutOffRecordingLeadsToTheState) {
  for (const char* conf : {"", "max_split_size_mb:21", "expandable_segments:True"}) {
    Rig rig(conf);
    rig.program.Run(500);
    const std::string path = TempFile("cut_off");
    std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&rig.allocator, path, {.chunk_bytes = 2048});
    for (int part = 0; part < 8; ++part) {
      rig.program.Run(150);
      ASSERT_EQ(recorder->Flush(), absl::OkStatus());
      absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->notes.at(0).name, "unfinished");
      EXPECT_FALSE(read->recording->is_complete);
      EXPECT_EQ(read->device_traces[0].size(), recorder->event_count());
      trace::Snapshot live;
      live.segments = rig.allocator.Segments();
      EXPECT_EQ(trace::PrintedSegments(*read), trace::PrintedSegments(live)) << conf << ", part " << part;
    }
    ExpectReplaysExactly(*trace::Decode(BytesOf(path)));
    std::remove(path.c_str());
  }
}

TEST(RecorderTest, ARingKeepsTheLastEventsAndReplaysThem) {
  for (const char* conf : {"", "expandable_segments:True"}) {
    Rig rig(conf);
    const std::string path = TempFile("ring");
    const std::unique_ptr<Recorder> recorder =
        *Recorder::Ring(&rig.allocator, {.ring_bytes = 8 * kKiB, .chunk_bytes = 1024});
    std::vector<trace::Event> before;
    for (int part = 0; part < 6; ++part) {
      rig.program.Run(400);
      ASSERT_EQ(recorder->Write(path), absl::OkStatus());
      const std::string bytes = BytesOf(path);
      const absl::StatusOr<trace::Snapshot> read = trace::Decode(bytes);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(read->notes.empty()) << read->notes.front().message;
      EXPECT_EQ(read->recording->events_before + read->device_traces[0].size(), recorder->event_count());
      EXPECT_EQ(read->recording->events_before > 0, part > 0) << part;
      EXPECT_LT(bytes.size(), 8 * kKiB + 16 * kKiB);
      ExpectReplaysExactly(*read);
    }
    // Without its last chunk the state is still there, the events are not: they do not lead to it.
    const std::string bytes = BytesOf(path);
    const absl::StatusOr<trace::Snapshot> cut = trace::Decode(bytes.substr(0, bytes.size() - 30));
    ASSERT_TRUE(cut.ok()) << cut.status();
    trace::Snapshot live;
    live.segments = rig.allocator.Segments();
    EXPECT_EQ(trace::PrintedSegments(*cut), trace::PrintedSegments(live));
    EXPECT_TRUE(cut->device_traces[0].empty());
    std::remove(path.c_str());
  }
}

// The child records and is killed in the middle; the parent runs the same program, and compares.
TEST(RecorderTest, AKilledProcessLosesAtMostTheLastChunk) {
  constexpr std::size_t kChunkBytes = 2048;
  const std::string path = TempFile("killed");
  void* shared = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* recorded = static_cast<std::uint64_t*>(shared);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Rig rig;
    const std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&rig.allocator, path, {.chunk_bytes = kChunkBytes});
    rig.program.Run(3000);
    *recorded = recorder->event_count();
    kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->notes.at(0).name, "unfinished");
  const std::vector<trace::Event>& events = read->device_traces.at(0);
  EXPECT_LE(events.size(), *recorded);
  EXPECT_GE(events.size() + kChunkBytes / 2, *recorded);  // no event takes less than two bytes
  EXPECT_GT(events.size(), 2000u);

  class List final : public trace::EventSink {
   public:
    void OnEvent(const trace::Event& event, std::uint64_t) override { events.push_back(event); }
    std::vector<trace::Event> events;
  } list;
  Rig rig;
  rig.allocator.SetSink(&list);
  rig.program.Run(3000);
  ASSERT_EQ(list.events.size(), *recorded);
  list.events.resize(events.size());
  EXPECT_EQ(FirstDifference(list.events, events), "");
  // The last request may be cut off before its own event: the segments it obtained are then no decision of a replay's.
  const absl::StatusOr<replay::RecordedReplay> replay = replay::ReplayAsRecorded({*read, 0}, {.keeps_timeline = true});
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->warm.fidelity.matched, replay->warm.fidelity.total);
  std::vector<trace::Event> whole = events;
  while (!whole.empty() && whole.back().action >= trace::Action::kSegmentAlloc &&
         whole.back().action <= trace::Action::kSegmentUnmap) {
    whole.pop_back();
  }
  const absl::Span<const trace::Event> replayed = replay->warm.timeline.events();
  ASSERT_GE(replayed.size(), whole.size());
  EXPECT_EQ(FirstDifference(whole, replayed.subspan(0, whole.size())), "");
  munmap(shared, sizeof(std::uint64_t));
  std::remove(path.c_str());
}

// As version 1 wrote them, both begun in the middle of a run.
TEST(RecorderTest, RecordingsOfVersion1AreReadAndReplayed) {
  for (const char* name : {"v1_plain", "v1_expandable"}) {
    const std::string bytes =
        BytesOf(absl::StrCat(ASHLAR_SOURCE_DIR "/tests/allocator/core/recordings/", name, ".ashlar"));
    ASSERT_GT(bytes.size(), 1000u) << name;
    ASSERT_EQ(bytes[8], 1) << name;
    const absl::StatusOr<trace::Snapshot> read = trace::Decode(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->notes.empty());
    EXPECT_FALSE(read->recording->has_calls);
    EXPECT_FALSE(read->recording->start.has_value());
    EXPECT_GT(read->device_traces[0].size(), 200u);
    ExpectReplaysExactly(*read);
  }
}

// As version 2 wrote it, from the start of a run that collects garbage.
TEST(RecorderTest, ARecordingOfVersion2IsReadAndReplayed) {
  const std::string bytes = BytesOf(ASHLAR_SOURCE_DIR "/tests/allocator/core/recordings/v2.ashlar");
  ASSERT_GT(bytes.size(), 1000u);
  ASSERT_EQ(bytes[8], 2);
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->notes.empty());
  EXPECT_TRUE(read->recording->has_calls);
  EXPECT_GT(read->device_traces[0].size(), 200u);
  ExpectReplaysExactly(*read);
}

TEST(RecorderTest, ScopesArePhasesAndStacks) {
  Rig rig;
  const std::string path = TempFile("scopes");
  std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&rig.allocator, path);
  for (int step = 0; step < 3; ++step) {
    ASHLAR_SCOPE("step");
    std::vector<Block*> blocks;
    {
      ASHLAR_SCOPE("forward");
      for (int i = 0; i < 10; ++i) {
        ASHLAR_SCOPE("layer");
        blocks.push_back(*rig.allocator.Allocate(100 * kKiB, Stream{0}));
      }
    }
    ASHLAR_SCOPE("backward");
    for (Block* block : blocks) rig.allocator.Free(block);
  }
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  ASHLAR_SCOPE("nobody listens");
  absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->annotations.size(), 2u * 3 * (1 + 1 + 10 + 1));

  const absl::StatusOr<replay::RecordedReplay> replay = replay::ReplayAsRecorded({*read, 0});
  ASSERT_TRUE(replay.ok()) << replay.status();
  const absl::StatusOr<timeline::Timeline> timeline =
      timeline::MakeObservedTimeline({*read, 0}, replay::SizeRuleOf(replay->options));
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  const analyses::AnnotatedProgram program = analyses::ReadAnnotations(*timeline, read->annotations);
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_EQ(program.steps[0].begin, 0);
  EXPECT_EQ(program.steps[1].begin, program.steps[0].end);
  EXPECT_EQ(program.steps[2].end, timeline->event_count());
  int forwards = 0;
  for (const analyses::Phase& phase : program.phases) {
    if (phase.name != "forward" && phase.name != "backward") continue;
    const bool is_forward = phase.name == "forward";
    forwards += is_forward ? 1 : 0;
    EXPECT_EQ(phase.events.end - phase.events.begin, is_forward ? (forwards == 1 ? 11 : 10) : 20);
  }
  EXPECT_EQ(forwards, 3);
  for (const trace::Event& event : read->device_traces[0]) {
    const std::string wanted = event.action == trace::Action::kAlloc || event.action == trace::Action::kSegmentAlloc
                                   ? "stack scope:0:layer scope:0:forward scope:0:step"
                                   : "stack scope:0:backward scope:0:step";
    EXPECT_EQ(trace::PrintedStack(*read, event.stack), wanted);
  }
  std::remove(path.c_str());
}

// The error names the scopes that the pins come from, and that of a later block where one was freed before.
TEST(RecorderTest, AFailureNamesTheScopesOfItsPins) {
  Rig rig("", 64 * kMiB);
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(&rig.allocator, {.ring_bytes = 1024});
  std::vector<Block*> blocks;
  {
    ASHLAR_SCOPE("forward");
    ASHLAR_SCOPE("layer");
    for (int i = 0; i < 3; ++i) blocks.push_back(*rig.allocator.Allocate(10 * kMiB, Stream{0}));
    blocks.push_back(*rig.allocator.Allocate(3 * kMiB, Stream{0}));
  }
  for (std::size_t i = 0; i < 3; ++i) rig.allocator.Free(blocks[i]);
  rig.allocator.EmptyCache();
  for (int i = 0; i < 300; ++i) rig.allocator.Free(*rig.allocator.Allocate(1000, Stream{0}));  // the ring forgets it
  rig.allocator.EmptyCache();
  const absl::Status failed = rig.allocator.Allocate(50 * kMiB, Stream{0}).status();
  const std::uint64_t address = blocks.back()->address;
  const std::string pin = absl::StrCat("behind 3.00 MiB at 0x", absl::Hex(address), ", stream 0");
  EXPECT_TRUE(absl::StrContains(failed.message(), absl::StrCat(pin, ", from layer < forward"))) << failed;
  rig.allocator.Free(blocks.back());
  ASSERT_EQ((*rig.allocator.Allocate(3 * kMiB, Stream{0}))->address, address) << "the same place, in no scope";
  const absl::Status again = rig.allocator.Allocate(50 * kMiB, Stream{0}).status();
  EXPECT_TRUE(absl::StrContains(again.message(), pin)) << again;
  EXPECT_FALSE(absl::StrContains(again.message(), ", from ")) << again;
}

TEST(RecorderTest, StacksAreTheCallersOwn) {
  Rig rig;
  const std::string path = TempFile("stacks");
  RecorderSettings options;
  options.stack_of = [](const trace::Event& event, trace::StackTable& stacks) {
    const std::string name = event.size_bytes > kMiB ? "large" : "small";
    return stacks.InternStack({stacks.InternFrame("model.cc", 7, name)});
  };
  std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&rig.allocator, path, options);
  rig.program.Run(500);
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->stacks.stack_count(), 2u);
  for (const trace::Event& event : read->device_traces[0]) {
    EXPECT_EQ(trace::PrintedStack(*read, event.stack),
              event.size_bytes > kMiB ? "stack model.cc:7:large" : "stack model.cc:7:small");
  }
  for (const trace::SnapshotSegment& segment : read->segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      EXPECT_EQ(block.stack == trace::kNoStack, block.state == trace::BlockState::kFree);
    }
  }
  std::remove(path.c_str());
}

TEST(RecorderTest, SaysWhatTheWorldAnswered) {
  Rig rig("", 64 * kMiB);
  const std::unique_ptr<Recorder> recorder = *Recorder::Ring(&rig.allocator);
  ASSERT_TRUE(rig.allocator.SetMemoryFraction(0.5).ok());
  Block* block = *rig.allocator.Allocate(30 * kMiB, Stream{0});
  EXPECT_FALSE(rig.allocator.Allocate(30 * kMiB, Stream{0}).ok());
  rig.allocator.Free(block);
  rig.allocator.EmptyCache();
  const std::string path = TempFile("answers");
  ASSERT_EQ(recorder->Write(path), absl::OkStatus());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  namespace fact = trace::fact;
  const std::vector<trace::Fact> expected = {{fact::LimitSet{}, 0},  // when the ring began
                                             {fact::LimitSet{32 * kMiB}, 0},
                                             {fact::GrowthRefused{30 * kMiB}, 2},
                                             {fact::GrowthRefused{30 * kMiB}, 2},
                                             {fact::CacheEmptied{}, 5}};
  EXPECT_EQ(read->recording->facts, expected);
  EXPECT_EQ(read->recording->device_total_bytes, 64 * kMiB);
  std::remove(path.c_str());
}

TEST(RecorderTest, AFullDiskEndsTheRecordingAndNothingElse) {
  Rig rig;
  const absl::StatusOr<std::unique_ptr<Recorder>> nowhere =
      Recorder::ToFile(&rig.allocator, "/no/such/folder/x.ashlar");
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(nowhere.status().message(), "/no/such/folder/x.ashlar"));
  const absl::StatusOr<std::unique_ptr<Recorder>> full = Recorder::ToFile(&rig.allocator, "/dev/full");
  EXPECT_TRUE(absl::StrContains(full.status().message(), "/dev/full: the recording ends here")) << full.status();
  rig.program.Run(500);
  EXPECT_EQ(rig.allocator.Validate(), absl::OkStatus());
  const std::string path = TempFile("only_flush");
  std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&rig.allocator, path);
  EXPECT_EQ(recorder->Write(path + "2").code(), absl::StatusCode::kFailedPrecondition);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ashlar::core
