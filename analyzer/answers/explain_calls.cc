#include "analyzer/answers/explain_calls.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/answers/picture/picture_maker.h"
#include "analyzer/answers/traced_run.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostCallLines = 5;

// As asked for, else as the program was told when an allocation failed.
std::optional<std::uint64_t> TotalOfDevice(const trace::Snapshot& snapshot, int device,
                                           const ReplaySettings& settings) {
  if (settings.capacity_bytes.has_value()) return settings.capacity_bytes;
  const auto it = snapshot.settings->values.find(trace::DeviceTotalKey(device));
  std::uint64_t bytes = 0;
  const bool is_known = it != snapshot.settings->values.end() && absl::SimpleAtoi(it->second, &bytes);
  return is_known ? std::optional(bytes) : std::nullopt;
}

// The sum total = allocated + outside + free where there was a failure.
void SetCallBytes(const timeline::Timeline& timeline, timeline::EventIndex moment,
                  const std::optional<std::uint64_t>& total_bytes, Explanation& out) {
  const std::uint64_t allocated = timeline.TotalsAfter(moment).allocated_bytes;
  OomAccounting& parts = out.accounting;
  parts.allocated_bytes = parts.reserved_bytes = parts.live_bytes = allocated;
  parts.rounding_bytes = parts.pending_bytes = parts.stranded_bytes = parts.whole_free_bytes = 0;
  parts.private_pool_bytes = 0;
  out.peak.allocated_bytes = timeline.allocated_peak().bytes;
  out.peak.active_bytes = timeline.active_peak().bytes;
  out.peak.reserved_bytes = timeline.reserved_peak().bytes;
  if (timeline.oom_events().empty()) return;
  parts.free_bytes = timeline.events()[static_cast<std::size_t>(moment)].address;
  if (!total_bytes.has_value() || *total_bytes < allocated + *parts.free_bytes) return;
  parts.total_bytes = total_bytes;
  parts.outside_bytes = *total_bytes - allocated - *parts.free_bytes;
}

void JudgeFailure(const timeline::Timeline& timeline, timeline::EventIndex moment, Explanation& out) {
  const trace::Event& event = timeline.events()[static_cast<std::size_t>(moment)];
  const std::uint64_t free_bytes = event.address;
  out.request_bytes = event.size_bytes;
  out.tried_bytes = event.size_bytes;
  out.moment = absl::StrCat("the failed allocation, event ", FormatCount(moment));
  out.headline =
      absl::StrCat("OUT OF MEMORY  device ", timeline.device(), ", event ", FormatCount(moment), ": ",
                   FormatBytes(event.size_bytes), " requested, ", FormatBytes(free_bytes), " free on the device");
  if (event.size_bytes > free_bytes) {
    out.verdict = OomVerdict::kCapacity;
    out.evidence.push_back(absl::StrCat("capacity: ", FormatBytes(event.size_bytes - free_bytes),
                                        " are missing, and no allocator holds any back"));
  } else {
    out.verdict = OomVerdict::kUnknown;
    out.evidence.push_back(
        "unknown: the device had more free than was asked for: the limit of a memory pool, or memory that others took "
        "and gave back at that moment");
  }
  const std::size_t failures = timeline.oom_events().size();
  if (failures > 1) out.evidence.push_back(absl::StrCat("it is the last of ", FormatCount(failures), " that failed"));
}

void JudgeSuccess(const timeline::Timeline& timeline, timeline::EventIndex moment, Explanation& out) {
  out.moment = absl::StrCat("the peak of allocated memory, event ", FormatCount(moment));
  if (!timeline.HasAllocations()) {
    out.headline = absl::StrCat("NO ALLOCATIONS RECORDED  device ", timeline.device());
    out.verdict = OomVerdict::kUnknown;
    out.evidence.push_back("unknown: no call that allocates is in this trace");
    return;
  }
  out.headline = absl::StrCat("NO FAILURE  device ", timeline.device(), ": no allocation failed in ",
                              FormatCount(timeline.event_count()), " events");
  out.verdict = OomVerdict::kHealthy;
  out.evidence.push_back(absl::StrCat("healthy: peak allocated ", FormatBytes(timeline.allocated_peak().bytes)));
}

LiveAtEnd LiveAtEndOf(const timeline::Timeline& timeline, const trace::StackTable& stacks) {
  const timeline::State state = timeline.StateAt(timeline.last_event());
  LiveAtEnd out;
  for (const analyses::LiveStack& stack : analyses::LiveStacks(state)) {
    out.bytes += stack.bytes;
    out.blocks += stack.blocks;
  }
  out.lines = analyses::LiveLines(state, stacks, kMostCallLines);
  return out;
}

void NoteUsedDevices(const trace::Snapshot& snapshot, int device, Explanation& out) {
  std::uint64_t used = 0;
  for (const auto& events : snapshot.device_traces) used += events.empty() ? 0 : 1;
  if (used < 2) return;
  out.notes.push_back(
      {"several_devices",
       absl::StrCat("the program used ", used, " devices; this is device ", device,
                    out.verdict == OomVerdict::kHealthy ? ", which held most" : ", where an allocation failed last",
                    "; choose another with --device"),
       used});
}

// Those that came with the trace, whatever format it was kept in.
void AddTraceNotes(const trace::Snapshot& snapshot, Explanation& out) {
  for (const auto& [key, value] : snapshot.settings->values) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, trace::kDeviceCallsNote)) continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(value, absl::MaxSplits(' ', 1));
    trace::Note note{std::string(name), std::string(parts.second), 0};
    if (absl::SimpleAtoi(parts.first, &note.count)) out.notes.push_back(std::move(note));
  }
  out.notes.insert(out.notes.end(), snapshot.notes.begin(), snapshot.notes.end());
}

}  // namespace

absl::StatusOr<Explanation> ExplainCalls(const trace::Snapshot& snapshot, const ExplainOptions& options) {
  const ReplaySettings& settings = options.replay;
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  const timeline::Timeline& timeline = run->timeline;
  const timeline::EventIndex moment = analyses::MomentOf(timeline);
  Tell(settings, "accounting for every byte");
  Explanation out;
  out.source = DescribeSnapshot(snapshot, *run);
  if (timeline.oom_events().empty()) {
    JudgeSuccess(timeline, moment, out);
  } else {
    JudgeFailure(timeline, moment, out);
  }
  SetCallBytes(timeline, moment, TotalOfDevice(snapshot, run->device, settings), out);
  const timeline::State state = timeline.StateAt(moment);
  out.stacks = analyses::LiveLines(state, snapshot.stacks, kMostCallLines);
  out.at_end = LiveAtEndOf(timeline, snapshot.stacks);
  out.program =
      ViewProgram(analyses::FindSteps(timeline, &snapshot.stacks, snapshot.annotations), moment, &snapshot.stacks);
  out.advice.sentence = kNoSettings;
  if (!settings.device.has_value()) NoteUsedDevices(snapshot, run->device, out);
  AddTraceNotes(snapshot, out);
  if (options.picture.has_value()) PictureMaker(*options.picture, timeline, &snapshot.stacks, {}).Finish(out);
  return out;
}

}  // namespace ashlar::answers
