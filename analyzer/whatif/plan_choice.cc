#include "analyzer/whatif/plan_choice.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::whatif {
namespace {

using analyses::LaneRequest;
using analyses::LaneRequests;

class LaneRequestSink final : public replay::OpSink {
 public:
  LaneRequestSink(const trace::RequestTrace& trace, const policy::Options& options)
      : trace_(trace), options_(options), end_(static_cast<std::int64_t>(trace.requests.size())) {}

  void SetOp(std::uint64_t op) override { op_ = op; }
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kFreeCompleted) return Complete(event.address);
    if (event.action != trace::Action::kAlloc) return;
    const trace::Op& request = trace_.requests[op_];
    const std::uint64_t size_bytes = policy::RoundedBytes(request.bytes, options_);
    const bool is_small = policy::IsSmall(size_bytes);
    const auto [key, is_new] = numbers_.try_emplace({request.pool, request.stream, is_small}, out.size());
    if (is_new) out.push_back({request.stream, trace_.pools[request.pool], is_small, {}});
    LaneRequests& lane = out[key->second];
    live_[event.address] = {key->second, lane.requests.size()};
    lane.requests.push_back({static_cast<std::int64_t>(op_), end_, size_bytes});
  }

  std::vector<LaneRequests> out;

 private:
  void Complete(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    LaneRequest& request = out[at->second.first].requests[at->second.second];
    request.end = std::max(static_cast<std::int64_t>(op_), request.begin + 1);
    live_.erase(at);
  }

  const trace::RequestTrace& trace_;
  const policy::Options& options_;
  const std::int64_t end_;
  std::uint64_t op_ = 0;
  absl::flat_hash_map<std::uint64_t, std::pair<std::size_t, std::size_t>> live_;
  std::map<std::tuple<std::uint16_t, Stream, bool>, std::size_t> numbers_;  // of lanes
};

}  // namespace

absl::StatusOr<std::vector<LaneRequests>> LaneRequestsOf(const trace::RequestTrace& trace,
                                                         const policy::Options& options) {
  policy::Options own = options;
  own.plan = nullptr;
  own.expandable_segments = false;
  own.policy = policy::Policy::kTorch;
  own.memory_limit_bytes.reset();
  own.per_process_memory_fraction.reset();
  LaneRequestSink sink(trace, own);
  replay::RequestReplay replay(
      {.policy = own, .device = {.capacity_bytes = replay::kAmpleBytes}, .memory_fraction = {}});
  if (absl::Status status = replay.Run(trace, &sink); !status.ok()) return status;
  return std::move(sink.out);
}

namespace {

constexpr std::size_t kMostTried = 1'000'000;  // each try replays the whole
constexpr std::uint64_t kPage = policy::kRoundLargeBytes;

}  // namespace

std::optional<ServedRun> Served(const trace::RequestTrace& requests, const policy::Options& options,
                                std::uint64_t capacity_bytes) {
  replay::RequestReplay replay(
      {.policy = options, .device = {.capacity_bytes = capacity_bytes}, .memory_fraction = {}});
  if (!replay.Run(requests).ok()) return std::nullopt;
  const auto stats = replay.allocator().stats();
  if (stats.num_ooms > 0 || stats.num_oom_rejections > 0) return std::nullopt;
  return ServedRun{static_cast<std::uint64_t>(stats.reserved_bytes.all().peak),
                   static_cast<std::uint64_t>(stats.active_bytes.all().peak)};
}

