#include "allocator/core/caching_allocator.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_dump.h"
#include "allocator/core/oom_report.h"
#include "allocator/core/recorded_head.h"
#include "allocator/core/world.h"
#include "allocator/trace/free_age.h"

namespace ashlar::core {
namespace {

[[noreturn]] void StopAtThrowingSink(const char* call, const char* what) {
  StopAtMisuse(absl::StrCat("EventSink::", call, " threw ", what,
                            ": a sink must not throw, the allocator is in the middle of a decision"));
}

template <typename Tell>
void TellSink(const char* call, Tell tell) {
  try {
    tell();
  } catch (const std::exception& error) {
    StopAtThrowingSink(call, error.what());
  } catch (...) {
    StopAtThrowingSink(call, "what is no std::exception");
  }
}

}  // namespace

// Also where the callback throws: what it throws is the request's answer, and the next crossing is told again.
class CachingAllocator::TellingEnd {
 public:
  explicit TellingEnd(CachingAllocator& allocator) : allocator_(allocator) {}
  ~TellingEnd() {
    const World world(allocator_);
    allocator_.soft_limit_.End();
  }
  TellingEnd(const TellingEnd&) = delete;
  TellingEnd& operator=(const TellingEnd&) = delete;

 private:
  CachingAllocator& allocator_;
};

// Nothing in the cache fits: first who can give memory back is asked, then who wants to know is told, both without a
// lock; what was found before is void after each.
absl::StatusOr<policy::Block*> CachingAllocator::AllocateInWorld(policy::Request request, NamedBy name) {
  std::vector<std::function<bool()>> callbacks;
  const auto count_in_replay = [this](const policy::Plan& plan) {
    if (CountsAges() && plan.pool == &heap_.default_pair().large) {
      EmitFact(trace::FactKind::kMissed, trace::kSearchedHere);
    }
  };
  {
    const World world(*this);
    if (absl::Status status = BeginRequest(world, request); !status.ok()) return status;
    policy::Plan plan = SearchedPlan(request);
    const bool is_alone = callbacks_.empty() && !soft_limit_.IsCrossing(heap_.reserved_bytes(), plan.segment_bytes);
    if (plan.block != nullptr || is_alone) return Serve(world, plan, name);
    count_in_replay(plan);
    callbacks = callbacks_;
  }
  bool is_freed = false;
  for (const std::function<bool()>& callback : callbacks) is_freed |= callback();
  std::function<void()> tell;
  {
    const World world(*this);
    policy::Plan plan = is_freed ? SearchedPlan(request) : MissedPlan(request);
    if (plan.block == nullptr) tell = soft_limit_.Begin(heap_.reserved_bytes(), plan.segment_bytes);
    if (tell == nullptr) {
      if (!is_freed) EmitFact(trace::FactKind::kMissed, 0);
      return Serve(world, plan, name);
    }
    if (is_freed) count_in_replay(plan);
  }
  {
    const TellingEnd end(*this);
    tell();
  }
  const World world(*this);
  policy::Plan plan = SearchedPlan(request);
  return Serve(world, plan, name);
}

absl::StatusOr<Block*> CachingAllocator::AllocateMissed(std::uint64_t bytes, Stream stream, PoolId pool) {
  const World world(*this);
  policy::Plan plan = MissedPlan({bytes, stream, pool});
  return Serve(world, plan, NamedBy::kPointer);
}

absl::Status CachingAllocator::BeginRequest(const World& world, policy::Request& request) {
  if (!lost_.ok()) return lost_;
  request.pool = routes_.Route(request.pool, request.stream);
  PollInWorld(world);
  return lost_;
}

policy::Plan CachingAllocator::SearchedPlan(const policy::Request& request) {
  heap_.Pair(request.pool);
  const policy::Plan plan = heap_.MakePlan(request);
  if (CountsAges()) policy::Heap::Tick(plan);
  return plan;
}

policy::Plan CachingAllocator::MissedPlan(const policy::Request& request) {
  policy::Plan plan = heap_.SizesOf(request);
  plan.pair = &heap_.Pair(request.pool);
  plan.pool = policy::IsSmall(plan.rounded_bytes) ? &plan.pair->small : &plan.pair->large;
  return plan;
}

absl::StatusOr<policy::Block*> CachingAllocator::Serve(const World& world, policy::Plan& plan, NamedBy name) {
  if (policy::Block* block = Search(plan); block != nullptr) return HandOut(block, plan, name);
  if (growth_ == Growth::kDeviceError) NoteLoss(world);
  return OutOfMemory(plan);
}

// The block that was found, or the rungs behind the miss. Returns the block placed, nullptr when the last rung failed.
policy::Block* CachingAllocator::Search(policy::Plan& plan) {
  policy::Block* fresh = plan.block;
  if (fresh != nullptr) {
    heap_.TakeFree(fresh);
  } else {
    if (CountsAges() && routes_.captures() == 0) CollectGarbage();
    fresh = Grow(plan);
  }
  if (fresh == nullptr) return nullptr;
  const policy::Lane& lane = *fresh->segment->lane;
  const policy::SplitCounts before = lane.inactive_split;
  policy::Block* block = heap_.Place(plan, fresh);
  UpdateInactiveSplit(lane, before);
  return block;
}

policy::Block* CachingAllocator::Grow(const policy::Plan& plan) {
  policy::Block* block = NewSegment(plan);
  if (block != nullptr || growth_ != Growth::kOutOfMemory) return block;
  block = SearchOverflow(plan);
  if (block == nullptr) block = Borrow(plan);
  if (block != nullptr || routes_.captures() > 0) return block;
  return GrowAfterReleasing(plan);
}

policy::Block* CachingAllocator::GrowAfterReleasing(const policy::Plan& plan) {
  bool is_rejected = false;
  if (ReleaseOversize(plan)) {
    if (policy::Block* block = NewSegment(plan); block != nullptr || growth_ == Growth::kDeviceError) return block;
    is_rejected = growth_ == Growth::kRejected;
  }
  if (options().sync_just_enough) return GrowAfterFewWaits(plan);
  absl::Status released = SynchronizeEvents();
  if (options().search_after_sync) {
    if (policy::Block* found = SearchAgain(plan); found != nullptr) return AfterFailedRelease(found, released);
  }
  released.Update(ReturnCached(plan.pair));
  ++stats_.num_alloc_retries;
  policy::Block* block = NewSegment(plan);
  if (block == nullptr && is_rejected && released.ok() && growth_ == Growth::kOutOfMemory)
    return Fail(Growth::kRejected);
  return AfterFailedRelease(block, released);
}

// Out of memory is said only when everything that the cache holds was returned.
policy::Block* CachingAllocator::AfterFailedRelease(policy::Block* block, const absl::Status& released) {
  if (released.ok()) return block;
  if (block != nullptr || growth_ != Growth::kOutOfMemory) {
    unreported_error_.Update(released);
    return block;
  }
  device_error_ = released;
  return Fail(Growth::kDeviceError);
}

policy::Block* CachingAllocator::Fail(Growth growth) {
  growth_ = growth;
  return nullptr;
}

policy::Block* CachingAllocator::Refused(std::uint64_t bytes) {
  EmitFact(trace::FactKind::kRefused, bytes);
  return Fail(Growth::kOutOfMemory);
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

policy::Block* CachingAllocator::NewSegment(const policy::Plan& plan) {
  if (IsAboveLimit(plan.segment_bytes)) return Refused(plan.segment_bytes);
  if (IsRejected(plan.segment_bytes)) return Fail(Growth::kRejected);
  if (options().expandable_segments) return GrowExpandable(plan);
  absl::StatusOr<std::uint64_t> address = device_->AllocateSegment(plan.segment_bytes);
  if (!address.ok()) {
    if (absl::IsResourceExhausted(address.status())) return Refused(plan.segment_bytes);
    device_error_ = address.status();
    return Fail(Growth::kDeviceError);
  }
  policy::Block* block = heap_.AddSegment(plan, *address, plan.segment_bytes);
  const bool is_small = plan.pool->is_small;
  stats_.segment.Add(is_small, 1);
  stats_.reserved_bytes.Add(is_small, Signed(plan.segment_bytes));
  ++stats_.num_device_alloc;
  if (plan.segment_bytes >= options().max_split_size_bytes) stats_.oversize_segments.Add(1);
  Emit(trace::Action::kSegmentAlloc, *address, plan.segment_bytes, plan.stream, *plan.pool);
  return block;
}

policy::Block* CachingAllocator::SearchOverflow(const policy::Plan& plan) {
  if (!plan.pool->id.IsDefault()) return nullptr;
  for (auto& [id, pair] : heap_.private_pairs()) {
    if (!pair->use_on_oom) continue;
    policy::Block* block = heap_.FindInOverflow(plan, *pair);
    if (block == nullptr) continue;
    heap_.TakeFree(block);
    return block;
  }
  return nullptr;
}

policy::Block* CachingAllocator::HandOut(policy::Block* block, const policy::Plan& plan, NamedBy name) {
  policy::Lane& lane = *block->segment->lane;
  if (lane.owner == nullptr) BindEngine(lane);
  Engine& engine = *EngineOf(*block);
  engine.desk->recent_uses = kRecentWorlds;
  if (lane.stream != plan.stream) AddRecordedStream(engine, block, plan.stream);  // borrowed
  if (lane.stream != plan.stream || lane.pool != plan.pool) {
    EmitFact(trace::FactKind::kAsked, Handle(plan.stream), plan.pool->id);
  }
  if (name == NamedBy::kAddress) {
    engine.desk->pointers.Insert(block);
    pages_.Enter(block->address, &engine);
  }
  const bool is_small = plan.pool->is_small;
  const std::int64_t size_bytes = Signed(block->size_bytes);
  stats_.allocation.Add(is_small, 1);
  stats_.active.Add(is_small, 1);
  stats_.allocated_bytes.Add(is_small, size_bytes);
  stats_.active_bytes.Add(is_small, size_bytes);
  stats_.requested_bytes.Add(is_small, Signed(plan.request_bytes));
  if (block->size_bytes >= options().max_split_size_bytes) stats_.oversize_allocations.Add(1);
  Emit(trace::Action::kAlloc, block->address, plan.request_bytes, lane.stream, *lane.pool, block->size_bytes);
  return block;
}

void CachingAllocator::FreeInWorld(policy::Block* block) {
  CheckOurs(block, "Free");
  const policy::Lane& lane = *block->segment->lane;
  Engine& engine = *EngineOf(*block);
  engine.desk->recent_uses = kRecentWorlds;
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
  const auto recorded = engine.recorded_streams.find(block);
  const absl::InlinedVector<Stream, 2> streams = std::move(recorded->second);
  engine.recorded_streams.erase(recorded);
  block->has_recorded_streams = false;
  if (routes_.captures() == 0) return WaitForStreams(block, streams);
  block->pending_events = static_cast<std::uint32_t>(streams.size());
  deferred_.emplace_back(block, streams);
}

void CachingAllocator::WaitForStreams(policy::Block* block, const absl::InlinedVector<Stream, 2>& streams) {
  block->pending_events = static_cast<std::uint32_t>(streams.size());
  for (const Stream stream : streams) pending_.Add(device_->RecordEvent(stream), block);
}

// The free block that it is part of from now on.
policy::Block* CachingAllocator::FinishFree(policy::Block* block) {
  const policy::Lane& lane = *block->segment->lane;
  const bool is_small = lane.pool->is_small;
  stats_.active.Subtract(is_small, 1);
  stats_.active_bytes.Subtract(is_small, Signed(block->size_bytes));
  stats_.requested_bytes.Subtract(is_small, Signed(block->requested_bytes));
  Emit(trace::Action::kFreeCompleted, block->address, block->requested_bytes, lane.stream, *lane.pool,
       block->size_bytes);
  const policy::SplitCounts before = lane.inactive_split;
  policy::Block* merged = heap_.Release(block);
  UpdateInactiveSplit(lane, before);
  return merged;
}

void CachingAllocator::UpdateInactiveSplit(const policy::Lane& lane, const policy::SplitCounts& before) {
  const policy::SplitCounts& now = lane.inactive_split;
  stats_.inactive_split.Add(lane.pool->is_small, now.blocks - before.blocks);
  stats_.inactive_split_bytes.Add(lane.pool->is_small, now.bytes - before.bytes);
}

void CachingAllocator::PollInWorld(const World& world) {
  if (pending_.size() == 0 || routes_.captures() > 0) return;
  pending_.Poll(*device_, [this](policy::Block* block) { FinishFree(block); });
  if (pending_.size() != 0) NoteLoss(world);
}

void CachingAllocator::NoteLoss(const World& world) {
  if (!lost_.ok()) return;
  lost_ = device_->Lost();
  world.ChooseMode(*this);
}

absl::Status CachingAllocator::SynchronizeEvents() {
  ++stats_.num_sync_all_streams;
  return pending_.Synchronize(*device_, [this](policy::Block* block) { FinishFree(block); });
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
  TellSink("OnEvent", [&] { sink_->OnEvent(event, block_size_bytes); });
}

void CachingAllocator::EmitFact(trace::FactKind kind, std::uint64_t bytes, PoolId pool) {
  if (sink_ != nullptr) TellSink("OnFact", [&] { sink_->OnFact(kind, bytes, pool); });
}

void CachingAllocator::EmitUsers(PoolId pool) {
  const policy::PoolPair* pair = heap_.FindPair(pool);
  EmitFact(trace::FactKind::kPoolUsers, pair == nullptr ? 0 : pair->use_count, pool);
}

absl::Status CachingAllocator::OutOfMemory(const policy::Plan& plan) {
  if (growth_ != Growth::kOutOfMemory) {
    EmitFact(trace::FactKind::kAsked, Handle(plan.stream), plan.pool->id);
    EmitFact(trace::FactKind::kGaveUp, plan.request_bytes);
  }
  if (growth_ == Growth::kDeviceError) return device_error_;
  const device::MemoryInfo info = device_->GetMemoryInfo();
  if (growth_ == Growth::kRejected) {
    ++stats_.num_oom_rejections;
  } else {
    ++stats_.num_ooms;
    Emit(trace::Action::kOom, info.free_bytes, plan.rounded_bytes, plan.stream, *plan.pool);
  }
  FailedAllocation failed{plan.request_bytes, plan.rounded_bytes, plan.segment_bytes, plan.stream, plan.pool->id};
  failed.device_free_bytes = info.free_bytes;
  failed.device_total_bytes = info.total_bytes;
  failed.limit_bytes = limit_bytes_;
  failed.is_rejected = growth_ == Growth::kRejected;
  std::string text = OomMessage(failed, heap_.reserved_bytes());
  if (routes_.captures() > 0) text += "; a graph is being captured: nothing could be waited for or returned";
  if (!reports_failures_) return absl::ResourceExhaustedError(text);
  OomReport report = MakeOomReport(failed, SegmentsNow(), options());
  for (HolePin& pin : report.pins) {
    if (sink_ != nullptr) pin.place = sink_->PlaceOf(pin.address);
  }
  for (const std::string& line : OomLines(report)) absl::StrAppend(&text, "\n", line);
  const auto write = [&](const std::string& path) { return WriteFailure(failed, path); };
  if (const auto line = DumpOom(write); line.has_value()) absl::StrAppend(&text, "\n", *line);
  return absl::ResourceExhaustedError(text);
}

}  // namespace ashlar::core
