// Signals and the terminal of a program that `ashlar dry-run`, `record` or `run-under` starts: each arrives once, as
// without us; what a launcher that was killed leaves goes once its program is gone.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using testing::AllOf;
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

  pid_t pid() const { return shell_; }
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
  const std::string& Reads() {
    Read();
    return shown_;
  }
  // The terminal goes away.
  void HangUp() {
    close(file_);
    file_ = -1;
  }

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

// Says its own number, counts the signals that come until 0.3 s after the last one, and says how often each
// came. The words decide what it does first: "group" and "session" for one of its own, "child" for a process beside it
// that counts too.
constexpr char kCountsEach[] = R"(#!/usr/bin/env python3
import os, signal, sys, time
NAMES = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")
came = dict.fromkeys(NAMES, 0)
end = time.monotonic() + 15
if "group" in sys.argv: os.setpgid(0, 0)
if "session" in sys.argv: os.setsid()
is_child = "child" in sys.argv and os.fork() == 0
def count(number, frame):
    came[signal.Signals(number).name] += 1
    global end
    end = time.monotonic() + 0.3
for name in NAMES: signal.signal(getattr(signal, name), count)
if is_child: time.sleep(0.1); end = time.monotonic() + 2
else: print("pid", os.getpid(), os.getppid(), flush=True)
while time.monotonic() < end: time.sleep(0.02)
told = " ".join("%s=%d" % (name[3:], came[name]) for name in NAMES)
if "child" in sys.argv and not is_child: os.wait()
print("child" if is_child else "counted", told, flush=True)
)";

constexpr char kEachOnce[] = "HUP=1 INT=1 QUIT=1 TERM=1 USR1=1 USR2=1";
constexpr char kNone[] = "HUP=0 INT=0 QUIT=0 TERM=0 USR1=0 USR2=0";

class EachSignalTest : public LaunchSignalsTest, public testing::WithParamInterface<const char*> {
 protected:
  EachSignalTest() {
    std::filesystem::current_path(folder_);  // where record keeps a history
    program_ = Write("counts_each", kCountsEach);
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }
  ~EachSignalTest() override { std::filesystem::current_path("/"); }

  std::string Command(const std::string& words = "") const {
    return std::string("'") + ASHLAR_PROGRAM + "' " + GetParam() + " -- " + program_ + " " + words;
  }
  std::string Said() const { return FileBytes(folder_ + "out"); }

