#include "analyzer/analyses/failure/release_set.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "analyzer/analyses/failure/cheapest_cover.h"

namespace ashlar::analyses {
namespace {

using timeline::StateBlock;
using timeline::StateSegment;

constexpr std::uint64_t kNoOrder = std::numeric_limits<std::uint64_t>::max();

// Blocks [begin, end) of one segment, counted through the whole state.
struct BlockRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t bytes = kNoOrder;  // kNoOrder: there is none

  bool IsFound() const { return bytes != kNoOrder; }
};

// The cheapest run of blocks of one segment behind whose release a free run of the lane is large enough. A run begins
// right behind a block that stays (or at the segment) and ends right before one, so for each beginning the shortest
// sufficient end is the cheapest, and both ends only move forward.
class CheapestRun {
 public:
  CheapestRun(const RequestLane& lane, const DeviceRoom& room) : lane_(lane), room_(room) {}

  void Search(const StateSegment& segment, std::size_t first) {
    if (!lane_.Owns(segment)) return;
    const std::vector<StateBlock>& blocks = segment.blocks;
    std::size_t end = 0;      // blocks[begin, end) are released
    std::uint64_t bytes = 0;  // of those
    for (std::size_t begin = 0; begin <= blocks.size(); ++begin) {
      if (end < begin) end = begin;
      const std::uint64_t from = begin == 0 ? segment.address : blocks[begin - 1].End();
      while (Reach(segment, from, end) < lane_.rounded_bytes() && end < blocks.size() && IsLive(blocks[end])) {
        bytes += blocks[end++].size_bytes;
      }
      if (Serves(segment, from, end)) Offer({first + begin, first + end, bytes});
      if (end > begin) bytes -= blocks[begin].size_bytes;
    }
  }

  const BlockRun& best() const { return best_; }

 private:
  static bool IsLive(const StateBlock& block) { return block.state == trace::BlockState::kLive; }

  static std::uint64_t RunBytes(const StateSegment& segment, std::uint64_t from, std::size_t end) {
    return (end == segment.blocks.size() ? segment.End() : segment.blocks[end].address) - from;
  }

  // The run from `from` to the block `end`, and the new pages that an expandable segment's end can get behind it.
  std::uint64_t Reach(const StateSegment& segment, std::uint64_t from, std::size_t end) const {
    const bool can_grow = segment.is_expandable && end == segment.blocks.size();
    return RunBytes(segment, from, end) + (can_grow ? RoundDown(room_.least_bytes, lane_.page_bytes()) : 0);
  }

  bool Serves(const StateSegment& segment, std::uint64_t from, std::size_t end) const {
    const std::uint64_t run_bytes = RunBytes(segment, from, end);
    if (run_bytes >= lane_.rounded_bytes()) return lane_.FitsIn(run_bytes);
    return Reach(segment, from, end) >= lane_.rounded_bytes();
  }

  void Offer(const BlockRun& run) {
    if (run.bytes < best_.bytes) best_ = run;
  }

  const RequestLane& lane_;
  const DeviceRoom& room_;
  BlockRun best_;
};

// Emptying segment i gives its bytes back to the device at the price of its live blocks. What is pending is waited for
// by the ladder itself.
std::vector<CoverItem> EmptyingItems(const timeline::State& state, bool with_private_pools) {
  std::vector<CoverItem> items;
  for (const StateSegment& segment : state.segments) {
    CoverItem& item = items.emplace_back();
    if (!segment.pool.IsDefault() && !with_private_pools) continue;
    item.gain = segment.size_bytes;
    for (const StateBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) item.cost += block.size_bytes;
    }
  }
  return items;
}

std::uint64_t NeedBeyond(std::uint64_t wanted, std::uint64_t room) { return wanted > room ? wanted - room : 0; }

bool HasExpandable(const timeline::State& state) {
  return std::any_of(state.segments.begin(), state.segments.end(),
                     [](const StateSegment& segment) { return segment.is_expandable; });
}

// Whatever is placed wherever: the request needs as many bytes as it has, and free ones there are only so many.
std::uint64_t BoundOfAnyPlacement(const RequestLane& lane, const timeline::State& state, const DeviceRoom& room) {
  std::uint64_t free_bytes = room.most_bytes;
  for (const StateSegment& segment : state.segments) {
    free_bytes += segment.size_bytes;
    for (const StateBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) free_bytes -= block.size_bytes;
    }
  }
  return NeedBeyond(lane.rounded_bytes(), free_bytes);
}

std::uint64_t LowerBound(const RequestLane& lane, const timeline::State& state, const DeviceRoom& room,
                         const BlockRun& run) {
  if (HasExpandable(state)) return BoundOfAnyPlacement(lane, state, room);
  const std::optional<Cover> cover = CheapestCover(EmptyingItems(state, /*with_private_pools=*/true),
                                                   NeedBeyond(lane.segment_bytes(), room.most_bytes));
  return std::min(cover.has_value() ? cover->lower_bound : kNoOrder, run.bytes);
}

std::vector<std::size_t> BlocksOfRun(const BlockRun& run, absl::Span<const std::size_t> active) {
  return {active.begin() + static_cast<std::ptrdiff_t>(run.begin),
          active.begin() + static_cast<std::ptrdiff_t>(run.end)};
}

std::vector<std::size_t> BlocksOfSegments(const Cover& cover, const timeline::State& state,
                                          absl::Span<const std::size_t> active) {
  std::vector<std::size_t> out;
  std::size_t first = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < state.segments.size(); ++i) {
    const std::vector<StateBlock>& blocks = state.segments[i].blocks;
    if (next < cover.items.size() && cover.items[next] == i) {
      ++next;
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        if (blocks[k].state == trace::BlockState::kLive) out.push_back(active[first + k]);
      }
    }
    first += blocks.size();
  }
  return out;
}

}  // namespace

std::optional<ReleaseSet> FindReleaseSet(const RequestLane& lane, const timeline::State& state,
                                         absl::Span<const std::size_t> active, const DeviceRoom& room) {
  CheapestRun runs(lane, room);
  std::size_t first = 0;
  for (const StateSegment& segment : state.segments) {
    runs.Search(segment, first);
    first += segment.blocks.size();
  }
  const BlockRun& run = runs.best();
  const std::uint64_t wanted =
      lane.options().expandable_segments ? RoundUp(lane.rounded_bytes(), lane.page_bytes()) : lane.segment_bytes();
  const std::optional<Cover> cover =
      CheapestCover(EmptyingItems(state, /*with_private_pools=*/false), NeedBeyond(wanted, room.least_bytes));
  if (!run.IsFound() && !cover.has_value()) return std::nullopt;
  ReleaseSet out;
  out.is_one_run = run.IsFound() && (!cover.has_value() || run.bytes <= cover->cost);
  out.bytes = out.is_one_run ? run.bytes : cover->cost;
  out.blocks = out.is_one_run ? BlocksOfRun(run, active) : BlocksOfSegments(*cover, state, active);
  std::sort(out.blocks.begin(), out.blocks.end());
  out.lower_bound_bytes = std::min(out.bytes, LowerBound(lane, state, room, run));
  out.is_minimal = out.lower_bound_bytes == out.bytes;
  return out;
}

}  // namespace ashlar::analyses
