// libashlar_record.so over the hollow device: what it writes of a program, whatever the program does and however it
// ends.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/formats/native/device_calls.h"
#include "analyzer/formats/native/native_log.h"
#include "analyzer/timeline/rewind.h"
#include "gmock/gmock.h"
#include "tests/hollow/record/recorded_client.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

trace::Snapshot Read(const std::string& log) {
  absl::StatusOr<trace::Snapshot> out = formats::ReadNativeLog(log);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : trace::Snapshot{};
}

// Of the only log.
trace::Snapshot SnapshotOf(const Recorded& run) {
  EXPECT_THAT(run.logs, SizeIs(1));
  return run.logs.empty() ? trace::Snapshot{} : Read(run.logs.begin()->second);
}

std::vector<std::uint64_t> SizesOf(const trace::Snapshot& snapshot, int device, trace::Action action) {
  std::vector<std::uint64_t> out;
  const timeline::DeviceTrace trace(snapshot, device);
  for (const trace::Event& event : trace.events) {
    if (event.action == action) out.push_back(event.size_bytes);
  }
  return out;
}

std::vector<std::uint64_t> LiveSizes(const trace::Snapshot& snapshot) {
  std::vector<std::uint64_t> out;
  for (const trace::SnapshotSegment& segment : snapshot.segments) out.push_back(segment.size_bytes);
  return out;
}

std::vector<std::string> NotesOf(const trace::Snapshot& snapshot) {
  std::vector<std::string> out;
  for (const auto& [key, value] : snapshot.settings->values) {
    if (absl::StartsWith(key, trace::kDeviceCallsNote)) out.push_back(key.substr(sizeof(trace::kDeviceCallsNote) - 1));
  }
  return out;
}

TEST(RecordLibraryTest, EveryKindOfAllocationHasItsSizeAndItsFree) {
  const Recorded run = RunClient("kinds");
  ASSERT_EQ(run.code, 0);
  const std::vector<std::string> words = absl::StrSplit(run.output, absl::ByAnyChar(" \n"));  // "pitched N", "cube N"
  const trace::Snapshot snapshot = SnapshotOf(run);
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kAlloc),
              ElementsAre(3 * kMiB, 2 * kMiB, std::stoull(words[1]), std::stoull(words[3]), 5 * kMiB));
  EXPECT_EQ(SizesOf(snapshot, 0, trace::Action::kFreeCompleted), SizesOf(snapshot, 0, trace::Action::kAlloc));
  EXPECT_THAT(SizesOf(snapshot, 1, trace::Action::kAlloc), ElementsAre(7 * kMiB));
  ASSERT_THAT(LiveSizes(snapshot), ElementsAre(7 * kMiB));
  EXPECT_EQ(snapshot.segments.front().device, 1);
  EXPECT_EQ(analyses::StackLabel(snapshot.stacks, snapshot.segments.front().stack),
            absl::StrCat("record_client (anonymous namespace)::LeakHere < (anonymous namespace)::Kinds < main"));
  EXPECT_THAT(NotesOf(snapshot), ElementsAre("managed_memory", "stream_ordered"));
}

TEST(RecordLibraryTest, VirtualMemoryCountsWhileItIsMappedAndOnce) {
  const Recorded run = RunClient("virtual");
  ASSERT_EQ(run.code, 0);
  const trace::Snapshot snapshot = SnapshotOf(run);
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kAlloc), ElementsAre(4 * kMiB, 6 * kMiB));
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kFreeCompleted), ElementsAre(4 * kMiB, 6 * kMiB));
  EXPECT_THAT(NotesOf(snapshot), ElementsAre("mapped_again", "never_mapped"));
}

TEST(RecordLibraryTest, NoAddressHasTwoOwnersWhateverThreadsDo) {
  const Recorded run = RunClient("threads");
  ASSERT_EQ(run.code, 0);
  const trace::Snapshot snapshot = SnapshotOf(run);
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kAlloc), SizeIs(8000));
  EXPECT_THAT(LiveSizes(snapshot), IsEmpty());
  EXPECT_THAT(NotesOf(snapshot), IsEmpty());
}

TEST(RecordLibraryTest, AChildOfAForkHasALogOfItsOwn) {
  const Recorded run = RunClient("fork");
  ASSERT_EQ(run.code, 0);
  ASSERT_THAT(run.logs, SizeIs(2));
  const std::vector<std::string> words = absl::StrSplit(run.output, absl::ByAnyChar(" \n"));
  EXPECT_THAT(LiveSizes(Read(run.logs.at(absl::StrCat("native-", words[1], ".log")))), ElementsAre(5 * kMiB));
  EXPECT_THAT(LiveSizes(Read(run.logs.at(absl::StrCat("native-", words[3], ".log")))), ElementsAre(9 * kMiB));
}

