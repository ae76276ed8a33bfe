#include "allocator/core/plan_follower.h"

#include <iterator>

#include "allocator/policy/size_rule.h"

namespace ashlar::core {
namespace {

constexpr std::uint64_t kMoreDoubts = 16;  // times as many after each stranger
constexpr std::uint64_t kMostDoubts = std::uint64_t{1} << 40;

bool IsTaken(const policy::Block& block) {
  return block.state == policy::BlockState::kLive || block.state == policy::BlockState::kPending;
}

}  // namespace

void PlanFollower::Begin(const policy::Request& request, std::uint64_t rounded_bytes) {
  End();
  if (!request.pool.IsDefault() || policy::IsSmall(rounded_bytes)) return;
  auto at = followers_.find(request.stream);
  if (at == followers_.end()) {
    if (followers_.size() == plan_->lanes.size()) return;  // a stream that the plan does not have
    at = followers_.emplace(request.stream, Follower(plan_->lanes[followers_.size()])).first;
  }
  if (at->second.has_given_up) return;
  now_ = &at->second;
  planned_ = now_->cursor.Next(rounded_bytes);
  if (planned_ == nullptr) {
    now_->doubts = now_->next_doubts;
    if (now_->next_doubts <= kMostDoubts) now_->next_doubts *= kMoreDoubts;
  } else if (now_->doubts > 0 && --now_->doubts > 0) {
    planned_ = nullptr;
  }
}

void PlanFollower::End() {
  now_ = nullptr;
  planned_ = nullptr;
  directed_.reset();
}

// Nothing where the device has it no more.
const policy::Segment* PlanFollower::ArenaOf(const policy::Heap& heap, const policy::Plan& plan) {
  const auto at = heap.segments().find(now_->arena);
  const bool is_there = now_->arena != 0 && at != heap.segments().end() && at->second->lane->pool == plan.pool &&
                        at->second->lane->stream == plan.stream && at->second->size_bytes == now_->plan->arena_bytes;
  return is_there ? at->second.get() : nullptr;
}

// A record that is no block any more is not live, or is a block of another address.
policy::Block* PlanFollower::PlacedBelow(const policy::Segment& segment, std::uint64_t address) {
  for (auto at = placed_.upper_bound(address); at != placed_.begin();) {
    --at;
    if (at->first < segment.address) return nullptr;
    if (IsTaken(*at->second) && at->second->address == at->first) {
      return at->second->segment == &segment ? at->second : nullptr;
    }
    at = placed_.erase(at);
  }
  return nullptr;
}

bool PlanFollower::TryAt(const policy::Segment& segment, std::uint64_t address, policy::Plan& plan) {
  policy::Block* below = PlacedBelow(segment, address);
  policy::Block* block = policy::Heap::FindFreeAt(segment, below, {address, plan.rounded_bytes});
  if (block == nullptr) return false;
  plan.block = block;
  plan.place_at = address;
  return true;
}

void PlanFollower::SteerDirected(const policy::Heap& heap, policy::Plan& plan) {
  if (directed_->arena_bytes != 0) {
    plan.is_arena = true;
    plan.segment_bytes = directed_->arena_bytes;
    plan.block = nullptr;
    return;
  }
  if (directed_->address == 0) return;
  auto at = heap.segments().upper_bound(directed_->address);
  if (at == heap.segments().begin()) return;
  const policy::Segment& segment = *std::prev(at)->second;
  const bool is_own = segment.lane->pool == plan.pool && segment.lane->stream == plan.stream && !segment.is_expandable;
  if (is_own) TryAt(segment, directed_->address, plan);
}

void PlanFollower::Steer(const policy::Heap& heap, policy::Plan& plan) {
  if (directed_.has_value()) return SteerDirected(heap, plan);
  if (now_ == nullptr || now_->has_given_up) return;
  const policy::Segment* arena = ArenaOf(heap, plan);
  if (arena == nullptr) {
    if (plan.rounded_bytes > now_->plan->arena_bytes) {
      now_->has_given_up = true;
      return;
    }
    plan.is_arena = true;
    plan.segment_bytes = now_->plan->arena_bytes;
    plan.block = nullptr;
    return;
  }
  if (planned_ == nullptr) return;
  for (const std::uint64_t offset : planned_->offsets) {
    if (TryAt(*arena, arena->address + offset, plan)) return;
  }
}

void PlanFollower::NoteArena(std::uint64_t address) {
  if (directed_.has_value()) {
    directed_->arena_bytes = 0;
  } else {
    now_->arena = address;
  }
}

void PlanFollower::NoteRefusal() {
  if (directed_.has_value()) {
    directed_->arena_bytes = 0;
  } else {
    now_->has_given_up = true;
  }
}

}  // namespace ashlar::core
