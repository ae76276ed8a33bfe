// Runs the program itself as a user would, in a folder of the test's own.
#ifndef ASHLAR_TESTS_CONSOLE_PROGRAM_RUN_H_
#define ASHLAR_TESTS_CONSOLE_PROGRAM_RUN_H_

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar {

struct Result {
  int code = -1;
  std::string out;
  std::string error;
};

inline std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class CliTest : public testing::Test {
 protected:
  CliTest() {
    folder_ = testing::TempDir() + "ashlar_cli_" + testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    std::filesystem::create_directories(folder_);
  }
  ~CliTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + name, std::ios::binary) << bytes;
    return folder_ + name;
  }

  // `redirect` may say where standard input comes from or output goes.
  Result Run(const std::string& arguments, const std::string& redirect = "") const {
    const std::string command = std::string("'") + ASHLAR_PROGRAM + "' " + arguments + " > '" + folder_ + "out' 2> '" +
                                folder_ + "error' " + redirect;
    const int status = std::system(command.c_str());
    Result result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, FileBytes(folder_ + "out"),
                  FileBytes(folder_ + "error")};
    return result;
  }

  std::string folder_;
};

// One line on standard error, nothing on standard output.
inline void ExpectError(const Result& result, int code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.code, code) << result.error;
  EXPECT_THAT(result.out, testing::IsEmpty());
  EXPECT_THAT(result.error, testing::AllOf(testing::StartsWith("ashlar: "), testing::EndsWith("\n")));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  for (const std::string& part : parts) EXPECT_THAT(result.error, testing::HasSubstr(part));
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_CONSOLE_PROGRAM_RUN_H_
