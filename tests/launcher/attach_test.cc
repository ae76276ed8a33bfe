// `ashlar attach`: a look into programs that were not started under us. They are Python's own, and say of themselves
// that nothing of the look stayed; PyTorch is a stand-in that has not used CUDA, so that the answer is one line. The
// looks at real PyTorch are rows of conformance.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

constexpr const char* kNotYet = "it has not used PyTorch's CUDA yet";

bool WithinAMinute(const std::function<bool()>& is_done) {
  for (int i = 0; i < 3000; ++i) {
    if (is_done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

std::set<std::string> FoldersOfLooks() {
  std::set<std::string> out;
  for (const auto& one : std::filesystem::directory_iterator("/tmp")) {
    const std::string name = one.path().filename();
    if (name.rfind("ashlar-attach-", 0) == 0) out.insert(name);
  }
  return out;
}

class AttachTest : public CliTest {
 protected:
  ~AttachTest() override { End(); }

  // Runs `lines` once it has said "ready"; a library lies under the name by which PyTorch's CUDA is known. At its end
  // it says what it has beside what it had: modules, names of __main__, signal handlers, and its files in /tmp.
  void Start(const std::string& lines) {
    namespace fs = std::filesystem;
    fs::remove(folder_ + "said");
    fs::remove(folder_ + "stop");
    Dl_info library{};
    dladdr(reinterpret_cast<const void*>(&zlibVersion), &library);
    fs::copy_file(fs::canonical(library.dli_fname), folder_ + "libc10_cuda.so", fs::copy_options::overwrite_existing);
    const std::string program = Write("program.py", R"(import ctypes, os, signal, sys, threading, time, types
there = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libc10_cuda.so"))
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(is_initialized=lambda: False)
import json, pickle, importlib.util
STOP = os.path.join(os.path.dirname(__file__), "stop")
def is_over():
    return os.path.exists(STOP)
def mine():
    return sorted(sys.modules), sorted(globals()), [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
before = None
before = mine()
print("ready", flush=True)
)" + lines + R"(
print("same" if mine() == before else "other", flush=True)
)");
    program_ = fork();
    if (program_ == 0) {
      const int out = open((folder_ + "said").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execlp("python3", "python3", program.c_str(), nullptr);
      _exit(127);
    }
    ASSERT_TRUE(WithinAMinute([this] { return Said().find("ready\n") != std::string::npos; })) << Said();
  }

  std::string Said() const { return FileBytes(folder_ + "said"); }
  Result Attach(const std::string& flags = "") const { return Run("attach " + std::to_string(program_) + " " + flags); }

  // What the program said after "ready" once it was let end by itself; its exit code before.
  std::string LetEnd() {
    Write("stop", "");
    int status = 0;
    waitpid(program_, &status, 0);
    program_ = 0;
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    return std::to_string(WEXITSTATUS(status)) + " " + Said().substr(6);
  }
  void End() {
    if (program_ == 0) return;
    kill(program_, SIGKILL);
    waitpid(program_, nullptr, 0);
    program_ = 0;
  }

  pid_t program_ = 0;
};

constexpr const char* kCounts = R"(
count = wrong = 0
count = wrong = 0
before = mine()
while not is_over():
    total = 0.0
    for i in range(2000):
        total += i * 0.5
    count += 1
    wrong += total != 999500.0
print(count > 0, wrong)
del i, total
)";

TEST_F(AttachTest, AProgramThatComputesAnswersAndKeepsNothing) {
  Start(kCounts);
  for (int i = 0; i < 3; ++i) ExpectError(Attach(), 3, {std::to_string(program_), kNotYet});
  EXPECT_EQ(LetEnd(), "0 True 0\nsame\n");
}

TEST_F(AttachTest, OneThatWaitsForALockOfPythonAnswers) {
  Start(R"(
event = threading.Event()
def work():
    while not is_over(): time.sleep(0.01)
    event.set()
worker = threading.Thread(target=work)
before = mine()
before = mine()
worker.start()
event.wait()
)");
  ExpectError(Attach(), 3, {kNotYet});
  EXPECT_EQ(LetEnd(), "0 same\n");
}

TEST_F(AttachTest, OneThatSleepsOrHoldsTheGilIsLeftAlone) {
  for (const char* sleep : {"time.sleep(4)", "ctypes.PyDLL(None).sleep(4)"}) {
    Start(std::string("began = time.monotonic()\nbefore = mine()\n") + sleep +
          "\nprint(time.monotonic() - began >= 3.99)\n");
    ExpectError(Attach("--timeout 1"), 3, {"has run no line of Python in its main thread for 1 s", "--timeout"});
    EXPECT_EQ(LetEnd(), "0 True\nsame\n") << sleep;
  }
}

TEST_F(AttachTest, SignalsOnTheWayArrive) {
  Start(R"(
came = []
signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
sent = 0
before = mine()
while not is_over():
    signal.raise_signal(signal.SIGUSR1)
    sent += 1
print(sent > 0, sent == len(came))
)");
  for (int i = 0; i < 5; ++i) ExpectError(Attach(), 3, {kNotYet});
  EXPECT_EQ(LetEnd(), "0 True True\nsame\n");
}

TEST_F(AttachTest, ToKillItInTheMiddleDoesTheProgramNoHarm) {
  Start(kCounts);
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const pid_t attach = fork();
    if (attach == 0) {
      const int out = open("/dev/null", O_WRONLY);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execl(ASHLAR_PROGRAM, "ashlar", "attach", std::to_string(program_).c_str(), nullptr);
      _exit(127);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    kill(attach, SIGKILL);
    waitpid(attach, nullptr, 0);
  }
  EXPECT_TRUE(WithinAMinute([&] { return Attach().error.find(kNotYet) != std::string::npos; }));
  EXPECT_EQ(LetEnd(), "0 True 0\nsame\n");
}

// Of one that was killed nobody holds the lock. Its age says that it is no other's who is just making it.
TEST_F(AttachTest, WhatAKilledOneLeftGoesWithTheNext) {
  const std::string left = "/tmp/ashlar-attach-left" + std::to_string(getpid());
  std::filesystem::create_directory(left);
  std::filesystem::permissions(left, std::filesystem::perms::owner_all);
  std::ofstream(left + "/lock") << "";
  const int lock = open((left + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  const timespec long_ago[2] = {};
  ASSERT_EQ(utimensat(AT_FDCWD, left.c_str(), long_ago, 0), 0);
  Start(kCounts);
  ExpectError(Attach(), 3, {kNotYet});
  EXPECT_TRUE(std::filesystem::exists(left));
  close(lock);
  ExpectError(Attach(), 3, {kNotYet});
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(LetEnd(), "0 True 0\nsame\n");
}

TEST_F(AttachTest, ADebuggerThatIsThereIsNamed) {
  Start(kCounts);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, program_, nullptr, nullptr), 0);
  ExpectError(Attach(), 3, {"is held by process " + std::to_string(getpid()), "debugger"});
  End();
}

TEST_F(AttachTest, OneThatIsStoppedIsNotAsked) {
  Start(kCounts);
  kill(program_, SIGSTOP);
  ExpectError(Attach(), 3, {"is stopped", "kill -CONT"});
  kill(program_, SIGCONT);
  EXPECT_EQ(LetEnd(), "0 True 0\nsame\n");
}

TEST_F(AttachTest, WhatIsNoPyTorchProgramGetsALine) {
  program_ = fork();
  if (program_ == 0) {
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(127);
  }
  ExpectError(Attach(), 3, {"has loaded PyTorch with CUDA"});
  End();
  ExpectError(Run("attach 999999999"), 3, {"there is no process 999999999"});
  EXPECT_EQ(Run("attach train.py").code, 2);
  ExpectError(Run("attach 1 --watch soon"), 2, {"--watch", "60s"});
}

TEST_F(AttachTest, NoFilesStay) {
  Start(kCounts);
  const std::set<std::string> before = FoldersOfLooks();
  ExpectError(Attach(), 3, {kNotYet});
  EXPECT_EQ(FoldersOfLooks(), before);
  EXPECT_EQ(LetEnd(), "0 True 0\nsame\n");
}

}  // namespace
}  // namespace ashlar
