#include "analyzer/whatif/step_order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ashlar::whatif {
namespace {

using trace::Op;
using trace::OpKind;
using trace::RequestTrace;

constexpr std::size_t kNoStep = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kLeastSteps = 3;

struct Step {
  std::size_t begin = 0, end = 0;                // positions in the requests
  std::uint64_t peak_bytes = 0;                  // the most that it holds of what it allocated
  std::vector<std::uint32_t> handed_on = {};     // blocks that the next step frees, in the order of their allocation
  std::optional<std::size_t> frees_of_far = {};  // the latest step, but itself and the one before, whose block it frees
};

class StepSorter {
 public:
  StepSorter(const RequestTrace& requests, absl::Span<const std::size_t> begins, bool is_last_whole)
      : requests_(requests), is_last_whole_(is_last_whole) {
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : requests.requests.size();
      steps_.push_back({.begin = begins[i], .end = end});
    }
    Measure();
  }

  std::optional<StepOrder> Sorted() const {
    const auto [first, count] = LongestRun();
    if (count < kLeastSteps) return std::nullopt;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return steps_[a].peak_bytes > steps_[b].peak_bytes; });
    if (std::is_sorted(order.begin(), order.end())) return std::nullopt;
    return StepOrder{.requests = InOrder(first, order), .first = first, .count = count};
  }

 private:
  struct Origin {
    std::size_t step = kNoStep, position = 0;
    std::uint64_t bytes = 0;
  };

  // Peaks, and who frees whose blocks.
  void Measure() {
    std::vector<Origin> origins(requests_.id_count);
    std::vector<bool> is_freed(requests_.id_count, false);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::uint64_t held = 0;
      for (std::size_t at = steps_[i].begin; at < steps_[i].end; ++at) {
        const Op& request = requests_.requests[at];
        if (request.kind == OpKind::kAlloc) {
          origins[request.id] = {.step = i, .position = at, .bytes = request.bytes};
          held += request.bytes;
          steps_[i].peak_bytes = std::max(steps_[i].peak_bytes, held);
        }
        if (request.kind != OpKind::kFree || origins[request.id].step == kNoStep) continue;
        is_freed[request.id] = true;
        const Origin& origin = origins[request.id];
        if (origin.step == i) held -= origin.bytes;
        if (origin.step + 1 == i) steps_[origin.step].handed_on.push_back(request.id);
        if (origin.step + 1 < i) steps_[i].frees_of_far = std::max(steps_[i].frees_of_far, {origin.step});
      }
    }
    for (std::uint32_t id = 0; is_last_whole_ && id < origins.size(); ++id) {
      if (origins[id].step + 1 == steps_.size() && !is_freed[id]) steps_.back().handed_on.push_back(id);
    }
    for (Step& step : steps_) {
      std::sort(step.handed_on.begin(), step.handed_on.end(),
                [&origins](std::uint32_t a, std::uint32_t b) { return origins[a].position < origins[b].position; });
    }
  }

  // The steps that can stand in any order, as first and count: they and the one before them hand on equally many
  // blocks, and none of them frees what an earlier one of them made, but for the one right before it. Of a whole last
  // step what is left at the end counts as handed on.
  std::pair<std::size_t, std::size_t> LongestRun() const {
    std::pair<std::size_t, std::size_t> best;
    const std::size_t all = is_last_whole_ ? steps_.size() : steps_.size() - 1;
    std::size_t end = 1;
    for (std::size_t first = 1; first < all; ++first) {
      for (end = std::max(end, first); end < all; ++end) {
        if (steps_[end].handed_on.size() != steps_[first - 1].handed_on.size()) break;
        if (steps_[end].frees_of_far.has_value() && *steps_[end].frees_of_far >= first) break;
      }
      if (end - first > best.second) best = {first, end - first};
    }
    return best;
  }

  // The requests of a step, where the one of index `before` comes right before it.
  void Append(std::size_t step, std::size_t before, std::vector<Op>& out) const {
    std::unordered_map<std::uint32_t, std::uint32_t> instead;
    const std::vector<std::uint32_t>& recorded = steps_[step - 1].handed_on;
    for (std::size_t i = 0; i < recorded.size(); ++i) instead[recorded[i]] = steps_[before].handed_on[i];
    for (std::size_t at = steps_[step].begin; at < steps_[step].end; ++at) {
      Op request = requests_.requests[at];
      const bool is_of_block = request.kind == OpKind::kFree || request.kind == OpKind::kRecordStream;
      if (const auto other = instead.find(request.id); is_of_block && other != instead.end())
        request.id = other->second;
      out.push_back(request);
    }
  }

  RequestTrace InOrder(std::size_t first, const std::vector<std::size_t>& order) const {
    RequestTrace out = requests_;
    out.requests.resize(steps_[first].begin);
    std::size_t before = first - 1;
    for (const std::size_t step : order) {
      Append(step, before, out.requests);
      before = step;
    }
    const std::size_t next = first + order.size();
    if (next == steps_.size()) return out;
    Append(next, before, out.requests);
    out.requests.insert(out.requests.end(), requests_.requests.begin() + static_cast<std::ptrdiff_t>(steps_[next].end),
                        requests_.requests.end());
    return out;
  }

  const RequestTrace& requests_;
  const bool is_last_whole_;
  std::vector<Step> steps_;
};

}  // namespace

std::optional<StepOrder> LargestStepsFirst(const RequestTrace& requests, absl::Span<const std::size_t> begins,
                                           bool is_last_whole) {
  if (!requests.put_back.empty() || begins.size() < kLeastSteps) return std::nullopt;
  return StepSorter(requests, begins, is_last_whole).Sorted();
}

}  // namespace ashlar::whatif