TEST(RecordLibraryTest, AChildThatCallsNothingLeavesTheParentsLogAlone) {
  const trace::Snapshot snapshot = SnapshotOf(RunClient("fork late"));
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kAlloc), ElementsAre(3 * kMiB, 5 * kMiB));
  EXPECT_THAT(NotesOf(snapshot), IsEmpty());
}

TEST(RecordLibraryTest, NothingIsLostHoweverTheProcessEnds) {
  struct End {
    const char* how;
    int code;
  };
  for (const End& end : {End{"return", 0}, {"_exit", 0}, {"kill", 137}, {"term", 143}, {"abort", 134}}) {
    const Recorded run = RunClient(absl::StrCat("end ", end.how));
    EXPECT_EQ(run.code, end.code) << end.how;
    const trace::Snapshot snapshot = SnapshotOf(run);
    EXPECT_THAT(LiveSizes(snapshot), ElementsAre(5 * kMiB)) << end.how;
    const bool is_whole = std::string(end.how) == "return";
    EXPECT_EQ(NotesOf(snapshot), is_whole ? std::vector<std::string>{} : std::vector<std::string>{"unfinished"});
  }
}

TEST(RecordLibraryTest, AFailedAllocationIsARowWithWhatWasFree) {
  const Recorded run = RunClient("fail");
  EXPECT_EQ(run.output, "result 2\n");
  const trace::Snapshot snapshot = SnapshotOf(run);
  const trace::Event& failure = snapshot.device_traces[0].back();
  EXPECT_EQ(failure.action, trace::Action::kOom);
  EXPECT_EQ(failure.size_bytes, std::uint64_t{1} << 60);
  EXPECT_EQ(failure.address, kGiB - 4 * kMiB);  // the device rounds 3 MiB to its pages
  EXPECT_EQ(snapshot.settings->values.at(trace::DeviceTotalKey(0)), absl::StrCat(kGiB));
}

TEST(RecordLibraryTest, WhatTheDriverSaysIsInUseIsTold) {
  const trace::Snapshot snapshot = SnapshotOf(RunClient("end return"));
  const std::map<std::string, std::string>& values = snapshot.settings->values;
  EXPECT_EQ(values.at(formats::DeviceInUseKey(0)), absl::StrCat(6 * kMiB)) << "of 5 MiB, in pages of 2";
  EXPECT_EQ(values.at(formats::DeviceAskedKey(0)), absl::StrCat(5 * kMiB));
}

// By device, of the lines behind the client's own.
std::map<int, std::uint64_t> BytesTold(const std::string& output) {
  std::map<int, std::uint64_t> out;
  std::vector<std::string> lines = absl::StrSplit(output.substr(output.find("device 0")), '\n', absl::SkipEmpty());
  int device = -1;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.front() == "device") {
      device = std::stoi(words[1]);
      out[device] = 0;
    } else {
      out[device] += std::stoull(words[0]);
      EXPECT_TRUE(absl::EndsWith(line, "/record_client")) << line;
    }
  }
  return out;
}

TEST(RecordLibraryTest, WhatLibrariesHoldNowIsWhatTheLogSaysIsAlive) {
  const std::string torch = absl::StrCat("torch ", ASHLAR_FAKE_TORCH);
  for (const std::string& what :
       {std::string("kinds"), std::string("threads"), std::string("bad-frees"), std::string("fail"), torch}) {
    SCOPED_TRACE(what);
    const Recorded run = RunClient(what, "PRINT_LIBRARIES=1");
    std::map<int, std::uint64_t> alive = {{0, 0}, {1, 0}};
    for (const trace::SnapshotSegment& segment : SnapshotOf(run).segments) alive[segment.device] += segment.size_bytes;
    EXPECT_EQ(BytesTold(run.output), alive);
  }
}

TEST(RecordLibraryTest, MemoryThatIsMappedStillIsHeld) {
  EXPECT_EQ(BytesTold(RunClient("virtual", "PRINT_LIBRARIES=1").output),
            (std::map<int, std::uint64_t>{{0, 4 * kMiB}, {1, 0}}));
}

TEST(RecordLibraryTest, AResetLeavesNothingToLibraries) {
  EXPECT_EQ(BytesTold(RunClient("reset", "PRINT_LIBRARIES=1").output), (std::map<int, std::uint64_t>{{0, 0}, {1, 0}}));
}

