// The slow model of tests/allocator/policy against the golden files of the small traces: the model that judges the
// product in random programs must itself be right.
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "tests/analyzer/replay/golden_run.h"
#include "tests/analyzer/replay/model_log.h"
#include "tests/analyzer/replay/sha256.h"
#include "tests/shared_dir.h"

namespace ashlar {
namespace {

constexpr std::size_t kMaxRequests = 1100;  // more is slow: the model looks at every block at every step

TEST(ModelGoldenTest, SmallTraces) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  std::size_t count = 0;
  for (const char* name : {"golden", "golden-latest"}) {
    GoldenFolder folder(*shared + "/" + name);
    for (const GoldenRun& run : folder.runs()) {
      const trace::RequestTrace& trace = folder.Trace(run.trace);
      if (trace.requests.size() > kMaxRequests) continue;
      ++count;
      EXPECT_EQ(Sha256(ModelLog(ReplayOptions(run), trace)), run.events_sha256) << name << " " << run.name;
    }
  }
  EXPECT_GT(count, 0u);
  std::cout << count << " runs\n";
}

}  // namespace
}  // namespace ashlar
