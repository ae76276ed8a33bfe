// Long work: progress on a terminal and nowhere else, and one line where the memory ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/units.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

constexpr char kRequests[] = "a 1 104857600 0\nf 1\na 2 12582912 0\na 3 104857600 0\n";
constexpr char kEndOfLine[] = "\r\x1b[K";

class LongWorkTest : public CliTest {
 protected:
  struct Shown {
    int code = -1;
    std::string text;
  };

  // What the program writes to a terminal, while its input, a pipe, comes only after `delay`.
  static Shown OnTerminal(const std::string& arguments, const std::string& pipe, std::chrono::milliseconds delay) {
    int master = -1;
    const winsize size{24, 70, 0, 0};
    const std::string command = absl::StrCat("exec '", ASHLAR_PROGRAM, "' ", arguments, " > '", pipe, ".out'");
    const pid_t child = forkpty(&master, nullptr, nullptr, &size);
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    std::thread writer([&] {
      std::this_thread::sleep_for(delay);
      std::ofstream(pipe) << kRequests;
    });
    Shown shown;
    char bytes[4096];
    for (ssize_t got = read(master, bytes, sizeof(bytes)); got > 0; got = read(master, bytes, sizeof(bytes))) {
      shown.text.append(bytes, static_cast<std::size_t>(got));
    }
    writer.join();
    int status = 0;
    waitpid(child, &status, 0);
    shown.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    close(master);
    return shown;
  }

  std::string Pipe(const std::string& name) const {
    const std::string path = folder_ + name;
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }
};

TEST_F(LongWorkTest, EveryCommandShowsHowFarItIs) {
  const std::string other = Write("other", kRequests);
  const std::vector<std::string> commands = {"explain P",
                                             "explain F --rank P",
                                             "replay P",
                                             "check P --max-reserved 1TiB",
                                             "diff F P",
                                             "bound P",
                                             "convert P " + folder_ + "converted.trace",
                                             "sweep F P"};
  std::vector<std::future<Shown>> runs;  // side by side: all they do is wait
  for (const std::string& command : commands) {
    const std::string pipe = Pipe(absl::StrCat("rank", runs.size()));
    const std::string arguments = absl::StrReplaceAll(command, {{" F", " " + other}, {" P", " " + pipe}});
    runs.push_back(std::async(std::launch::async, OnTerminal, arguments, pipe, std::chrono::milliseconds(1500)));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(commands[i]);
    const Shown shown = runs[i].get();
    EXPECT_EQ(shown.code, 0);
    EXPECT_THAT(shown.text, MatchesRegex("(\r\x1b\\[K[^\r\n]* \\(1 s\\))+\r\x1b\\[K"));
    EXPECT_THAT(shown.text, HasSubstr(absl::StrCat(kEndOfLine, "reading ")));
  }
}

// A quick one shows nothing; without a terminal there is never anything.
TEST_F(LongWorkTest, WhoAskedForNothingSeesNothing) {
  const std::string pipe = Pipe("rank0");
  EXPECT_EQ(OnTerminal("explain " + pipe, pipe, std::chrono::milliseconds(0)).text, "");
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    std::ofstream(pipe) << kRequests;
  });
  const Result result = Run("explain " + pipe);
  writer.join();
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.error, IsEmpty());
}

// The progress is gone before an error is said.
TEST_F(LongWorkTest, AnErrorHasItsLineToItself) {
  const std::string pipe = Pipe("rank0");
  const Shown shown = OnTerminal("check " + pipe + " --max-reserved 1B --junit /no/such/folder/x", pipe,
                                 std::chrono::milliseconds(1500));
  EXPECT_EQ(shown.code, 3);
  EXPECT_THAT(shown.text, HasSubstr(absl::StrCat(kEndOfLine, "ashlar: --junit: ")));
  EXPECT_THAT(shown.text, EndsWith("No such file or directory\r\n"));
}

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr bool kReservesAddresses = true;
#else
constexpr bool kReservesAddresses = false;
#endif

class MemoryEndTest : public CliTest {
 protected:
  Result RunIn(std::uint64_t bytes, const std::string& arguments) const {
    const std::string command = absl::StrCat("ulimit -v ", bytes / kKiB, "; '", ASHLAR_PROGRAM, "' ", arguments, " > '",
                                             folder_, "out' 2> '", folder_, "error'");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, FileBytes(folder_ + "out"), FileBytes(folder_ + "error")};
  }

  // Blocks of many sizes, a few hundred of them live.
  std::string Requests(int count) const {
    std::string out;
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&out, "a ", i, " ", 512 * (1 + i * 7919 % 4000), " 0\n");
      if (i >= 300) absl::StrAppend(&out, "f ", i - 300, "\n");
    }
    return out;
  }
};

// "take about 1.20 GiB".
std::uint64_t NeededBytes(const std::string& line) {
  const std::size_t at = line.find("take about ");
  if (at == std::string::npos) return 0;
  const std::string text = line.substr(at + 11, line.find(" to read", at) - at - 11);
  std::string packed;
  for (const char c : text) packed += c == ' ' ? "" : std::string(1, c);
  const absl::StatusOr<std::uint64_t> bytes = ParseBytes(packed);
  EXPECT_TRUE(bytes.ok()) << text;
  return bytes.value_or(0);
}

// Of every format and command: too little is one line with the exit code of an input that cannot be used, and what the
// line asks for is enough; of two inputs it asks for the first, then for both.
TEST_F(MemoryEndTest, TooLittleMemoryIsOneLineAndWhatItAsksForIsEnough) {
  if (kReservesAddresses) GTEST_SKIP() << "the sanitizer reserves more addresses than any limit leaves";
  const std::string trace = Write("run.trace", Requests(150'000));
  for (const std::string& ending : std::vector<std::string>{"trace", "pickle", "ashlar"}) {
    const std::string input = folder_ + "run." + ending;
    std::vector<std::string> commands = {"explain F", "check F --max-reserved 1TiB", "diff F F",
                                         "bound F --seconds 0.1", "convert F " + folder_ + "o.ashlar"};
    if (ending != "trace") {
      ASSERT_EQ(Run("convert " + trace + " " + input).code, 0);
      commands.insert(commands.end(), {"replay F", "sweep F --budget 2 --jobs 1"});
    }
    const std::uint64_t limit = 40 * kMiB + (ending == "ashlar" ? 0 : std::filesystem::file_size(input));
    for (const std::string& command : commands) {
      const std::string arguments = absl::StrReplaceAll(command, {{" F", " " + input}});
      SCOPED_TRACE(arguments);
      Result result = RunIn(limit, arguments);
      ExpectError(result, 3, {input + ": out of memory: ", "the limit is " + FormatBytes(limit) + " (ulimit -v)"});
      EXPECT_GT(NeededBytes(result.error), limit);
      result = RunIn(NeededBytes(result.error), arguments);
      if (absl::StartsWith(arguments, "diff") && result.code == 3) result = RunIn(NeededBytes(result.error), arguments);
      EXPECT_EQ(result.code, 0) << result.error;
    }
  }
}

}  // namespace
}  // namespace ashlar
