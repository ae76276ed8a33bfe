#include "analyzer/analyses/plan/make_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/policy/placement_plan.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/packing/packing_greedy.h"

namespace ashlar::analyses {
namespace {

struct Change {
  std::int64_t at = 0;
  bool is_begin = false;  // what ends at a time ends before anything begins then
  std::size_t lane = 0;
  std::uint64_t bytes = 0;
};

std::vector<Change> ChangesOf(absl::Span<const LaneRequests> lanes) {
  std::vector<Change> out;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (const LaneRequest& request : lanes[lane].requests) {
      out.push_back({request.begin, true, lane, request.size_bytes});
      out.push_back({request.end, false, lane, request.size_bytes});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.is_begin < b.is_begin; });
  return out;
}

}  // namespace

std::uint64_t PageFloor(absl::Span<const LaneRequests> lanes, std::uint64_t page_bytes) {
  std::vector<std::uint64_t> live(lanes.size());
  std::uint64_t sum = 0, most = 0;
  for (const Change& change : ChangesOf(lanes)) {
    std::uint64_t& bytes = live[change.lane];
    sum -= RoundUp(bytes, page_bytes);
    bytes = change.is_begin ? bytes + change.bytes : bytes - change.bytes;
    sum += RoundUp(bytes, page_bytes);
    most = std::max(most, sum);
  }
  return most;
}

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

namespace {

constexpr std::size_t kMostLives = 200'000;  // that are packed: of longer runs the first ones of each slot
constexpr std::size_t kMostOffsets = 256;    // of one request

// A request of the plan, with the times that its block at one of its offsets is in use.
struct PlannedSlots {
  std::vector<Slot> slots = {};
  std::vector<std::uint32_t> request_of = {};  // by slot: its request's number, ascending
  std::uint64_t planned = 0;
};

class LanePlanner {
 public:
  LanePlanner(absl::Span<const LaneRequest> requests, absl::Span<const std::int64_t> step_begins,
              const PlanScope& scope, const PlanTree& tree)
      : requests_(requests), step_begins_(step_begins), scope_(scope), lane_(tree.lane) {}

  // As the live allocator does: the cursor says which planned request each is, and the first of its offsets that is
  // free is taken.
  void Follow() {
    policy::PlanCursor cursor(lane_);
    std::map<std::uint32_t, std::vector<Slot>> found;
    std::size_t lives = 0;
    for (const LaneRequest& request : requests_) {
      const std::size_t step = StepOf(request.begin);
      if (step > 0 && step <= scope_.left_out.size() && scope_.left_out[step - 1]) continue;
      const std::uint32_t number = cursor.NextNumber(request.size_bytes);
      if (number == policy::PlanCursor::kNone) continue;
      if (scope_.lasting_only && !Lasts(request, step)) continue;
      ++planned_;
      std::vector<Slot>& slots = found[number];
      const auto is_free = [&](const Slot& slot) { return slot.lives.back().second <= request.begin; };
      auto slot = std::find_if(slots.begin(), slots.end(), is_free);
      if (slot == slots.end()) {
        if (slots.size() == kMostOffsets) continue;
        slot = slots.insert(slots.end(), {lane_.requests[number].size_bytes, {}});
      }
      if (++lives > kMostLives && slot->lives.size() > 1) {
        // The last life moves: what is free is told by it.
        slot->lives.back() = {request.begin, request.end};
      } else {
        slot->lives.emplace_back(request.begin, request.end);
      }
    }
    for (auto& [number, slots] : found) {
      for (Slot& slot : slots) {
        slots_.push_back(std::move(slot));
        request_of_.push_back(number);
      }
    }
  }

  Packing PackThem(const PackOptions& options) {
    Packing packing = PackSlots(slots_, options);
    lane_.segment_bytes = RoundUp(std::max<std::uint64_t>(packing.height, 1), policy::kRoundLargeBytes);
    lane_.peak_bytes = packing.lower_bound;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      lane_.requests[request_of_[i]].offsets.push_back(packing.offsets[i]);
    }
    return packing;
  }

  LanePlan& lane() { return lane_; }
  std::uint64_t planned() const { return planned_; }

 private:
  // 0: before the first.
  std::size_t StepOf(std::int64_t position) const {
    const auto next = std::upper_bound(step_begins_.begin(), step_begins_.end(), position);
    return static_cast<std::size_t>(next - step_begins_.begin());
  }
  bool Lasts(const LaneRequest& request, std::size_t step) const {
    return step == 0 || (step < step_begins_.size() && request.end > step_begins_[step]);
  }

  absl::Span<const LaneRequest> requests_;
  absl::Span<const std::int64_t> step_begins_;
  const PlanScope& scope_;
  LanePlan lane_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> request_of_;
  std::uint64_t planned_ = 0;
};

struct LaneResult {
  LanePlan lane = {};
  PlannedLane facts = {};
  std::uint64_t steps = 0;
};

LaneResult PlanLane(const LaneRequests& of, absl::Span<const std::int64_t> step_begins, const PackOptions& options,
                    const PlanScope& scope) {
  const PlanTree tree = MakePlanTree(of.requests, step_begins, scope.left_out);
  LanePlanner planner(of.requests, step_begins, scope, tree);
  planner.Follow();
  const Packing packing = planner.PackThem(options);
  LaneResult out{std::move(planner.lane()), {}, packing.steps};
  out.lane.use = policy::UseOf(of.pool, of.stream);
  out.lane.is_small = of.is_small;
  out.facts.stream = of.stream;
  out.facts.pool = of.pool;
  out.facts.is_small = of.is_small;
  out.facts.requests = of.requests.size();
  out.facts.planned = planner.planned();
  out.facts.step_kinds = tree.step_kinds;
  out.facts.lower_bound = packing.lower_bound;
  out.facts.segment_bytes = out.lane.segment_bytes;
  for (const LaneRequest& request : of.requests) {
    out.facts.prologue += step_begins.empty() || request.begin < step_begins.front();
  }
  return out;
}

}  // namespace

MadePlan MakePlan(absl::Span<const LaneRequests> lanes, absl::Span<const std::int64_t> step_begins,
                  const PackOptions& options, const PlanScope& scope) {
  MadePlan out;
  for (const LaneRequests& of : lanes) {
    LaneResult made = PlanLane(of, step_begins, options, scope);
    out.search_steps += made.steps;
    if (made.facts.planned == 0) continue;
    out.lanes.push_back(made.facts);
    out.plan.lanes.push_back(std::move(made.lane));
  }
  return out;
}

}  // namespace ashlar::analyses
