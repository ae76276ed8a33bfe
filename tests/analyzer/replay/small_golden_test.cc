// The project's own golden files, tests/golden: small traces, each for one rule, with the exact event log expected. The
// product must write it byte for byte, and so must the slow model.
//
// ASHLAR_WRITE_GOLDEN=1 writes the product's logs over the files instead, where the model agrees: review them as text.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "analyzer/replay/op_sink.h"
#include "analyzer/replay/request_replay.h"
#include "gtest/gtest.h"
#include "tests/analyzer/replay/model_log.h"

namespace ashlar {
namespace {

constexpr char kFolder[] = ASHLAR_SOURCE_DIR "/tests/golden/";

struct SmallRun {
  std::string trace;
  std::string file;  // of the expected events
  replay::RequestReplayOptions options;
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

SmallRun ParseRun(const std::string& line) {
  std::istringstream fields(line);
  std::string version, name, conf, capacity, fraction, order;
  SmallRun run;
  fields >> run.trace >> version >> name >> conf >> capacity >> fraction >> order;
  EXPECT_FALSE(fields.fail()) << line;
  run.file = absl::StrCat(run.trace, ".", version, ".", name, ".events");
  run.options.policy = *policy::ParseConf(conf == "-" ? "" : conf, *policy::ParseCompat(version));
  run.options.device.capacity_bytes = *ParseBytes(capacity);
  if (fraction != "-") run.options.memory_fraction = std::stod(fraction);
  if (order != "-") run.options.policy.free_order = *policy::ParseFreeOrder(order);
  return run;
}

std::vector<SmallRun> ReadIndex() {
  std::vector<SmallRun> runs;
  std::istringstream lines(ReadText(std::string(kFolder) + "index.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') runs.push_back(ParseRun(line));
  }
  return runs;
}

std::string ProductLog(const SmallRun& run, const trace::RequestTrace& trace) {
  replay::RequestReplay replay(run.options);
  replay::EventLog log;
  const absl::Status status = replay.Run(trace, &log);
  EXPECT_TRUE(status.ok()) << run.file << ": " << status;
  return log.Finish();
}

TEST(SmallGoldenTest, EveryLogIsAsRecorded) {
  const char* write = std::getenv("ASHLAR_WRITE_GOLDEN");
  const bool is_writing = write != nullptr && std::string(write) == "1";
  const std::vector<SmallRun> runs = ReadIndex();
  EXPECT_GE(runs.size(), 30u);
  for (const SmallRun& run : runs) {
    const trace::RequestTrace trace = *formats::ParsePlainTrace(ReadText(kFolder + run.trace + ".trace"));
    const std::string log = ProductLog(run, trace);
    ASSERT_EQ(ModelLog(run.options, trace), log) << run.file << ": the model decides otherwise";
    if (is_writing) {
      std::ofstream(kFolder + run.file, std::ios::binary) << log;
    } else {
      EXPECT_EQ(log, ReadText(kFolder + run.file)) << run.file;
    }
  }
}

}  // namespace
}  // namespace ashlar
