#include "analyzer/analyses/steps/period_level.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace ashlar::analyses::period {
namespace {

constexpr std::size_t kLeastWidth = 4;
constexpr std::size_t kMostWidth = 48;
constexpr std::size_t kMostPeriodLevels = 32;
constexpr std::size_t kLeastInterval = 3;    // requests
constexpr double kMostCrossed = 0.25;        // of the boundaries
constexpr double kLeastShareOfSizes = 0.15;  // of the requests, that kPersistentSize may be told from

// What is asked of the intervals of a level.
struct LevelBounds {
  double evenness;  // the others may hold an evaluation, or miss an anchor
  double regularity;
  double coverage;  // of the events
};
constexpr LevelBounds kLeastByStack = {.evenness = 0.45, .regularity = kLeastRegularity, .coverage = 0.5};
constexpr LevelBounds kLeastBySize = {.evenness = 0.6, .regularity = 0.85, .coverage = 0.7};

using Key = std::pair<std::uint64_t, trace::StackId>;

Key KeyOf(const trace::Event& event, Likeness likeness) {
  switch (likeness) {
    case Likeness::kSizeAndStack:
      return {event.size_bytes, event.stack};
    case Likeness::kStack:
      return {0, event.stack};
    case Likeness::kSize:
    case Likeness::kPersistentSize:
      return {event.size_bytes, trace::kNoStack};
  }
  return {};
}

// Keeps the tokens that occur three times or more, in both halves of the sequence and not only around its middle.
void KeepPersistent(std::vector<SequenceItem>& requests) {
  struct Seen {
    std::size_t count = 0, first = 0, last = 0;
  };
  std::vector<Seen> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::uint32_t token = requests[i].token;
    if (token == seen.size()) seen.push_back({0, i, i});
    ++seen[token].count;
    seen[token].last = i;
  }
  const std::size_t low = requests.size() * 2 / 5;
  const std::size_t high = requests.size() * 3 / 5;
  const auto goes = [&](const SequenceItem& request) {
    const Seen& token = seen[request.token];
    return token.count < 3 || token.first > low || token.last < high;
  };
  requests.erase(std::remove_if(requests.begin(), requests.end(), goes), requests.end());
}

// n^2 pairs of positions, each equal over `width` tokens with the chance (sum of squared shares)^width.
std::size_t WidthFor(const std::vector<SequenceItem>& requests) {
  std::vector<double> counts;
  for (const SequenceItem& request : requests) {
    if (request.token >= counts.size()) counts.resize(request.token + 1, 0);
    ++counts[request.token];
  }
  const auto n = static_cast<double>(requests.size());
  double chance = 0;
  for (const double count : counts) chance += count / n * (count / n);
  if (chance >= 1) return kMostWidth;
  const double width = std::ceil(2 * std::log(n) / -std::log(chance));
  return static_cast<std::size_t>(std::clamp(width, static_cast<double>(kLeastWidth), static_cast<double>(kMostWidth)));
}

Sequence MakeSequence(const timeline::Timeline& timeline, Likeness likeness) {
  // Blocks of the window are in the order of their allocations.
  const auto blocks = timeline.blocks();
  auto block = std::find_if(blocks.begin(), blocks.end(), [](const auto& b) { return b.alloc_event >= 0; });
  Sequence out;
  out.requests.reserve(static_cast<std::size_t>(blocks.end() - block));
  absl::flat_hash_map<Key, std::uint32_t> tokens;
  for (; block != blocks.end(); ++block) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(block->alloc_event)];
    const auto token = tokens.emplace(KeyOf(event, likeness), static_cast<std::uint32_t>(tokens.size())).first->second;
    out.requests.push_back({block->alloc_event, token, event.stack, block->free_requested_event});
  }
  out.all_requests = out.requests.size();
  if (likeness == Likeness::kPersistentSize) KeepPersistent(out.requests);
  return out;
}

Grams MakeGrams(const Sequence& sequence) {
  Grams out;
  const std::vector<SequenceItem>& requests = sequence.requests;
  if (requests.size() < 2 * kLeastWidth) return out;
  out.width = WidthFor(requests);
  if (requests.size() < 2 * out.width) return out;
  // A polynomial hash modulo 2^64 with an odd base over tokens spread by a multiplication: two different n-grams of a
  // recording meet with a chance of about n^2 / 2^64.
  constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;
  constexpr std::uint64_t kSpread = 0xD6E8FEB86659FD93;
  const auto spread = [](std::uint32_t token) {
    std::uint64_t x = (token + 1ULL) * kSpread;
    x ^= x >> 32;
    return x * kSpread;
  };
  std::uint64_t oldest_factor = 1;
  for (std::size_t i = 1; i < out.width; ++i) oldest_factor *= kBase;
  std::uint64_t hash = 0;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> ids;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i >= out.width) hash -= spread(requests[i - out.width].token) * oldest_factor;
    hash = hash * kBase + spread(requests[i].token);
    if (i + 1 < out.width) continue;
    const std::uint32_t id = ids.emplace(hash, static_cast<std::uint32_t>(ids.size())).first->second;
    if (id == out.positions.size()) out.positions.emplace_back();
    out.positions[id].push_back(static_cast<std::uint32_t>(out.ids.size()));
    out.ids.push_back(id);
  }
  return out;
}

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

