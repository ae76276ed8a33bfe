// Where a request could be served that its lane's free blocks do not serve: other lanes, and blocks that still wait.
#include <limits>
#include <vector>

#include "allocator/policy/heap_steps.h"

namespace ashlar::policy {
namespace {

bool IsFree(const Block* block) { return block != nullptr && block->state == BlockState::kFree; }
bool IsIdle(const Block* block) { return IsFree(block) || (block != nullptr && block->state == BlockState::kPending); }

// Neighbours that are free or wait, as few from `first` on as are large enough.
struct Run {
  Block* first = nullptr;
  Block* last = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();

  // Of the free block that they become.
  std::uint64_t MergedBytes() const {
    const std::uint64_t before = IsFree(first->prev) ? first->prev->size_bytes : 0;
    return bytes + before + (IsFree(last->next) ? last->next->size_bytes : 0);
  }
};

// Calls `visit(run)` for the run from each block of the segment that has one; linear in its blocks.
template <typename Visit>
void ForEachRun(const Segment& segment, std::uint64_t wanted_bytes, Visit visit) {
  Run run{nullptr, nullptr, 0, 0};
  Block* end = segment.first;
  for (run.first = segment.first; run.first != nullptr; run.first = run.first->next) {
    for (; run.bytes < wanted_bytes && IsIdle(end); end = end->next) {
      run.last = end;
      run.bytes += end->size_bytes;
      run.events += end->pending_events;
    }
    if (run.bytes >= wanted_bytes) visit(run);
    if (end == run.first) {  // in use
      end = end->next;
      continue;
    }
    run.bytes -= run.first->size_bytes;
    run.events -= run.first->pending_events;
  }
}

}  // namespace

Block* Heap::FindInOtherLane(const Plan& plan) const {
  Block* best = nullptr;
  for (const auto& [stream, lane] : plan.pool->lanes) {
    if (lane.stream == plan.stream) continue;
    Block* candidate = FindIn(lane, plan.rounded_bytes);
    if (candidate != nullptr && (best == nullptr || candidate->size_bytes < best->size_bytes)) best = candidate;
  }
  return best;
}

std::vector<Block*> Heap::FewestPending(const Plan& plan) const {
  Run best;
  for (const auto& [address, segment] : segments_) {
    if (segment->lane->pool != plan.pool || segment->lane->stream != plan.stream) continue;
    ForEachRun(*segment, plan.rounded_bytes, [&](const Run& run) {
      const bool is_room = run.events > 0 && MayServe(plan.rounded_bytes, run.MergedBytes());
      if (is_room && run.events < best.events) best = run;
    });
  }
  std::vector<Block*> out;
  if (best.first == nullptr) return out;
  for (Block* block = best.first; block != best.last->next; block = block->next) {
    if (block->state == BlockState::kPending) out.push_back(block);
  }
  return out;
}

}  // namespace ashlar::policy
