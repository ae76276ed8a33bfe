#include "analyzer/analyses/steps/leaks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "analyzer/analyses/steps/iterations.h"
#include "analyzer/analyses/steps/kept.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

EventIndex FullestEvent(const timeline::Timeline& timeline) {
  if (!timeline.oom_events().empty()) return timeline.oom_events().back();
  return timeline.event_count() == 0 ? timeline::kBeforeWindow : timeline.allocated_peak().event;
}

std::vector<Leak> LeaksAtEvent(const timeline::Timeline& timeline, const Iterations& iterations, EventIndex moment) {
  std::map<trace::StackId, Leak> by_stack;
  for (const KeptGroup& group : KeptGroups(timeline, iterations, moment)) {
    if (group.is_replaced || group.WasLetGo()) continue;
    Leak& leak = by_stack[group.stack];
    leak.stack = group.stack;
    leak.bytes_per_step += group.bytes_per_iteration * group.iterations / std::max(group.span, group.iterations);
    leak.blocks += group.blocks.size();
    leak.bytes += group.bytes;
  }
  std::vector<Leak> out;
  for (const auto& [stack, leak] : by_stack) out.push_back(leak);
  return out;
}

std::uint64_t BytesOfLeaks(const std::vector<Leak>& leaks) {
  std::uint64_t out = 0;
  for (const Leak& leak : leaks) out += leak.bytes;
  return out;
}

}  // namespace

std::vector<Leak> FindLeaks(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                            absl::Span<const EventRange> steps) {
  const Iterations iterations(timeline, stacks, steps);
  std::vector<Leak> out = LeaksAtEvent(timeline, iterations, FullestEvent(timeline));
  if (!steps.empty()) {
    std::vector<Leak> later = LeaksAtEvent(timeline, iterations, steps.back().end - 1);
    if (BytesOfLeaks(later) > BytesOfLeaks(out)) out = std::move(later);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Leak& a, const Leak& b) { return a.bytes_per_step > b.bytes_per_step; });
  return out;
}

}  // namespace ashlar::analyses
