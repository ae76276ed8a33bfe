// ashlar watch as its user meets it: one look, lines into a file, a terminal that is as it was afterwards.
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

class WatchTest : public CliTest {
 protected:
  WatchTest() : device_({.capacity_bytes = kGiB}), allocator_(&device_, {}), path_(folder_ + "run.ashlar") {
    recorder_ = *core::Recorder::ToFile(&allocator_, path_);
    block_ = *allocator_.Allocate(30 * kMiB, Stream{0});
    allocator_.Free(*allocator_.Allocate(8 * kMiB, Stream{0}));
    EXPECT_EQ(recorder_->Flush(), absl::OkStatus());
  }

  // On a terminal of 80 columns; `stop` ends it once something was drawn. What the terminal got.
  template <typename Stop>
  std::string RunOnTerminal(Stop stop, int& status, bool& is_terminal_as_before) {
    winsize size{};
    size.ws_col = 80;
    size.ws_row = 24;
    int primary = -1;
    int replica = -1;
    EXPECT_EQ(openpty(&primary, &replica, nullptr, nullptr, &size), 0);
    termios before{};
    EXPECT_EQ(tcgetattr(replica, &before), 0);
    const pid_t child = fork();
    if (child == 0) {
      login_tty(replica);
      setenv("TERM", "xterm", 1);
      execl(ASHLAR_PROGRAM, ASHLAR_PROGRAM, "watch", path_.c_str(), "--interval", "0.1", nullptr);
      _exit(127);
    }
    std::string out;
    bool is_stopped = false;
    char part[4096];
    // The replica stays open here, so that what the terminal is afterwards can be asked.
    while (out.find("\033[?1049l") == std::string::npos) {
      const ssize_t count = read(primary, part, sizeof(part));
      if (count <= 0) break;
      out.append(part, static_cast<std::size_t>(count));
      if (is_stopped || out.find("q ends the view") == std::string::npos) continue;
      stop(primary, child);
      is_stopped = true;
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    termios after{};
    EXPECT_EQ(tcgetattr(replica, &after), 0);
    is_terminal_as_before = before.c_lflag == after.c_lflag;
    close(primary);
    close(replica);
    return out;
  }

  device::SimDevice device_;
  core::CachingAllocator allocator_;
  const std::string path_;
  std::unique_ptr<core::Recorder> recorder_;
  core::Block* block_ = nullptr;
};

TEST_F(WatchTest, OneLookWhileTheProgramRecords) {
  const std::string pid = std::to_string(getpid());
  for (const std::string& input : {path_, pid}) {
    const Result result = Run("watch '" + input + "' --once");
    EXPECT_EQ(result.code, 0) << result.error;
    EXPECT_THAT(result.out, HasSubstr("  reserved        50.00 MiB"));
    EXPECT_THAT(result.out, HasSubstr("  allocated       30.00 MiB"));
    EXPECT_THAT(result.out, HasSubstr("  largest free    20.00 MiB"));
    EXPECT_THAT(result.out, HasSubstr("not ended"));
  }
  const Result as_json = Run("watch '" + path_ + "' --json");
  EXPECT_EQ(nlohmann::json::parse(as_json.out)["allocated_bytes"], 30 * kMiB);
}

TEST_F(WatchTest, LinesUntilTheEnd) {
  ASSERT_EQ(recorder_->Finish(), absl::OkStatus());
  const Result result = Run("watch '" + path_ + "' --interval 0.1");
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("s  reserved 50.00 MiB  allocated 30.00 MiB"));
  EXPECT_THAT(result.out, testing::EndsWith("ended\n"));
}

