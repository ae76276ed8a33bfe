// The reader of a native program's log: rows of every kind, and logs that were cut, garbled or empty.
#include "analyzer/formats/native/native_log.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/recorded_replay.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/traced_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kHead[] = "ashlar-native-log 1\np 77 1000000\n";
constexpr char kStacks[] =
    "f 0 0x40 _ZN4pool4growEm /opt/my app/libpool.so\n"
    "f 1 0x80 main /opt/app\n"
    "f 2 0x10 - /lib/libc.so.6\n"
    "s 0 0 1 2\n"
    "s 1 1 2\n";

std::string Log(const std::string& rows) { return absl::StrCat(kHead, kStacks, rows); }

trace::Snapshot Read(const std::string& log) {
  absl::StatusOr<trace::Snapshot> out = formats::ReadNativeLog(log);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : trace::Snapshot{};
}

std::string Explained(const trace::Snapshot& snapshot) {
  const absl::StatusOr<answers::Explanation> out = answers::ExplainSnapshot(snapshot, {});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? report::ToText(*out) : "";
}

std::string NoteOf(const trace::Snapshot& snapshot, const std::string& name) {
  const auto it = snapshot.settings->values.find(trace::kDeviceCallsNote + name);
  return it == snapshot.settings->values.end() ? "" : it->second;
}

constexpr char kRun[] =
    "a 10 0 0x1000 4096 0x0 0 cudaMalloc\n"
    "a 20 0 0x200000 1048576 0x5 0 cudaMallocAsync\n"
    "d 30 0x1000 1 cudaFree\n"
    "o 40 0 9000000 500 10000000 0x0 0 cudaMalloc 2\n"
    "e 50\n";

TEST(NativeLogTest, EachLibraryHasWhatItAskedFor) {
  const std::string stacks =
      "f 7 0x40 ncclAllReduce /lib/libnccl.so.2\n"
      "s 7 7 1\n";
  const trace::Snapshot snapshot =
      Read(Log(stacks + "a 10 0 0x200000 2097152 0x0 7 cuMemAlloc_v2\na 20 0 0x1000000 8388608 0x0 1 cudaMalloc\n" +
               "g 30 0 1000000000 1020000000\nd 40 0x200000 7 cuMemFree_v2\ng 50 0 1005000000 1020000000\n"));
  const absl::StatusOr<answers::Explanation> explanation = answers::ExplainSnapshot(snapshot, {});
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  ASSERT_TRUE(explanation->memory.by_library.has_value());
  const answers::ByLibrary& whose = *explanation->memory.by_library;
  ASSERT_THAT(whose.owners, SizeIs(2));
  EXPECT_EQ(whose.owners[0].owner, "the program (app)");
  EXPECT_EQ(whose.owners[1].owner, "NCCL");
  EXPECT_EQ(whose.owners[1].file, "/lib/libnccl.so.2");
  EXPECT_EQ(whose.owners[1].bytes, 2097152U);
  EXPECT_EQ(whose.in_use_bytes, 20000000U) << "as the driver said when most had been asked for";
  EXPECT_EQ(whose.rest_bytes, 20000000U - 2097152U - 8388608U);
  const std::string text = Explained(snapshot);
  EXPECT_THAT(text, HasSubstr("2.00 MiB  in      1 blocks  NCCL (libnccl.so.2)"));
  EXPECT_THAT(text, HasSubstr("9.07 MiB  beside: the context"));
  EXPECT_THAT(report::ToMarkdown({*explanation}), HasSubstr("| 2.00 MiB | 1 | NCCL |"));
}

TEST(NativeLogTest, WhereTheDriverSaidNothingOnlyOneLibraryIsNoSection) {
  EXPECT_THAT(Explained(Read(Log("a 10 0 0x1000 4096 0x0 1 cudaMalloc\n"))), Not(HasSubstr("BY LIBRARY")));
  const trace::Snapshot wrong = Read(Log("a 10 0 0x1000 4096 0x0 1 cudaMalloc\ng 20 0 9 5\ng 21 7777 1 5\n"));
  EXPECT_THAT(Explained(wrong), Not(HasSubstr("BY LIBRARY")));
}