  struct Numbers {
    pid_t program = 0;
    pid_t launcher = 0;
  };
  Numbers Ready(const std::function<std::string()>& said) const {
    const auto read = [&said] {
      Numbers out;
      const std::string text = said();
      const std::size_t at = text.find("pid ");
      if (at != std::string::npos) std::sscanf(text.c_str() + at, "pid %d %d\n", &out.program, &out.launcher);
      return out;
    };
    EXPECT_TRUE(Within20Seconds([&] { return read().launcher != 0; })) << said();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // the child's handlers
    return read();
  }
  // Lines of a shell without a terminal, whose group is its own.
  pid_t Shell(const std::string& lines) const {
    std::filesystem::remove(folder_ + "out");
    const pid_t shell = fork();
    if (shell == 0) {
      setsid();
      const std::string whole = "exec > '" + folder_ + "out' 2> '" + folder_ + "error'\n" + lines;
      execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
      _exit(127);
    }
    return shell;
  }
  static void SendEach(pid_t to) {
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) {
      EXPECT_EQ(kill(to, signal), 0) << signal;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // What a program says after each signal went to the launcher, or to its group.
  std::string Counted(const std::string& words, bool to_group) const {
    const pid_t launcher = Shell("exec " + Command(words));
    Ready([this] { return Said(); });
    SendEach(to_group ? -launcher : launcher);
    EXPECT_EQ(CodeOf(launcher), 0) << FileBytes(folder_ + "error");
    return Said();
  }

  std::string program_;
};

TEST_P(EachSignalTest, ArrivesOnceWithoutATerminal) {
  EXPECT_THAT(Counted("", false), HasSubstr(std::string("counted ") + kEachOnce));
  EXPECT_THAT(Counted("", true), HasSubstr(std::string("counted ") + kEachOnce));
}

// A signal for the launcher's process is for the program's; one for its group is for the whole group.
TEST_P(EachSignalTest, ReachesWhatTheProgramStartedWithItsGroupAlone) {
  EXPECT_THAT(Counted("child", false), HasSubstr(std::string("child ") + kNone));
  EXPECT_THAT(Counted("child", true),
              AllOf(HasSubstr(std::string("child ") + kEachOnce), HasSubstr(std::string("counted ") + kEachOnce)));
}

TEST_P(EachSignalTest, ArrivesOnceInAGroupOfTheProgramsOwn) {
  for (const char* own : {"group", "session"}) {
    EXPECT_THAT(Counted(own, false), HasSubstr(std::string("counted ") + kEachOnce)) << own;
    const pid_t launcher = Shell("exec " + Command(own));
    const Numbers numbers = Ready([this] { return Said(); });
    SendEach(-launcher);  // it left that group
    SendEach(-numbers.program);
    EXPECT_EQ(CodeOf(launcher), 0);
    EXPECT_THAT(Said(), HasSubstr(std::string("counted ") + kEachOnce)) << own;
  }
}

// Such a shell starts it with interrupts ignored, which a program may change.
TEST_P(EachSignalTest, ArrivesOnceInTheBackgroundOfAShellWithoutJobs) {
  const pid_t shell = Shell("trap : HUP INT QUIT TERM USR1 USR2\n" + Command() + " &\nwhile ! wait $!; do :; done\n");
  SendEach(Ready([this] { return Said(); }).launcher);
  EXPECT_EQ(CodeOf(shell), 0);
  EXPECT_THAT(Said(), HasSubstr(std::string("counted ") + kEachOnce));
}

TEST_P(EachSignalTest, ArrivesOnceWhenItsShellIsGone) {
  const pid_t shell = Shell(Command() + " &\n");
  EXPECT_EQ(CodeOf(shell), 0);
  SendEach(Ready([this] { return Said(); }).launcher);
  EXPECT_TRUE(Within20Seconds([&] { return Said().find("counted") != std::string::npos; }));
  EXPECT_THAT(Said(), HasSubstr(std::string("counted ") + kEachOnce));
}

TEST_P(EachSignalTest, ArrivesOnceInAScriptOnATerminal) {
  const std::string script = "trap : HUP INT QUIT TERM USR1 USR2\n" + Command() + "\n";
  for (const bool to_group : {false, true}) {
    TerminalShell shell(script);
    const Numbers numbers = Ready([&shell] { return shell.Reads(); });
    SendEach(to_group ? -shell.pid() : numbers.launcher);
    EXPECT_TRUE(shell.Shows(std::string("counted ") + kEachOnce)) << shell.shown();
  }
  TerminalShell shell(script);
  Ready([&shell] { return shell.Reads(); });
  shell.Type("\x03");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  shell.Type("\x1c");
  EXPECT_TRUE(shell.Shows("counted HUP=0 INT=1 QUIT=1 TERM=0 USR1=0 USR2=0")) << shell.shown();
}

TEST_P(EachSignalTest, ArrivesOnceInAJobOfATerminal) {
  for (const bool to_group : {false, true}) {
    TerminalShell shell("");
    ASSERT_TRUE(shell.Prompts()) << shell.shown();
    shell.Type(Command("child") + "\n");
    const Numbers numbers = Ready([&shell] { return shell.Reads(); });
    SendEach(to_group ? -numbers.launcher : numbers.launcher);
    EXPECT_TRUE(shell.Shows(std::string("counted ") + kEachOnce)) << shell.shown();
    EXPECT_TRUE(shell.Shows(std::string("child ") + (to_group ? kEachOnce : kNone))) << shell.shown();
  }
}

// The terminal tells its session's first process, which the program would be without us.
TEST_P(EachSignalTest, ATerminalsEndArrivesOnce) {
  const std::string said = folder_ + "said";
  {
    TerminalShell shell("exec " + Command("> '" + said + "'"));
    Ready([&said] { return FileBytes(said); });
    shell.HangUp();
    EXPECT_TRUE(Within20Seconds([&said] { return FileBytes(said).find("counted") != std::string::npos; }));
  }
  EXPECT_THAT(FileBytes(said), HasSubstr("counted HUP=1 INT=0"));
}

// Who looks for processes by our name means the launcher.
TEST_P(EachSignalTest, ArrivesOnceByName) {
  const pid_t launcher = Shell("exec " + Command());
  Ready([this] { return Said(); });
  const std::string ours = "pkill -USR1 -g " + std::to_string(launcher);
  EXPECT_EQ(std::system((ours + " -x ashlar").c_str()), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(std::system((ours + " -f '" + ASHLAR_PROGRAM + "'").c_str()), 0);
  EXPECT_EQ(CodeOf(launcher), 0);
  EXPECT_THAT(Said(), HasSubstr("USR1=2"));
}

TEST_P(EachSignalTest, TheEndOfTheWholeGroupIsTheProgramsToo) {
  const pid_t launcher = Shell("exec " + Command());
  const Numbers numbers = Ready([this] { return Said(); });
  kill(-launcher, SIGKILL);
  EXPECT_EQ(CodeOf(launcher), -SIGKILL);
  EXPECT_TRUE(Within20Seconds([&] { return kill(numbers.program, 0) != 0; }));
}

// What a process hands on to the program that it becomes is handed on: masks, ignored signals, limits, files. (Signals
// above 31 are the C library's own.)
constexpr char kHandsOn[] = R"(
import os, resource, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGALRM, signal.SIGTERM])
signal.signal(signal.SIGUSR2, signal.SIG_IGN); signal.signal(signal.SIGPIPE, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_NOFILE, (500, 600)); resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.umask(0o27); os.nice(3)
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
for number in (1, 2, 5): os.dup2(file, number)
for closed in sys.argv[2].split(): os.close(int(closed))
os.execvp(sys.argv[3], sys.argv[3:])
)";

