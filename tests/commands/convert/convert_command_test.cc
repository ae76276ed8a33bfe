// ashlar convert, and own recordings as the other commands read them.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/formats/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kExample[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";

class ConvertTest : public CliTest {
 protected:
  // The converted file; what the program said about it is in `said_`.
  std::string Convert(const std::string& input, const std::string& name, const std::string& more = "") {
    const Result result = Run("convert '" + input + "' '" + folder_ + name + "' " + more);
    EXPECT_EQ(result.code, 0) << result.error;
    EXPECT_THAT(result.out, IsEmpty());
    said_ = result.error;
    return folder_ + name;
  }
  std::string Out(const std::string& arguments) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0) << result.error;
    return result.out;
  }

  std::string said_;
};

TEST_F(ConvertTest, ASnapshotThroughARecordingIsTheSame) {
  const std::string recording = Convert(kExample, "a.ashlar");
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_LT(FileBytes(recording).size(), FileBytes(kExample).size());
  const std::string again = Convert(recording, "b.pickle");
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(FileBytes(again), formats::WriteTorchSnapshot(*formats::ReadTorchSnapshot(FileBytes(kExample))));
  for (const std::string command : {"explain --capacity 12GiB ", "explain --json ", "replay --json "}) {
    EXPECT_EQ(Out(command + recording), Out(command + kExample)) << command;
  }
}

// A recording keeps names as the program gave them, whatever bytes they are.
TEST_F(ConvertTest, NamesOfAnyBytesReachNoTerminalAndNoSpreadsheet) {
  trace::Snapshot snapshot = *formats::ReadTorchSnapshot(FileBytes(kExample));
  const trace::FrameId frame = snapshot.stacks.InternFrame("@a\x1b[2J\xff.py", 3, "=cmd\x1b[2J\xc2\x9b\xff\x7f");
  const trace::StackId stack = snapshot.stacks.InternStack({frame});
  for (trace::SnapshotSegment& segment : snapshot.segments) {
    for (trace::SnapshotBlock& block : segment.blocks) block.stack = stack;
  }
  for (trace::EventList& events : snapshot.device_traces) {
    for (trace::Event& event : events.Mutable()) event.stack = stack;
  }
  const std::string recording = Write("any.ashlar", trace::Encode(snapshot));
  std::vector<std::string> texts;
  for (const std::string command : {"explain ", "explain --json ", "explain --format markdown "}) {
    texts.push_back(Out(command + recording));
    EXPECT_THAT(texts.back(), HasSubstr("=cmd"));
  }
  for (const std::string name : {"any.prom", "any.folded", "any.speedscope.json", "any.events.csv"}) {
    texts.push_back(FileBytes(Convert(recording, name)));
  }
  const std::string tables = Convert(recording, "tables/");
  for (const auto& entry : std::filesystem::directory_iterator(tables)) {
    texts.push_back(FileBytes(entry.path()));
    for (const char* formula : {"\n=", ",=", "\n@", ",@"}) {
      EXPECT_THAT(texts.back(), Not(HasSubstr(formula))) << entry.path();
    }
  }
  const std::string frames = FileBytes(tables + "frames.csv");
  EXPECT_THAT(frames, AllOf(HasSubstr(",'@a?[2J?.py,3,"), HasSubstr(",'=cmd?[2J???\n")));
  for (const std::string& text : texts) {
    EXPECT_TRUE(formats::IsUtf8(text));
    for (const char* control : {"\x1b", "\x7f", "\xc2\x9b", "\r"}) EXPECT_THAT(text, Not(HasSubstr(control)));
  }
  // Python would refuse a text that is no UTF-8; controls are kept.
  const std::string pickle = FileBytes(Convert(recording, "any.pickle"));
  EXPECT_THAT(pickle, HasSubstr("=cmd\x1b[2J\xc2\x9b?\x7f"));
}

