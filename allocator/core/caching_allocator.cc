#include "allocator/core/caching_allocator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace ashlar::core {
namespace {

std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

bool IsLate(policy::Compat compat) {
  return compat == policy::Compat::kTorch210 || compat == policy::Compat::kTorchLatest;
}

}  // namespace

CachingAllocator::CachingAllocator(device::Device* device, policy::Options options)
    : device_(device), heap_(std::move(options)), total_bytes_(device->GetMemoryInfo().total_bytes) {
  const std::optional<double> fraction = heap_.options().per_process_memory_fraction;
  if (fraction.has_value()) ASHLAR_CHECK(SetMemoryFraction(*fraction).ok());
}

absl::Status CachingAllocator::SetMemoryFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("a memory fraction of ", fraction, " is not in 0 to 1"));
  }
  const double limit = fraction * static_cast<double>(total_bytes_);
  if (!IsLate(options().compat)) {
    limit_bytes_ = static_cast<std::uint64_t>(limit);
  } else if (fraction < 1) {
    limit_bytes_ = static_cast<std::uint64_t>(std::llround(limit));
  } else {
    limit_bytes_.reset();
  }
  return absl::OkStatus();
}

absl::StatusOr<Block*> CachingAllocator::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return nullptr;
  if (bytes > policy::kMaxRequestBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("out of memory: ", bytes, " bytes are more than any device has"));
  }
  PollEvents();
  if (!pool.IsDefault()) heap_.Pair(pool);
  const policy::Request request{bytes, stream, pool};
  policy::Plan plan = heap_.MakePlan(request);
  if (CountsAges()) policy::Heap::Tick(plan);
  Block* block = nullptr;
  if (plan.block != nullptr) [[likely]] {
    const policy::SplitCounts before = plan.block->segment->lane->pool->inactive_split;
    block = heap_.Commit(plan);
    UpdateInactiveSplit(*block->segment->lane->pool, before);
  } else {
    block = Search(plan);
    if (block == nullptr) return OutOfMemory(plan);
  }
  HandOut(block, plan);
  return block;
}

// The rungs behind the first miss. Returns the block placed, nullptr when the last rung failed.
Block* CachingAllocator::Search(policy::Plan& plan) {
  bool is_freed = false;
  for (const std::function<bool()>& callback : callbacks_) is_freed |= callback();
  if (is_freed) {
    plan = heap_.MakePlan({plan.request_bytes, plan.stream, plan.pool->id});
    if (CountsAges()) policy::Heap::Tick(plan);
    if (plan.block != nullptr) heap_.TakeFree(plan.block);
  }
  Block* fresh = plan.block;
  if (fresh == nullptr) {
    if (CountsAges()) CollectGarbage();
    fresh = Grow(plan);
  }
  if (fresh == nullptr) return nullptr;
  const policy::SplitCounts before = fresh->segment->lane->pool->inactive_split;
  Block* block = heap_.Place(plan, fresh);
  UpdateInactiveSplit(*block->segment->lane->pool, before);
  return block;
}

Block* CachingAllocator::Grow(const policy::Plan& plan) {
  Block* block = NewSegment(plan);
  if (block != nullptr || growth_ != Growth::kOutOfMemory) return block;
  block = SearchOverflow(plan);
  return block != nullptr ? block : GrowAfterReleasing(plan);
}

Block* CachingAllocator::GrowAfterReleasing(const policy::Plan& plan) {
  bool is_rejected = false;
  if (ReleaseOversize(plan)) {
    if (Block* block = NewSegment(plan); block != nullptr || growth_ == Growth::kDeviceError) return block;
    is_rejected = growth_ == Growth::kRejected;
  }
  const absl::Status released = ReleaseCached(plan.pair);
  ++stats_.num_alloc_retries;
  Block* block = NewSegment(plan);
  if (!released.ok()) return AfterFailedRelease(block, released);
  if (block == nullptr && is_rejected && growth_ == Growth::kOutOfMemory) growth_ = Growth::kRejected;
  return block;
}

// Out of memory is said only when everything that the cache holds was returned.
Block* CachingAllocator::AfterFailedRelease(Block* block, const absl::Status& released) {
  if (block != nullptr || growth_ != Growth::kOutOfMemory) {
    unreported_error_.Update(released);
    return block;
  }
  device_error_ = released;
  return Fail(Growth::kDeviceError);
}

