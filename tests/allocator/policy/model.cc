#include "tests/allocator/policy/model.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ashlar::model {

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

bool Model::IsLate() const {
  return options_.compat == policy::Compat::kTorch210 || options_.compat == policy::Compat::kTorchLatest;
}

// ---- sizes ----

std::uint64_t Model::Rounded(std::uint64_t request) const {
  if (request < 512) return 512;
  int log2 = 0;
  while ((request >> (log2 + 1)) != 0) ++log2;
  const int interval = std::min(std::max(log2 - 20, 0), 15);
  const std::uint64_t divisions = options_.roundup_power2_divisions[static_cast<std::size_t>(interval)];
  const bool is_113 = options_.compat == policy::Compat::kTorch113;
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
  need.pool = {pool, need.size <= kMiB};
  if (need.pool.is_small) {
    need.segment = 2 * kMiB;
  } else {
    need.segment = need.size < 10 * kMiB ? options_.large_segment_bytes : Up(need.size, 2 * kMiB);
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
  if (options_.free_order == policy::FreeOrder::kPerBlockCounter) counter = block.number;
  if (options_.free_order == policy::FreeOrder::kPerSegmentCounter) counter = segment.number;
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
    while (!IsOurs() && i + 1 < free.size() && is_expandable(i) && Room(*free[i + 1]) < Room(*free[i])) ++i;
  } else {
    while (!IsOurs() && i < free.size() && is_expandable(i)) ++i;
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
  if (IsOurs()) {
    answer = GrowAfterRepair(need, &block);
    if (answer == Answer::kOk) return Place(block, need);
    return fail(answer == Answer::kRejected);
  }
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
  const std::optional<std::uint64_t> most = options_.borrow_most_waits;
  if (most.has_value() && waits_owed_ + 1000 > *most * 1000) return best;
  std::set<std::uint64_t> streams;
  for (const auto& [address, segment] : segments_) streams.insert(segment.stream);
  for (const std::uint64_t stream : streams) {
    Need as_theirs = need;
    as_theirs.stream = stream;
    Block* block = stream == need.stream ? nullptr : FindFree(as_theirs, need.pool, false);
    if (block != nullptr && (best == nullptr || block->size < best->size)) best = block;
  }
  if (best != nullptr && most.has_value()) waits_owed_ += 1000;
  if (best != nullptr) ++stats_.stream_waits;
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
    if (wait.stream == stream && wait.sequence <= sequence && done_[wait.awaited] < wait.sequence) {
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
    Emit(trace::Action::kOom, device_.capacity_bytes - used_, need.size, need.stream, need.pool.id);
  }
  return 0;
}

bool Model::Splits(const Block& block, std::uint64_t remaining, const Need& need) {
  const PoolKey& pool = SegmentOf(block).pool;
  if (!pool.id.IsDefault() && private_pools_.at(pool.id).no_split) return false;
  if (pool.is_small || options_.expandable_segments) return remaining >= 512;
  return need.size < options_.max_split_size_bytes && remaining > kMiB;
}

// Hands the low part of a free block out.
std::uint64_t Model::Place(Block* block, const Need& need) {
  waits_owed_ -= std::min(waits_owed_, options_.borrow_most_waits.value_or(0));
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
  stats_.allocated_bytes.Change(is_small, Signed(block->size));
  stats_.active_bytes.Change(is_small, Signed(block->size));
  stats_.requested_bytes.Change(is_small, Signed(need.request));
  if (block->size >= options_.max_split_size_bytes) stats_.oversize_allocations.Change(is_small, 1);
  RecountInactiveSplit();
  Emit(trace::Action::kAlloc, block->address, need.request, segment.stream, segment.pool.id, block->size);
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

void Model::Emit(trace::Action action, std::uint64_t address, std::uint64_t size, std::uint64_t stream, PoolId pool,
                 std::uint64_t block_size) {
  events_.push_back({action, address, size, stream, pool, block_size});
}

std::vector<Event> Model::TakeEvents() { return std::exchange(events_, {}); }

}  // namespace ashlar::model