TEST_P(EachSignalTest, WhatAProcessHandsOnIsAsWithoutUs) {
  const std::string script = Write("hands_on.py", kHandsOn);
  const auto handed = [&](const std::string& name, const std::string& closed, const std::string& command) {
    const std::string file = folder_ + name;
    std::system(("python3 '" + script + "' '" + file + "' '" + closed + "' " + command).c_str());
    return FileBytes(file);
  };
  const std::string ours = "'" + std::string(ASHLAR_PROGRAM) + "' " + GetParam() + " -- ";
  for (const std::string program : {"sed -nE 's/^(SigBlk|SigIgn):.*(.{8})$/\\1 \\2/p; /^Umask/p' /proc/self/status",
                                    "cat /proc/self/limits", "readlink /proc/self/fd/0 /proc/self/fd/2", "nice"}) {
    for (const char* closed : {"", "0", "0 2"}) {
      const std::string without = handed("file", closed, program);
      EXPECT_THAT(handed("file", closed, ours + program), testing::StartsWith(without)) << closed;  // then we report
    }
  }
  EXPECT_THAT(handed("file", "", "cat /proc/self/status"), HasSubstr("SigBlk:\t0000000000006200")) << "the test's own";
}

INSTANTIATE_TEST_SUITE_P(Commands, EachSignalTest, testing::Values("dry-run", "record", "run-under --record"),
                         [](const auto& command) {
                           std::string name = command.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return name;
                         });

}  // namespace
}  // namespace ashlar
