// The way of a request that the cache did not serve at once, and of a free that needs more than a thread cache.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/state.h"

namespace ashlar::core {
namespace {

absl::Status TooLarge(std::uint64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("out of memory: ", bytes, " bytes are more than any device has"));
}

absl::Status NotFreeAt(std::uint64_t bytes, std::uint64_t address) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d bytes at 0x%x are not free in the request's pool and stream: ask for an address there, in steps of %d bytes",
      bytes, address, policy::kMinBlockBytes));
}

// The free block of the request's own pool and stream that holds what it takes at the address, where one does.
policy::Block* FindExactly(const policy::Heap& heap, const policy::Decision& decision, std::uint64_t address) {
  const policy::Segment* segment = SegmentAt(heap, address);
  if (segment == nullptr || (address - segment->address) % policy::kMinBlockBytes != 0) return nullptr;
  if (segment->lane->pool != decision.pool || segment->lane->stream != decision.stream) return nullptr;
  return policy::Heap::FindFreeAt(*segment, nullptr, {address, decision.rounded_bytes});
}

}  // namespace

// Also where the callback throws: what it throws is the request's answer, and the next crossing is told again.
class CachingAllocator::CrossingTold {
 public:
  explicit CrossingTold(CachingAllocator& allocator) : allocator_(allocator) {}
  ~CrossingTold() {
    const ExclusiveSection section(allocator_.caches());
    allocator_.limits_.soft().End();
  }
  CrossingTold(const CrossingTold&) = delete;
  CrossingTold& operator=(const CrossingTold&) = delete;

 private:
  CachingAllocator& allocator_;
};

absl::StatusOr<Block*> CachingAllocator::AllocateUncached(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return nullptr;
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  return AllocateExclusively({bytes, stream, pool}, HandOutAs::kPointer);
}

absl::StatusOr<std::uint64_t> CachingAllocator::AllocateAddressUncached(std::uint64_t bytes, Stream stream,
                                                                        PoolId pool) {
  if (bytes == 0) return std::uint64_t{0};
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  const absl::StatusOr<policy::Block*> block = AllocateExclusively({bytes, stream, pool}, HandOutAs::kAddress);
  if (!block.ok()) return block.status();
  return (*block)->address;
}

// Nothing in the cache fits: first who can give memory back is asked, then who wants to know is told, both without a
// lock; what was found before is void after each.
absl::StatusOr<policy::Block*> CachingAllocator::AllocateExclusively(policy::Request request, HandOutAs as) {
  const SoftLimit& soft_limit = limits_.soft();
  decltype(callbacks_) callbacks;
  {
    const ExclusiveSection section(caches());
    if (absl::Status status = BeginRequest(section, request); !status.ok()) return status;
    const policy::Decision decision = ladder_.Search(request);
    const bool is_alone =
        callbacks_.empty() && !soft_limit.IsCrossing(ledger_.heap().reserved_bytes(), decision.segment_bytes);
    if (decision.block != nullptr || is_alone) return Serve(section, decision, as);
    NoteSearch(decision);
    callbacks = callbacks_;
  }
  bool is_freed = false;
  for (const auto& [number, callback] : callbacks) is_freed |= callback();
  std::function<void()> tell;
  {
    const ExclusiveSection section(caches());
    const policy::Decision decision = is_freed ? ladder_.Search(request) : ladder_.SkipSearch(request);
    if (decision.block == nullptr) tell = limits_.soft().Begin(ledger_.heap().reserved_bytes(), decision.segment_bytes);
    if (tell == nullptr) {
      if (!is_freed) ledger_.Note(trace::fact::SearchMissed{});
      return Serve(section, decision, as);
    }
    if (is_freed) NoteSearch(decision);
  }
  {
    const CrossingTold told(*this);
    tell();
  }
  const ExclusiveSection section(caches());
  return Serve(section, ladder_.Search(request), as);
}

