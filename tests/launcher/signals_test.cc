// Signals and the terminal of a program that `ashlar dry-run` starts: each arrives once, as without us; what a launcher
// that was killed leaves goes once its program is gone.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

bool Within20Seconds(const std::function<bool()>& is_done) {
  for (int i = 0; i < 400; ++i) {
    if (is_done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// A shell on a terminal of its own, with job control; what it shows is kept.
class TerminalShell {
 public:
  explicit TerminalShell(const std::string& lines) {
    shell_ = forkpty(&file_, nullptr, nullptr, nullptr);
    if (shell_ == 0) {
      setenv("PS1", "> ", 1);
      if (lines.empty()) execl("/bin/sh", "sh", "-i", "-m", nullptr);
      execl("/bin/sh", "sh", "-c", lines.c_str(), nullptr);
      _exit(127);
    }
  }
  ~TerminalShell() {
    close(file_);
    kill(shell_, SIGKILL);
    waitpid(shell_, nullptr, 0);
  }
  TerminalShell(const TerminalShell&) = delete;
  TerminalShell& operator=(const TerminalShell&) = delete;

  void Type(const std::string& text) const { EXPECT_EQ(write(file_, text.data(), text.size()), ssize_t(text.size())); }
  bool Shows(const std::string& text) {
    return Within20Seconds([&] {
      Read();
      return shown_.find(text) != std::string::npos;
    });
  }
  // Reads no more before it does: what is typed earlier may be thrown away.
  bool Prompts() {
    return Within20Seconds([&] {
      Read();
      return shown_.size() > 1 && shown_.compare(shown_.size() - 2, 2, "> ") == 0;
    });
  }
  const std::string& shown() const { return shown_; }

 private:
  void Read() {
    pollfd ready{file_, POLLIN, 0};
    char bytes[4096];
    while (poll(&ready, 1, 0) > 0) {
      const ssize_t got = read(file_, bytes, sizeof(bytes));
      if (got <= 0) return;
      shown_.append(bytes, static_cast<std::size_t>(got));
    }
  }

  int file_ = -1;
  pid_t shell_ = 0;
  std::string shown_;
};

class LaunchSignalsTest : public LaunchedTest {
 protected:
  // Counts the interrupts of some two seconds after it has said "ready", and ends with their number. A shell would take
  // two that come together for one.
  std::string Counting() const {
    const std::string path = Write("counting",
                                   "#!/usr/bin/env python3\nimport signal, sys, time\ncame = []\n"
                                   "signal.signal(signal.SIGINT, lambda *_: came.append(1))\n"
                                   "print('ready', flush=True)\nend = time.monotonic() + 2\n"
                                   "while time.monotonic() < end: time.sleep(0.05)\n"
                                   "print('counted:', len(came), flush=True)\nsys.exit(len(came))\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string Command(const std::string& program) const {
    return std::string("'") + ASHLAR_PROGRAM + "' dry-run -- " + program;
  }

  // In a process group of its own, without a terminal, once the program has written a line.
  pid_t Start(const std::string& program) const {
    const std::string out = folder_ + "out";
    std::filesystem::remove(out);
    const pid_t launcher = fork();
    if (launcher == 0) {
      setsid();
      const std::string command = "exec " + Command(program) + " > '" + out + "' 2> '" + folder_ + "error'";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    EXPECT_TRUE(Within20Seconds([&] { return FileBytes(out).find('\n') != std::string::npos; }));
    return launcher;
  }
  static int CodeOf(pid_t launcher) {
    int status = 0;
    waitpid(launcher, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

TEST_F(LaunchSignalsTest, AnInterruptArrivesOnceByWhicheverWay) {
  const pid_t alone = Start(Counting());
  kill(alone, SIGINT);
  EXPECT_EQ(CodeOf(alone), 1);
  const pid_t group = Start(Counting());
  kill(-group, SIGINT);
  EXPECT_EQ(CodeOf(group), 1);
}

// A cancelled job: an interrupt, then the end, to the whole group.
TEST_F(LaunchSignalsTest, ACancelledJobEndsAsWithoutUs) {
  const pid_t group = Start(Counting());
  kill(-group, SIGINT);
  kill(-group, SIGTERM);
  EXPECT_EQ(CodeOf(group), 128 + SIGTERM);
  EXPECT_THAT(FileBytes(folder_ + "error"), HasSubstr("signal 15 (SIGTERM)"));
}

TEST_F(LaunchSignalsTest, TheTerminalsInterruptArrivesOnce) {
  TerminalShell shell("");
  ASSERT_TRUE(shell.Prompts()) << shell.shown();
  shell.Type(Command(Counting()) + "\n");
  ASSERT_TRUE(shell.Shows("ready")) << shell.shown();
  shell.Type("\x03");
  EXPECT_TRUE(shell.Shows("counted: 1")) << shell.shown();
  EXPECT_TRUE(shell.Shows("DRY RUN") && shell.Prompts()) << shell.shown();
  shell.Type("echo 'the shell' has the terminal again\n");
  EXPECT_TRUE(shell.Shows("the shell has the terminal again")) << shell.shown();
}

// A script and what it starts are one job: the terminal's keys are for both.
TEST_F(LaunchSignalsTest, AScriptKeepsTheTerminalsKeys) {
  TerminalShell shell("trap 'echo the script too' INT\n" + Command(Counting()) + "\necho next\n");
  ASSERT_TRUE(shell.Shows("ready")) << shell.shown();
  shell.Type("\x03");
  EXPECT_TRUE(shell.Shows("counted: 1")) << shell.shown();
  EXPECT_TRUE(shell.Shows("the script too")) << shell.shown();
  EXPECT_TRUE(shell.Shows("next")) << shell.shown();
}

TEST_F(LaunchSignalsTest, AProgramIsStoppedAndGoesOnWithTheShellsJob) {
  TerminalShell shell("");
  const std::string program = Script("reading", "echo ready; read -r line; echo \"it read: $line\"\n");
  ASSERT_TRUE(shell.Prompts()) << shell.shown();
  shell.Type(Command(program) + "\n");
  ASSERT_TRUE(shell.Shows("ready")) << shell.shown();
  shell.Type("\x1a");
  ASSERT_TRUE(shell.Shows("Stopped") && shell.Prompts()) << shell.shown();
  shell.Type("echo 'the shell' goes on\n");
  ASSERT_TRUE(shell.Shows("the shell goes on") && shell.Prompts()) << shell.shown();
  shell.Type("fg\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  shell.Type("a word\n");
  EXPECT_TRUE(shell.Shows("it read: a word")) << shell.shown();
  EXPECT_TRUE(shell.Shows("DRY RUN")) << shell.shown();
}

TEST_F(LaunchSignalsTest, WhatAKilledLauncherLeavesGoesOnceItsProgramIsGone) {
  const pid_t launcher = Start(Script("lives", "echo $ASHLAR_HOLLOW_RUN $$\nexec sleep 60\n"));
  kill(launcher, SIGKILL);
  EXPECT_EQ(CodeOf(launcher), -SIGKILL);
  std::string said = FileBytes(folder_ + "out");
  const std::string run = said.substr(0, said.find(' '));
  const pid_t program = std::atoi(said.substr(run.size() + 1).c_str());
  const auto start_another = [&] {
    const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};  // young folders may not be locked yet
    utimensat(AT_FDCWD, run.c_str(), long_ago, 0);
    Run("dry-run -- true");
  };
  start_another();
  EXPECT_TRUE(std::filesystem::exists(run)) << "its program lives";
  kill(program, SIGKILL);
  EXPECT_TRUE(Within20Seconds([&] {
    start_another();
    return !std::filesystem::exists(run);
  }));
}

}  // namespace
}  // namespace ashlar
