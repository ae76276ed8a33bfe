// The log of a native program as ashlar watch sees it: whether anybody writes it still.
#include "hollow/record/log.h"

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "commands/watch/watch.h"
#include "gtest/gtest.h"

namespace ashlar::record {
namespace {

// From one chunk of the file to the next as well.
TEST(RecordLogTest, ItsWriterIsSeenUntilItIsGone) {
  const std::string path = absl::StrCat(testing::TempDir(), "record_log_test_", getpid());
  auto log = std::make_unique<Log>(path);
  log->Append("ashlar-native-log 1\np 77 1000000\n");
  const auto watched = answers::WatchedFile::Open(path);
  ASSERT_TRUE(watched.ok()) << watched.status();
  const std::string row = "a 10 0 0x1000 4096 0x0 0 cudaMalloc\nd 20 0x1000 1 cudaFree\n";
  for (int chunk = 0; chunk < 3; ++chunk) {
    EXPECT_EQ((*watched)->Look()->stopped, "");
    for (std::size_t bytes = 0; bytes < Log::kChunkBytes; bytes += row.size()) log->Append(row);
  }
  EXPECT_EQ((*watched)->Look()->stopped, "");
  log.reset();
  EXPECT_EQ((*watched)->Look()->stopped, "nobody writes it any more");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace ashlar::record
