// Causes that show over time: sizes that grow, frees that wait.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/state/device_traffic.h"
#include "analyzer/analyses/steps/iterations.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;
using timeline::Timeline;

constexpr std::uint64_t kLeastGrowths = 3;
constexpr double kLeastRises = 0.9;  // of the changes of a line's sizes
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
  for (const TrafficGrowth& growth : context.history->growths) {
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

// Holes of segments that were obtained for the failed request's own line, when it asked for less: at one size for all
// rounds it would have them again.
struct GrownPast {
  std::uint64_t segments = 0, segment_bytes = 0, hole_bytes = 0;
  std::uint64_t smallest = 0;  // request of the line
  std::size_t changes = 0, rises = 0;
};

GrownPast FindGrownPast(const CauseContext& context) {
  GrownPast out;
  const std::optional<Shortage> shortage = ShortageAt(context);
  const Timeline& timeline = *context.history->timeline;
  if (!shortage.has_value() || timeline.oom_events().empty()) return out;
  const EventIndex failed = timeline.oom_events().back();
  const trace::StackId line = timeline.events()[static_cast<std::size_t>(failed)].stack;
  if (failed != context.history->moment || line == trace::kNoStack) return out;
  std::uint64_t last = 0;
  const auto follow = [&](std::uint64_t size) {
    if (last == 0) out.smallest = size;
    if (last != 0 && last != size) ++out.changes;
    if (last != 0 && last < size) ++out.rises;
    out.smallest = std::min(out.smallest, size);
    last = size;
  };
  // A line may ask for more than one thing: those of less than half the size are another.
  for (const BlockSpan& block : timeline.blocks()) {
    const bool is_it = block.stack == line && 2 * block.AskedBytes() >= shortage->request_bytes;
    if (is_it && block.alloc_event <= failed) follow(block.AskedBytes());
  }
  follow(shortage->request_bytes);
  if (out.changes < kLeastGrowths || static_cast<double>(out.rises) < kLeastRises * static_cast<double>(out.changes)) {
    return {};
  }
  for (const timeline::StateSegment& segment : context.history->state.segments) {
    if (segment.stack != line || segment.is_expandable || segment.size_bytes >= shortage->segment_bytes) continue;
    ++out.segments;
    out.segment_bytes += segment.size_bytes;
    out.hole_bytes += segment.size_bytes;
    for (const timeline::StateBlock& block : segment.blocks) out.hole_bytes -= block.size_bytes;
  }
  return out;
}

// Of the failed request, where no earlier one shows it.
CauseFinding DetectGrownPast(const CauseContext& context, CauseFinding absent) {
  const GrownPast grown = FindGrownPast(context);
  if (!IsMaterial(context, grown.hole_bytes) || 2 * grown.hole_bytes < SparableBytes(context)) return absent;
  CauseFinding out = Found(CauseKind::kGrowingSizes, Confidence::kLikely, grown.hole_bytes);
  out.evidence.push_back(absl::StrCat("its line asked for more in ", grown.rises, " of ", grown.changes,
                                      " changes of its size, from ", FormatBytes(grown.smallest), " to ",
                                      FormatBytes(ShortageAt(context)->request_bytes)));
  out.evidence.push_back(
      absl::StrCat(FormatCount(grown.segments), grown.segments == 1 ? " segment of " : " segments of together ",
                   FormatBytes(grown.segment_bytes),
                   " that it obtained for less cannot serve it: ", FormatBytes(grown.hole_bytes), " of holes"));
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

CauseFinding DetectGrowingSizes(const CauseContext& context) {
  const CauseKind kind = CauseKind::kGrowingSizes;
  const GrownRequests grown = FindGrown(context);
  const std::uint64_t bytes = std::min(grown.bytes, SparableBytes(context));
  const std::string sentence = absl::StrCat(
      FormatCount(grown.count), " requests of a size new to their line found no fitting block although the cache held ",
      "as much in pieces, and obtained ", FormatBytes(grown.bytes), " more");
  if (grown.count < kLeastGrowths || grown.rounds.size() < 2 || !IsMaterial(context, bytes)) {
    return DetectGrownPast(context, Absent(kind, sentence));
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

}  // namespace

// Causes of what is done about a full device: a cache that the allocator returns and obtains again, attempts that hold
// what failed ones had, and a cache that the program returns in every step.

namespace {

constexpr std::size_t kLeastBursts = 3;
constexpr double kLeastRegained = 0.5;  // of what a burst returned, obtained again before the next one
constexpr double kLeastPerRound = 0.5;  // bursts for each iteration
// Of the peak: a cause that frees so much comes before one that costs time alone.
constexpr double kLeastFreed = 0.1;

constexpr std::uint64_t kLeastRetries = 3;

// Releases on the way to new memory, with the device as full as it ever was: the allocator's own retries.
struct Retries {
  std::uint64_t count = 0, released_bytes = 0, most_bytes = 0;
  std::int64_t time_us = 0;    // from the first release to the new memory, summed; 0 where the trace has no time
  std::uint64_t needless = 0;  // of the same look, where a returned piece would have served: the program asked for it
};

Retries FindRetries(const timeline::Timeline& timeline, const policy::Options& options) {
  Retries out;
  const auto events = timeline.events();
  const std::uint64_t full = timeline.reserved_peak().bytes;
  for (const ReturnBurst& burst : FindReturnBursts(timeline, options)) {
    const auto begin = static_cast<std::size_t>(burst.begin);
    const auto end = static_cast<std::size_t>(burst.end);
    if (end >= events.size() || !IsObtained(events[end])) continue;
    if (timeline.TotalsAfter(burst.begin - 1).reserved_bytes + events[end].size_bytes < full) continue;
    if (!burst.is_retry) {
      ++out.needless;
      continue;
    }
    ++out.count;
    out.released_bytes += burst.bytes;
    out.most_bytes = std::max(out.most_bytes, burst.bytes);
    if (events[begin].time_us != trace::kNoTime) out.time_us += events[end].time_us - events[begin].time_us;
  }
  return out;
}

// By what holds an error: its traceback keeps the frames, and these their variables.
CauseFinding OwnedFrames(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kExceptionHoldsFrames;
  std::vector<Variable> errors;
  std::uint64_t bytes = 0;
  for (Variable& variable : VariablesOf(held)) {
    if (variable.role != OwnerRole::kError) continue;
    bytes += variable.bytes;
    errors.push_back(std::move(variable));
  }
  if (errors.empty() || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("the frames that errors keep hold ", FormatBytes(bytes)));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, errors, out);
  std::string variables;
  for (const std::string& name : out.holders.front().variables) {
    absl::StrAppend(&variables, variables.empty() ? " (" : ", ", name);
  }
  out.evidence.push_back(absl::StrCat(OwnersText(out.holders), " keeps errors, whose frames hold ",
                                      FormatBytes(out.bytes), " in ", out.blocks.size(), " blocks by their variables",
                                      variables, variables.empty() ? "" : ")"));
  return out;
}

CauseFinding DetectExceptionHoldsFrames(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kExceptionHoldsFrames;
  if (const HeldByName* const held = context.history->Owners(); held != nullptr) return OwnedFrames(context, *held);
  const timeline::Timeline& timeline = *context.history->timeline;
  std::vector<LiveBlock> held;
  for (const std::size_t index :
       BlocksOfFailedAttempts(timeline, context.history->moment, context.history->stacks, context.history->steps)) {
    held.push_back({&timeline.blocks()[index], {}});
  }
  const std::uint64_t bytes = BytesOf(held);
  if (timeline.oom_events().size() < 2) return Absent(kKind, "fewer than two requests fail");
  if (held.empty() || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("of earlier failed attempts ", FormatBytes(bytes), " are alive"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.stacks = StacksOf(held);
  out.evidence.push_back(absl::StrCat(FormatBytes(bytes), " in ", held.size(),
                                      " blocks are of earlier attempts that failed, and still alive in the last one; ",
                                      MostFrom(context, held)));
  out.evidence.push_back(absl::StrCat(timeline.oom_events().size(), " requests failed in this window"));
  return out;
}

CauseFinding DetectEmptyCacheEachStep(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kEmptyCacheEachStep;
  const timeline::Timeline& timeline = *context.history->timeline;
  const Iterations iterations(timeline, context.history->stacks, context.history->steps.steps);
  std::vector<ReturnBurst> needless;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  for (const ReturnBurst& burst : FindReturnBursts(timeline, OptionsOf(context))) {
    const bool is_regained =
        static_cast<double>(burst.regained_bytes) >= kLeastRegained * static_cast<double>(burst.bytes);
    if (burst.is_retry || !is_regained) continue;
    needless.push_back(burst);
    calls += burst.calls + burst.regained_calls;
    bytes += burst.bytes;
  }
  const std::size_t rounds =
      needless.empty() ? 0 : iterations.At(needless.back().begin) - iterations.At(needless.front().begin) + 1;
  const bool is_each =
      rounds >= kLeastBursts && static_cast<double>(needless.size()) >= kLeastPerRound * static_cast<double>(rounds);
  if (needless.size() < kLeastBursts || !is_each || bytes / needless.size() < kLeastMaterialBytes) {
    return Absent(kKind,
                  absl::StrCat(needless.size(), " times the cache was returned without need and obtained again"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes / needless.size());
  out.yields_to_bytes = static_cast<std::uint64_t>(kLeastFreed * static_cast<double>(timeline.reserved_peak().bytes));
  out.evidence.push_back(absl::StrCat(needless.size(), " times in ", rounds,
                                      " iterations the cache was returned, though ",
                                      "its pieces would have served what came next, and obtained again: ", calls,
                                      " calls of the driver, ", FormatBytes(bytes / needless.size()), " each time"));
  return out;
}

CauseFinding DetectRetryStorm(const CauseContext& context) {
  const CauseKind kind = CauseKind::kRetryStorm;
  const Retries retries = FindRetries(*context.history->timeline, OptionsOf(context));
  const std::string sentence =
      absl::StrCat(FormatCount(retries.count), " times the full device was relieved by returning the cache, ",
                   FormatBytes(retries.released_bytes), " in all, on the way to new memory");
  if (retries.count < kLeastRetries || !IsMaterial(context, retries.most_bytes)) {
    CauseFinding out = Absent(kind, sentence);
    if (retries.needless > 0) {
      out.counter_evidence.push_back(absl::StrCat(
          FormatCount(retries.needless), " times the cache was returned though a piece of it would have served"));
    }
    return out;
  }
  CauseFinding out = Found(kind, Confidence::kLikely, retries.most_bytes);
  out.evidence.push_back(sentence);
  if (retries.time_us > 0) {
    out.evidence.push_back(absl::StrCat("from release to new memory they took ",
                                        FormatCount(static_cast<std::uint64_t>(retries.time_us)), " us together"));
  }
  return out;
}

constexpr CauseSpec kHistoryCauses[] = {
    {.kind = CauseKind::kGrowingSizes,
     .name = "growing_sizes",
     .sentence = "Requests come in ever new sizes, so that no cached block fits the next one",
     .needs = CauseNeeds::kEvents,
     .detect = DetectGrowingSizes,
     .fixes = {CauseFix::kLargestFirst, CauseFix::kExpandable},
     .holes = CauseHoles::kMade},
    {.kind = CauseKind::kRecordStream,
     .name = "record_stream",
     .sentence = "Freed blocks wait for another stream (record_stream)",
     .needs = CauseNeeds::kEvents,
     .detect = DetectRecordStream,
     .fixes = {CauseFix::kNoWaits},
     .change = &changes::kWaitForStream,
     .holes = CauseHoles::kMade},
    {.kind = CauseKind::kExceptionHoldsFrames,
     .name = "exception_holds_frames",
     .sentence = "An exception holds the tensors of a failed attempt beside the next one",
     .needs = CauseNeeds::kStacks,
     .detect = DetectExceptionHoldsFrames,
     .change = &changes::kRetryAfterExcept},
    {.kind = CauseKind::kEmptyCacheEachStep,
     .name = "empty_cache_each_step",
     .sentence = "The cache is emptied in every step and obtained again",
     .needs = CauseNeeds::kEvents,
     .detect = DetectEmptyCacheEachStep,
     .change = &changes::kLeaveTheCache,
     .frees_nothing = true},
    {.kind = CauseKind::kRetryStorm,
     .name = "retry_storm",
     .sentence = "The cache is returned to the device and obtained again, over and over",
     .needs = CauseNeeds::kEvents,
     .detect = DetectRetryStorm,
     .fixes = {CauseFix::kExpandable},
     .holes = CauseHoles::kSeen},
};

}  // namespace

absl::Span<const CauseSpec> HistoryCauses() { return kHistoryCauses; }

}  // namespace ashlar::analyses