TEST(NativeLogTest, AnAllocationIsASegmentOfItsOwn) {
  const trace::Snapshot snapshot = Read(Log(kRun));
  ASSERT_THAT(snapshot.device_traces, SizeIs(1));
  std::vector<std::string> actions;
  for (const trace::Event& event : snapshot.device_traces[0]) actions.emplace_back(trace::ActionName(event.action));
  EXPECT_THAT(actions, ElementsAre("segment_alloc", "alloc", "segment_alloc", "alloc", "free_requested",
                                   "free_completed", "segment_free", "oom"));
  const trace::Event& second = snapshot.device_traces[0][3];
  EXPECT_EQ(second.address, 0x200000);
  EXPECT_EQ(second.size_bytes, 1048576);
  EXPECT_EQ(Handle(second.stream), 5);
  EXPECT_EQ(second.time_us, 1000020);
  ASSERT_THAT(snapshot.segments, SizeIs(1));
  EXPECT_EQ(snapshot.segments[0].blocks.at(0).size_bytes, 1048576);
  const auto frames = snapshot.stacks.stack(snapshot.device_traces[0][1].stack);
  ASSERT_THAT(frames, SizeIs(3));
  EXPECT_EQ(snapshot.stacks.frame(frames[0]).function, "pool::grow(unsigned long)");
  EXPECT_EQ(snapshot.stacks.frame(frames[0]).file, "/opt/my app/libpool.so");
  EXPECT_EQ(snapshot.stacks.frame(frames[2]).function, "+0x10");
  EXPECT_TRUE(trace::RecordsDeviceCalls(snapshot));
}

// All three formats, each read by its row of the table.
TEST(NativeLogTest, TheTraceIsTheSameInEveryFormat) {
  const std::string log = Log(kRun);
  EXPECT_EQ(formats::Sniff(log), formats::InputKind::kNativeLog);
  const std::string from_log = Explained(Read(log));
  for (const std::string& bytes : {trace::Encode(Read(log)), formats::WriteTorchSnapshot(Read(log)), log}) {
    const formats::ReadContent again = formats::FormatOf(bytes).read(bytes, {});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Explained(std::get<trace::Snapshot>(**again)), from_log);
  }
}

TEST(NativeLogTest, WhatIsExplainedIsTrue) {
  const std::string text = Explained(Read(Log(kRun)));
  EXPECT_THAT(
      text,
      HasSubstr("OUT OF MEMORY  device 0, event 7 of the recording: 8.58 MiB requested, 500 B free on the device"));
  EXPECT_THAT(text, HasSubstr("libpool.so pool::grow < main"));
  EXPECT_THAT(text, HasSubstr("NOT FREED   (1.00 MiB in 1 allocation when the trace ends)"));
  EXPECT_THAT(text, HasSubstr("no allocator's settings apply"));
  for (const char* of_an_allocator : {"fidelity", "PYTORCH", "expandable", "rounding", "cached", "replayed as"}) {
    EXPECT_THAT(text, Not(HasSubstr(of_an_allocator)));
  }
}

TEST(NativeLogTest, TheProgramsRequestsCanBeReplayed) {
  const absl::StatusOr<answers::ObservedRun> run = answers::ObserveSnapshot(Read(Log(kRun)), {});
  ASSERT_TRUE(run.ok()) << run.status();
  std::vector<std::string> requests;
  for (const trace::Op& request : run->recorded.program.requests.requests) {
    requests.push_back(absl::StrCat(static_cast<int>(request.kind), " ", request.id, " ", request.bytes));
  }
  EXPECT_THAT(requests, ElementsAre("0 0 4096", "0 1 1048576", "1 0 0", "0 2 9000000"));
  EXPECT_EQ(run->recorded.program.requests.id_count, 3);
  EXPECT_EQ(run->timeline.allocated_peak().bytes, 4096 + 1048576);
}

TEST(NativeLogTest, TheDeviceThatHeldMostIsChosenWhateverIsLeft) {
  const trace::Snapshot snapshot =
      Read(Log("a 1 0 0x1000 4096 0x0 0 cudaMalloc\na 2 3 0x9000 8192 0x0 0 cudaMalloc\nd 3 0x9000 0 cudaFree\ne 4\n"));
  EXPECT_EQ(replay::DeviceToExplain(snapshot), 3);
  EXPECT_THAT(Explained(snapshot), HasSubstr("the program used 2 devices; this is device 3"));
}

