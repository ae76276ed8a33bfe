#include "tests/allocator/policy/heap_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/strategy.h"
#include "tests/allocator/policy/shrink.h"
#include "tests/allocator/policy/slow_heap.h"

namespace ashlar::policy {
namespace {

constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 40;
constexpr std::uint64_t kReservationBytes = 1000 * kMiB;  // whole pages of either size

Options HeapOptions(const HeapProgramOptions& options) {
  Options out;
  out.max_split_size_bytes = options.max_split_size_bytes;
  out.expandable_segments = options.expandable_segments;
  return out;
}

// Both heaps, side by side.
class HeapRun {
 public:
  explicit HeapRun(const HeapProgramOptions& options)
      : heap_(HeapOptions(options)), slow_(options.max_split_size_bytes) {
    heap_.Pair(PoolOf(1));
    heap_.Pair(PoolOf(2)).no_split = true;
  }

  std::string Do(const HeapStep& step) {
    switch (step.kind) {
      case HeapStep::kAllocate:
        return Allocate(step);
      case HeapStep::kFree:
        return End(live_, step.which, SlowHeap::State::kFree);
      case HeapStep::kWait:
        return End(live_, step.which, SlowHeap::State::kWaiting);
      case HeapStep::kWaitOver:
        return End(waiting_, step.which, SlowHeap::State::kFree);
      case HeapStep::kReturnCache:
        return ReturnCache();
    }
    return "";
  }

  // What must hold after any step.
  std::string Difference() {
    if (const absl::Status valid = heap_.Validate(); !valid.ok()) return absl::StrCat("Validate: ", valid.message());
    return heap_.options().expandable_segments ? Overlap() : AgainstSlow();
  }

 private:
  static PoolId PoolOf(std::uint64_t pool) { return {.first = 0, .second = pool}; }

  std::string Allocate(const HeapStep& step) {
    const Decision decision = heap_.Decide({step.bytes, Stream{step.stream}, PoolOf(step.pool)});
    Block* block = decision.block != nullptr ? heap_.Commit(decision) : heap_.Place(decision, Grown(decision));
    live_.push_back(block);
    if (heap_.options().expandable_segments) return "";
    std::uint64_t expected = slow_.Take(step.bytes, step.stream, step.pool);
    if ((expected != 0) != (decision.block != nullptr))
      return absl::StrCat("a free block serves: ", decision.block != nullptr);
    if (expected == 0) expected = slow_.TakeNew(step.bytes, step.stream, step.pool, block->address);
    if (decision.block == nullptr &&
        block->segment->size_bytes != SlowHeap::ChunkBytes(SlowHeap::Rounded(step.bytes))) {
      return absl::StrCat("the new segment has ", block->segment->size_bytes, " bytes");
    }
    return block->address == expected ? "" : absl::StrCat("at ", block->address, ", not ", expected);
  }

  // New memory for the plan, in no set yet.
  Block* Grown(const Decision& decision) {
    if (!heap_.options().expandable_segments)
      return heap_.AddSegment(decision, NextAddress(decision.segment_bytes), decision.segment_bytes);
    Block* block = heap_.strategy().FindGrowth(decision);
    if (block == nullptr) {
      block = heap_.AddReservation(decision, NextAddress(kReservationBytes), kReservationBytes, PageBytes(decision));
    }
    if (block->state == BlockUse::kUnmapped) block = Mapped(block, decision, decision.rounded_bytes);
    while (block->size_bytes < decision.rounded_bytes) {
      block = Mapped(block->next, decision, decision.rounded_bytes - block->size_bytes);
    }
    Heap::TakeFree(block);
    return block;
  }
  static std::uint64_t PageBytes(const Decision& decision) { return decision.pool->is_small ? 2 * kMiB : 20 * kMiB; }
  Block* Mapped(Block* unmapped, const Decision& decision, std::uint64_t wanted_bytes) {
    const std::uint64_t page_bytes = PageBytes(decision);
    return heap_.MarkMapped(unmapped, RoundUp(std::min(wanted_bytes, unmapped->size_bytes), page_bytes), page_bytes);
  }

  std::uint64_t NextAddress(std::uint64_t bytes) {
    return std::exchange(next_address_, next_address_ + RoundUp(bytes, 2 * kMiB) + 2 * kMiB);
  }

