// Runs a client over the hollow device, with the serving library under it or without, and gives what it printed, what
// was served, and the calls that reached the device.
//
//   const ClientRun run = RunServed({.client = kSameClient, .arguments = "frees"});
//   EXPECT_EQ(run.counts.front().served_frees, 5);
#ifndef ASHLAR_TESTS_HOLLOW_SERVE_SERVED_CLIENT_H_
#define ASHLAR_TESTS_HOLLOW_SERVE_SERVED_CLIENT_H_

#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "hollow/serve/counter.h"

namespace ashlar {

struct Client {
  std::string client;
  std::string arguments;
  bool is_served = true;
  std::string machine = {};      // more lines of the hollow device's settings
  std::string environment = {};  // "NAME=value ..."
};

struct ClientRun {
  int code = 0;  // as a shell has it
  std::string out;
  std::string error;
  std::vector<serve::ServedCounts> counts;  // of each process that asked for something
  int device_allocations = 0;               // that the recorder below saw
  int device_frees = 0;
};

inline std::string FileText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Of a log of the recorder (docs/guide/record.md).
inline int RowsOf(const std::string& log, char kind) {
  int out = 0;
  for (std::size_t at = log.find('\n'); at != std::string::npos; at = log.find('\n', at + 1)) {
    if (log.compare(at + 1, 2, {kind, ' '}) == 0) ++out;
  }
  return out;
}

inline void TakeFile(const std::filesystem::path& path, ClientRun& out) {
  const std::string bytes = FileText(path);
  if (absl::StartsWith(path.filename().string(), "native-")) {
    out.device_allocations += RowsOf(bytes, 'a');
    out.device_frees += RowsOf(bytes, 'd');
  }
  if (!absl::StartsWith(path.filename().string(), "served-")) return;
  ASSERT_EQ(bytes.size(), sizeof(serve::kServedMagic) + sizeof(serve::ServedCounts));
  serve::ServedCounts counts;
  std::memcpy(&counts, bytes.data() + sizeof(serve::kServedMagic), sizeof(counts));
  if (counts.served_allocations + counts.passed_allocations + counts.has_torch > 0) out.counts.push_back(counts);
}

inline ClientRun RunServed(const Client& client) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      absl::StrCat(testing::TempDir(), "ashlar_serve_", test->test_suite_name(), "_", test->name(), "/");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "run");
  std::filesystem::create_directories(folder + "logs");
  std::ofstream(folder + "run/machine") << "devices=2\ntotal_bytes=1073741824\ncontext_bytes=0\n" << client.machine;
  const std::string libraries =
      absl::StrCat(client.is_served ? ASHLAR_SERVE_LIBRARY ":" : "", ASHLAR_RECORD_LIBRARY, ":", ASHLAR_HOLLOW_LIBRARY);
  const std::string command = absl::StrCat(
      "cd ", folder, " && ASHLAR_HOLLOW_RUN=", folder, "run ASHLAR_RECORD=", folder, "logs ASHLAR_SERVED=", folder,
      "logs ASHLAR_CONF= LD_LIBRARY_PATH=", std::filesystem::path(ASHLAR_HOLLOW_DRIVER).parent_path().string(),
      " LD_PRELOAD=", libraries, " ", client.environment, " ", client.client, " ", client.arguments, " > out 2> error");
  const int status = std::system(absl::StrCat("sh -c '", command, "'").c_str());
  ClientRun out;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  out.out = FileText(folder + "out");
  out.error = FileText(folder + "error");
  for (const auto& entry : std::filesystem::directory_iterator(folder + "logs")) TakeFile(entry.path(), out);
  std::filesystem::remove_all(folder);
  return out;
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_HOLLOW_SERVE_SERVED_CLIENT_H_