TEST(RecordLibraryTest, AFreeThatFailsFreesNothing) {
  const Recorded run = RunClient("bad-frees");
  EXPECT_EQ(run.output, "result 1\n");
  const trace::Snapshot snapshot = SnapshotOf(run);
  EXPECT_THAT(LiveSizes(snapshot), ElementsAre(3 * kMiB));
  EXPECT_THAT(NotesOf(snapshot), ElementsAre("failed_frees_1"));
}

TEST(RecordLibraryTest, AResetGivesBackAndWhatItFoundIsSaid) {
  const trace::Snapshot snapshot = SnapshotOf(RunClient("reset"));
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kFreeCompleted), ElementsAre(3 * kMiB));
  EXPECT_THAT(LiveSizes(snapshot), ElementsAre(5 * kMiB));
  EXPECT_THAT(NotesOf(snapshot), ElementsAre("left_for_reset"));
}

TEST(RecordLibraryTest, FunctionsThatAreHandedOutAreRecordedToo) {
  const Recorded run = RunClient(absl::StrCat("handed ", ASHLAR_HOLLOW_DRIVER));
  ASSERT_EQ(run.code, 0);
  EXPECT_THAT(LiveSizes(SnapshotOf(run)), testing::UnorderedElementsAre(kMiB, 2 * kMiB, 3 * kMiB, 4 * kMiB));
}

TEST(RecordLibraryTest, ADriverThatWasOpenedForItselfAloneIsFoundAgain) {
  const Recorded run = RunRecorded(absl::StrCat(ASHLAR_LOCAL_CLIENT, " ", ASHLAR_FAKE_DRIVER), "");
  ASSERT_EQ(run.code, 0);
  const trace::Snapshot snapshot = SnapshotOf(run);
  EXPECT_THAT(SizesOf(snapshot, 0, trace::Action::kFreeCompleted), ElementsAre(3 * kMiB));
  EXPECT_THAT(LiveSizes(snapshot), ElementsAre(5 * kMiB));
}

// The hollow device answers for every library that a program opens: its dlsym is beneath the recorder's. What the
// recorder does not stand in for, cuInit among it, is the hollow device's too: the fake driver would leave it without a
// start.
TEST(RecordLibraryTest, ADriverThatWasOpenedForItselfAloneIsTheHollowDevices) {
  const Recorded run = RunRecorded(absl::StrCat(ASHLAR_LOCAL_CLIENT, " ", ASHLAR_FAKE_DRIVER), ASHLAR_HOLLOW_LIBRARY);
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(LiveSizes(SnapshotOf(run)), ElementsAre(5 * kMiB));
}

// Of the last allocation.
std::size_t FramesOf(const trace::Snapshot& snapshot) {
  return snapshot.stacks.stack(snapshot.device_traces[0].back().stack).size();
}

TEST(RecordLibraryTest, BesidePyTorchACallHasThePlaceThatMadeIt) {
  const Recorded first = RunClient(absl::StrCat("torch ", ASHLAR_FAKE_TORCH));
  EXPECT_EQ(first.code, 0);
  EXPECT_THAT(LiveSizes(SnapshotOf(first)), ElementsAre(5 * kMiB));
  EXPECT_EQ(FramesOf(SnapshotOf(first)), 1U);
  const Recorded late = RunClient(absl::StrCat("late-torch ", ASHLAR_FAKE_TORCH));
  EXPECT_EQ(late.code, 0);
  const trace::Snapshot snapshot = SnapshotOf(late);
  EXPECT_THAT(LiveSizes(snapshot), ElementsAre(3 * kMiB, 5 * kMiB));
  EXPECT_THAT(NotesOf(snapshot), ElementsAre("torch_came"));
  EXPECT_EQ(FramesOf(snapshot), 1U);
  EXPECT_GT(FramesOf(SnapshotOf(RunClient("end return"))), 1U);
}

TEST(RecordLibraryTest, BesidePyTorchMemoryInAStreamsOrderIsLeftOut) {
  const Recorded run = RunClient(absl::StrCat("torch-pool ", ASHLAR_FAKE_TORCH));
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(LiveSizes(SnapshotOf(run)), ElementsAre(5 * kMiB));
}

TEST(RecordLibraryTest, WithoutAFolderNothingIsWritten) {
  const Recorded run = RunClient("end return", "ASHLAR_RECORD=");
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.logs, IsEmpty());
  const Recorded wrong = RunClient("end return", "ASHLAR_RECORD=/no/such/folder");
  EXPECT_EQ(wrong.code, 0);
  EXPECT_THAT(wrong.logs, IsEmpty());
}

}  // namespace
}  // namespace ashlar