Block* CachingAllocator::AllocateAt(const policy::AddressRange& range, std::uint64_t requested_bytes, HandOutAs as) {
  const ExclusiveSection section(caches());
  const policy::Segment* segment = SegmentAt(ledger_.heap(), range.address);
  if (segment != nullptr && segment->lane->pool->pair->is_asleep) return nullptr;
  policy::Block* block = segment == nullptr ? nullptr : policy::Heap::FindFreeAt(*segment, nullptr, range);
  return block == nullptr ? nullptr : PlaceExactly(block, range, requested_bytes, as);
}

policy::Block* CachingAllocator::PlaceExactly(policy::Block* free, const policy::AddressRange& range,
                                              std::uint64_t requested_bytes, HandOutAs as) {
  const policy::Lane& lane = *free->segment->lane;
  policy::Decision decision{.request_bytes = requested_bytes, .rounded_bytes = range.size_bytes};
  decision.stream = lane.stream;
  decision.pool = lane.pool;
  decision.pair = lane.pool->pair;
  decision.block = free;
  decision.place_at = range.address;
  policy::Heap::TakeFree(free);
  policy::Block* block = ledger_.Place(decision, free);
  fast_path_.Enter(block, decision.stream, as);
  ledger_.HandOut(*block, decision);
  return block;
}

absl::Status CachingAllocator::AllocateAddressExactly(policy::Request request, std::uint64_t address) {
  if (request.bytes == 0 || request.bytes > policy::kMaxRequestBytes) return NotFreeAt(request.bytes, address);
  const ExclusiveSection section(caches());
  if (absl::Status status = BeginRequest(section, request); !status.ok()) return status;
  const policy::Decision decision = ledger_.heap().Decide(request);
  policy::Block* block = FindExactly(ledger_.heap(), decision, address);
  if (block == nullptr) return NotFreeAt(request.bytes, address);
  policy::Block* below = nullptr;
  if (const std::uint64_t below_bytes = address - block->address; below_bytes > 0) {
    below = PlaceExactly(block, {block->address, below_bytes}, below_bytes, HandOutAs::kPointer);
    block = below->next;
  }
  const std::uint64_t block_bytes = ledger_.heap().EffectOf(*block, decision.rounded_bytes, *decision.pool).block_bytes;
  PlaceExactly(block, {address, block_bytes}, request.bytes, HandOutAs::kAddress);
  if (below != nullptr) FreeExclusively(below);
  return absl::OkStatus();
}

absl::Status CachingAllocator::BeginRequest(const ExclusiveSection& section, policy::Request& request) {
  if (caches().keeper() != nullptr) caches().keeper()->OnStill();
  if (!ladder_.errors().lost().ok()) return ladder_.errors().lost();
  request.pool = pools_.Route(request.pool, request.stream);
  if (sleeper_.IsAnyAsleep()) {
    if (absl::Status status = CheckAwake(ledger_.heap().FindPair(request.pool), "Allocate"); !status.ok())
      return status;
  }
  ladder_.Poll();
  if (pools_.IsCapturing() && ledger_.options().graph_capture_record_stream_reuse) CompleteInCapture(request.stream);
  ChooseMode(section);
  PlanFollower& follower = ladder_.follower();
  if (follower.HasPlan()) [[unlikely]]
    follower.Begin(request, ledger_.heap().Rounded(request.bytes));
  return ladder_.errors().lost();
}

void CachingAllocator::NoteSearch(const policy::Decision& decision) {
  if (limits_.CollectGarbage() && decision.pool == &ledger_.heap().default_pair().large) {
    ledger_.Note(trace::fact::SearchMissed{.counts_here = true});
  }
}

absl::StatusOr<policy::Block*> CachingAllocator::Serve(const ExclusiveSection& section,
                                                       const policy::Decision& decision, HandOutAs as) {
  if (decision.is_planned_segment) [[unlikely]] {
    const Ladder::PlannedSegmentAnswer answer = ladder_.ObtainPlannedSegment(decision);
    if (answer.arena != nullptr) {
      fast_path_.LeaveToPlan(*answer.arena);
    } else {
      failures_.TellNoPlannedSegment(answer.lacking_bytes);
    }
    return Serve(section, answer.decision, as);
  }
  const GrowthResult served = ladder_.Serve(decision);
  if (served.block == nullptr) return Fail(section, decision, served);
  fast_path_.Enter(served.block, decision.stream, as);
  ledger_.HandOut(*served.block, decision);
  return served.block;
}