// Whatever is cut off, all whole rows before it are there.
TEST(NativeLogTest, ACutLogGivesWhatIsWholeInIt) {
  const std::string log = Log(kRun);
  const std::size_t rows = sizeof(kHead) - 1 + sizeof(kStacks) - 1;
  for (std::size_t size = rows; size < log.size(); ++size) {
    const trace::Snapshot snapshot = Read(log.substr(0, size));
    const std::string whole = log.substr(rows, log.rfind('\n', size - 1) + 1 - rows);
    std::size_t events = 0;
    for (const char* at = whole.c_str(); *at != '\0'; at = std::strchr(at, '\n') + 1) {
      events += *at == 'a' ? 2 : *at == 'd' ? 3 : *at == 'o' ? 1 : 0;
    }
    EXPECT_EQ(snapshot.device_traces.empty() ? 0 : snapshot.device_traces[0].size(), events) << size;
    EXPECT_EQ(NoteOf(snapshot, "cut_row").empty(), log[size - 1] == '\n') << size;
    EXPECT_THAT(NoteOf(snapshot, "unfinished"), HasSubstr("has no end")) << size;
    Explained(snapshot);
  }
}

TEST(NativeLogTest, RoomThatWasNotWrittenToIsNoRow) {
  const trace::Snapshot snapshot = Read(Log(kRun) + std::string(4096, '\0'));
  EXPECT_THAT(snapshot.device_traces.at(0), SizeIs(8));
  EXPECT_THAT(NoteOf(snapshot, "cut_row"), IsEmpty());
}

TEST(NativeLogTest, WhatCannotBeReadIsCounted) {
  const trace::Snapshot snapshot =
      Read(Log("a 10 0 0x1000 many 0x0 0 cudaMalloc\n"    // no number
               "a 10 0 0x1000 4096 0x0 0\n"               // a field short
               "a 10 0 0x1000 4096 0x0 0 cudaMalloc 7\n"  // one too many
               "garbage\n\n"
               "z 1 2 3\n"                                 // of a version to come
               "a 10 4000 0x1000 4096 0x0 0 cudaMalloc\n"  // no such device
               "a 10 0 0xffffffffffffffff 4096 0x0 0 cudaMalloc\n"
               "s 9 0 55\n"
               "a 10 0 0x1000 4096 0x0 9 cudaMalloc\n"
               "e 11\n"));
  EXPECT_THAT(NoteOf(snapshot, "garbled_rows"), HasSubstr("5 lines"));
  EXPECT_THAT(NoteOf(snapshot, "unknown_rows"), HasSubstr("1 rows"));
  EXPECT_THAT(NoteOf(snapshot, "impossible_rows"), HasSubstr("2 rows"));
  EXPECT_THAT(NoteOf(snapshot, "unknown_frames"), HasSubstr("1 frames"));
  ASSERT_THAT(snapshot.device_traces.at(0), SizeIs(2));
  EXPECT_THAT(snapshot.stacks.stack(snapshot.device_traces[0][0].stack), SizeIs(1));
}

TEST(NativeLogTest, CallsThatDoNotFitTogetherAreCounted) {
  const trace::Snapshot snapshot =
      Read(Log("d 1 0x7000 0 cudaFree\n"  // of before
               "a 2 0 0x1000 4096 0x0 0 cudaMalloc\n"
               "a 3 0 0x1800 4096 0x0 0 cudaMalloc\n"  // where the first still is
               "o 4 0 10 0 0 0x0 0 cudaMalloc 801\n"
               "m 5 0x900000 4096 0x77 0 0 cuMemMap\n"  // of a handle that was imported
               "e 6\n"));
  EXPECT_THAT(NoteOf(snapshot, "unknown_frees"), HasSubstr("1 "));
  EXPECT_THAT(NoteOf(snapshot, "unseen_frees"), HasSubstr("1 "));
  EXPECT_THAT(NoteOf(snapshot, "failed_calls_801"), HasSubstr("not for want of memory"));
  EXPECT_THAT(NoteOf(snapshot, "imported_memory"), HasSubstr("1 "));
  ASSERT_THAT(snapshot.segments, SizeIs(1));
  EXPECT_EQ(snapshot.segments[0].address, 0x1800);
  Explained(snapshot);
}

