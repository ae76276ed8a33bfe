// Runs the recorder's test client over the hollow device, and gives what it printed and the logs that it left.
//
//   const Recorded run = RunClient("kinds");
//   EXPECT_EQ(run.logs.size(), 1);
#ifndef ASHLAR_TESTS_HOLLOW_RECORD_RECORDED_CLIENT_H_
#define ASHLAR_TESTS_HOLLOW_RECORD_RECORDED_CLIENT_H_

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ashlar {

inline std::string BytesOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Recorded {
  int code = 0;  // as a shell has it
  std::string output;
  std::map<std::string, std::string> logs;  // by file name
};

// A folder of this test's, empty at first and gone at the end.
class TestFolder {
 public:
  TestFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = absl::StrCat(testing::TempDir(), "ashlar_record_", test->test_suite_name(), "_", test->name(), "/");
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// `client`: a program with its arguments; `preloaded`: what is beneath the recorder's library; `environment`: more
// variables, "NAME=value ...".
inline Recorded RunRecorded(const std::string& client, const std::string& preloaded,
                            const std::string& environment = "") {
  const TestFolder folder;
  const std::string logs = folder.path() + "logs/";
  std::filesystem::create_directories(logs);
  const std::string machine = folder.path() + "machine";
  std::ofstream(machine) << "devices=2\ntotal_bytes=1073741824\ncontext_bytes=0\n";
  std::filesystem::create_directories(folder.path() + "run");
  std::filesystem::copy_file(machine, folder.path() + "run/machine");
  const std::string command =
      absl::StrCat("cd ", folder.path(), " && ASHLAR_HOLLOW_RUN=", folder.path(), "run ASHLAR_RECORD=", logs,
                   " LD_PRELOAD=", ASHLAR_RECORD_LIBRARY, ":", preloaded, " ", environment, " ", client, " > out");
  const int status = std::system(("sh -c '" + command + "'").c_str());
  Recorded out;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  out.output = BytesOf(folder.path() + "out");
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    out.logs[entry.path().filename().string()] = BytesOf(entry.path());
  }
  return out;
}

inline Recorded RunClient(const std::string& arguments, const std::string& environment = "") {
  return RunRecorded(absl::StrCat(ASHLAR_RECORD_CLIENT, " ", arguments), ASHLAR_HOLLOW_LIBRARY, environment);
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_HOLLOW_RECORD_RECORDED_CLIENT_H_
