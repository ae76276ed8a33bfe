#include "analyzer/analyses/failure/request_lane.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "allocator/policy/strategy.h"

namespace ashlar::analyses {

RequestLane::RequestLane(std::uint64_t rounded_bytes, Stream stream, PoolId pool, const policy::Options& options)
    : rounded_bytes_(rounded_bytes),
      stream_(stream),
      pool_(pool),
      is_small_(policy::IsSmall(rounded_bytes)),
      rules_(options),
      segment_bytes_(policy::SegmentBytes(rounded_bytes, options)),
      page_bytes_(policy::PageBytes(is_small_, options)) {}

bool RequestLane::Owns(const timeline::StateSegment& segment) const {
  // Passed over while the option is off.
  if (segment.is_expandable && !options().expandable_segments && pool_.IsDefault()) return false;
  return segment.stream == stream_ && segment.pool == pool_ && segment.is_small_pool == is_small_;
}

bool RequestLane::IsServedBy(const timeline::State& state) const {
  return std::any_of(state.segments.begin(), state.segments.end(), [this](const timeline::StateSegment& segment) {
    if (!Owns(segment)) return false;
    const std::vector<timeline::FreeRange> runs = timeline::FreeRanges(segment);
    return std::any_of(runs.begin(), runs.end(),
                       [this](const timeline::FreeRange& run) { return FitsIn(run.size_bytes); });
  });
}

std::uint64_t RequestLane::LargestCached(const timeline::State& state) const {
  std::uint64_t largest = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (!Owns(segment)) continue;
    for (const timeline::FreeRange& run : timeline::FreeRanges(segment)) largest = std::max(largest, run.size_bytes);
  }
  return policy::LargestInRun(is_small_, largest);
}

std::uint64_t RequestLane::TailOf(const timeline::State& state) const {
  std::uint64_t tail = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (!Owns(segment) || !segment.is_expandable) continue;
    const std::uint64_t end = segment.blocks.empty() ? segment.address : segment.blocks.back().End();
    tail = std::max(tail, segment.End() - end);
  }
  return tail;
}

policy::Options RequestLane::GrowthOptions(const timeline::State& state) const {
  policy::Options out = options();
  out.expandable_segments |=
      std::any_of(state.segments.begin(), state.segments.end(),
                  [this](const timeline::StateSegment& segment) { return segment.is_expandable && Owns(segment); });
  return out;
}

std::uint64_t RequestLane::LargestFresh(const timeline::State& state, std::uint64_t free_bytes) const {
  return policy::LargestFromDevice(is_small_, free_bytes, TailOf(state), GrowthOptions(state));
}

bool RequestLane::IsServedFresh(const timeline::State& state, std::uint64_t free_bytes) const {
  return policy::IsServedFromDevice(rounded_bytes_, free_bytes, TailOf(state), GrowthOptions(state));
}

namespace {

using timeline::FreeRange;
using timeline::StateBlock;
using timeline::StateSegment;
using trace::Action;

bool IsPending(const StateBlock& block) { return block.state == trace::BlockState::kPending; }

// A free_completed that follows its own free_requested is the program's free, any other is the allocator's doing.
bool IsLadderEvent(const timeline::Timeline& timeline, timeline::EventIndex event) {
  const auto events = timeline.events();
  const trace::Event& here = events[static_cast<std::size_t>(event)];
  if (here.action != Action::kFreeCompleted) {
    return here.action == Action::kSegmentFree || here.action == Action::kSegmentUnmap ||
           here.action == Action::kSegmentMap;
  }
  if (event == 0) return false;
  const trace::Event& before = events[static_cast<std::size_t>(event - 1)];
  return before.action != Action::kFreeRequested || before.address != here.address;
}

timeline::State WithoutPending(timeline::State state) {
  for (StateSegment& segment : state.segments) {
    segment.blocks.erase(std::remove_if(segment.blocks.begin(), segment.blocks.end(), IsPending), segment.blocks.end());
  }
  return state;
}

class LaneLadder {
 public:
  LaneLadder(const RequestLane& lane, const LadderStates& states)
      : lane_(lane), states_(states), polled_(WithoutPending(*states.before)) {}

  std::vector<LadderRung> Climb() {
    PollFrees();
    Reuse();
    Add("free-memory callbacks", 0, false, "what they freed is not in this trace");
    CollectGarbage();
    Grow();
    ReleaseOversize();
    ReleaseCache();
    SearchAgain();
    return std::move(rungs_);
  }

 private:
  void Add(const char* name, std::uint64_t bytes, bool would_serve, std::string remark) {
    rungs_.push_back({name, bytes, would_serve, std::move(remark)});
  }

  // Whether a new segment (the pages of an expandable one) could be had with so much more free on the device.
  bool CanGrowWith(std::uint64_t returned_bytes) const {
    if (states_.is_limited) return false;
    return lane_.IsServedFresh(*states_.before, states_.free_before_bytes + returned_bytes);
  }

