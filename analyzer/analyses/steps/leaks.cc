#include "analyzer/analyses/steps/leaks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace ashlar::analyses {
namespace {

constexpr std::size_t kLeastSteps = 3;
constexpr double kLeastShare = 0.6;

struct Residue {
  std::vector<std::uint64_t> bytes_of_step;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};

std::optional<std::size_t> StepOf(absl::Span<const EventRange> steps, timeline::EventIndex event) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), event,
                                      [](timeline::EventIndex at, const EventRange& step) { return at < step.begin; });
  if (after == steps.begin() || event >= (after - 1)->end) return std::nullopt;
  return static_cast<std::size_t>(after - steps.begin()) - 1;
}

std::uint64_t Median(std::vector<std::uint64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<Leak> FindLeaks(const timeline::Timeline& timeline, absl::Span<const EventRange> steps) {
  if (steps.size() <= kLeastSteps) return {};
  const timeline::EventIndex end = steps.back().end - 1;
  const std::size_t watched = steps.size() - 1;
  std::map<trace::StackId, Residue> residues;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (!block.IsLiveAfter(end)) continue;
    const std::optional<std::size_t> step = StepOf(steps, block.alloc_event);
    if (!step.has_value() || *step >= watched) continue;
    Residue& residue = residues[block.stack];
    residue.bytes_of_step.resize(watched, 0);
    residue.bytes_of_step[*step] += block.size_bytes;
    residue.bytes += block.size_bytes;
    ++residue.blocks;
  }
  std::vector<Leak> out;
  for (const auto& [stack, residue] : residues) {
    const auto leaking = static_cast<std::size_t>(std::count_if(
        residue.bytes_of_step.begin(), residue.bytes_of_step.end(), [](auto bytes) { return bytes > 0; }));
    if (leaking < kLeastSteps || static_cast<double>(leaking) < kLeastShare * static_cast<double>(watched)) continue;
    out.push_back({stack, Median(residue.bytes_of_step), residue.blocks, residue.bytes});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Leak& a, const Leak& b) { return a.bytes_per_step > b.bytes_per_step; });
  return out;
}

}  // namespace ashlar::analyses
