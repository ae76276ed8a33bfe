// Causes that show over time: sizes that grow, frees that wait.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/return_bursts.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;
using timeline::Timeline;

constexpr std::uint64_t kLeastGrowths = 3;
// A swing of allocated memory is a round of the program from this share of the widest on.
constexpr double kLeastSwing = 0.1;

// The events at which a swing of allocated memory, up and down again, has come half way down.
std::vector<EventIndex> EndsOfRounds(const Timeline& timeline) {
  const auto totals = timeline.totals();
  std::vector<EventIndex> out;
  if (totals.empty()) return out;
  std::uint64_t base = totals.back().allocated_bytes;  // what stays through the later half of the window
  for (std::size_t i = totals.size() / 2; i < totals.size(); ++i) base = std::min(base, totals[i].allocated_bytes);
  const double least = kLeastSwing * static_cast<double>(timeline.allocated_peak().bytes - base);
  double high = 0;
  double low = 0;
  bool is_falling = false;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const double value = static_cast<double>(totals[i].allocated_bytes) - static_cast<double>(base);
    if (is_falling) {
      low = std::min(low, value);
      if (value < low + least) continue;
      is_falling = false;
      high = value;
    } else {
      high = std::max(high, value);
      if (high < least || value > high / 2) continue;
      is_falling = true;
      low = value;
      out.push_back(static_cast<EventIndex>(i));
    }
  }
  return out;
}

// What each place of the program asked for up to an event, forward only.
class SizeHistory {
 public:
  explicit SizeHistory(const Timeline& timeline) : timeline_(timeline) {}

  // Sizes the stack asked for before `event`.
  const std::set<std::uint64_t>& Before(EventIndex event, trace::StackId stack) {
    const auto blocks = timeline_.blocks();
    for (; next_ < blocks.size() && blocks[next_].alloc_event < event; ++next_) {
      sizes_[blocks[next_].stack].insert(blocks[next_].size_bytes);
    }
    return sizes_[stack];
  }

 private:
  const Timeline& timeline_;
  std::size_t next_ = 0;
  std::map<trace::StackId, std::set<std::uint64_t>> sizes_;
};

struct GrownRequests {
  std::uint64_t count = 0, bytes = 0, records = 0;
  std::uint64_t smallest = 0, largest = 0;  // requests
  std::set<std::ptrdiff_t> rounds = {};
  std::map<trace::StackId, std::uint64_t> bytes_by_stack = {};
};

// Requests of a size their place had not asked for before, which no piece of the cache fitted although its pieces
// together were enough, in rounds after the first.
GrownRequests FindGrown(const CauseContext& context) {
  const std::vector<EventIndex> rounds = EndsOfRounds(*context.history->timeline);
  SizeHistory history(*context.history->timeline);
  GrownRequests out;
  for (const Growth& growth : context.history->growths) {
    const std::set<std::uint64_t>& before = history.Before(growth.request_event, growth.stack);
    if (growth.own.bytes < growth.request_bytes || growth.own.largest >= growth.request_bytes) continue;
    const auto round = std::lower_bound(rounds.begin(), rounds.end(), growth.event) - rounds.begin();
    if (round == 0 || before.empty() || before.count(growth.request_bytes) > 0) continue;
    if (out.count == 0) out.smallest = growth.request_bytes;
    ++out.count;
    out.bytes += growth.bytes;
    out.smallest = std::min(out.smallest, growth.request_bytes);
    out.largest = std::max(out.largest, growth.request_bytes);
    out.records += growth.request_bytes > *before.rbegin();
    out.rounds.insert(round);
    out.bytes_by_stack[growth.stack] += growth.bytes;
  }
  return out;
}

std::uint64_t PendingAfter(const Timeline& timeline, EventIndex event) {
  const timeline::Totals& totals = timeline.TotalsAfter(event);
  return totals.active_bytes - totals.allocated_bytes;
}

// Pending frees do harm where new memory is obtained while they wait: the growth at which most waited; kNever without.
EventIndex WorstGrowth(const Timeline& timeline) {
  EventIndex worst = timeline::kNever;
  std::uint64_t most = 0;
  for (EventIndex i = 0; i < timeline.event_count(); ++i) {
    if (!IsObtained(timeline.events()[static_cast<std::size_t>(i)])) continue;
    const std::uint64_t pending = PendingAfter(timeline, i);
    if (pending > most) {
      most = pending;
      worst = i;
    }
  }
  return worst;
}

}  // namespace

CauseFinding DetectGrowingSizes(const CauseContext& context) {
  const CauseKind kind = CauseKind::kGrowingSizes;
  const GrownRequests grown = FindGrown(context);
  const std::uint64_t bytes = std::min(grown.bytes, SparableBytes(context));
  const std::string sentence = absl::StrCat(
      FormatCount(grown.count), " requests of a size new to their line found no fitting block although the cache held ",
      "as much in pieces, and obtained ", FormatBytes(grown.bytes), " more");
  if (grown.count < kLeastGrowths || grown.rounds.size() < 2 || !IsMaterial(context, bytes)) {
    return Absent(kind, sentence);
  }
  CauseFinding out = Found(kind, 2 * grown.records >= grown.count ? Confidence::kLikely : Confidence::kPossible, bytes);
  out.evidence.push_back(sentence);
  out.evidence.push_back(absl::StrCat("their sizes run from ", FormatBytes(grown.smallest), " to ",
                                      FormatBytes(grown.largest), "; ", FormatCount(grown.records),
                                      " were larger than any before from the same line"));
  for (const auto& [stack, held] : grown.bytes_by_stack) out.stacks.push_back(stack);
  std::stable_sort(out.stacks.begin(), out.stacks.end(), [&grown](trace::StackId a, trace::StackId b) {
    return grown.bytes_by_stack.at(a) > grown.bytes_by_stack.at(b);
  });
  if (out.confidence == Confidence::kPossible) {
    out.counter_evidence.push_back("most of them were not larger than what came before: lengths vary rather than grow");
  }
  return out;
}

CauseFinding DetectRecordStream(const CauseContext& context) {
  const CauseKind kind = CauseKind::kRecordStream;
  const EventIndex worst = WorstGrowth(*context.history->timeline);
  if (worst == timeline::kNever) return Absent(kind, "no memory was obtained while freed blocks waited for a stream");
  const std::uint64_t bytes = PendingAfter(*context.history->timeline, worst);
  CauseFinding out = Found(kind, Confidence::kLikely, bytes);
  const auto blocks = context.history->timeline->blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].IsActiveAfter(worst) && !blocks[i].IsLiveAfter(worst)) out.blocks.push_back(i);
  }
  const std::string sentence = absl::StrCat(
      "at event ", FormatCount(static_cast<std::uint64_t>(worst)), " new memory was obtained while ",
      FormatCount(out.blocks.size()), " freed blocks of together ", FormatBytes(bytes), " waited for another stream");
  if (!IsMaterial(context, bytes)) return Absent(kind, sentence);
  SetStacks(context, out);
  out.evidence.push_back(sentence);
  return out;
}

}  // namespace ashlar::analyses
