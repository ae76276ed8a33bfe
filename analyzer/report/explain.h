// Makes explanations of what `ashlar explain` takes: a snapshot, a request trace, an out-of-memory message.
#ifndef ASHLAR_ANALYZER_REPORT_EXPLAIN_H_
#define ASHLAR_ANALYZER_REPORT_EXPLAIN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/readers/oom/oom_message.h"
#include "analyzer/remedies/what_if_input.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/report/explanation.h"

namespace ashlar::report {

struct ExplainOptions {
  std::optional<std::uint64_t> capacity_bytes;  // of the device
  std::optional<double> memory_fraction;
  std::optional<int> device;                            // of a snapshot; default: the one that holds most
  std::optional<std::uint64_t> device_used_bytes = {};  // by all processes together, as nvidia-smi shows it
  std::vector<analyses::RankPeak> other_ranks = {};     // of the same job
  replay::ReplayWishes wishes;
  device::AddressOrder segment_addresses = device::AddressOrder::kAscending;
  device::CostModel device_costs = {};
  remedies::Progress progress = {};
};

// Has `stage` told, where somebody asks.
void Tell(const ExplainOptions& options, const std::string& stage);

// Where and under which limits to replay.
remedies::ReplayLimits LimitsOf(const ExplainOptions& options);

// The wished device, else the one that holds most. OutOfRange where the snapshot has no such device.
absl::StatusOr<int> ChooseDevice(const trace::Snapshot& snapshot, std::optional<int> wished);

// FailedPrecondition where the trace and the segments contradict each other; OutOfRange as above.
absl::StatusOr<Explanation> ExplainSnapshot(const trace::Snapshot& snapshot, const ExplainOptions& options);

// Replays the requests under the wished settings (default: torch-2.10, no conf) and explains what came of it.
absl::StatusOr<Explanation> ExplainRequests(const trace::RequestTrace& requests, const ExplainOptions& options);

Explanation ExplainMessage(const readers::OomMessage& message, const ExplainOptions& options);

// One for each different message, in the order of the first ones; what stands several times is counted in a note.
std::vector<Explanation> ExplainMessages(absl::Span<const readers::OomMessage> messages, const ExplainOptions& options);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_EXPLAIN_H_
