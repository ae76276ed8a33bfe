#include "analyzer/replay/free_completions.h"

namespace ashlar::replay {

using trace::Action;
using trace::Event;

FreeCompletions FindCompletions(const std::vector<Event>& events, const std::vector<trace::Fact>& facts) {
  FreeCompletions out;
  std::size_t fact = facts.size();
  for (std::size_t i = events.size(); i-- > 0;) {
    const Event& event = events[i];
    while (fact > 0 && facts[fact - 1].event > i) --fact;
    const bool is_fact_before = fact > 0 && facts[fact - 1].event == i;
    const bool is_at_once = i > 0 && !is_fact_before && event.action == Action::kFreeCompleted &&
                            events[i - 1].action == Action::kFreeRequested && events[i - 1].address == event.address;
    if (is_at_once) {
      --i;
      continue;
    }
    if (event.action == Action::kFreeCompleted) out.first[event.address] = i;
    if (event.action != Action::kFreeRequested) continue;
    const auto it = out.first.find(event.address);
    if (it == out.first.end()) continue;
    out.by_free[i] = it->second;
    out.first.erase(it);
  }
  return out;
}

}  // namespace ashlar::replay
