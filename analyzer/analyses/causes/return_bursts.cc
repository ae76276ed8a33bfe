#include "analyzer/analyses/causes/return_bursts.h"

#include <algorithm>

#include "allocator/base/torch_sizes.h"
#include "allocator/policy/heap_steps.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;
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
