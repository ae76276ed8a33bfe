// The model after a request: frees, the events that they wait for, pools.
#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/allocator/policy/model.h"

namespace ashlar::model {

// ---- frees and events ----

void Model::RecordStream(std::uint64_t address, Stream stream) {
  Block& block = blocks_.at(address);
  if (SegmentOf(block).stream != Handle(stream)) Record(block, Handle(stream));
}

void Model::Record(Block& block, std::uint64_t stream) {
  for (const std::uint64_t recorded : block.recorded_streams) {
    if (recorded == stream) return;
  }
  block.recorded_streams.push_back(stream);
}

bool Model::IsCapturing() const {
  return std::any_of(routes_.begin(), routes_.end(), [](const Route& route) { return route.is_capture; });
}

void Model::Free(std::uint64_t address) {
  Block& block = blocks_.at(address);
  const Segment& segment = SegmentOf(block);
  const bool is_small = segment.pool.is_small;
  stats_.allocation.Change(is_small, -1);
  stats_.allocated_bytes.Change(is_small, -Signed(block.size));
  if (block.size >= options_.max_split_size_bytes) stats_.oversize_allocations.Change(is_small, -1);
  Emit(trace::Action::kFreeRequested, address, block.requested, segment.stream, segment.pool.id);
  if (block.recorded_streams.empty()) {
    FinishFree(&block);
    return;
  }
  block.state = State::kPending;
  block.waiting_events = static_cast<int>(block.recorded_streams.size());
  if (IsCapturing()) {
    deferred_.push_back(address);
  } else {
    WaitForStreams(block);
  }
}

void Model::WaitForStreams(Block& block) {
  for (const std::uint64_t stream : block.recorded_streams) waiting_[stream].push_back({++sequence_, block.address});
  block.recorded_streams.clear();
}

void Model::ProcessEvents(bool is_synchronising) {
  for (auto& [stream, queue] : waiting_) {
    while (!queue.empty()) {
      const Waiting head = queue.front();
      const bool is_done = is_synchronising || device_.events_complete_immediately ||
                           head.sequence <= std::max(completed_, done_[stream]);
      if (!is_done) break;
      FinishHead(queue);
    }
  }
}

void Model::CompleteAllWork() { completed_ = sequence_; }

void Model::FinishFree(Block* block) {
  const Segment& segment = SegmentOf(*block);
  const bool is_small = segment.pool.is_small;
  stats_.active.Change(is_small, -1);
  stats_.active_bytes.Change(is_small, -Signed(block->size));
  stats_.requested_bytes.Change(is_small, -Signed(block->requested));
  Emit(trace::Action::kFreeCompleted, block->address, block->requested, segment.stream, segment.pool.id);
  block->state = State::kFree;
  block = Merge(block, Previous(*block));
  block = Merge(block, Next(*block));
  block->inserted = clocks_[segment.pool];
  may_return_ |= !IsSplit(*block) || segment.expandable;
  RecountInactiveSplit();
}

// The block with its neighbour, if they are in the same state; else the block as it was.
Block* Model::Merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->state != block->state) return block;
  const std::uint64_t both[] = {block->address, neighbour->address};
  Block merged = *block;
  merged.address = std::min(both[0], both[1]);
  merged.size = block->size + neighbour->size;
  for (const std::uint64_t address : both) blocks_.erase(address);
  return &(blocks_[merged.address] = merged);
}

void Model::RecountInactiveSplit() {
  std::int64_t count[2] = {};
  std::int64_t bytes[2] = {};
  for (const auto& [address, block] : blocks_) {
    const Segment& segment = SegmentOf(block);
    if (block.state != State::kFree || segment.expandable || block.size == segment.size) continue;
    ++count[segment.pool.is_small ? 1 : 0];
    bytes[segment.pool.is_small ? 1 : 0] += Signed(block.size);
  }
  for (const bool is_small : {false, true}) {
    const int now = is_small ? 1 : 0;
    const int at = is_small ? 1 : 2;
    stats_.inactive_split.Change(is_small, count[now] - stats_.inactive_split.current[at]);
    stats_.inactive_split_bytes.Change(is_small, bytes[now] - stats_.inactive_split_bytes.current[at]);
  }
}

// ---- settings ----

void Model::SetMemoryFraction(double fraction) {
  const double limit = fraction * static_cast<double>(device_.capacity_bytes);
  limit_ = static_cast<std::uint64_t>(IsLate() ? std::floor(limit + 0.5) : limit);
  if (IsLate() && fraction >= 1.0) limit_.reset();
  if (options_.memory_limit_bytes) limit_ = std::min(limit_.value_or(policy::kUnlimited), *options_.memory_limit_bytes);
}

void Model::ConfigurePool(PoolId pool, bool use_on_oom, bool no_split) {
  private_pools_[pool].use_on_oom = use_on_oom;
  private_pools_[pool].no_split = no_split;
}

void Model::ReleasePool(PoolId pool) {
  PrivatePool& settings = private_pools_[pool];
  if (settings.users > 0) --settings.users;
  if (settings.users == 0) settings.no_split = false;
}

void Model::BeginPool(PoolId pool, Stream stream, bool is_capture) {
  if (private_pools_.contains(pool)) {
    ++private_pools_[pool].users;
  } else {
    private_pools_[pool];
  }
  routes_.push_back({pool, Handle(stream), is_capture});
}

void Model::EndPool(PoolId pool) {
  const bool was_capturing = IsCapturing();
  std::erase_if(routes_, [pool](const Route& route) { return route.pool == pool; });
  if (!was_capturing || IsCapturing()) return;
  for (const std::uint64_t address : std::exchange(deferred_, {})) WaitForStreams(blocks_.at(address));
}

}  // namespace ashlar::model
