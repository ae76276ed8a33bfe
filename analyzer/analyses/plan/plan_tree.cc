#include "analyzer/analyses/plan/plan_tree.h"

#include <algorithm>
#include <set>

namespace ashlar::analyses {
namespace {

using policy::LanePlan;
using policy::PlannedRequest;
using Sizes = std::vector<std::uint64_t>;

void Add(const Sizes& sizes, std::uint32_t root, LanePlan& lane) {
  std::uint32_t at = root;
  for (const std::uint64_t size : sizes) {
    const std::vector<std::uint32_t>& next = lane.requests[at].next;
    const auto same = std::find_if(next.begin(), next.end(),
                                   [&](std::uint32_t child) { return lane.requests[child].size_bytes == size; });
    if (same != next.end()) {
      at = *same;
      continue;
    }
    const auto number = static_cast<std::uint32_t>(lane.requests.size());
    lane.requests[at].next.push_back(number);
    lane.requests.push_back({.size_bytes = size});
    at = number;
  }
  lane.requests[at].may_be_last = true;
}

}  // namespace

PlanTree MakePlanTree(absl::Span<const LaneRequest> requests, absl::Span<const std::int64_t> step_begins,
                      const std::vector<bool>& left_out) {
  PlanTree out;
  std::set<Sizes> steps;
  std::size_t next = 0;
  const auto take = [&](std::size_t step) {
    Sizes sizes;
    for (; next < requests.size(); ++next) {
      if (step < step_begins.size() && requests[next].begin >= step_begins[step]) break;
      sizes.push_back(requests[next].size_bytes);
    }
    return sizes;
  };
  Add(take(0), LanePlan::kStart, out.lane);
  for (std::size_t step = 1; step <= step_begins.size(); ++step) {
    Sizes sizes = take(step);
    const bool is_left_out = step <= left_out.size() && left_out[step - 1];
    if (!is_left_out && !sizes.empty()) steps.insert(std::move(sizes));
  }
  for (const Sizes& sizes : steps) Add(sizes, LanePlan::kStep, out.lane);
  out.step_kinds = steps.size();
  return out;
}

}  // namespace ashlar::analyses
