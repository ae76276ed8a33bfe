// The golden files: what PyTorch's own allocator decided over a simulated device. A folder of them holds index.json (a
// run: trace, settings, what came out as numbers and as the SHA-256 of the event log) and the traces.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_GOLDEN_RUN_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_GOLDEN_RUN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/policy/options.h"
#include "allocator/trace/request.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar {

struct GoldenRun {
  std::string name;   // "2.6/t01_tiny_mix.default.oom"
  std::string trace;  // "t01_tiny_mix"
  policy::Options options;
  std::uint64_t capacity_bytes = 0;
  std::optional<double> memory_fraction;
  bool events_complete_immediately = false;
  std::string events_sha256;
  std::map<std::string, std::int64_t> numbers;  // those that the index has
};

replay::RequestReplayOptions ReplayOptions(const GoldenRun& run);

class GoldenFolder {
 public:
  explicit GoldenFolder(std::string folder);
  const std::vector<GoldenRun>& runs() const { return runs_; }
  // Read once; `name` without folder and ending.
  const trace::RequestTrace& Trace(const std::string& name);

 private:
  std::string folder_;
  std::vector<GoldenRun> runs_;
  std::map<std::string, trace::RequestTrace> traces_;
};

}  // namespace ashlar

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_GOLDEN_RUN_H_
