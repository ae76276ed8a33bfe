#include "analyzer/remedies/held_out_steps.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "analyzer/remedies/device_need.h"
#include "analyzer/replay/ample_memory.h"

namespace ashlar::remedies {
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

}  // namespace ashlar::remedies
