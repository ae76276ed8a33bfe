#include "analyzer/estimate/request_list.h"

#include <algorithm>

namespace ashlar::estimate {

void RequestList::OnEvent(const trace::Event& event, std::uint64_t) {
  // A request that failed was one as well.
  if (event.action == trace::Action::kAlloc || event.action == trace::Action::kOom) {
    const std::uint32_t id = requests_.id_count++;
    requests_.requests.push_back({.bytes = event.size_bytes, .stream = event.stream, .id = id});
    if (event.action == trace::Action::kAlloc) live_[event.address] = id;
  }
  if (event.action != trace::Action::kFreeRequested) return;
  const auto found = live_.find(event.address);
  if (found == live_.end()) return;
  requests_.requests.push_back({.stream = event.stream, .id = found->second, .kind = trace::OpKind::kFree});
  live_.erase(found);
}

std::int64_t RequestList::StepOf(std::uint64_t request) const {
  return std::upper_bound(step_begins_.begin(), step_begins_.end(), request) - step_begins_.begin();
}

}  // namespace ashlar::estimate
