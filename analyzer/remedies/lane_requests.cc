#include "analyzer/remedies/lane_requests.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::remedies {
namespace {

using analyses::LaneRequest;
using analyses::LaneRequests;

class LaneRequestSink final : public replay::OpSink {
 public:
  LaneRequestSink(const trace::RequestTrace& trace, const policy::Options& options)
      : trace_(trace), options_(options), end_(static_cast<std::int64_t>(trace.requests.size())) {}

  void SetOp(std::uint64_t op) override { op_ = op; }
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kFreeCompleted) return Complete(event.address);
    if (event.action != trace::Action::kAlloc) return;
    const trace::Op& request = trace_.requests[op_];
    const std::uint64_t size_bytes = policy::RoundedBytes(request.bytes, options_);
    const bool is_small = policy::IsSmall(size_bytes);
    const auto [key, is_new] = numbers_.try_emplace({request.pool, request.stream, is_small}, out.size());
    if (is_new) out.push_back({request.stream, trace_.pools[request.pool], is_small, {}});
    LaneRequests& lane = out[key->second];
    live_[event.address] = {key->second, lane.requests.size()};
    lane.requests.push_back({static_cast<std::int64_t>(op_), end_, size_bytes});
  }

  std::vector<LaneRequests> out;

 private:
  void Complete(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    LaneRequest& request = out[at->second.first].requests[at->second.second];
    request.end = std::max(static_cast<std::int64_t>(op_), request.begin + 1);
    live_.erase(at);
  }

  const trace::RequestTrace& trace_;
  const policy::Options& options_;
  const std::int64_t end_;
  std::uint64_t op_ = 0;
  absl::flat_hash_map<std::uint64_t, std::pair<std::size_t, std::size_t>> live_;
  std::map<std::tuple<std::uint16_t, Stream, bool>, std::size_t> numbers_;  // of lanes
};

}  // namespace

absl::StatusOr<std::vector<LaneRequests>> LaneRequestsOf(const trace::RequestTrace& trace,
                                                         const policy::Options& options) {
  policy::Options own = options;
  own.plan = nullptr;
  own.expandable_segments = false;
  own.policy = policy::Policy::kTorch;
  own.memory_limit_bytes.reset();
  own.per_process_memory_fraction.reset();
  LaneRequestSink sink(trace, own);
  replay::RequestReplay replay(
      {.policy = own, .device = {.capacity_bytes = replay::kAmpleBytes}, .memory_fraction = {}});
  if (absl::Status status = replay.Run(trace, &sink); !status.ok()) return status;
  return std::move(sink.out);
}

}  // namespace ashlar::remedies
