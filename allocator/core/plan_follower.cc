#include "allocator/core/plan_follower.h"

#include <iterator>
#include <utility>

#include "allocator/policy/size_rule.h"

namespace ashlar::core {
namespace {

constexpr std::uint32_t kMostTries = 16;   // requests of a stream or pool, before no lane of the plan is looked for
constexpr std::uint64_t kMoreDoubts = 16;  // times as many after each stranger
constexpr std::uint64_t kMostDoubts = std::uint64_t{1} << 40;

bool IsTaken(const policy::Block& block) {
  return block.state == policy::BlockUse::kLive || block.state == policy::BlockUse::kPending;
}

}  // namespace

PlanFollower::PlanFollower(std::shared_ptr<const policy::PlacementPlan> plan) : plan_(std::move(plan)) {
  if (!HasPlan()) return;
  is_taken_.resize(plan_->lanes.size());
  free_lanes_ = is_taken_.size();
}

// The first lane that knows a request of this very size comes next, else the first that knows a larger one.
std::optional<std::size_t> PlanFollower::FreeLane(const Key& key, std::uint64_t rounded_bytes) const {
  const auto& [pool, stream, is_small] = key;
  const policy::LaneUse use = policy::UseOf(pool, stream);
  std::optional<std::size_t> larger;
  for (std::size_t i = 0; i < is_taken_.size(); ++i) {
    const policy::LanePlan& lane = plan_->lanes[i];
    if (is_taken_[i] || lane.use != use || lane.is_small != is_small) continue;
    if (use == policy::LaneUse::kDefaultStream) return i;
    const policy::PlannedRequest* first = policy::PlanCursor(lane).Next(rounded_bytes);
    if (first == nullptr) continue;
    if (first->size_bytes == rounded_bytes) return i;
    if (!larger.has_value()) larger = i;
  }
  return larger;
}

PlanFollower::Follower* PlanFollower::FollowerOf(const Key& key, std::uint64_t rounded_bytes) {
  if (const auto at = followers_.find(key); at != followers_.end()) return &at->second;
  if (free_lanes_ == 0) return nullptr;
  std::uint32_t& tries = tries_[key];
  if (tries == kMostTries) return nullptr;
  ++tries;
  const std::optional<std::size_t> lane = FreeLane(key, rounded_bytes);
  if (!lane.has_value()) return nullptr;
  is_taken_[*lane] = true;
  --free_lanes_;
  tries_.erase(key);
  return &followers_.emplace(key, Follower(plan_->lanes[*lane])).first->second;
}

void PlanFollower::Begin(const policy::Request& request, std::uint64_t rounded_bytes) {
  End();
  Follower* follower = FollowerOf({request.pool, request.stream, policy::IsSmall(rounded_bytes)}, rounded_bytes);
  if (follower == nullptr || follower->has_given_up) return;
  now_ = follower;
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

bool PlanFollower::HasSegment(const policy::Heap& heap, const Follower& follower) {
  const auto at = heap.segments().find(follower.segment);
  return follower.segment != 0 && at != heap.segments().end() && at->second->size_bytes == follower.plan->segment_bytes;
}

std::uint64_t PlanFollower::WantedBytes(const policy::Heap& heap) const {
  if (directed_.has_value()) return 0;
  std::uint64_t bytes = 0;
  for (const policy::LanePlan& lane : plan_->lanes) bytes += lane.segment_bytes;
  for (const auto& [key, follower] : followers_) {
    if (follower.has_given_up || HasSegment(heap, follower)) bytes -= follower.plan->segment_bytes;
  }
  return bytes;
}

// Nothing where the device has it no more.
const policy::Segment* PlanFollower::SegmentOf(const policy::Heap& heap, const policy::Decision& decision) {
  if (!HasSegment(heap, *now_)) return nullptr;
  const policy::Segment* segment = heap.segments().find(now_->segment)->second.get();
  return segment->lane->pool == decision.pool && segment->lane->stream == decision.stream ? segment : nullptr;
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

bool PlanFollower::TryAt(const policy::Segment& segment, std::uint64_t address, policy::Decision& decision) {
  policy::Block* below = PlacedBelow(segment, address);
  policy::Block* block = policy::Heap::FindFreeAt(segment, below, {address, decision.rounded_bytes});
  if (block == nullptr) return false;
  decision.block = block;
  decision.place_at = address;
  return true;
}

void PlanFollower::SteerDirected(const policy::Heap& heap, policy::Decision& decision) {
  if (directed_->segment_bytes != 0) {
    decision.is_planned_segment = true;
    decision.segment_bytes = directed_->segment_bytes;
    decision.block = nullptr;
    return;
  }
  if (directed_->address == 0) return;
  auto at = heap.segments().upper_bound(directed_->address);
  if (at == heap.segments().begin()) return;
  const policy::Segment& segment = *std::prev(at)->second;
  const bool is_own =
      segment.lane->pool == decision.pool && segment.lane->stream == decision.stream && !segment.is_expandable;
  if (is_own) TryAt(segment, directed_->address, decision);
}

void PlanFollower::Steer(const policy::Heap& heap, policy::Decision& decision) {
  if (directed_.has_value()) return SteerDirected(heap, decision);
  if (now_ == nullptr || now_->has_given_up || decision.pair->no_split) return;
  const policy::Segment* segment = SegmentOf(heap, decision);
  if (segment == nullptr) {
    if (has_given_up_ || decision.rounded_bytes > now_->plan->segment_bytes) {
      now_->has_given_up = true;
      return;
    }
    decision.is_planned_segment = true;
    decision.segment_bytes = now_->plan->segment_bytes;
    decision.block = nullptr;
    return;
  }
  if (planned_ == nullptr) return;
  for (const std::uint64_t offset : planned_->offsets) {
    if (TryAt(*segment, segment->address + offset, decision)) return;
  }
}

void PlanFollower::NoteSegment(std::uint64_t address) {
  if (directed_.has_value()) {
    directed_->segment_bytes = 0;
  } else {
    now_->segment = address;
  }
}

void PlanFollower::NoteRefusal() {
  if (directed_.has_value()) {
    directed_->segment_bytes = 0;
  } else {
    now_->has_given_up = true;
  }
}

}  // namespace ashlar::core