Block* CachingAllocator::Fail(Growth growth) {
  growth_ = growth;
  return nullptr;
}

bool CachingAllocator::IsAboveLimit(std::uint64_t segment_bytes) const {
  return limit_bytes_.has_value() && heap_.reserved_bytes() + segment_bytes > *limit_bytes_;
}

// throw_on_cudamalloc_oom: refuses before the driver is asked.
bool CachingAllocator::IsRejected(std::uint64_t segment_bytes) const {
  if (!options().throw_on_cudamalloc_oom) return false;
  const double fraction = options().per_process_memory_fraction.value_or(1.0);
  const auto most = static_cast<std::uint64_t>(fraction * static_cast<double>(total_bytes_));
  return heap_.reserved_bytes() + segment_bytes > most;
}

Block* CachingAllocator::NewSegment(const policy::Plan& plan) {
  if (IsAboveLimit(plan.segment_bytes)) return Fail(Growth::kOutOfMemory);
  if (IsRejected(plan.segment_bytes)) return Fail(Growth::kRejected);
  if (options().expandable_segments) return GrowExpandable(plan);
  absl::StatusOr<std::uint64_t> address = device_->AllocateSegment(plan.segment_bytes);
  if (!address.ok()) {
    if (absl::IsResourceExhausted(address.status())) return Fail(Growth::kOutOfMemory);
    device_error_ = address.status();
    return Fail(Growth::kDeviceError);
  }
  Block* block = heap_.AddSegment(plan, *address, plan.segment_bytes);
  const bool is_small = plan.pool->is_small;
  stats_.segment.Add(is_small, 1);
  stats_.reserved_bytes.Add(is_small, Signed(plan.segment_bytes));
  ++stats_.num_device_alloc;
  if (plan.segment_bytes >= options().max_split_size_bytes) stats_.oversize_segments.Add(1);
  Emit(trace::Action::kSegmentAlloc, *address, plan.segment_bytes, plan.stream, *plan.pool);
  return block;
}

Block* CachingAllocator::SearchOverflow(const policy::Plan& plan) {
  if (!plan.pool->id.IsDefault()) return nullptr;
  for (auto& [id, pair] : heap_.private_pairs()) {
    if (!pair->use_on_oom) continue;
    Block* block = heap_.FindInOverflow(plan, *pair);
    if (block == nullptr) continue;
    heap_.TakeFree(block);
    return block;
  }
  return nullptr;
}

void CachingAllocator::HandOut(Block* block, const policy::Plan& plan) {
  const bool is_small = plan.pool->is_small;
  const std::int64_t size_bytes = Signed(block->size_bytes);
  stats_.allocation.Add(is_small, 1);
  stats_.active.Add(is_small, 1);
  stats_.allocated_bytes.Add(is_small, size_bytes);
  stats_.active_bytes.Add(is_small, size_bytes);
  stats_.requested_bytes.Add(is_small, Signed(plan.request_bytes));
  if (block->size_bytes >= options().max_split_size_bytes) stats_.oversize_allocations.Add(1);
  Emit(trace::Action::kAlloc, block->address, plan.request_bytes, plan.stream, *block->segment->lane->pool,
       block->size_bytes);
}