// A process that records, and is killed after its first bytes.
TEST_F(WatchTest, EndsWhereTheWriterIsDead) {
  const std::string path = folder_ + "dead.ashlar";
  const pid_t child = fork();
  if (child == 0) {
    device::SimDevice device({.capacity_bytes = kGiB});
    core::CachingAllocator allocator(&device, {});
    const auto recorder = *core::Recorder::ToFile(&allocator, path);
    (void)*allocator.Allocate(30 * kMiB, Stream{0});
    (void)recorder->Flush();
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const Result result = Run("watch '" + path + "' --interval 0.1");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("allocated 30.00 MiB"));
  EXPECT_EQ(result.error, "ashlar: " + path + ": nobody writes it any more\n");
  EXPECT_EQ(nlohmann::json::parse(Run("watch '" + path + "' --json").out)["stopped"], "nobody writes it any more");
}

// While it is watched something happens to the file; what the program says at its end.
TEST_F(WatchTest, EndsWhereTheFileIsGoneReplacedOrCut) {
  const std::string path = "'" + path_ + "'";
  const std::string watch = "watch " + path + " --interval 0.1";
  const Result gone = Run(watch, "& pid=$!; sleep 2; ln " + path + " " + path + "1; rm " + path + "; wait $pid");
  EXPECT_EQ(gone.code, 0);
  EXPECT_THAT(gone.error, testing::EndsWith("run.ashlar: the file is gone\n"));
  ASSERT_EQ(std::rename((path_ + "1").c_str(), path_.c_str()), 0);
  const Result replaced = Run(watch, "& pid=$!; sleep 2; ln " + path + " " + path + "2; echo new > " + path + "3; mv " +
                                         path + "3 " + path + "; wait $pid");
  EXPECT_EQ(replaced.code, 0);
  EXPECT_THAT(replaced.error, testing::EndsWith("run.ashlar: another file has its name now\n"));
  ASSERT_EQ(std::rename((path_ + "2").c_str(), path_.c_str()), 0);
  const Result cut = Run(watch, "& pid=$!; sleep 2; truncate -s 20 " + path + "; wait $pid");
  EXPECT_EQ(cut.code, 3);
  EXPECT_THAT(cut.error, HasSubstr("run.ashlar: the file was cut to 20 bytes"));
}

TEST_F(WatchTest, AProgramThatRecordsIsWatchedOn) {
  const Result result = Run("watch '" + path_ + "' --interval 0.1", "& pid=$!; sleep 2; kill -TERM $pid; wait $pid");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.error, "");
  EXPECT_GT(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
}

TEST_F(WatchTest, APipeIsRefused) {
  ASSERT_EQ(mkfifo((folder_ + "pipe").c_str(), 0600), 0);
  ExpectError(Run("watch --once '" + folder_ + "pipe'"), 3, {"no file that can be read while it grows"});
}

TEST_F(WatchTest, QEndsTheViewAndTheTerminalIsAsBefore) {
  int status = 0;
  bool is_as_before = false;
  const std::string out =
      RunOnTerminal([](int terminal, pid_t) { EXPECT_EQ(write(terminal, "q", 1), 1); }, status, is_as_before);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(is_as_before);
  EXPECT_THAT(out, HasSubstr("30.00 MiB"));
  EXPECT_THAT(out, HasSubstr("\033[?25h")) << "the cursor is back";
}

TEST_F(WatchTest, SoDoCtrlCAndASignal) {
  int status = 0;
  bool is_as_before = false;
  RunOnTerminal([](int terminal, pid_t) { EXPECT_EQ(write(terminal, "\003", 1), 1); }, status, is_as_before);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0 && is_as_before) << status;
  RunOnTerminal([](int, pid_t child) { kill(child, SIGTERM); }, status, is_as_before);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0 && is_as_before) << status;
}

