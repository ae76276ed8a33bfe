#include "analyzer/remedies/large_requests.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::remedies {
namespace {

using analyses::LargeRequest;
using analyses::StreamRequests;

class LargeRequestSink final : public replay::OpSink {
 public:
  LargeRequestSink(const trace::RequestTrace& trace, const policy::Options& options)
      : trace_(trace), options_(options), end_(static_cast<std::int64_t>(trace.requests.size())) {}

  void SetOp(std::uint64_t op) override { op_ = op; }
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kFreeCompleted) return Complete(event.address);
    if (event.action != trace::Action::kAlloc) return;
    const trace::Op& request = trace_.requests[op_];
    const std::uint64_t size_bytes = policy::RoundedBytes(request.bytes, options_);
    if (policy::IsSmall(size_bytes) || !trace_.pools[request.pool].IsDefault()) return;
    auto stream =
        std::find_if(out.begin(), out.end(), [&](const StreamRequests& of) { return of.stream == request.stream; });
    if (stream == out.end()) stream = out.insert(out.end(), {request.stream, {}});
    const auto lane = static_cast<std::size_t>(stream - out.begin());
    live_[event.address] = {lane, stream->requests.size()};
    stream->requests.push_back({static_cast<std::int64_t>(op_), end_, size_bytes});
  }

  std::vector<StreamRequests> out;

 private:
  void Complete(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    LargeRequest& request = out[at->second.first].requests[at->second.second];
    request.end = std::max(static_cast<std::int64_t>(op_), request.begin + 1);
    live_.erase(at);
  }

  const trace::RequestTrace& trace_;
  const policy::Options& options_;
  const std::int64_t end_;
  std::uint64_t op_ = 0;
  absl::flat_hash_map<std::uint64_t, std::pair<std::size_t, std::size_t>> live_;
};

}  // namespace

absl::StatusOr<std::vector<StreamRequests>> LargeRequestsOf(const trace::RequestTrace& trace,
                                                            const policy::Options& options) {
  policy::Options own = options;
  own.plan = nullptr;
  own.expandable_segments = false;
  own.policy = policy::Policy::kTorch;
  own.memory_limit_bytes.reset();
  own.per_process_memory_fraction.reset();
  LargeRequestSink sink(trace, own);
  replay::RequestReplay replay(
      {.policy = own, .device = {.capacity_bytes = replay::kAmpleBytes}, .memory_fraction = {}});
  if (absl::Status status = replay.Run(trace, &sink); !status.ok()) return status;
  return std::move(sink.out);
}

}  // namespace ashlar::remedies