TEST(NativeLogTest, VirtualMemory) {
  const trace::Snapshot snapshot =
      Read(Log("c 1 0 0x9 8192 0 cuMemCreate\n"
               "m 2 0x10000 4096 0x9 0 0 cuMemMap\n"
               "m 3 0x20000 4096 0x9 4096 0 cuMemMap\n"  // its other half
               "m 4 0x30000 8192 0x9 0 0 cuMemMap\n"     // all of it again
               "c 5 -1 0xa 4096 0 cuMemCreate\n"         // the host's
               "m 6 0x40000 4096 0xa 0 0 cuMemMap\n"
               "u 7 0x10000 4096 1 cuMemUnmap\n"
               "u 8 0x20000 4096 1 cuMemUnmap\nk 9 0x20000 1\n"  // which failed
               "e 10\n"));
  ASSERT_THAT(snapshot.segments, SizeIs(1));
  EXPECT_EQ(snapshot.segments[0].address, 0x20000);
  EXPECT_THAT(NoteOf(snapshot, "mapped_again"), HasSubstr("1 "));
  EXPECT_THAT(NoteOf(snapshot, "host_memory"), HasSubstr("1 "));
  EXPECT_THAT(NoteOf(snapshot, "failed_frees_1"), HasSubstr("1 "));
}

TEST(NativeLogTest, AnEmptyLogIsAnAnswerAndAnotherVersionAnError) {
  EXPECT_THAT(Explained(Read(kHead)), HasSubstr("NO ALLOCATIONS RECORDED"));
  EXPECT_THAT(Explained(Read("ashlar-native-log 1")), HasSubstr("NO ALLOCATIONS RECORDED"));
  const absl::Status newer = formats::ReadNativeLog("ashlar-native-log 2\n").status();
  EXPECT_EQ(newer.message(), "a log of device calls of version 2; this program reads version 1: use a newer one");
  EXPECT_FALSE(formats::ReadNativeLog("").ok());
  EXPECT_FALSE(formats::ReadNativeLog("ashlar-native").ok());
}

// A log that is longer than may be held is its end, and the state at the end.
TEST(NativeLogTest, OfALongLogTheLastEventsAreHeld) {
  std::string rows;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&rows, "a ", 10 * i, " 0 0x", absl::Hex(0x10000 * (i + 1)), " ", 100 + i, " 0x0 0 cudaMalloc\n");
    if (i >= 5) absl::StrAppend(&rows, "d ", 10 * i + 5, " 0x", absl::Hex(0x10000 * (i - 4)), " 1 cudaFree\n");
    if (i == 250) absl::StrAppend(&rows, "k ", 10 * i + 6, " 0x", absl::Hex(0x10000 * 200), " 1\n");  // long ago
  }
  const std::string log = Log(rows + "e 99999\n");
  const trace::Snapshot whole = Read(log);
  const std::vector<trace::Event>& all = whole.device_traces.at(0);
  for (const std::uint64_t most : {1, 7, 50, 333}) {
    const absl::StatusOr<trace::Snapshot> part = formats::ReadNativeLog(log, {.max_events = most});
    ASSERT_TRUE(part.ok()) << part.status();
    const std::vector<trace::Event>& held = part->device_traces.at(0);
    EXPECT_GE(held.size(), most);
    EXPECT_LE(held.size(), most + 3);
    for (std::size_t i = 0; i < held.size(); ++i) {
      const trace::Event& same = all[all.size() - held.size() + i];
      EXPECT_EQ(held[i].action, same.action);
      EXPECT_EQ(held[i].address, same.address);
      EXPECT_EQ(held[i].time_us, same.time_us);
    }
    EXPECT_EQ(part->segments, whole.segments);
    EXPECT_EQ(part->windows.at(0).events_before, all.size() - held.size());
    EXPECT_THAT(NoteOf(*part, "window"), HasSubstr(absl::StrCat("(--max-events ", most, ")")));
    EXPECT_TRUE(answers::ExplainSnapshot(*part, {}).ok());
  }
}

}  // namespace
}  // namespace ashlar