MemoryNeed NeedOf(const trace::RequestTrace& requests, const policy::Options& options, std::uint64_t least_bytes) {
  MemoryNeed out;
  const std::optional<ServedRun> ample = Served(requests, options, replay::kAmpleBytes);
  if (!ample.has_value()) return out;
  out.peak_reserved_bytes = ample->peak_reserved_bytes;
  if (requests.requests.size() > kMostTried) return out;
  std::uint64_t low = least_bytes / kPage, high = RoundUp(out.peak_reserved_bytes, kPage) / kPage;
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

namespace {

bool HasId(const trace::Op& op) {
  return op.kind == trace::OpKind::kAlloc || op.kind == trace::OpKind::kFree || op.kind == trace::OpKind::kRecordStream;
}

// By number of the step: which ones are left out of the plan. Each once, in order.
std::vector<std::vector<bool>> Halves(std::size_t steps) {
  std::vector<std::vector<bool>> out;
  std::set<std::vector<bool>> seen;
  for (std::size_t shift = 0; shift < 3; ++shift) {
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      std::vector<bool> left_out(steps);
      for (std::size_t step = 1; step < steps; ++step) left_out[step] = (step >> shift) % 2 == which;
      const auto count = static_cast<std::size_t>(std::count(left_out.begin(), left_out.end(), true));
      const bool is_half = count > 0 && count + 1 < steps;
      if (is_half && seen.insert(left_out).second) out.push_back(std::move(left_out));
    }
  }
  return out;
}

}  // namespace

trace::RequestTrace OnlySteps(const trace::RequestTrace& requests, absl::Span<const std::int64_t> step_begins,
                              const std::vector<bool>& kept) {
  constexpr std::size_t kNever = ~std::size_t{0};
  const auto step_of = [&](std::size_t position) {  // 0: before the first
    const auto next = std::upper_bound(step_begins.begin(), step_begins.end(), static_cast<std::int64_t>(position));
    return static_cast<std::size_t>(next - step_begins.begin());
  };
  std::vector<std::size_t> freed_in(requests.id_count, kNever);
  for (std::size_t i = 0; i < requests.requests.size(); ++i) {
    if (requests.requests[i].kind == trace::OpKind::kFree) freed_in[requests.requests[i].id] = step_of(i);
  }
  trace::RequestTrace out = requests;
  out.requests.clear();
  std::vector<bool> is_gone(requests.id_count);
  for (std::size_t i = 0; i < requests.requests.size(); ++i) {
    const trace::Op& op = requests.requests[i];
    if (op.kind == trace::OpKind::kAlloc) {
      const std::size_t step = step_of(i);
      is_gone[op.id] = step > 0 && !kept[step - 1] && freed_in[op.id] != kNever && freed_in[op.id] <= step + 1;
    }
    if (!HasId(op) || !is_gone[op.id]) out.requests.push_back(op);
  }
  return out;
}

std::optional<HeldOutSteps> HoldOutSteps(const trace::RequestTrace& requests,
                                         absl::Span<const std::int64_t> step_begins, const policy::Options& without,
                                         const PlanWithout& plan_without) {
  HeldOutSteps out;
  for (const std::vector<bool>& left_out : Halves(step_begins.size())) {
    std::vector<bool> kept = left_out;
    kept[0] = true;
    const trace::RequestTrace run = OnlySteps(requests, step_begins, kept);
    const std::optional<ServedRun> ample = Served(run, without, replay::kAmpleBytes);
    if (!ample.has_value()) continue;
    const std::uint64_t least = NeedOf(run, without, ample->peak_active_bytes).Bytes();
    const std::uint64_t with = NeedOf(run, plan_without(left_out), ample->peak_active_bytes).Bytes();
    const double part = static_cast<double>(with) / static_cast<double>(std::max<std::uint64_t>(least, 1));
    ++out.runs;
    out.mean += (part - out.mean) / static_cast<double>(out.runs);
    out.worst = std::max(out.worst, part);
    if (out.worst > 1) break;
  }
  if (out.runs == 0) return std::nullopt;
  return out;
}