namespace {

// Share of the intervals whose length is within 15 % of the median.
double Evenness(const Cuts& cuts) {
  const std::vector<std::uint32_t> lengths = Lengths(cuts);
  if (lengths.empty()) return 0;
  const auto median = static_cast<double>(MedianInterval(cuts));
  const auto even = std::count_if(lengths.begin(), lengths.end(), [median](std::uint32_t length) {
    return length >= median * (1 - kEven) && length <= median * (1 + kEven);
  });
  return static_cast<double>(even) / static_cast<double>(lengths.size());
}

}  // namespace

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

namespace {

// Share of the inner cuts that a block crosses which was allocated before the cut and freed at least two cuts later.
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

}  // namespace

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

namespace {

// Candidates, one a count of occurrences: the most even n-gram of that count. At most `most`, those with most
// n-grams of their count first.
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

bool HasVariety(const PeriodSearch& search, const Cuts& cuts) {
  const auto& requests = search.sequence.requests;
  for (std::size_t at = cuts[0] + 1; at < cuts[1]; ++at) {
    if (requests[at].token != requests[cuts[0]].token) return true;
  }
  return false;
}

// A step has an optimizer phase where the program has them at all.
bool HasTooFewOptimizerPhases(const PeriodSearch& search, const Cuts& cuts) {
  const timeline::EventIndex begin = search.EventAt(cuts.front());
  const timeline::EventIndex end = search.EventAt(cuts.back());
  const auto runs = std::count_if(search.phases.begin(), search.phases.end(), [&](const Phase& phase) {
    return phase.name == ProgramPartName(ProgramPart::kOptimizer) && phase.events.begin >= begin &&
           phase.events.begin < end;
  });
  return runs >= 2 && static_cast<double>(cuts.size() - 1) > 1.5 * static_cast<double>(runs);
}

std::optional<PeriodLevel> Rate(const PeriodSearch& search, const Cuts& anchors) {
  const LevelBounds& least = search.stacks != nullptr ? kLeastByStack : kLeastBySize;
  PeriodLevel level;
  level.cuts = anchors;
  const std::uint32_t median = MedianInterval(anchors);
  if (median < kLeastInterval || Evenness(anchors) < least.evenness) return std::nullopt;
  // The interval after the last anchor counts as one where it is as long as the others.
  if (search.Count() - anchors.back() >= median) level.cuts.push_back(anchors.back() + median);
  const auto covered = static_cast<double>(search.EventAt(level.cuts.back()) - search.EventAt(level.cuts.front()));
  if (level.cuts.size() < 3 || covered < least.coverage * static_cast<double>(search.timeline.event_count()) ||
      !HasVariety(search, level.cuts)) {
    return std::nullopt;
  }
  level.regularity = Regularity(search.grams, level.cuts);
  if (level.regularity < least.regularity) return std::nullopt;
  if (search.stacks != nullptr) {
    if (IsInsideOneCall(search.sequence, level.cuts, *search.stacks, search.parts)) return std::nullopt;
    if (HasTooFewOptimizerPhases(search, level.cuts)) return std::nullopt;
  }
  level.crossed = CrossedShare(search.sequence, level.cuts);
  return level;
}

}  // namespace

PeriodSearch SearchOf(const timeline::Timeline& timeline, const trace::StackTable* stacks, const ProgramParts& parts,
                      const std::vector<Phase>& phases, Likeness likeness) {
  PeriodSearch out{timeline, stacks, parts, phases, MakeSequence(timeline, likeness)};
  if (out.Share() >= kLeastShareOfSizes) out.grams = MakeGrams(out.sequence);
  return out;
}

std::optional<PeriodLevel> BestLevel(const PeriodSearch& search) {
  std::vector<PeriodLevel> levels;
  for (const Cuts& anchors : CandidateCuts(search.grams, kMostPeriodLevels)) {
    if (std::optional<PeriodLevel> level = Rate(search, anchors)) levels.push_back(*std::move(level));
  }
  if (levels.empty()) return std::nullopt;
  const auto shorter = [](const PeriodLevel& a, const PeriodLevel& b) {
    return MedianInterval(a.cuts) < MedianInterval(b.cuts);
  };
  std::stable_sort(levels.begin(), levels.end(), shorter);
  for (const PeriodLevel& level : levels) {
    if (level.crossed <= kMostCrossed) return level;
  }
  if (search.stacks == nullptr) return std::nullopt;
  return *std::max_element(levels.begin(), levels.end(),
                           [](const PeriodLevel& a, const PeriodLevel& b) { return a.regularity < b.regularity; });
}

}  // namespace ashlar::analyses::period