void CachingAllocator::RecordStream(Block* block, Stream stream) {
  if (stream == block->segment->lane->stream) return;
  absl::InlinedVector<Stream, 2>& streams = recorded_streams_[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
}

void CachingAllocator::Free(Block* block) {
  ASHLAR_CHECK(block->state == policy::BlockState::kLive);
  const policy::Lane& lane = *block->segment->lane;
  const bool is_small = lane.pool->is_small;
  stats_.allocation.Subtract(is_small, 1);
  stats_.allocated_bytes.Subtract(is_small, Signed(block->size_bytes));
  if (block->size_bytes >= options().max_split_size_bytes) stats_.oversize_allocations.Subtract(1);
  Emit(trace::Action::kFreeRequested, block->address, block->requested_bytes, lane.stream, *lane.pool,
       block->size_bytes);
  if (!block->has_recorded_streams) {
    FinishFree(block);
    return;
  }
  policy::Heap::MarkPending(block);
  const auto recorded = recorded_streams_.find(block);
  for (const Stream stream : recorded->second) {
    pending_.Add(device_->RecordEvent(stream), block);
    ++block->pending_events;
  }
  recorded_streams_.erase(recorded);
  block->has_recorded_streams = false;
}

void CachingAllocator::FinishFree(Block* block) {
  const policy::Lane& lane = *block->segment->lane;
  const bool is_small = lane.pool->is_small;
  stats_.active.Subtract(is_small, 1);
  stats_.active_bytes.Subtract(is_small, Signed(block->size_bytes));
  stats_.requested_bytes.Subtract(is_small, Signed(block->requested_bytes));
  Emit(trace::Action::kFreeCompleted, block->address, block->requested_bytes, lane.stream, *lane.pool,
       block->size_bytes);
  const policy::SplitCounts before = lane.pool->inactive_split;
  heap_.Release(block);
  UpdateInactiveSplit(*lane.pool, before);
}

void CachingAllocator::UpdateInactiveSplit(const policy::Pool& pool, const policy::SplitCounts& before) {
  const policy::SplitCounts& now = pool.inactive_split;
  stats_.inactive_split.Add(pool.is_small, now.blocks - before.blocks);
  stats_.inactive_split_bytes.Add(pool.is_small, now.bytes - before.bytes);
}

void CachingAllocator::PollEvents() {
  if (pending_.size() == 0) [[likely]]
    return;
  pending_.Poll(*device_, [this](Block* block) { FinishFree(block); });
}

absl::Status CachingAllocator::SynchronizeEvents() {
  ++stats_.num_sync_all_streams;
  return pending_.Synchronize(*device_, [this](Block* block) { FinishFree(block); });
}

absl::StatusOr<std::uint64_t> CachingAllocator::AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool) {
  absl::StatusOr<Block*> block = Allocate(bytes, stream, pool);
  if (!block.ok()) return block.status();
  if (*block == nullptr) return std::uint64_t{0};
  pointers_.Insert(*block);
  return (*block)->address;
}

bool CachingAllocator::FreeAddress(std::uint64_t address) {
  Block* block = pointers_.Take(address);
  if (block == nullptr) return false;
  Free(block);
  return true;
}

void CachingAllocator::Emit(trace::Action action, std::uint64_t address, std::uint64_t size_bytes, Stream stream,
                            const policy::Pool& pool, std::uint64_t block_size_bytes) {
  if (sink_ == nullptr) [[likely]]
    return;
  trace::Event event;
  event.action = action;
  event.address = address;
  event.size_bytes = size_bytes;
  event.stream = stream;
  event.pool = pool.id;
  sink_->OnEvent(event, block_size_bytes);
}

absl::Status CachingAllocator::OutOfMemory(const policy::Plan& plan) {
  if (growth_ == Growth::kDeviceError) return device_error_;
  const device::MemoryInfo info = device_->GetMemoryInfo();
  if (growth_ == Growth::kRejected) {
    ++stats_.num_oom_rejections;
  } else {
    ++stats_.num_ooms;
    Emit(trace::Action::kOom, info.free_bytes, plan.rounded_bytes, plan.stream, *plan.pool);
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "out of memory: ", FormatBytes(plan.request_bytes), " requested (a segment of ", FormatBytes(plan.segment_bytes),
      growth_ == Growth::kRejected ? ", rejected by throw_on_cudamalloc_oom" : "", "), device free ",
      FormatBytes(info.free_bytes), " of ", FormatBytes(info.total_bytes), ", reserved ",
      FormatBytes(heap_.reserved_bytes())));
}

void CachingAllocator::ConfigurePool(PoolId pool, bool use_on_oom, bool no_split) {
  policy::PoolPair& pair = heap_.Pair(pool);
  pair.use_on_oom = use_on_oom;
  pair.no_split = no_split;
}

void CachingAllocator::ReleasePool(PoolId pool) {
  policy::PoolPair& pair = heap_.Pair(pool);
  if (pair.use_count > 0) --pair.use_count;
  if (pair.use_count == 0) pair.no_split = false;
}

}  // namespace ashlar::core
