#include "analyzer/analyses/state/device_traffic.h"

#include <algorithm>
#include <tuple>

#include "allocator/base/torch_sizes.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/size_rule.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;
using timeline::Timeline;

constexpr std::size_t kMostGrowths = 300;
constexpr std::size_t kMostSpansLookedAt = 20'000'000;

bool Obtains(const trace::Event& event) {
  return event.action == trace::Action::kSegmentAlloc || event.action == trace::Action::kSegmentMap;
}

class GrowthFinder {
 public:
  GrowthFinder(const Timeline& timeline, const policy::Options& options) : timeline_(timeline), options_(options) {
    for (const BlockSpan& block : timeline.blocks()) {
      if (block.alloc_event >= 0) blocks_.push_back(&block);
    }
  }

  std::vector<TrafficGrowth> Find() {
    for (EventIndex i = 0; i < timeline_.event_count(); ++i) Step(i);
    KeepLargest();
    for (TrafficGrowth& growth : growths_) LookAround(growth);
    return std::move(growths_);
  }

 private:
  const trace::Event& EventAt(EventIndex i) const { return timeline_.events()[static_cast<std::size_t>(i)]; }

  void Step(EventIndex i) {
    const trace::Event& event = EventAt(i);
    if (Obtains(event)) {
      if (current_.bytes == 0) current_.event = i;
      current_.bytes += event.size_bytes;
    } else if (event.action == trace::Action::kAlloc) {
      if (current_.bytes > 0) FinishAlloc(i);
      current_ = {};
    } else if (event.action == trace::Action::kOom) {
      if (!timeline_.oom_events().empty() && timeline_.oom_events().back() == i) FinishFailure(i);
      current_ = {};
    }
  }

  void FinishAlloc(EventIndex i) {
    const auto block = std::lower_bound(blocks_.begin(), blocks_.end(), i,
                                        [](const BlockSpan* b, EventIndex event) { return b->alloc_event < event; });
    if (block == blocks_.end() || (*block)->alloc_event != i) return;
    current_.request_event = i;
    current_.request_bytes = (*block)->size_bytes;
    current_.stack = (*block)->stack;
    current_.stream = (*block)->stream;
    current_.pool = (*block)->pool;
    current_.is_small_pool = (*block)->is_small_pool;
    Keep();
  }

  void FinishFailure(EventIndex i) {
    const trace::Event& event = EventAt(i);
    current_.event = current_.request_event = i;
    current_.is_failure = true;
    current_.request_bytes = event.size_bytes;
    current_.bytes = policy::SegmentBytes(std::max<std::uint64_t>(event.size_bytes, 1), options_);
    current_.stack = event.stack;
    current_.stream = event.stream;
    current_.pool = event.pool.value_or(PoolId{});
    current_.is_small_pool = policy::IsSmall(event.size_bytes);
    Keep();
  }

  // Only where there was as much free memory at all.
  void Keep() {
    const timeline::Totals& before = timeline_.TotalsAfter(current_.event - 1);
    if (before.reserved_bytes - before.active_bytes >= current_.request_bytes) growths_.push_back(current_);
  }

  void KeepLargest() {
    const std::size_t spans = timeline_.blocks().size() + timeline_.segments().size() + 1;
    const std::size_t most = std::clamp<std::size_t>(kMostSpansLookedAt / spans, 1, kMostGrowths);
    if (growths_.size() <= most) return;
    std::sort(growths_.begin(), growths_.end(), [](const TrafficGrowth& a, const TrafficGrowth& b) {
      return std::tuple(!a.is_failure, b.bytes, a.event) < std::tuple(!b.is_failure, a.bytes, b.event);
    });
    growths_.resize(most);
    std::sort(growths_.begin(), growths_.end(),
              [](const TrafficGrowth& a, const TrafficGrowth& b) { return a.event < b.event; });
  }

  void LookAround(TrafficGrowth& growth) const {
    const timeline::State state = timeline_.StateAt(growth.event - 1);
    for (const timeline::StateSegment& segment : state.segments) {
      FreeRuns& runs = segment.pool != growth.pool                     ? growth.other_pools
                       : segment.is_small_pool != growth.is_small_pool ? growth.other_class
                       : segment.stream != growth.stream               ? growth.other_streams
                                                                       : growth.own;
      for (const timeline::FreeRange& range : timeline::FreeRanges(segment)) {
        runs.bytes += range.size_bytes;
        runs.largest = std::max(runs.largest, range.size_bytes);
      }
    }
  }

  const Timeline& timeline_;
  const policy::Options& options_;
  std::vector<const BlockSpan*> blocks_;  // allocated in the window, in that order
  TrafficGrowth current_;
  std::vector<TrafficGrowth> growths_;
};

}  // namespace

std::vector<TrafficGrowth> AvoidableGrowths(const Timeline& timeline, const policy::Options& options) {
  return GrowthFinder(timeline, options).Find();
}

namespace {

using trace::Action;

// Whether a free segment would have served the request, by its size, its stream and its class of sizes.
bool WouldServe(const trace::Event& segment, const trace::Event& request, const policy::Options& options) {
  return segment.stream == request.stream && segment.size_bytes > kSmallSegmentBytes &&
         policy::MayServeBy(options, request.size_bytes, segment.size_bytes);
}

// None of the segments would have served what is obtained right after.
bool IsRetry(absl::Span<const trace::Event> events, std::size_t begin, std::size_t end,
             const policy::Options& options) {
  if (end >= events.size()) return false;
  if (events[end].action == Action::kOom) return true;
  if (!IsObtained(events[end])) return false;
  const trace::Event& request =
      end + 1 < events.size() && events[end + 1].action == Action::kAlloc ? events[end + 1] : events[end];
  if (request.size_bytes <= kSmallMaxBytes) return false;  // the small pool obtains 2 MiB: a device so full would fail
  return std::none_of(events.begin() + static_cast<std::ptrdiff_t>(begin),
                      events.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](const trace::Event& segment) { return WouldServe(segment, request, options); });
}

}  // namespace

bool IsReturn(const trace::Event& event) {
  return event.action == Action::kSegmentFree || event.action == Action::kSegmentUnmap;
}

bool IsObtained(const trace::Event& event) {
  return event.action == Action::kSegmentAlloc || event.action == Action::kSegmentMap;
}

std::vector<ReturnBurst> FindReturnBursts(const timeline::Timeline& timeline, const policy::Options& options) {
  std::vector<ReturnBurst> out;
  const auto events = timeline.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (IsObtained(events[i]) && !out.empty()) {
      out.back().regained_bytes += events[i].size_bytes;
      ++out.back().regained_calls;
    }
    if (!IsReturn(events[i])) continue;
    ReturnBurst burst;
    burst.begin = static_cast<EventIndex>(i);
    for (; i < events.size() && IsReturn(events[i]); ++i) {
      burst.bytes += events[i].size_bytes;
      ++burst.calls;
    }
    burst.end = static_cast<EventIndex>(i);
    burst.is_retry = IsRetry(events, static_cast<std::size_t>(burst.begin), i, options);
    out.push_back(burst);
    --i;
  }
  return out;
}

}  // namespace ashlar::analyses