// A process that answers SIGUSR1 as the recorder in a Python program does, or in another way.
class WatchNamesTest : public CliTest {
 protected:
  WatchNamesTest() {
    trace::Snapshot snapshot;
    const std::uint64_t address = std::uint64_t{1} << 40;
    snapshot.segments.push_back({0,
                                 address,
                                 30 * kMiB,
                                 Stream{},
                                 false,
                                 false,
                                 {},
                                 trace::kNoStack,
                                 {{address, 30 * kMiB, 30 * kMiB, trace::BlockState::kLive, trace::kNoStack}}});
    trace::Holders& names = snapshot.holders.emplace();
    names.when = "signal 10";
    names.holders.resize(1);
    names.holders[0].kind = "local";
    names.holders[0].name = "losses[]";
    names.holders[0].file = "/home/me/train.py";
    names.holders[0].line = 31;
    names.blocks.push_back({address, 0, {}});
    Write("names.pickle", formats::WriteTorchSnapshot(snapshot));
  }
  ~WatchNamesTest() override {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  // `on_usr1`: what its shell does then.
  std::string Start(const std::string& on_usr1, bool says_so = true) {
    const std::string script = "cd \"$ASHLAR_RECORD\"; " + (on_usr1.empty() ? "" : "trap '" + on_usr1 + "' USR1; ") +
                               (says_so ? ": > usr1-$$; " : "") + ": > ready; while :; do sleep 0.05; done";
    process_ = fork();
    if (process_ == 0) {
      setenv("ASHLAR_RECORD", folder_.c_str(), 1);
      execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 200 && access((folder_ + "ready").c_str(), F_OK) != 0; ++i) {
      usleep(20'000);
    }
    return std::to_string(process_);
  }

  pid_t process_ = 0;
};

TEST_F(WatchNamesTest, TheRecorderIsAskedAndItsAnswerIsShown) {
  const std::string pid = Start("cp names.pickle part; mv part history-$$.pickle");
  // By its own number, and by that of a process above it, as a launcher is.
  for (const std::string& asked : {pid, std::to_string(getpid())}) {
    const Result result = Run("watch " + asked + " --names");
    EXPECT_EQ(result.code, 0) << result.error;
    EXPECT_THAT(result.out, HasSubstr("process " + pid + ", "));
    EXPECT_THAT(result.out,
                HasSubstr("WHO HOLDS IT   (by its name in the program, at the signal 10; 100.0 % of 30.00 MiB)"));
    EXPECT_THAT(result.out, HasSubstr("30.00 MiB  in      1 blocks  losses[] in train.py:31"));
    EXPECT_THAT(result.out, HasSubstr("ashlar explain " + folder_ + "history-" + pid + ".pickle"));
  }
}

TEST_F(WatchNamesTest, AProcessThatDoesNotSayThatItAnswersIsLeftAlone) {
  const std::string pid = Start("", /*says_so=*/false);
  ExpectError(Run("watch " + pid + " --names"), 3, {"process " + pid + " cannot be asked for names", "ashlar record"});
  EXPECT_EQ(kill(process_, 0), 0) << "a signal would have ended it";
  EXPECT_EQ(waitpid(process_, nullptr, WNOHANG), 0);
}

TEST_F(WatchNamesTest, AProcessThatEndsInsteadIsToldAsThat) {
  const std::string pid = Start("exit 0");
  std::thread reaper([this] { waitpid(process_, nullptr, 0); });
  ExpectError(Run("watch " + pid + " --names"), 3, {"process " + pid + " has ended before it answered"});
  reaper.join();
  process_ = 0;
}

TEST_F(WatchNamesTest, AFileIsNotAsked) {
  ExpectError(Run("watch '" + folder_ + "names.pickle' --names"), 2, {"--names", "give its number"});
  ExpectError(Run("watch 2147483647 --names"), 3, {"there is no process 2147483647"});
}

TEST_F(WatchTest, SaysWhatToDo) {
  ExpectError(Run("watch 2147483647"), 3, {"there is no process 2147483647"});
  ExpectError(Run("watch 1 --once"), 3, {"process 1"});
  ExpectError(Run("watch " ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle"), 3, {"ashlar explain reads it"});
  ExpectError(Run("watch '" + path_ + "' --interval 0"), 2, {"--interval", "0.05 and 3600"});
}

}  // namespace
}  // namespace ashlar
