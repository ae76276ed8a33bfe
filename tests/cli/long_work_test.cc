// Long work: one line where the memory ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "tests/cli/program_run.h"

namespace ashlar {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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
// line asks for is enough.
TEST_F(MemoryEndTest, TooLittleMemoryIsOneLineAndWhatItAsksForIsEnough) {
  if (kReservesAddresses) GTEST_SKIP() << "the sanitizer reserves more addresses than any limit leaves";
  const std::string trace = Write("run.trace", Requests(150'000));
  for (const std::string& ending : std::vector<std::string>{"trace", "pickle", "ashlar"}) {
    const std::string input = folder_ + "run." + ending;
    if (ending != "trace") ASSERT_EQ(Run("convert " + trace + " " + input).code, 0);
    const std::uint64_t limit = 40 * kMiB + (ending == "ashlar" ? 0 : std::filesystem::file_size(input));
    for (const std::string& command : std::vector<std::string>{
             "explain F", "replay F", "check F --max-ooms 9", "diff F F", "bound F --seconds 0.1",
             "convert F " + folder_ + "o.csv", "sweep F --budget 2 --jobs 1"}) {
      std::string arguments = command;
      for (std::size_t at = arguments.find(" F"); at != std::string::npos; at = arguments.find(" F")) {
        arguments.replace(at, 2, " " + input);
      }
      SCOPED_TRACE(arguments);
      const Result result = RunIn(limit, arguments);
      ExpectError(result, 3, {input + ": out of memory: ", "the limit is " + FormatBytes(limit) + " (ulimit -v)"});
      const std::uint64_t needed = NeededBytes(result.error);
      EXPECT_GT(needed, limit);
      const Result enough = RunIn(needed, arguments);
      EXPECT_EQ(enough.code, 0) << enough.error;
    }
  }
}

}  // namespace
}  // namespace ashlar
