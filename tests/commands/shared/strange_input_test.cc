// Inputs that are larger than memory, or never come: what a user sees of them, and what they cost.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kStrangeMost = std::uint64_t{256} << 10;  // KiB, as the system counts

#if defined(ABSL_HAVE_ADDRESS_SANITIZER)
constexpr bool kKeepsFreed = true;  // up to 256 MiB of it, to find who uses it
#else
constexpr bool kKeepsFreed = false;
#endif

class StrangeInputTest : public CliTest {
 protected:
  struct Cost {
    Result result;
    std::uint64_t most_kib = 0;
    double seconds = 0;  // of a processor
  };

  // `sh -c "ashlar ARGUMENTS"`, the shell's own part included.
  Cost RunMeasured(const std::string& arguments) const {
    const std::string command =
        "exec '" ASHLAR_PROGRAM "' " + arguments + " >'" + folder_ + "out' 2>'" + folder_ + "error'";
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/bash", "bash", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    rusage used{};
    EXPECT_EQ(wait4(child, &status, 0, &used), child);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return {{WIFEXITED(status) ? WEXITSTATUS(status) : -1, FileBytes(folder_ + "out"), FileBytes(folder_ + "error")},
            static_cast<std::uint64_t>(used.ru_maxrss),
            seconds(used.ru_utime) + seconds(used.ru_stime)};
  }
};

TEST_F(StrangeInputTest, AnUnknownBinaryIsRefusedByItsHead) {
  const std::string sparse = Write("sparse", "");
  std::filesystem::resize_file(sparse, std::uint64_t{10} << 30);
  const std::string unknown = "this is a binary file of no known format";
  for (const auto& [input, name] : {std::pair(sparse, unknown),
                                    {"/dev/zero", unknown},
                                    {ASHLAR_PROGRAM, "this is a program or a library"},
                                    {"- </dev/zero", unknown}}) {
    for (const std::string command : {"explain ", "replay ", "report -o - "}) {
      const Cost cost = RunMeasured(command + input);
      ExpectError(cost.result, 3, {name});
      EXPECT_LT(cost.most_kib, kStrangeMost) << command << input;
      EXPECT_LT(cost.seconds, 5) << command << input;
    }
  }
}

// What is looked at twice comes twice: an input must leave memory again, wherever it came from.
TEST_F(StrangeInputTest, ALongTextIsSearchedInLittleMemory) {
  constexpr std::uint64_t kTextKib = (kKeepsFreed ? 16 : 160)
                                     << 10;  // longer than any buffer; long where it is measured
  const std::string text = Write("long.log", "");
  {
    const std::string lines = absl::StrReplaceAll(std::string(1024, '.'), {{".", std::string(1023, 'x') + "\n"}});
    std::ofstream out(text, std::ios::binary);
    for (std::uint64_t kib = 0; kib < kTextKib; kib += 1024) out << lines;
    out << "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n";
  }
  for (const std::string& input : {"'" + text + "'", "- < <(cat '" + text + "')", "<(gzip -1 -c '" + text + "')"}) {
    const Cost cost = RunMeasured("explain --json " + input);
    EXPECT_EQ(cost.result.code, 0) << cost.result.error;
    EXPECT_THAT(cost.result.out, HasSubstr("20.00 MiB"));
    EXPECT_TRUE(kKeepsFreed || cost.most_kib < kTextKib / 2) << input << ": " << cost.most_kib << " KiB";
  }
}

constexpr char kStrangeMessage[] = ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt";

TEST_F(StrangeInputTest, APipeIsReadAndAQuietOneIsTold) {
  const std::string cat = "cat '" + std::string(kStrangeMessage) + "'";
  const Cost substituted = RunMeasured("explain <(" + cat + ")");
  EXPECT_EQ(substituted.result.code, 0) << substituted.result.error;
  EXPECT_EQ(substituted.result.error, "");
  EXPECT_EQ(substituted.result.out, Run("explain '" + std::string(kStrangeMessage) + "'").out);
  const std::string pipe = folder_ + "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Result quiet = Run("explain '" + pipe + "'", "& pid=$!; sleep 4; " + cat + " >'" + pipe + "'; wait $pid");
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.error, "ashlar: " + pipe + ": nothing has come from this pipe yet: waiting for its writer\n");
  EXPECT_EQ(quiet.out, substituted.result.out);
  EXPECT_THAT(RunMeasured("explain - < <(sleep 4; " + cat + ")").result.error,
              HasSubstr("standard input: nothing has come"));
}

TEST_F(StrangeInputTest, SettingsAreReadFromAPipe) {
  const std::string trace = Write("trace", "a 1 512 0\nf 1\n");
  const Cost cost = RunMeasured("sweep '" + trace + "' --confs <(echo default; echo max_split_size_mb:128)");
  EXPECT_EQ(cost.result.code, 0) << cost.result.error;
  EXPECT_THAT(cost.result.out, HasSubstr("max_split_size_mb:128"));
}

TEST_F(StrangeInputTest, APlanIsNoPipe) {
  const std::string pipe = folder_ + "pipe", trace = Write("trace", "a 1 512 0\n");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectError(Run("replay --conf plan:" + pipe + " " + trace), 2, {"pipe", "is no file"});
}

}  // namespace
}  // namespace ashlar
