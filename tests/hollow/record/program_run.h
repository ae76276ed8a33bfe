// Runs the program `ashlar` in a folder of the test's own, and gives what it printed.
#ifndef ASHLAR_TESTS_HOLLOW_RECORD_PROGRAM_RUN_H_
#define ASHLAR_TESTS_HOLLOW_RECORD_PROGRAM_RUN_H_

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/hollow/record/recorded_client.h"

namespace ashlar {

struct CommandResult {
  int code = -1;
  std::string out;
  std::string error;
};

class AshlarTest : public testing::Test {
 protected:
  const std::string& folder() const { return folder_.path(); }

  // A shell line; `ashlar` in it is the program under test, `hollow` puts the hollow device beneath by hand.
  CommandResult Shell(const std::string& line) const {
    const std::string command = absl::StrCat("cd ", folder(), "\nashlar() { ", ASHLAR_PROGRAM,
                                             " \"$@\"; }\nhollow() { LD_PRELOAD=", ASHLAR_HOLLOW_LIBRARY,
                                             " LD_LIBRARY_PATH=", Drivers(), " \"$@\"; }\n", line, "\n");
    std::ofstream(folder() + "line.sh") << command;
    const int status =
        std::system(absl::StrCat("sh ", folder(), "line.sh > ", folder(), "out 2> ", folder(), "error").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), BytesOf(folder() + "out"),
            BytesOf(folder() + "error")};
  }

 private:
  static std::string Drivers() { return std::filesystem::path(ASHLAR_HOLLOW_DRIVER).parent_path().string(); }

  TestFolder folder_;
};

}  // namespace ashlar

#endif  // ASHLAR_TESTS_HOLLOW_RECORD_PROGRAM_RUN_H_