namespace {

// Small blocks follow a plan where that saves more than a part in so many of the device.
constexpr std::uint64_t kLeastGain = 256;
// A plan that is only tried is packed in less time.
constexpr std::uint64_t kPartOfSteps = 8;

// The plan's lanes of large blocks alone: small ones keep the fast path.
analyses::MadePlan OfLargeBlocks(const analyses::MadePlan& made) {
  analyses::MadePlan out{{}, {}, made.search_steps};
  for (std::size_t i = 0; i < made.lanes.size(); ++i) {
    if (made.lanes[i].is_small) continue;
    out.lanes.push_back(made.lanes[i]);
    out.plan.lanes.push_back(made.plan.lanes[i]);
  }
  return out;
}

analyses::MadePlan Make(const PlannedRun& run, const analyses::PlanScope& scope) {
  const std::uint64_t max_steps = scope.left_out.empty() ? run.max_steps : run.max_steps / kPartOfSteps;
  return analyses::MakePlan(run.lanes, run.step_begins, {.target_height = {}, .max_steps = max_steps}, scope);
}

// Of all the plan's lanes and its large ones, those that need less; of nearly equals the fewest. Whether that is no
// more than without a plan.
bool HelpsItself(const PlannedRun& run, analyses::MadePlan made, PlanChoice& out) {
  const auto need_of = [&](const analyses::MadePlan& plan) {
    if (plan.lanes.empty()) return out.without;
    return NeedOf(run.requests, Following(run.settings, plan.plan), out.peak_allocated_bytes);
  };
  analyses::MadePlan large = OfLargeBlocks(made);
  out.with = need_of(large);
  if (large.lanes.size() < made.lanes.size()) {
    const MemoryNeed all = need_of(made);
    if (all.Bytes() + out.with.Bytes() / kLeastGain < out.with.Bytes()) {
      out.with = all;
      large = std::move(made);
    }
  }
  out.made = std::move(large);
  return !out.made.lanes.empty() && out.with.Bytes() <= out.without.Bytes();
}

bool HelpsOtherSteps(const PlannedRun& run, PlanChoice& out) {
  const bool has_small = std::any_of(out.made.lanes.begin(), out.made.lanes.end(),
                                     [](const analyses::PlannedLane& lane) { return lane.is_small; });
  std::vector<analyses::LaneRequests> lanes;
  for (const analyses::LaneRequests& lane : run.lanes) {
    if (has_small || !lane.is_small) lanes.push_back(lane);
  }
  PlannedRun part = run;
  part.lanes = lanes;
  const auto plan_without = [&](const std::vector<bool>& left_out) {
    return Following(run.settings, Make(part, {out.lasting_only, left_out}).plan);
  };
  out.held_out = HoldOutSteps(run.requests, run.step_begins, run.settings, plan_without);
  return !out.held_out.has_value() || out.held_out->worst <= 1;
}

}  // namespace

policy::Options Following(const policy::Options& settings, const policy::PlacementPlan& plan) {
  policy::Options out = settings;
  out.expandable_segments = false;
  out.policy = policy::Policy::kTorch;
  out.plan = plan.lanes.empty() ? nullptr : std::make_shared<const policy::PlacementPlan>(plan);
  return out;
}

std::optional<PlanChoice> ChoosePlan(const PlannedRun& run) {
  PlanChoice out;
  analyses::MadePlan all = Make(run, {});
  const std::optional<ServedRun> ample = Served(run.requests, Following(run.settings, {}), replay::kAmpleBytes);
  if (!ample.has_value()) return std::nullopt;
  // Blocks that nothing was split off from are larger than what was asked for: the plan's blocks are not.
  const std::optional<ServedRun> planned = Served(run.requests, Following(run.settings, all.plan), replay::kAmpleBytes);
  out.peak_allocated_bytes =
      std::min(ample->peak_active_bytes, planned.has_value() ? planned->peak_active_bytes : ample->peak_active_bytes);
  out.without = NeedOf(run.requests, run.settings, out.peak_allocated_bytes);
  const auto helps = [&](analyses::MadePlan made) {
    return HelpsItself(run, std::move(made), out) && (run.repeats || HelpsOtherSteps(run, out));
  };
  if (helps(std::move(all))) return out;
  out.lasting_only = !run.step_begins.empty();
  if (out.lasting_only && helps(Make(run, {.lasting_only = true}))) return out;
  out.made = {};
  return out;
}

}  // namespace ashlar::whatif
