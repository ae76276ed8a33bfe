#include "analyzer/replay/calls_program.h"

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

class CallsProgram {
 public:
  explicit CallsProgram(int device) { program_.device = device; }

  void Add(const trace::Event& event, std::int64_t index) {
    switch (event.action) {
      case trace::Action::kAlloc:
        ids_[event.address] = next_id_;
        return Ask({event.size_bytes, event.stream, next_id_++, trace::OpKind::kAlloc}, {.event = index});
      case trace::Action::kOom:
        return Ask({event.size_bytes, event.stream, next_id_++, trace::OpKind::kAlloc},
                   {.event = index, .is_oom = true});
      case trace::Action::kFreeRequested:
        if (const auto it = ids_.find(event.address); it != ids_.end()) {
          Ask({0, event.stream, it->second, trace::OpKind::kFree}, {.event = index});
          ids_.erase(it);
        }
        return;
      default:
        return;
    }
  }

  SnapshotProgram Finish() {
    program_.requests.id_count = next_id_;
    return std::move(program_);
  }

 private:
  void Ask(const trace::Op& request, RecordedAnswer answer) {
    const std::int64_t after = answer.event + 1;
    answer.segments_from = after;
    program_.requests.requests.push_back(request);
    program_.answers.push_back(answer);
    program_.requests_end = after;
  }

  SnapshotProgram program_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> ids_;  // of what is alive, by address
  std::uint32_t next_id_ = 0;
};

}  // namespace

SnapshotProgram MakeCallsProgram(const trace::Snapshot& snapshot, int device) {
  CallsProgram out(device);
  std::int64_t index = 0;
  for (const trace::Event& event : timeline::EventsOf(snapshot, device)) out.Add(event, index++);
  return out.Finish();
}

timeline::BlockSizeRule CallsSizeRule() {
  timeline::BlockSizeRule rule;
  rule.rounded_bytes = [](std::uint64_t requested) { return requested; };
  rule.small_max_bytes = 0;
  rule.max_tail_bytes = 0;
  return rule;
}

}  // namespace ashlar::replay
