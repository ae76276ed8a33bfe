// The slow model of tests/policy against the golden files of the small traces: the model that judges the product in
// random programs must itself be right.
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/policy/model.h"
#include "tests/replay/golden_run.h"
#include "tests/replay/sha256.h"
#include "tests/shared_dir.h"

namespace ashlar {
namespace {

constexpr std::size_t kMaxRequests = 1100;  // more is slow: the model looks at every block at every step

// One event a line, each run of free_completed by address.
void AppendLog(std::size_t op, std::vector<model::Event> events, std::string& log) {
  for (auto begin = events.begin(); begin != events.end(); ++begin) {
    auto end = begin;
    while (end != events.end() && end->action == trace::Action::kFreeCompleted) ++end;
    std::sort(begin, end);
  }
  for (const model::Event& event : events) {
    absl::StrAppend(&log, op, " ", trace::ActionName(event.action), " ", event.address, " ", event.size_bytes, " ",
                    event.stream);
    if (event.action == trace::Action::kAlloc) absl::StrAppend(&log, " ", event.block_size_bytes);
    log += '\n';
  }
}

void Apply(const trace::Request& request, model::Model& model, std::vector<std::uint64_t>& addresses) {
  std::uint64_t& address = addresses[request.id];
  switch (request.kind) {
    case trace::RequestKind::kAlloc:
      address = model.Allocate(request.bytes, request.stream, PoolId{}).value_or(0);
      break;
    case trace::RequestKind::kFree:
      if (address != 0) model.Free(address);
      address = 0;
      break;
    case trace::RequestKind::kRecordStream:
      if (address != 0) model.RecordStream(address, request.stream);
      break;
    case trace::RequestKind::kDeviceSync:
      model.CompleteAllWork();
      break;
    case trace::RequestKind::kEmptyCache:
      model.EmptyCache();
      break;
    default:
      FAIL() << "a golden trace has a kind of request that the model does not know";
  }
}

std::string ModelLog(const GoldenRun& run, const trace::RequestTrace& trace) {
  model::Model model(run.options, {run.capacity_bytes, run.events_complete_immediately, false});
  if (run.memory_fraction) model.SetMemoryFraction(*run.memory_fraction);
  std::vector<std::uint64_t> addresses(trace.id_count + 1);
  std::string log;
  for (std::size_t op = 0; op < trace.requests.size(); ++op) {
    Apply(trace.requests[op], model, addresses);
    AppendLog(op, model.TakeEvents(), log);
  }
  return log;
}

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
      EXPECT_EQ(Sha256(ModelLog(run, trace)), run.events_sha256) << name << " " << run.name;
    }
  }
  EXPECT_GT(count, 0u);
  std::cout << count << " runs\n";
}

}  // namespace
}  // namespace ashlar