TEST_F(ConvertTest, ATraceBecomesARecordingThatReplaysExactly) {
  std::string trace;
  for (int i = 0; i < 200; ++i) {
    trace += "a " + std::to_string(i) + " " + std::to_string(1000 + i * 70'001) + " " + std::to_string(i % 2) + "\n";
    if (i % 5 == 4) trace += "r " + std::to_string(i - 3) + " 9\n";
    if (i >= 3) trace += "f " + std::to_string(i - 3) + "\n";
    if (i % 50 == 49) trace += "y\ne\n";
  }
  const std::string recording =
      Convert(Write("t.trace", trace), "t.ashlar", "--conf max_split_size_mb:21 --capacity 64MiB");
  EXPECT_THAT(said_, HasSubstr("the events are those of a replay as torch-2.10"));
  const json replay = json::parse(Out("replay --json " + recording));
  EXPECT_EQ(replay["source"], "recording, device 0, warm: from the state in which the window begins");
  EXPECT_EQ(replay["conf"], "max_split_size_mb:21");
  EXPECT_GT(replay["fidelity"]["total"], 190);
  EXPECT_EQ(replay["fidelity"]["matched"], replay["fidelity"]["total"]);
  EXPECT_EQ(replay["fidelity"]["final_state_matches"], true);
  EXPECT_EQ(Convert(Write("copy.trace", trace), "copy2.trace"), folder_ + "copy2.trace");
  EXPECT_EQ(FileBytes(folder_ + "copy2.trace"), trace);
}

TEST_F(ConvertTest, WhatAFormatCannotCarryIsCounted) {
  const std::string trace = Convert(kExample, "a.trace");
  EXPECT_THAT(said_, HasSubstr("call stacks ("));
  EXPECT_THAT(said_, HasSubstr("failed requests, written as ordinary ones"));
  EXPECT_THAT(said_, HasSubstr("no times, segments, addresses and limits ("));
  const json of_trace = json::parse(Out("replay --json " + trace));
  const json of_snapshot = json::parse(Out(std::string("replay --cold --json ") + kExample));
  EXPECT_EQ(of_trace["requests"], of_snapshot["requests"]);
  EXPECT_EQ(of_trace["peak_allocated"], of_snapshot["peak_allocated"]);

  const std::string csv = Convert(kExample, "a.csv");
  EXPECT_THAT(said_, HasSubstr("lifetimes are all that is written"));
  const json bound_of_csv = json::parse(Out("bound --json --seconds 0 " + csv));
  const json bound = json::parse(Out(std::string("bound --json --seconds 0 ") + kExample));
  EXPECT_EQ(bound_of_csv["lower_bound"], bound["lower_bound"]);

  const std::string back = Convert(csv, "back.trace");
  const json of_csv = json::parse(Out("replay --json " + back));
  EXPECT_EQ(of_csv["peak_requested"], bound["lower_bound"]);
}

TEST_F(ConvertTest, DamageIsNamedAndTheRestKept) {
  const std::string bytes = FileBytes(Convert(kExample, "a.ashlar"));
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  const std::string rest = Convert(Write("damaged.ashlar", damaged), "rest.ashlar");
  EXPECT_THAT(said_, HasSubstr("does not have its checksum"));
  ExpectError(Run("explain " + Write("header.ashlar", "ASHLARTR" + std::string(16, 'x'))), 3, {"checksum"});
  ExpectError(Run("replay " + Write("short.ashlar", "ASHLARTR")), 3, {"within its header"});
}

TEST_F(ConvertTest, AnotherDatabaseGetsNoTablesOfOurs) {
  const std::string trace = Write("t.trace", "a 1 1000 0\n");
  const std::string fresh = FileBytes(Convert(trace, "fresh.sqlite"));
  std::filesystem::create_directory(folder_ + "closed");
  const std::string old = Write("closed/old.sqlite", std::string(100'000, 'x'));
  std::filesystem::permissions(folder_ + "closed", std::filesystem::perms(0555));
  std::filesystem::permissions(old, std::filesystem::perms(0666));
  const std::string as_user = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  if (std::system((as_user + "test -r " + trace + " -a -x '" + ASHLAR_PROGRAM + "'").c_str()) != 0) {
    GTEST_SKIP() << "no other user may run the program here";
  }
  const std::string command =
      as_user + "'" ASHLAR_PROGRAM "' convert " + trace + " " + old + " 2> " + folder_ + "error";
  EXPECT_EQ(std::system(command.c_str()), 0) << FileBytes(folder_ + "error");
  EXPECT_EQ(FileBytes(old), fresh);
}

TEST_F(ConvertTest, AFullDiskLeavesNoTables) {
  const std::string trace = Write("t.trace", std::string("a 1 1000 0\n"));
  for (const std::string to : {"tables", "sqlite"}) {
    const std::string out = folder_ + "new." + to;
    const std::string command = "bash -c \"ulimit -f 1; exec '" ASHLAR_PROGRAM "' convert " + std::string(kExample) +
                                " " + out + " --to " + to + "\" 2> " + folder_ + "error";
    EXPECT_NE(std::system(command.c_str()), 0);
    EXPECT_THAT(FileBytes(folder_ + "error"), HasSubstr("cannot write " + out));
    EXPECT_FALSE(std::filesystem::exists(out)) << to;
  }
}

// Not even the run's folder can be written: a line says so, and nothing is started.
TEST_F(ConvertTest, ATextThatIsInNoStackIsTold) {
  Convert(kExample, "cut.pickle", "--stack no_such_line");
  EXPECT_THAT(said_, HasSubstr("no stack has the text 'no_such_line'"));
  Convert(kExample, "cut.pickle", "--least-size 1MiB");
  EXPECT_EQ(said_.find("no stack"), std::string::npos);
}

TEST_F(ConvertTest, AFailureInALogIsNotDenied) {
  const std::string log = Write("a.csv",
                                "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:01.0,allocate,0x100,512,0\n"
                                "1,00:00:02.0,allocate failure,(nil),17179869184,0\n");
  const json out = json::parse(Out("explain --json " + log));
  EXPECT_THAT(out["headline"].get<std::string>(), HasSubstr("NO FAILURE IN THE REPLAY  device 0"));
  EXPECT_THAT(out["headline"].get<std::string>(), HasSubstr("; the log has 1 failed request"));
  EXPECT_EQ(out["verdict"], "unknown");
  EXPECT_THAT(out["evidence"].dump(), HasSubstr("1 failed request in the log itself is not replayed"));
}

TEST_F(ConvertTest, ErrorsSayTheMend) {
  ExpectError(Run(std::string("convert '") + kExample + "' " + folder_ + "a.xyz"), 2, {"a.xyz", "--to"});
  ExpectError(Run(std::string("convert '") + kExample + "' - --to hdf5"), 2, {"'hdf5'", "ashlar, pickle, trace, "});
  ExpectError(Run("convert " + Write("x.log", "nothing") + " a.csv"), 3, {"x.log", "not a recording"});
  ExpectError(Run(std::string("convert '") + kExample + "' /no/such/folder/a.csv"), 3, {"cannot write"});
  const Result binary = Run(std::string("convert '") + kExample + "' - --to ashlar");
  EXPECT_EQ(binary.code, 0);
  EXPECT_EQ(binary.out, FileBytes(Convert(kExample, "a.ashlar")));
}

// A program of three steps with scopes, recorded live.
TEST_F(ConvertTest, ScopesArePhasesOfExplainAndDiff) {
  const std::string path = folder_ + "live.ashlar";
  {
    device::SimDevice device({.capacity_bytes = kGiB});
    core::CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch26));
    const std::unique_ptr<core::Recorder> recorder = *core::Recorder::ToFile(&allocator, path);
    for (int step = 0; step < 3; ++step) {
      ASHLAR_SCOPE("step");
      std::vector<core::Block*> blocks;
      {
        ASHLAR_SCOPE("forward");
        for (int i = 0; i < 20; ++i) blocks.push_back(*allocator.Allocate(3 * kMiB, Stream{0}));
      }
      ASHLAR_SCOPE("backward");
      for (core::Block* block : blocks) allocator.Free(block);
    }
  }
  // One recording is a document of its own, as with any other input.
  json out = json::parse(Out("explain --json " + path));
  if (out.is_array()) out = out[0];
  EXPECT_EQ(out["source"], "recording, device 0, 184 events") << out["source"];
  const json& program = out["program"];
  EXPECT_EQ(program["steps"].size(), 3u);
  std::vector<std::string> names;
  for (const json& phase : program["phases"]) names.push_back(phase["name"]);
  EXPECT_EQ(names, std::vector<std::string>({"forward", "backward", "forward", "backward", "forward", "backward"}));
  const std::string text = Out("explain " + path);
  EXPECT_THAT(text, HasSubstr("replayed as torch-2.6 (as recorded)"));
  EXPECT_THAT(text, HasSubstr("forward"));
  EXPECT_THAT(Out("diff " + path + " " + path), HasSubstr("DIFF"));
  EXPECT_EQ(Run("check " + path + " --max-ooms 0 --max-retries 0").code, 0);
  // As PyTorch's viewer reads it, the phases are still in their places.
  json pickled = json::parse(Out("explain --json " + Convert(path, "live.pickle")));
  if (pickled.is_array()) pickled = pickled[0];
  EXPECT_EQ(pickled["program"]["phases"], program["phases"]);
  EXPECT_EQ(pickled["program"]["steps"], program["steps"]);
}

}  // namespace
}  // namespace ashlar