  std::string End(std::vector<Block*>& blocks, std::size_t which, SlowHeap::State state) {
    if (blocks.empty()) return "";
    const auto at = blocks.begin() + static_cast<std::ptrdiff_t>(which % blocks.size());
    Block* block = *at;
    blocks.erase(at);
    slow_.Set(block->address, state);
    if (state == SlowHeap::State::kWaiting) {
      Heap::MarkPending(block);
      waiting_.push_back(block);
    } else {
      Heap::Release(block);
    }
    return "";
  }

  std::string ReturnCache() {
    PoolPair* const pairs[] = {&heap_.default_pair(), heap_.FindPair(PoolOf(1)), heap_.FindPair(PoolOf(2))};
    for (PoolPair* pair : pairs) {
      for (Pool* pool : {&pair->small, &pair->large}) {
        for (Block* block : heap_.WholeFree(*pool)) heap_.RemoveSegment(block);
        for (Block* block : Heap::FreeExpandable(*pool)) Unmap(block);
      }
    }
    slow_.ReturnCache();
    return "";
  }
  void Unmap(Block* block) {
    for (const PageRun& run : heap_.PagesToReturn(block)) {
      Block* unmapped = heap_.MarkUnmapped(block, run.range);
      if (!unmapped->IsSplit()) heap_.RemoveReservation(unmapped);
    }
  }

  std::string Overlap() const {
    std::vector<const Block*> blocks(live_.begin(), live_.end());
    std::sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->address < b->address; });
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      if (blocks[i - 1]->End() > blocks[i]->address) return absl::StrCat("two live blocks at ", blocks[i]->address);
    }
    return "";
  }

  std::string AgainstSlow() const {
    if (heap_.segments().size() != slow_.chunks().size()) return absl::StrCat(heap_.segments().size(), " segments");
    for (const auto& [address, chunk] : slow_.chunks()) {
      const auto segment = heap_.segments().find(address);
      if (segment == heap_.segments().end()) return absl::StrCat("no segment at ", address);
      const Block* block = segment->second->first;
      for (const SlowHeap::Piece& piece : chunk.pieces) {
        if (block == nullptr || block->address != piece.address || block->size_bytes != piece.bytes ||
            block->state != StateOf(piece.state)) {
          return absl::StrCat("the block at ", piece.address, " is not of ", piece.bytes,
                              " bytes, or in another state");
        }
        block = block->next;
      }
      if (block != nullptr) return absl::StrCat("a block more at ", block->address);
    }
    return "";
  }
  static BlockUse StateOf(SlowHeap::State state) {
    if (state == SlowHeap::State::kLive) return BlockUse::kLive;
    return state == SlowHeap::State::kFree ? BlockUse::kFree : BlockUse::kPending;
  }

  Heap heap_;
  SlowHeap slow_;
  std::vector<Block*> live_;
  std::vector<Block*> waiting_;
  std::uint64_t next_address_ = kFirstAddress;
};

}  // namespace

std::string RunHeapProgram(const HeapProgramOptions& options, const std::vector<HeapStep>& steps) {
  HeapRun run(options);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::string difference = run.Do(steps[i]);
    if (difference.empty()) difference = run.Difference();
    if (!difference.empty()) return absl::StrCat("step ", i, ": ", difference);
  }
  return "";
}

std::string SmallHeapProgram(const HeapProgramOptions& options, const std::vector<HeapStep>& steps) {
  const std::vector<HeapStep> small =
      Shrink(steps, [&options](const std::vector<HeapStep>& part) { return !RunHeapProgram(options, part).empty(); });
  return absl::StrCat(RunHeapProgram(options, small), "\n", HeapProgramText(options, small));
}

std::string HeapProgramText(const HeapProgramOptions& options, const std::vector<HeapStep>& steps) {
  static constexpr const char* kKinds[] = {"kAllocate", "kFree", "kWait", "kWaitOver", "kReturnCache"};
  std::string out =
      absl::StrCat("EXPECT_EQ(RunHeapProgram({.max_split_size_bytes = ", options.max_split_size_bytes,
                   "u, .expandable_segments = ", options.expandable_segments ? "true" : "false", "}, {\n");
  for (const HeapStep& step : steps) {
    absl::StrAppend(&out, "    {.kind = HeapStep::", kKinds[step.kind]);
    if (step.kind == HeapStep::kAllocate) {
      absl::StrAppend(&out, ", .bytes = ", step.bytes, ", .stream = ", step.stream, ", .pool = ", step.pool);
    } else if (step.kind != HeapStep::kReturnCache) {
      absl::StrAppend(&out, ", .which = ", step.which);
    }
    absl::StrAppend(&out, "},\n");
  }
  return absl::StrCat(out, "}), \"\");\n");
}

}  // namespace ashlar::policy
