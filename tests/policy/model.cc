// Long because: the model is one whole, to be read against the policy from top to bottom.
#include "tests/policy/model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace ashlar::model {
namespace {

using policy::Compat;
using policy::FreeOrder;
using trace::Action;

constexpr std::uint64_t kMB = 1024 * 1024;
constexpr std::uint64_t kGranularity = 2 * kMB;
constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kReservationBase = kBase + (std::uint64_t{1} << 44);

std::uint64_t Up(std::uint64_t value, std::uint64_t step) {
  return value % step == 0 ? value : value + step - value % step;
}

std::int64_t S(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

void Counter::Change(bool is_small, std::int64_t amount) {
  for (const int i : {0, is_small ? 1 : 2}) {
    current[i] += amount;
    increases[i] += std::max<std::int64_t>(amount, 0);
    peak[i] = std::max(peak[i], current[i]);
  }
}

Model::Model(const policy::Options& options, const DeviceSettings& device) : options_(options), device_(device) {
  limit_ = options.memory_limit_bytes;
  if (options.per_process_memory_fraction) SetMemoryFraction(*options.per_process_memory_fraction);
}

bool Model::IsLate() const { return options_.compat == Compat::kTorch210 || options_.compat == Compat::kTorchLatest; }

// ---- sizes ----

std::uint64_t Model::Rounded(std::uint64_t request) const {
  if (request < 512) return 512;
  int log2 = 0;
  while ((request >> (log2 + 1)) != 0) ++log2;
  const int interval = std::min(std::max(log2 - 20, 0), 15);
  const std::uint64_t divisions = options_.roundup_power2_divisions[static_cast<std::size_t>(interval)];
  const bool is_113 = options_.compat == Compat::kTorch113;
  if (is_113 && request > options_.roundup_bypass_threshold_bytes) return Up(request, 512);
  if (is_113 && divisions == 1 && request > 512) return request;  // upstream's defect
  if (divisions <= 1 || request <= 512 * divisions) return Up(request, 512);
  const std::uint64_t power = std::uint64_t{1} << log2;
  return Up(request, power / divisions);
}

Model::Need Model::MakeNeed(std::uint64_t bytes, std::uint64_t stream, PoolId pool) const {
  Need need;
  need.request = bytes;
  need.size = Rounded(bytes);
  need.stream = stream;
  need.pool = {pool, need.size <= kMB};
  if (need.pool.is_small) {
    need.segment = 2 * kMB;
  } else {
    need.segment = need.size < 10 * kMB ? options_.large_segment_bytes : Up(need.size, 2 * kMB);
  }
  return need;
}

// ---- looking at blocks ----

Block* Model::Previous(const Block& block) {
  const auto it = blocks_.find(block.address);
  if (it == blocks_.begin() || std::prev(it)->second.segment != block.segment) return nullptr;
  return &std::prev(it)->second;
}

Block* Model::Next(const Block& block) {
  const auto it = std::next(blocks_.find(block.address));
  return it == blocks_.end() || it->second.segment != block.segment ? nullptr : &it->second;
}

Model::Key Model::KeyOf(const Block& block) {
  const Segment& segment = SegmentOf(block);
  std::uint64_t counter = 0;
  if (options_.free_order == FreeOrder::kPerBlockCounter) counter = block.number;
  if (options_.free_order == FreeOrder::kPerSegmentCounter) counter = segment.number;
  return {segment.stream, block.size, counter, block.address};
}

std::vector<Block*> Model::FreeBlocks(const PoolKey& pool) {
  std::vector<std::pair<Key, Block*>> found;
  for (auto& [address, block] : blocks_) {
    if (block.state == State::kFree && SegmentOf(block).pool == pool) found.emplace_back(KeyOf(block), &block);
  }
  std::sort(found.begin(), found.end());
  std::vector<Block*> out;
  for (const auto& [key, block] : found) out.push_back(block);
  return out;
}

std::vector<Block*> Model::FreeBlocksOf(const PoolKey& pool, std::uint64_t stream) {
  std::vector<Block*> out = FreeBlocks(pool);
  std::erase_if(out, [&](Block* block) { return SegmentOf(*block).stream != stream; });
  return out;
}

std::uint64_t Model::Room(const Block& block) {
  const Block* next = Next(block);
  return block.size + (next != nullptr && next->state == State::kUnmapped ? next->size : 0);
}

Block* Model::FindFree(const Need& need, const PoolKey& pool, bool is_overflow) {
  const std::vector<Block*> free = FreeBlocksOf(pool, need.stream);
  std::size_t i = 0;
  while (i < free.size() && free[i]->size < need.size) ++i;
  const auto is_expandable = [&](std::size_t at) { return SegmentOf(*free[at]).expandable; };
  if (options_.expandable_segments && !is_overflow) {
    while (i + 1 < free.size() && is_expandable(i) && Room(*free[i + 1]) < Room(*free[i])) ++i;
  } else {
    while (i < free.size() && is_expandable(i)) ++i;
  }
  if (i >= free.size()) return nullptr;
  Block* candidate = free[i];
  const std::uint64_t max_split = options_.max_split_size_bytes;
  if (need.size < max_split && candidate->size >= max_split) return nullptr;
  if (need.size >= max_split && candidate->size >= need.size + options_.max_non_split_rounding_bytes) return nullptr;
  return candidate;
}

// ---- requests ----

std::optional<std::uint64_t> Model::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return 0;
  if (pool.IsDefault()) {
    for (const Route& route : routes_) {
      if (route.stream == Handle(stream)) pool = route.pool;
    }
  }
  if (!IsCapturing()) ProcessEvents(false);
  if (!pool.IsDefault()) private_pools_[pool];
  const Need need = MakeNeed(bytes, Handle(stream), pool);
  if (AgesCount()) ++clocks_[need.pool];
  Block* block = FindFree(need, need.pool, false);
  if (block != nullptr) return Place(block, need);
  if (AgesCount() && !IsCapturing()) CollectGarbage();

  const auto fail = [&](bool is_rejection) -> std::optional<std::uint64_t> {
    Fail(need, is_rejection);
    return std::nullopt;
  };
  Answer answer = NewSegment(need, &block);
  if (answer == Answer::kOk) return Place(block, need);
  if (answer == Answer::kRejected) return fail(true);
  block = FindInOverflow(need);
  if (block == nullptr) block = FindInOtherStreams(need);
  if (block != nullptr) return Place(block, need);
  if (IsCapturing()) return fail(false);
  bool was_rejected = false;
  if (ReleaseAvailable(need)) {
    answer = NewSegment(need, &block);
    if (answer == Answer::kOk) return Place(block, need);
    was_rejected |= answer == Answer::kRejected;
  }
  if (options_.sync_just_enough) {
    answer = GrowAfterFewWaits(need, &block);
    if (answer == Answer::kOk) return Place(block, need);
    return fail(answer == Answer::kRejected);
  }
  ProcessEvents(true);
  ++stats_.sync_all;
  if (options_.search_after_sync) block = FindAfterWaiting(need);
  if (block != nullptr) return Place(block, need);
  ReturnCached(need.pool.id);
  ++stats_.retries;
  answer = NewSegment(need, &block);
  if (answer == Answer::kOk) return Place(block, need);
  return fail(was_rejected || answer == Answer::kRejected);
}

Block* Model::FindInOverflow(const Need& need) {
  if (!need.pool.id.IsDefault()) return nullptr;
  for (const auto& [id, settings] : private_pools_) {
    if (!settings.use_on_oom) continue;
    if (Block* block = FindFree(need, {id, need.pool.is_small}, true); block != nullptr) return block;
  }
  return nullptr;
}

// The smallest block that would serve the request if it were of that stream; of equals the lowest stream's.
Block* Model::FindInOtherStreams(const Need& need) {
  Block* best = nullptr;
  if (!options_.borrow_across_streams || IsCapturing()) return best;
  std::set<std::uint64_t> streams;
  for (const auto& [address, segment] : segments_) streams.insert(segment.stream);
  for (const std::uint64_t stream : streams) {
    Need as_theirs = need;
    as_theirs.stream = stream;
    Block* block = stream == need.stream ? nullptr : FindFree(as_theirs, need.pool, false);
    if (block != nullptr && (best == nullptr || block->size < best->size)) best = block;
  }
  return best;
}

Block* Model::FindAfterWaiting(const Need& need) {
  Block* block = FindFree(need, need.pool, false);
  if (block == nullptr) block = FindInOverflow(need);
  return block != nullptr ? block : FindInOtherStreams(need);
}

// Every stretch of free and waiting blocks is looked at; the shortest from each beginning that is large enough counts.
std::vector<std::uint64_t> Model::FewestWaits(const Need& need) {
  std::vector<std::uint64_t> best;
  int best_events = 0;
  for (auto& [address, first] : blocks_) {
    if (SegmentOf(first).pool != need.pool || SegmentOf(first).stream != need.stream) continue;
    std::vector<std::uint64_t> waits;
    std::uint64_t size = 0;
    int events = 0;
    Block* last = nullptr;
    for (Block* at = &first; at != nullptr && size < need.size; at = Next(*at)) {
      if (at->state != State::kFree && at->state != State::kPending) break;
      if (at->state == State::kPending) waits.push_back(at->address);
      events += at->waiting_events;
      size += at->size;
      last = at;
    }
    if (size < need.size || events == 0) continue;
    if (const Block* before = Previous(first); before != nullptr && before->state == State::kFree) size += before->size;
    if (const Block* behind = Next(*last); behind != nullptr && behind->state == State::kFree) size += behind->size;
    const std::uint64_t max_split = options_.max_split_size_bytes;
    if (need.size < max_split && size >= max_split) continue;
    if (need.size >= max_split && size >= need.size + options_.max_non_split_rounding_bytes) continue;
    if (!best.empty() && events >= best_events) continue;
    best = waits;
    best_events = events;
  }
  return best;
}

void Model::FinishHead(std::vector<Waiting>& queue) {
  Block& block = blocks_.at(queue.front().block);
  queue.erase(queue.begin());
  if (--block.waiting_events == 0) FinishFree(&block);
}

// A stream's events are done in order: those before the block's are done with it.
void Model::WaitForBlock(std::uint64_t address) {
  for (auto& [stream, queue] : waiting_) {
    std::size_t count = queue.size();
    while (count > 0 && queue[count - 1].block != address) --count;
    if (count > 0) MarkDone(stream, queue[count - 1].sequence);
    for (; count > 0; --count) FinishHead(queue);
  }
}

void Model::MarkDone(std::uint64_t stream, std::uint64_t sequence) {
  done_[stream] = std::max(done_[stream], sequence);
  for (const StreamWait& wait : stream_waits_) {
    if (wait.stream == stream && wait.sequence < sequence && done_[wait.awaited] < wait.sequence) {
      MarkDone(wait.awaited, wait.sequence);
    }
  }
}

Model::Answer Model::GrowAfterFewWaits(const Need& need, Block** out) {
  for (const std::uint64_t address : FewestWaits(need)) WaitForBlock(address);
  may_return_ = true;
  for (;;) {
    *out = FindAfterWaiting(need);
    if (*out != nullptr) return Answer::kOk;
    if (may_return_) {
      ReturnCached(need.pool.id);
      ++stats_.retries;
      const Answer answer = NewSegment(need, out);
      if (answer != Answer::kOutOfMemory) return answer;
    }
    std::vector<Waiting>* oldest = nullptr;
    std::uint64_t its_stream = 0;
    for (auto& [stream, queue] : waiting_) {
      if (queue.empty()) continue;
      if (oldest != nullptr && queue.front().sequence > oldest->front().sequence) continue;
      oldest = &queue;
      its_stream = stream;
    }
    if (oldest == nullptr) return Answer::kOutOfMemory;
    may_return_ = false;
    MarkDone(its_stream, oldest->front().sequence);
    FinishHead(*oldest);
  }
}

std::uint64_t Model::Fail(const Need& need, bool is_rejection) {
  if (is_rejection) {
    ++stats_.rejections;
  } else {
    ++stats_.ooms;
    Emit(Action::kOom, device_.capacity_bytes - used_, need.size, need.stream, need.pool.id);
  }
  return 0;
}

bool Model::Splits(const Block& block, std::uint64_t remaining, const Need& need) {
  const PoolKey& pool = SegmentOf(block).pool;
  if (!pool.id.IsDefault() && private_pools_.at(pool.id).no_split) return false;
  if (pool.is_small || options_.expandable_segments) return remaining >= 512;
  return need.size < options_.max_split_size_bytes && remaining > kMB;
}

// Hands the low part of a free block out.
std::uint64_t Model::Place(Block* block, const Need& need) {
  const Segment& segment = SegmentOf(*block);
  const std::uint64_t remaining = block->size - need.size;
  if (Splits(*block, remaining, need)) {
    Block* rest = AddBlock(block->address + need.size, remaining, block->segment, State::kFree);
    std::swap(rest->number, block->number);  // the low part is the new object
    rest->inserted = clocks_[segment.pool];
    block->size = need.size;
  }
  block->state = State::kLive;
  block->requested = need.request;
  if (segment.stream != need.stream) {  // borrowed
    Record(*block, need.stream);
    stream_waits_.push_back({need.stream, segment.stream, ++sequence_});
  }
  const bool is_small = segment.pool.is_small;
  stats_.allocation.Change(is_small, 1);
  stats_.active.Change(is_small, 1);
  stats_.allocated_bytes.Change(is_small, S(block->size));
  stats_.active_bytes.Change(is_small, S(block->size));
  stats_.requested_bytes.Change(is_small, S(need.request));
  if (block->size >= options_.max_split_size_bytes) stats_.oversize_allocations.Change(is_small, 1);
  RecountInactiveSplit();
  Emit(Action::kAlloc, block->address, need.request, segment.stream, segment.pool.id, block->size);
  return block->address;
}

Block* Model::AddBlock(std::uint64_t address, std::uint64_t size, std::uint64_t segment, State state) {
  Block& block = blocks_[address];
  block = Block{};
  block.address = address;
  block.size = size;
  block.segment = segment;
  block.number = next_block_number_++;
  block.state = state;
  return &block;
}

// ---- new memory ----

Model::Answer Model::NewSegment(const Need& need, Block** out) {
  const std::uint64_t reserved = static_cast<std::uint64_t>(stats_.reserved_bytes.current[0]);
  if (limit_ && reserved + need.segment > *limit_) return Answer::kOutOfMemory;
  if (options_.throw_on_cudamalloc_oom) {
    const double fraction = options_.per_process_memory_fraction.value_or(1.0);
    const auto most = static_cast<std::uint64_t>(fraction * static_cast<double>(device_.capacity_bytes));
    if (reserved + need.segment > most) return Answer::kRejected;
  }
  if (options_.expandable_segments) return Grow(need, out);
  const std::uint64_t charged = Up(need.segment, kGranularity);
  if (used_ + charged > device_.capacity_bytes) return Answer::kOutOfMemory;
  const std::uint64_t address = *TakeRange(false, charged);
  used_ += charged;
  Segment& segment = segments_[address];
  segment.size = need.segment;
  segment.stream = need.stream;
  segment.pool = need.pool;
  segment.number = next_segment_number_++;
  stats_.segment.Change(need.pool.is_small, 1);
  stats_.reserved_bytes.Change(need.pool.is_small, S(need.segment));
  ++stats_.device_alloc;
  if (need.segment >= options_.max_split_size_bytes) stats_.oversize_segments.Change(need.pool.is_small, 1);
  Emit(Action::kSegmentAlloc, address, need.segment, need.stream, need.pool.id);
  *out = AddBlock(address, need.segment, address, State::kFree);
  return Answer::kOk;
}

Block* Model::FindGrowth(const Need& need) {
  for (auto& [address, unmapped] : blocks_) {
    const Segment& segment = SegmentOf(unmapped);
    if (unmapped.state != State::kUnmapped || segment.pool != need.pool || segment.stream != need.stream) continue;
    Block* start = &unmapped;
    if (Block* previous = Previous(unmapped); previous != nullptr && previous->state == State::kFree) start = previous;
    std::uint64_t sum = 0;
    for (Block* at = start; at != nullptr; at = Next(*at)) {
      if (at->state != State::kFree && at->state != State::kUnmapped) break;
      sum += at->size;
    }
    if (sum >= need.size) return start;
  }
  return nullptr;
}

Block* Model::NewReservation(const Need& need) {
  const std::uint64_t total = device_.capacity_bytes;
  std::uint64_t wanted = total + total / 8;
  const policy::ExpandableReserve& reserve = options_.expandable_reserve;
  if (reserve.fraction_of_total) {
    const double bytes = *reserve.fraction_of_total * static_cast<double>(total);
    if (bytes < static_cast<double>(wanted)) wanted = static_cast<std::uint64_t>(bytes);
  }
  if (reserve.bytes) wanted = std::min(wanted, *reserve.bytes);
  const std::uint64_t page = need.pool.is_small ? 2 * kMB : options_.large_segment_bytes;
  const std::uint64_t size = Up(wanted, page);
  if (IsLate() && size < need.size) return nullptr;  // made and freed at once
  const std::uint64_t address = *TakeRange(true, size);
  Segment& segment = segments_[address];
  segment.size = size;
  segment.stream = need.stream;
  segment.pool = need.pool;
  segment.page = page;
  segment.expandable = true;
  segment.number = next_segment_number_++;
  return AddBlock(address, size, address, State::kUnmapped);
}

Model::Answer Model::Grow(const Need& need, Block** out) {
  Block* block = FindGrowth(need);
  if (block == nullptr) block = NewReservation(need);
  if (block == nullptr) return Answer::kOutOfMemory;
  if (block->state == State::kUnmapped) block = MapSome(block, std::min(block->size, need.size));
  while (block != nullptr && block->size < need.size) {
    Block* next = Next(*block);
    if (next == nullptr) return Answer::kOutOfMemory;
    block = MapSome(next, std::min(need.size - block->size, next->size));
  }
  *out = block;
  return block != nullptr ? Answer::kOk : Answer::kOutOfMemory;
}

// Puts memory behind the beginning of an unmapped block; the free block that results, nullptr if out of memory.
Block* Model::MapSome(Block* block, std::uint64_t wanted) {
  const Segment& segment = SegmentOf(*block);
  const std::uint64_t size = Up(wanted, segment.page);
  if (used_ + size > device_.capacity_bytes) return nullptr;
  used_ += size;
  if (size < block->size) AddBlock(block->address + size, block->size - size, block->segment, State::kUnmapped);
  block->size = size;
  block->state = State::kFree;
  stats_.reserved_bytes.Change(segment.pool.is_small, S(size));
  ++stats_.device_alloc;
  Emit(Action::kSegmentMap, block->address, size, segment.stream, segment.pool.id);
  block = Merge(block, Previous(*block));
  block = Merge(block, Next(*block));
  block->inserted = clocks_[segment.pool];
  return block;
}

// ---- giving back ----

void Model::CollectGarbage() {
  const auto threshold =
      static_cast<std::uint64_t>(options_.garbage_collection_threshold * static_cast<double>(*limit_));
  const std::uint64_t reserved = static_cast<std::uint64_t>(stats_.reserved_bytes.current[0]);
  if (reserved <= threshold) return;
  const std::uint64_t target = reserved - threshold;
  const PoolKey pool{PoolId{}, false};
  std::uint64_t reclaimed = 0;
  bool is_freed = true;
  while (reclaimed < target && is_freed) {
    std::vector<Block*> unsplit = FreeBlocks(pool);
    std::erase_if(unsplit, [&](Block* block) { return IsSplit(*block); });
    if (unsplit.empty()) return;
    std::uint64_t total_age = 0;
    for (const Block* block : unsplit) total_age += clocks_[pool] - block->inserted;
    const double average = static_cast<double>(total_age) / static_cast<double>(unsplit.size());
    is_freed = false;
    for (Block* block : unsplit) {
      if (SegmentOf(*block).expandable) continue;
      if (static_cast<double>(clocks_[pool] - block->inserted) < average) continue;
      reclaimed += block->size;
      ReleaseWhole(block);
      is_freed = true;
    }
  }
}

bool Model::ReleaseAvailable(const Need& need) {
  const std::uint64_t max_split = options_.max_split_size_bytes;
  if (max_split == policy::kUnlimited) return false;
  const std::uint64_t key_size = std::max(need.size, max_split);
  const std::vector<Block*> free = FreeBlocksOf(need.pool, need.stream);
  std::size_t hit = 0;
  while (hit < free.size() && free[hit]->size < key_size) ++hit;
  if (hit < free.size() && !SegmentOf(*free[hit]).expandable) {
    ReleaseWhole(free[hit]);
    return true;
  }
  std::uint64_t released = 0;
  for (std::size_t i = hit; i > 0 && released < key_size; --i) {
    Block* block = free[i - 1];
    if (block->size < max_split) break;
    if (SegmentOf(*block).expandable) continue;
    released += block->size;
    ReleaseWhole(block);
  }
  return released >= key_size;
}

void Model::EmptyCache() {
  if (IsCapturing()) return;
  ProcessEvents(true);
  ++stats_.sync_all;
  ReturnCached(PoolId{});
}

// `in_use`: the pool that a request is under way in.
void Model::ReturnCached(PoolId in_use) {
  ReleasePoolBlocks({PoolId{}, false});
  ReleasePoolBlocks({PoolId{}, true});
  for (const auto& [id, pool] : private_pools_) {
    if (pool.users > 0) continue;
    ReleasePoolBlocks({id, true});
    ReleasePoolBlocks({id, false});
    if (id != in_use) ReleaseEmptyReservations(id);
  }
}

void Model::ReleaseEmptyReservations(PoolId pool) {
  for (auto it = segments_.begin(); it != segments_.end();) {
    const std::uint64_t address = it->first;
    const bool is_empty = it->second.pool.id == pool && it->second.expandable &&
                          blocks_.at(address).state == State::kUnmapped && blocks_.at(address).size == it->second.size;
    ++it;
    if (!is_empty) continue;
    blocks_.erase(address);
    segments_.erase(address);
    taken_[1].erase(address);
  }
}

void Model::ReleasePoolBlocks(const PoolKey& pool) {
  std::vector<Block*> to_unmap;
  for (Block* block : FreeBlocks(pool)) {
    if (SegmentOf(*block).expandable) {
      to_unmap.push_back(block);
    } else if (!IsSplit(*block)) {
      ReleaseWhole(block);
    }
  }
  for (Block* block : to_unmap) UnmapPages(block);
}

void Model::ReleaseWhole(Block* block) {
  const Segment segment = SegmentOf(*block);
  const std::uint64_t address = block->address;
  blocks_.erase(address);
  segments_.erase(address);
  used_ -= taken_[0].at(address);
  taken_[0].erase(address);
  stats_.segment.Change(segment.pool.is_small, -1);
  stats_.reserved_bytes.Change(segment.pool.is_small, -S(segment.size));
  ++stats_.device_free;
  if (segment.size >= options_.max_split_size_bytes) stats_.oversize_segments.Change(segment.pool.is_small, -1);
  Emit(Action::kSegmentFree, address, segment.size, segment.stream, segment.pool.id);
}

void Model::UnmapPages(Block* block) {
  const Segment segment = SegmentOf(*block);
  const std::uint64_t base = block->segment;
  const std::uint64_t begin = base + Up(block->address - base, segment.page);
  const std::uint64_t block_end = block->address + block->size;
  const std::uint64_t end = block_end - (block_end - base) % segment.page;
  if (begin >= end) return;
  MarkDone(segment.stream, sequence_);  // the stream is waited for
  const std::uint64_t number = block->number;
  const std::uint64_t block_begin = block->address;
  blocks_.erase(block_begin);
  if (block_begin < begin) {
    AddBlock(block_begin, begin - block_begin, base, State::kFree)->inserted = clocks_[segment.pool];
  }
  if (end < block_end) AddBlock(end, block_end - end, base, State::kFree)->inserted = clocks_[segment.pool];
  Block* unmapped = AddBlock(begin, end - begin, base, State::kUnmapped);
  unmapped->number = number;
  used_ -= end - begin;
  stats_.reserved_bytes.Change(segment.pool.is_small, -S(end - begin));
  ++stats_.device_free;
  Emit(Action::kSegmentUnmap, begin, end - begin, segment.stream, segment.pool.id);
  unmapped = Merge(unmapped, Previous(*unmapped));
  unmapped = Merge(unmapped, Next(*unmapped));
  if (unmapped->size == segment.size) {
    blocks_.erase(base);
    segments_.erase(base);
    taken_[1].erase(base);
  }
}

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
  stats_.allocated_bytes.Change(is_small, -S(block.size));
  if (block.size >= options_.max_split_size_bytes) stats_.oversize_allocations.Change(is_small, -1);
  Emit(Action::kFreeRequested, address, block.requested, segment.stream, segment.pool.id);
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
  stats_.active_bytes.Change(is_small, -S(block->size));
  stats_.requested_bytes.Change(is_small, -S(block->requested));
  Emit(Action::kFreeCompleted, block->address, block->requested, segment.stream, segment.pool.id);
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
    bytes[segment.pool.is_small ? 1 : 0] += S(block.size);
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

// ---- the device ----

std::optional<std::uint64_t> Model::TakeRange(bool is_reservation, std::uint64_t size) {
  size = Up(size, kGranularity);
  auto& taken = taken_[is_reservation ? 1 : 0];
  std::uint64_t address = is_reservation ? kReservationBase : kBase;
  if (!is_reservation && device_.descending) {
    std::uint64_t end = kReservationBase;
    for (auto it = taken.rbegin(); it != taken.rend() && it->first + it->second + size > end; ++it) end = it->first;
    address = end - size;
  } else {
    for (const auto& [begin, length] : taken) {
      if (address + size <= begin) break;
      address = begin + length;
    }
  }
  taken[address] = size;
  return address;
}

void Model::Emit(Action action, std::uint64_t address, std::uint64_t size, std::uint64_t stream, PoolId pool,
                 std::uint64_t block_size) {
  events_.push_back({action, address, size, stream, pool, block_size});
}

std::vector<Event> Model::TakeEvents() { return std::exchange(events_, {}); }

}  // namespace ashlar::model
