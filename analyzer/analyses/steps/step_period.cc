#include "analyzer/analyses/steps/step_period.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "analyzer/analyses/steps/period_level.h"

namespace ashlar::analyses {
namespace {

using period::Cuts;
using period::Likeness;
using period::PeriodLevel;
using period::PeriodSearch;
using period::Sequence;
using timeline::EventIndex;

constexpr double kSureRegularity = 0.75;  // no other notion of likeness is tried beyond it
constexpr std::size_t kMostVoters = 256;
constexpr double kVote = 0.6;

// Between a request and the one before it: the first event after the least was allocated.
struct Quiet {
  EventIndex event = 0;
  std::uint64_t bytes = 0;
};

// Interval of a position, or nullopt outside of all of them.
std::optional<std::size_t> IntervalOf(const Cuts& cuts, std::uint32_t position) {
  const auto after = std::upper_bound(cuts.begin(), cuts.end(), position);
  if (after == cuts.begin() || after == cuts.end()) return std::nullopt;
  return static_cast<std::size_t>(after - cuts.begin()) - 1;
}

// The n-grams that occur once an interval in most of the intervals; an anchor that was missed makes one of two steps.
std::vector<std::uint32_t> OncePerInterval(const PeriodSearch& search, const Cuts& cuts) {
  std::vector<std::uint32_t> out;
  const double least = kVote * static_cast<double>(cuts.size() - 1);
  for (std::uint32_t id = 0; id < search.grams.positions.size(); ++id) {
    const std::vector<std::uint32_t>& positions = search.grams.positions[id];
    if (positions.size() < 2 || positions.size() > 2 * cuts.size()) continue;
    std::vector<std::size_t> intervals;
    for (const std::uint32_t position : positions) {
      if (const auto interval = IntervalOf(cuts, position)) intervals.push_back(*interval);
    }
    const std::size_t occurrences = intervals.size();
    intervals.erase(std::unique(intervals.begin(), intervals.end()), intervals.end());
    const std::size_t repeated = occurrences - intervals.size();
    if (static_cast<double>(intervals.size()) >= least && repeated <= intervals.size() / 5) out.push_back(id);
  }
  return out;
}

std::uint64_t MedianOf(std::vector<std::uint64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The recurring place before which the least is allocated: between two steps. By the median, as the first step may
// come before what the program keeps for good. An n-gram that spans two steps says where both of them are.
Cuts QuietestPlace(const PeriodSearch& search, const std::vector<std::uint32_t>& places,
                   const std::vector<Quiet>& quiet) {
  Cuts best;
  std::optional<std::uint64_t> best_bytes;
  for (const std::uint32_t id : places) {
    for (std::uint32_t shift = 0; shift < search.grams.width; ++shift) {
      Cuts cuts;
      std::vector<std::uint64_t> bytes;
      for (const std::uint32_t position : search.grams.positions[id]) {
        cuts.push_back(position + shift);
        bytes.push_back(quiet[cuts.back()].bytes);
      }
      const std::uint64_t median = MedianOf(std::move(bytes));
      // Of equals the one with more occurrences.
      const bool is_better =
          !best_bytes.has_value() || median < *best_bytes || (median == *best_bytes && cuts.size() > best.size());
      if (is_better) {
        best = std::move(cuts);
        best_bytes = median;
      }
    }
  }
  return best;
}

// Signed distance of each occurrence to the nearest cut; the median of them.
std::int64_t MedianOffset(const std::vector<std::uint32_t>& positions, const Cuts& cuts) {
  std::vector<std::int64_t> offsets;
  for (const std::uint32_t position : positions) {
    const auto after = std::lower_bound(cuts.begin(), cuts.end(), position);
    std::optional<std::int64_t> best;
    for (const auto at : {after, after == cuts.begin() ? after : after - 1}) {
      if (at == cuts.end()) continue;
      const std::int64_t offset = static_cast<std::int64_t>(position) - static_cast<std::int64_t>(*at);
      if (!best.has_value() || std::abs(offset) < std::abs(*best)) best = offset;
    }
    if (best.has_value()) offsets.push_back(*best);
  }
  const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
  std::nth_element(offsets.begin(), middle, offsets.end());
  return *middle;
}

struct Voter {
  std::int64_t offset = 0;
  std::uint32_t gram = 0;
};

// The recurring places within a quarter of an interval of the cuts.
std::vector<Voter> Voters(const PeriodSearch& search, const std::vector<std::uint32_t>& places, const Cuts& cuts) {
  const std::int64_t reach = std::max<std::int64_t>(1, period::MedianInterval(cuts) / 4);
  std::vector<Voter> near;
  for (const std::uint32_t id : places) {
    const std::int64_t offset = MedianOffset(search.grams.positions[id], cuts);
    if (std::abs(offset) <= reach) near.push_back({offset, id});
  }
  if (near.size() <= kMostVoters) return near;
  std::vector<Voter> out;
  for (std::size_t i = 0; i < kMostVoters; ++i) out.push_back(near[i * near.size() / kMostVoters]);
  return out;
}

// The quiet places, and where the voters agree that one was missed.
Cuts Vote(const PeriodSearch& search, const std::vector<Voter>& voters, const Cuts& quiet) {
  std::map<std::int64_t, std::size_t> votes;
  for (const Voter& voter : voters) {
    for (const std::uint32_t position : search.grams.positions[voter.gram]) {
      ++votes[static_cast<std::int64_t>(position) - voter.offset];
    }
  }
  const std::int64_t tolerance = std::max<std::int64_t>(1, period::MedianInterval(quiet) / 20);
  const double needed = kVote * static_cast<double>(voters.size());
  Cuts out = quiet;
  for (auto it = votes.begin(); it != votes.end();) {
    double sum = 0;
    auto best = it;
    auto after = it;
    for (; after != votes.end() && after->first - it->first <= 2 * tolerance; ++after) {
      sum += static_cast<double>(after->second);
      if (after->second > best->second) best = after;
    }
    const bool is_inside = best->first >= 0 && best->first < static_cast<std::int64_t>(search.Count());
    if (sum < needed || !is_inside) {
      ++it;
      continue;
    }
    const auto near = std::lower_bound(quiet.begin(), quiet.end(), best->first - 2 * tolerance);
    const bool is_known = near != quiet.end() && *near <= best->first + 2 * tolerance;
    if (!is_known) out.push_back(static_cast<std::uint32_t>(best->first));
    it = after;
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Closes the last step, if what follows the last cut is one; false if it is not.
bool CloseLast(const PeriodSearch& search, Cuts& cuts) {
  if (cuts.size() < 2) return false;
  const std::uint32_t median = period::MedianInterval(cuts);
  const std::size_t rest = search.Count() - cuts.back();
  if (rest == 0 || static_cast<double>(rest) < 0.9 * median) return false;
  const auto end = static_cast<std::uint32_t>(cuts.back() + std::min<std::size_t>(rest, median));
  std::vector<std::uint32_t> counts;
  const std::size_t common =
      period::CommonRequests(search.grams, {cuts.back(), end}, {cuts[cuts.size() - 2], cuts.back()}, counts);
  // A step shorter than an n-gram has none at the end of the sequence: it is compared request by request.
  const auto& requests = search.sequence.requests;
  std::size_t equal = 0;
  for (std::uint32_t at = cuts.back(); at < end; ++at) {
    const std::uint32_t before = cuts[cuts.size() - 2] + (at - cuts.back());
    if (before < cuts.back() && requests[at].token == requests[before].token) ++equal;
  }
  const double needed = period::kLeastRegularity * (end - cuts.back());
  if (static_cast<double>(std::max(common, equal)) < needed) return false;
  cuts.push_back(end);
  return true;
}

Cuts Refine(const PeriodSearch& search, const PeriodLevel& level, const std::vector<Quiet>& moments) {
  const std::vector<std::uint32_t> places = OncePerInterval(search, level.cuts);
  if (places.empty()) return level.cuts;
  const Cuts quiet = QuietestPlace(search, places, moments);
  Cuts cuts = Vote(search, Voters(search, places, quiet), quiet);
  while (CloseLast(search, cuts)) continue;  // of steps shorter than an n-gram the last few were not seen
  // The vote must not lose what the anchor had.
  const double before = level.regularity * (level.cuts.back() - level.cuts.front());
  const double after = cuts.size() < 3 ? 0 : period::Regularity(search.grams, cuts) * (cuts.back() - cuts.front());
  return after >= 0.8 * before ? cuts : level.cuts;
}

std::vector<Quiet> FindQuiet(const timeline::Timeline& timeline, const Sequence& sequence) {
  std::vector<Quiet> out;
  EventIndex before = timeline::kBeforeWindow;
  for (std::size_t i = 0; i <= sequence.requests.size(); ++i) {
    const EventIndex event =
        i < sequence.requests.size() ? EventIndex{sequence.requests[i].event} : timeline.event_count();
    Quiet quiet{event, timeline.TotalsAfter(event - 1).allocated_bytes};
    for (EventIndex at = event - 1; at > before; --at) {
      const std::uint64_t bytes = timeline.TotalsAfter(at - 1).allocated_bytes;
      if (bytes < quiet.bytes) quiet = {at, bytes};
    }
    out.push_back(quiet);
    before = event;
  }
  return out;
}

// The last interval may reach into what follows the pass.
bool AreLayersOfOnePass(const PeriodSearch& search, const Cuts& cuts) {
  if (search.stacks == nullptr) return false;
  const std::size_t inner = cuts.size() - 1 > search.LeastSteps() ? cuts.size() - 1 : cuts.size();
  return period::IsInsideOneCall(search.sequence, Cuts(cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(inner)),
                                 *search.stacks, search.parts);
}

StepPeriod SearchBy(const timeline::Timeline& timeline, const trace::StackTable* stacks, const ProgramParts& parts,
                    const std::vector<Phase>& phases, Likeness likeness) {
  const PeriodSearch search = period::SearchOf(timeline, stacks, parts, phases, likeness);
  const std::optional<PeriodLevel> level = period::BestLevel(search);
  if (!level.has_value()) return {};
  const std::vector<Quiet> quiet = FindQuiet(timeline, search.sequence);
  const Cuts cuts = Refine(search, *level, quiet);
  if (cuts.size() <= search.LeastSteps() || AreLayersOfOnePass(search, cuts)) return {};
  StepPeriod out;
  out.told_from_sizes = stacks == nullptr;
  out.regularity = period::Regularity(search.grams, cuts) * search.Share();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    out.steps.push_back({quiet[cuts[i]].event, quiet[cuts[i + 1]].event});
  }
  return out;
}

bool HasStacks(const timeline::Timeline& timeline) {
  std::size_t with = 0;
  std::size_t all = 0;
  for (const trace::Event& event : timeline.events()) {
    if (event.action != trace::Action::kAlloc) continue;
    ++all;
    if (event.stack != trace::kNoStack) ++with;
  }
  return 2 * with > all;
}

}  // namespace

StepPeriod FindStepPeriod(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                          const ProgramParts& parts, const std::vector<Phase>& phases) {
  const bool by_stack = stacks != nullptr && HasStacks(timeline);
  if (!by_stack) stacks = nullptr;
  StepPeriod first = SearchBy(timeline, stacks, parts, phases, by_stack ? Likeness::kSizeAndStack : Likeness::kSize);
  if (first.regularity >= kSureRegularity) return first;
  StepPeriod second =
      SearchBy(timeline, stacks, parts, phases, by_stack ? Likeness::kStack : Likeness::kPersistentSize);
  return second.regularity > first.regularity ? second : first;
}

}  // namespace ashlar::analyses
