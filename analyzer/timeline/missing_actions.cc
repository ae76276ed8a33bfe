#include "analyzer/timeline/missing_actions.h"

#include <array>
#include <cstdint>
#include <set>

#include "absl/container/flat_hash_map.h"

namespace ashlar::timeline {
namespace {

using trace::Action;

// The kinds that skip_actions may name and that move a block or a segment.
constexpr Action kSkippable[] = {Action::kAlloc, Action::kFreeRequested, Action::kFreeCompleted, Action::kSegmentAlloc,
                                 Action::kSegmentFree};
constexpr std::size_t kActions = static_cast<std::size_t>(Action::kUnknown) + 1;

class Census {
 public:
  explicit Census(const trace::EventList& events) {
    for (const trace::Event& event : events) ++counts_[static_cast<std::size_t>(event.action)];
  }
  bool HasAll() const {
    for (const Action action : kSkippable) {
      if (Lacks(action)) return false;
    }
    return true;
  }
  bool Lacks(Action action) const { return counts_[static_cast<std::size_t>(action)] == 0; }

  void Visit(const trace::Event& event) {
    switch (event.action) {
      case Action::kAlloc:
      case Action::kFreeRequested:
      case Action::kFreeCompleted:
        return VisitBlock(event);
      case Action::kSegmentAlloc:
      case Action::kSegmentFree:
        return VisitSegment(event);
      default:
        return;
    }
  }

  // Blocks that are in use at the end, by address.
  void VisitEnd(const std::set<std::uint64_t>& live, const std::set<std::uint64_t>& pending) {
    for (const auto& [address, last] : blocks_) {
      const bool is_live = live.contains(address);
      const bool is_pending = pending.contains(address);
      if (last == Action::kAlloc && !is_live) Prove(Action::kFreeRequested);
      if (last == Action::kAlloc && !is_live && !is_pending) Prove(Action::kFreeCompleted);
      if (last == Action::kFreeRequested && !is_live && !is_pending) Prove(Action::kFreeCompleted);
      if (last != Action::kAlloc && is_live) Prove(Action::kAlloc);
    }
  }

  std::vector<std::string> Missing() const {
    std::vector<std::string> out;
    for (const Action action : kSkippable) {
      if (proven_.contains(action)) out.emplace_back(trace::ActionName(action));
    }
    return out;
  }

 private:
  void Prove(Action action) {
    if (Lacks(action)) proven_.insert(action);
  }

  void VisitBlock(const trace::Event& event) {
    const auto [it, is_first] = blocks_.try_emplace(event.address, event.action);
    if (is_first) return;
    const Action last = it->second;
    it->second = event.action;
    if (event.action == Action::kAlloc && last != Action::kFreeCompleted) {
      Prove(Action::kFreeCompleted);
      if (last == Action::kAlloc) Prove(Action::kFreeRequested);
    }
    if (event.action == Action::kFreeCompleted && last == Action::kAlloc) Prove(Action::kFreeRequested);
    if (event.action == Action::kFreeRequested && last != Action::kAlloc) Prove(Action::kAlloc);
    if (event.action == Action::kFreeCompleted && last == Action::kFreeCompleted) Prove(Action::kAlloc);
  }

  void VisitSegment(const trace::Event& event) {
    const auto [it, is_first] = segments_.try_emplace(event.address, event.action);
    if (is_first) return;
    const bool is_repeated = it->second == event.action;
    it->second = event.action;
    if (is_repeated) Prove(event.action == Action::kSegmentAlloc ? Action::kSegmentFree : Action::kSegmentAlloc);
  }

  std::array<std::uint64_t, kActions> counts_{};
  absl::flat_hash_map<std::uint64_t, Action> blocks_;  // the last event of each address
  absl::flat_hash_map<std::uint64_t, Action> segments_;
  std::set<Action> proven_;
};

}  // namespace

std::vector<std::string> MissingActions(const trace::Snapshot& snapshot, int device) {
  const auto index = static_cast<std::size_t>(device);
  // A recording of our own leaves nothing out; device calls have no cache.
  if (snapshot.recording.has_value() || trace::RecordsDeviceCalls(snapshot)) return {};
  if (index >= snapshot.device_traces.size()) return {};
  const trace::EventList& events = snapshot.device_traces[index];
  Census census(events);
  if (census.HasAll()) return {};
  for (const trace::Event& event : events) census.Visit(event);
  std::set<std::uint64_t> live, pending;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) live.insert(block.address);
      if (block.state == trace::BlockState::kPending) pending.insert(block.address);
    }
  }
  if (!snapshot.segments.empty()) census.VisitEnd(live, pending);
  return census.Missing();
}

}  // namespace ashlar::timeline
