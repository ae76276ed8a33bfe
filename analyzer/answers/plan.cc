#include "analyzer/answers/plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/plan/page_floor.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/remedies/lane_requests.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::answers {
namespace {

// Of longer traces the smallest device is not looked for: each try replays the whole.
constexpr std::size_t kMostTried = 1'000'000;

// Replayed under the options; nullopt where a request failed.
std::optional<core::Stats> Served(const trace::RequestTrace& requests, const policy::Options& options,
                                  std::uint64_t capacity_bytes) {
  replay::RequestReplay replay(
      {.policy = options, .device = {.capacity_bytes = capacity_bytes}, .memory_fraction = {}});
  if (!replay.Run(requests).ok()) return std::nullopt;
  const core::Stats stats = replay.allocator().stats();
  if (stats.num_ooms > 0 || stats.num_oom_rejections > 0) return std::nullopt;
  return stats;
}

MemoryNeed NeedOf(const trace::RequestTrace& requests, const policy::Options& options, std::uint64_t peak_bytes) {
  MemoryNeed out;
  const std::optional<core::Stats> ample = Served(requests, options, replay::kAmpleBytes);
  if (!ample.has_value()) return out;
  out.peak_reserved_bytes = static_cast<std::uint64_t>(ample->reserved_bytes.all().peak);
  if (requests.requests.size() > kMostTried) return out;
  constexpr std::uint64_t kPage = policy::kRoundLargeBytes;
  std::uint64_t low = peak_bytes / kPage, high = RoundUp(out.peak_reserved_bytes, kPage) / kPage;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (Served(requests, options, middle * kPage).has_value()) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  out.smallest_device_bytes = low * kPage;
  return out;
}

// The positions of the requests that the blocks of the timeline answer, by event. Blocks that stood there before the
// first event are asked for at the trace's beginning.
struct AnsweredRequest {
  timeline::EventIndex event = 0;
  std::int64_t position = 0;
};

std::vector<AnsweredRequest> AnsweredRequests(const TracedRun& run) {
  std::vector<std::pair<timeline::EventIndex, std::uint64_t>> blocks;
  for (const timeline::BlockSpan& block : run.timeline.blocks()) {
    if (block.alloc_event >= 0) blocks.emplace_back(block.alloc_event, block.AskedBytes());
  }
  std::sort(blocks.begin(), blocks.end());
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < run.requests.requests.size(); ++i) {
    if (run.requests.requests[i].kind == trace::OpKind::kAlloc) positions.push_back(static_cast<std::int64_t>(i));
  }
  if (positions.size() < blocks.size()) return {};
  const std::size_t before = positions.size() - blocks.size();
  std::vector<AnsweredRequest> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::int64_t position = positions[before + i];
    if (run.requests.requests[static_cast<std::size_t>(position)].bytes != blocks[i].second) return {};
    out.push_back({blocks[i].first, position});
  }
  return out;
}

// Where a step begins, and where the last of a row of steps ends, as positions in the requests.
std::vector<std::int64_t> StepBegins(const TracedRun& run, std::uint64_t& step_count) {
  const analyses::Steps steps = analyses::FindSteps(run.timeline, &run.stacks, run.annotations);
  const std::vector<AnsweredRequest> answered = AnsweredRequests(run);
  std::vector<std::int64_t> out;
  const auto add = [&](timeline::EventIndex event) {
    const auto at = std::lower_bound(answered.begin(), answered.end(), event,
                                     [](const AnsweredRequest& of, timeline::EventIndex e) { return of.event < e; });
    if (at != answered.end() && (out.empty() || at->position > out.back())) out.push_back(at->position);
  };
  for (const analyses::EventRange& step : steps.steps) {
    add(step.begin);
    add(step.end);
  }
  step_count = answered.empty() ? 0 : steps.steps.size();
  return out;
}

// The plan's lanes of large blocks alone: small ones keep the fast path.
analyses::MadePlan OfLargeBlocks(const analyses::MadePlan& made) {
  analyses::MadePlan out{{made.plan.made_of, {}}, {}, made.search_steps};
  for (std::size_t i = 0; i < made.lanes.size(); ++i) {
    if (made.lanes[i].is_small) continue;
    out.lanes.push_back(made.lanes[i]);
    out.plan.lanes.push_back(made.plan.lanes[i]);
  }
  return out;
}