  void PollFrees() {
    const std::uint64_t bytes = timeline::SumOf(*states_.before).active_bytes - timeline::SumOf(polled_).active_bytes;
    Add("finish frees that waited", bytes, bytes > 0 && lane_.IsServedBy(polled_),
        bytes == 0 ? "no free waits for another stream"
                   : "at most: which of them were finished by then is not in this trace");
  }

  void Reuse() {
    const std::uint64_t largest = lane_.LargestCached(*states_.before);
    Add("reuse a cached block", largest, lane_.IsServedBy(*states_.before),
        "the largest free block of its pool and stream");
  }

  void CollectGarbage() {
    if (lane_.options().garbage_collection_threshold <= 0) {
      Add("collect garbage", 0, false, "off: garbage_collection_threshold is not set");
      return;
    }
    std::uint64_t bytes = 0;
    for (const StateSegment& segment : states_.before->segments) {
      if (segment.pool.IsDefault() && !segment.is_small_pool && !segment.is_expandable && segment.blocks.empty()) {
        bytes += segment.size_bytes;
      }
    }
    Add("collect garbage", bytes, bytes > 0 && CanGrowWith(bytes),
        "at most; the memory fraction and the blocks' ages are not in this trace");
  }

  void Grow() {
    std::string remark = absl::StrCat("free on the device; the new segment needs ", FormatBytes(lane_.segment_bytes()));
    if (states_.is_limited) remark = "free on the device, enough: a memory fraction or another limit refused it";
    Add("obtain a new segment", states_.free_before_bytes, CanGrowWith(0), std::move(remark));
  }

  // docs/internals/policy.md: the smallest block that is large enough, else the largest ones downwards until they are
  // enough.
  void ReleaseOversize() {
    const std::uint64_t max_split = lane_.options().max_split_size_bytes;
    if (max_split == policy::kUnlimited) {
      Add("release oversize blocks", 0, false, "off: max_split_size_mb is not set");
      return;
    }
    std::vector<std::uint64_t> sizes;
    for (const StateSegment& segment : states_.before->segments) {
      if (!lane_.Owns(segment) || segment.is_expandable) continue;
      for (const FreeRange& run : timeline::FreeRanges(segment)) {
        if (run.size_bytes >= max_split) sizes.push_back(run.size_bytes);
      }
    }
    std::sort(sizes.begin(), sizes.end());
    const std::uint64_t wanted = std::max(lane_.rounded_bytes(), max_split);
    std::uint64_t bytes = 0;
    if (const auto hit = std::lower_bound(sizes.begin(), sizes.end(), wanted); hit != sizes.end()) {
      bytes = *hit;
    } else {
      for (auto size = sizes.rbegin(); size != sizes.rend() && bytes < wanted; ++size) bytes += *size;
    }
    Add("release oversize blocks", bytes, bytes >= wanted && CanGrowWith(bytes),
        bytes == 0 ? "no free block reaches max_split_size_mb" : "");
  }

  // Whole segments, and the whole pages inside the free runs of expandable ones, once all frees are waited for.
  std::uint64_t ReleasableBytes() const {
    std::uint64_t bytes = 0;
    for (const StateSegment& segment : polled_.segments) {
      if (!segment.pool.IsDefault()) continue;
      const std::uint64_t page = policy::PageBytes(segment.is_small_pool, lane_.options());
      for (const FreeRange& run : timeline::FreeRanges(segment)) {
        if (!segment.is_expandable) {
          bytes += run.size_bytes == segment.size_bytes ? run.size_bytes : 0;
          continue;
        }
        const std::uint64_t begin = RoundUp(run.address - segment.address, page);
        const std::uint64_t end = RoundDown(run.address - segment.address + run.size_bytes, page);
        bytes += end > begin ? end - begin : 0;
      }
    }
    return bytes;
  }

  void ReleaseCache() {
    const std::uint64_t bytes = ReleasableBytes();
    Add("release the whole cache", bytes, CanGrowWith(bytes),
        bytes == 0 ? "every segment holds a block in use" : "all segments without a block in use");
  }

  void SearchAgain() {
    const bool would_serve = lane_.IsServedBy(*states_.after);
    Add("search again", lane_.LargestCached(*states_.after), would_serve,
        would_serve ? "PyTorch does not look again (its issue 189504): the same request, made again, succeeds"
                    : "the largest free block after all that");
  }

  const RequestLane& lane_;
  const LadderStates& states_;
  timeline::State polled_;  // before, and every free that waits is done
  std::vector<LadderRung> rungs_;
};

}  // namespace

timeline::EventIndex LadderBegin(const timeline::Timeline& timeline, timeline::EventIndex oom) {
  timeline::EventIndex begin = oom;
  while (begin > 0 && IsLadderEvent(timeline, begin - 1)) --begin;
  return begin;
}

std::vector<LadderRung> ClimbLadder(const RequestLane& lane, const LadderStates& states) {
  return LaneLadder(lane, states).Climb();
}

}  // namespace ashlar::analyses
