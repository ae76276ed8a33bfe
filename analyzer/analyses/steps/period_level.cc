#include "analyzer/analyses/steps/period_level.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace ashlar::analyses::period {
namespace {

constexpr double kEven = 0.15;
constexpr std::size_t kTriedOfOneCount = 16;

std::vector<std::uint32_t> Lengths(const Cuts& cuts) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) out.push_back(cuts[i + 1] - cuts[i]);
  return out;
}

// The outermost frames that every stack of the intervals begins with. Stacks without Python frames are those of the
// autograd engine's own thread: they have nothing in common with the program's.
std::vector<trace::FrameId> CommonPythonFrames(const std::set<trace::StackId>& used, const trace::StackTable& stacks) {
  std::vector<trace::FrameId> common;
  bool is_first = true;
  for (const trace::StackId id : used) {
    std::vector<trace::FrameId> frames;
    const auto stack = stacks.stack(id);
    for (std::size_t i = stack.size(); i-- > 0;) {
      if (IsPythonFrame(stacks.frame(stack[i]))) frames.push_back(stack[i]);
    }
    if (is_first) {
      common = std::move(frames);
      is_first = false;
      continue;
    }
    const auto end = std::mismatch(common.begin(), common.end(), frames.begin(), frames.end()).first;
    common.erase(end, common.end());
  }
  return common;
}

bool IsPartOfAStep(ProgramPart part) {
  return part == ProgramPart::kBackward || part == ProgramPart::kOptimizer || part == ProgramPart::kLoading;
}

}  // namespace

std::uint32_t MedianInterval(const Cuts& cuts) {
  std::vector<std::uint32_t> lengths = Lengths(cuts);
  if (lengths.empty()) return 0;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

double Evenness(const Cuts& cuts) {
  const std::vector<std::uint32_t> lengths = Lengths(cuts);
  if (lengths.empty()) return 0;
  const auto median = static_cast<double>(MedianInterval(cuts));
  const auto even = std::count_if(lengths.begin(), lengths.end(), [median](std::uint32_t length) {
    return length >= median * (1 - kEven) && length <= median * (1 + kEven);
  });
  return static_cast<double>(even) / static_cast<double>(lengths.size());
}

std::size_t CommonRequests(const Grams& grams, Interval of, Interval in, std::vector<std::uint32_t>& counts) {
  counts.resize(grams.positions.size(), 0);
  const auto end_of = [&grams](std::uint32_t end) { return std::min<std::size_t>(end, grams.ids.size()); };
  for (std::size_t at = in.begin; at < end_of(in.end); ++at) ++counts[grams.ids[at]];
  std::size_t covered = 0;
  std::size_t covered_to = of.begin;
  for (std::size_t at = of.begin; at < end_of(of.end); ++at) {
    std::uint32_t& left = counts[grams.ids[at]];
    if (left == 0) continue;
    --left;
    const std::size_t to = std::min<std::size_t>(at + grams.width, of.end);
    covered += to - std::max(covered_to, at);
    covered_to = to;
  }
  for (std::size_t at = in.begin; at < end_of(in.end); ++at) counts[grams.ids[at]] = 0;
  return covered;
}

double Regularity(const Grams& grams, const Cuts& cuts) {
  std::vector<std::uint32_t> counts;
  std::size_t covered = 0;
  std::size_t all = 0;
  for (std::size_t i = 0; i + 2 < cuts.size(); ++i) {
    covered += CommonRequests(grams, {cuts[i], cuts[i + 1]}, {cuts[i + 1], cuts[i + 2]}, counts);
    all += cuts[i + 1] - cuts[i];
  }
  return all == 0 ? 0 : static_cast<double>(covered) / static_cast<double>(all);
}

double CrossedShare(const Sequence& sequence, const Cuts& cuts) {
  if (cuts.size() < 3) return 0;
  std::vector<timeline::EventIndex> events;
  for (const std::uint32_t cut : cuts) {
    events.push_back(cut < sequence.requests.size() ? timeline::EventIndex{sequence.requests[cut].event}
                                                    : sequence.requests.back().event + 1);
  }
  std::vector<int> change(cuts.size() + 1, 0);
  std::size_t interval = 0;
  for (std::size_t at = cuts.front(); at < cuts.back(); ++at) {
    while (at >= cuts[interval + 1]) ++interval;
    const timeline::EventIndex freed = sequence.requests[at].freed;
    if (freed >= events.back()) continue;  // outlives the steps: not theirs
    const auto after = static_cast<std::size_t>(std::upper_bound(events.begin(), events.end(), freed) - events.begin());
    if (after < interval + 3) continue;  // freed in its own interval or in the next
    ++change[interval + 1];
    --change[after];
  }
  std::size_t crossed = 0;
  int open = 0;
  for (std::size_t cut = 1; cut + 1 < cuts.size(); ++cut) {
    open += change[cut];
    if (open > 0) ++crossed;
  }
  return static_cast<double>(crossed) / static_cast<double>(cuts.size() - 2);
}

// The threads of the autograd engine have no Python stack: among requests that have one, those without are a backward
// pass.
bool HasStacks(const Sequence& sequence) {
  return std::any_of(sequence.requests.begin(), sequence.requests.end(),
                     [](const auto& request) { return request.stack != trace::kNoStack; });
}

bool IsInsideOneCall(const Sequence& sequence, const Cuts& cuts, const trace::StackTable& stacks,
                     const ProgramParts& parts) {
  std::set<trace::StackId> used;
  std::set<ProgramPart> seen;
  for (std::size_t at = cuts.front(); at < cuts.back(); ++at) {
    const trace::StackId stack = sequence.requests[at].stack;
    if (stack == trace::kNoStack) continue;
    if (used.insert(stack).second) seen.insert(parts.Of(stack));
  }
  if (seen.size() == 1 && IsPartOfAStep(*seen.begin())) return true;
  if (used.empty() && HasStacks(sequence)) return true;
  for (const trace::FrameId id : CommonPythonFrames(used, stacks)) {
    const trace::Frame& frame = stacks.frame(id);
    if (!IsTorchFrame(frame) && (frame.function == "forward" || frame.function == "__init__")) return true;
  }
  return false;
}

std::vector<Cuts> CandidateCuts(const Grams& grams, std::size_t most) {
  std::map<std::size_t, std::vector<std::uint32_t>> by_count;
  for (std::uint32_t id = 0; id < grams.positions.size(); ++id) {
    if (grams.positions[id].size() >= 2) by_count[grams.positions[id].size()].push_back(id);
  }
  std::vector<const std::vector<std::uint32_t>*> groups;
  for (const auto& [count, ids] : by_count) groups.push_back(&ids);
  std::stable_sort(groups.begin(), groups.end(), [](const auto* a, const auto* b) { return a->size() > b->size(); });
  if (groups.size() > most) groups.resize(most);
  std::vector<Cuts> out;
  for (const std::vector<std::uint32_t>* ids : groups) {
    const Cuts* best = nullptr;
    double best_evenness = -1;
    const std::size_t stride = std::max<std::size_t>(1, ids->size() / kTriedOfOneCount);
    for (std::size_t i = 0; i < ids->size(); i += stride) {
      const Cuts& cuts = grams.positions[(*ids)[i]];
      const double evenness = Evenness(cuts);
      if (evenness > best_evenness) {
        best = &cuts;
        best_evenness = evenness;
      }
    }
    out.push_back(*best);
  }
  return out;
}

}  // namespace ashlar::analyses::period