policy::Options Following(const policy::Options& options, const analyses::MadePlan& made) {
  policy::Options out = options;
  if (!made.lanes.empty()) out.plan = std::make_shared<const policy::PlacementPlan>(made.plan);
  return out;
}

std::uint64_t Bytes(const MemoryNeed& need) { return need.smallest_device_bytes.value_or(need.peak_reserved_bytes); }

// Small blocks follow a plan where that saves more than a part in so many of the device.
constexpr std::uint64_t kLeastGain = 256;

// Of all the plan's lanes, its large ones, and none, those that need least; of nearly equals the fewest.
void Choose(const trace::RequestTrace& requests, const policy::Options& options, PlanAnswer& out) {
  analyses::MadePlan chosen = OfLargeBlocks(out.made);
  MemoryNeed need = out.without;
  if (!chosen.lanes.empty()) need = NeedOf(requests, Following(options, chosen), out.peak_allocated_bytes);
  if (chosen.lanes.size() < out.made.lanes.size()) {
    const MemoryNeed all = NeedOf(requests, Following(options, out.made), out.peak_allocated_bytes);
    if (Bytes(all) + Bytes(need) / kLeastGain < Bytes(need)) {
      need = all;
      chosen = out.made;
    }
  }
  if (Bytes(need) > Bytes(out.without)) {
    need = out.without;
    chosen = {{out.source, {}}, {}, out.made.search_steps};
  }
  out.with = need;
  out.made = std::move(chosen);
}

}  // namespace

double PlanAnswer::Utilisation(const MemoryNeed& need) const {
  const std::uint64_t bytes = need.smallest_device_bytes.value_or(0);
  return bytes == 0 ? 0 : static_cast<double>(peak_allocated_bytes) / static_cast<double>(bytes);
}

absl::StatusOr<PlanAnswer> PlanOfTrace(std::string input, const TracedRun& run, std::uint64_t max_steps,
                                       const remedies::Progress& progress) {
  if (run.requests.requests.empty()) {
    return absl::FailedPreconditionError("it has no requests of an allocator, and a plan is made of those");
  }
  PlanAnswer out{std::move(input), run.source};
  policy::Options options = run.options;
  options.expandable_segments = false;
  options.policy = policy::Policy::kTorch;
  options.plan = nullptr;
  const absl::StatusOr<std::vector<analyses::LaneRequests>> lanes = remedies::LaneRequestsOf(run.requests, options);
  if (!lanes.ok()) return lanes.status();
  out.page_floor_bytes = analyses::PageFloor(*lanes, policy::kRoundLargeBytes);
  const std::vector<std::int64_t> begins = StepBegins(run, out.steps);
  if (progress) progress("packing");
  out.made = analyses::MakePlan(*lanes, begins, {.target_height = {}, .max_steps = max_steps});
  out.made.plan.made_of = out.source;
  if (progress) progress("looking for the smallest device");
  const std::optional<core::Stats> ample = Served(run.requests, options, replay::kAmpleBytes);
  if (!ample.has_value()) return absl::FailedPreconditionError("its requests cannot be replayed");
  // Blocks that nothing was split off from are larger than what was asked for: the plan's blocks are not.
  const std::optional<core::Stats> planned = Served(run.requests, Following(options, out.made), replay::kAmpleBytes);
  const auto peak = [](const core::Stats& stats) { return static_cast<std::uint64_t>(stats.active_bytes.all().peak); };
  out.peak_allocated_bytes = std::min(peak(*ample), planned.has_value() ? peak(*planned) : peak(*ample));
  out.without = NeedOf(run.requests, run.options, out.peak_allocated_bytes);
  Choose(run.requests, options, out);
  if (out.made.lanes.empty()) {
    return absl::FailedPreconditionError("without a plan it needs as little memory as with one");
  }
  if (!out.with.smallest_device_bytes.has_value()) {
    out.notes.push_back({"device_not_searched", "the trace is long: the smallest device was not looked for", 1});
  }
  if (begins.empty()) {
    out.notes.push_back({"no_steps", "no steps were found: the plan is of the whole run, once", 1});
  }
  return out;
}

}  // namespace ashlar::answers