absl::Status CachingAllocator::Fail(const ExclusiveSection& section, const policy::Decision& decision,
                                    const GrowthResult& failed) {
  if (failed.refusal != Refusal::kOutOfMemory) {
    ledger_.Note(trace::fact::AskedFor{decision.pool->id, decision.stream});
    ledger_.Note(trace::fact::GaveUp{decision.request_bytes});
  }
  if (failed.refusal == Refusal::kDeviceError) {
    NoteLoss(section);
    return failed.error;
  }
  const device::MemoryInfo info = device_->GetMemoryInfo();
  const bool is_rejected = failed.refusal == Refusal::kRejected;
  if (is_rejected) {
    ledger_.CountRejection();
  } else {
    ledger_.RecordOom(decision, info.free_bytes);
  }
  return failures_.OutOfMemory(decision, info, is_rejected);
}

void CachingAllocator::FreeUncached(policy::Block* block) {
  const ExclusiveSection section(caches());
  FreeExclusively(block);
}

bool CachingAllocator::FreeAddressUncached(std::uint64_t address) {
  const ExclusiveSection section(caches());
  policy::Block* block = fast_path_.TakeByAddress(address);
  if (block != nullptr) FreeExclusively(block);
  return block != nullptr;
}

void CachingAllocator::FreeExclusively(policy::Block* block) {
  fast_path_.Check(block, "Free");
  const StreamList streams = fast_path_.Leave(block);
  ledger_.BeginFree(*block);
  if (streams.empty()) {
    ledger_.CompleteFree(block);
    return;
  }
  policy::Heap::MarkPending(block);
  if (!pools_.IsCapturing()) return WaitForStreams(block, streams);
  block->pending_events = static_cast<std::uint32_t>(streams.size());
  captured_.Add(block, streams, ledger_.options().graph_capture_record_stream_reuse);
}

void CachingAllocator::CompleteInCapture(Stream stream) {
  captured_.CompleteOn(stream, [this](policy::Block* block) {
    block->pending_events = 0;
    ledger_.CompleteFree(block);
  });
}

void CachingAllocator::WaitForStreams(policy::Block* block, const StreamList& streams) {
  block->pending_events = static_cast<std::uint32_t>(streams.size());
  for (const Stream stream : streams) pending_.Add(device_->RecordEvent(stream), block);
}

void CachingAllocator::RecordStream(Block* named, Stream stream) noexcept {
  if (named == nullptr) return;
  auto* block = const_cast<policy::Block*>(named);
  caches().CheckOpen();
  fast_path_.Check(block, "RecordStream");
  if (stream == block->segment->lane->stream) return;
  if (!sleeper_.IsAnyAsleep() && fast_path_.TryRecordStream(block, stream)) return;
  const ExclusiveSection section(caches());
  const absl::Status awake = CheckAwake(block->segment->lane->pool->pair, "RecordStream");
  if (awake.ok()) fast_path_.RecordStream(block, stream);
  ladder_.errors().Note(awake);
}

bool CachingAllocator::RecordStreamOfAddress(std::uint64_t address, Stream stream) noexcept {
  caches().CheckOpen();
  if (!sleeper_.IsAnyAsleep() && fast_path_.TryRecordStreamOfAddress(address, stream)) return true;
  const ExclusiveSection section(caches());
  policy::Block* block = fast_path_.FindByAddress(address);
  if (block != nullptr && block->segment->lane->pool->pair->is_asleep) return false;
  if (block != nullptr && stream != block->segment->lane->stream) fast_path_.RecordStream(block, stream);
  return block != nullptr;
}

}  // namespace ashlar::core
