#include "commands/explain/explain.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/steps/steps.h"
#include "commands/explain/by_library.h"
#include "commands/explain/picture/picture_maker.h"
#include "commands/shared/cards.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

using Explanations = std::vector<Explanation>;

absl::StatusOr<Explanations> OneOf(absl::StatusOr<Explanation> explanation) {
  if (!explanation.ok()) return explanation.status();
  return Explanations{*std::move(explanation)};
}

}  // namespace

absl::StatusOr<Explanations> Explain(const Input& input, const ExplainSettings& options) {
  if (input.snapshot() != nullptr) return OneOf(ExplainSnapshot(*input.snapshot(), options));
  if (input.requests() != nullptr) return OneOf(ExplainRequests(*input.requests(), options));
  if (input.messages() != nullptr) return ExplainMessages(*input.messages(), options);
  return absl::InvalidArgumentError("a packing problem has nothing to explain");
}

absl::StatusOr<Explanations> ExplainBytes(absl::string_view bytes, const ExplainSettings& options) {
  const absl::StatusOr<Input> input = LoadInput(bytes, ExplainedInputs());
  if (!input.ok()) return input.status();
  return Explain(*input, options);
}

namespace {

constexpr std::size_t kMostCallLines = 5;

constexpr char kNoHistory[] =
    "a profile has no history to replay: hold less of what the lines above made, or take another profile later, and "
    "ashlar diff says what grew";

// As asked for, else as the program was told when an allocation failed.
std::optional<std::uint64_t> TotalOfDevice(const timeline::DeviceTrace& trace, const ReplaySettings& settings) {
  if (settings.capacity_bytes.has_value()) return settings.capacity_bytes;
  const std::map<std::string, std::string>& values = trace.snapshot->settings->values;
  const auto it = values.find(trace::DeviceTotalKey(trace.device));
  std::uint64_t bytes = 0;
  const bool is_known = it != values.end() && absl::SimpleAtoi(it->second, &bytes);
  return is_known ? std::optional(bytes) : std::nullopt;
}

// A state without events: what is reserved behind it is not known.
Memory MemoryOfState(const LiveAtEnd& live) {
  Memory out{.moment = "the time of the profile"};
  out.accounting.allocated_bytes = out.accounting.live_bytes = live.bytes;
  return out;
}

// The sum total = allocated + outside + free where there was a failure.
OomAccounting AccountingOfCalls(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                const std::optional<std::uint64_t>& total_bytes) {
  const std::uint64_t allocated = timeline.TotalsAfter(moment).allocated_bytes;
  OomAccounting out;
  out.allocated_bytes = out.reserved_bytes = out.live_bytes = allocated;
  out.rounding_bytes = out.pending_bytes = out.stranded_bytes = out.whole_free_bytes = out.private_pool_bytes = 0;
  if (timeline.oom_events().empty()) return out;
  out.free_bytes = timeline.events()[static_cast<std::size_t>(moment)].address;
  if (!total_bytes.has_value() || *total_bytes < allocated + *out.free_bytes) return out;
  out.total_bytes = total_bytes;
  out.outside_bytes = *total_bytes - allocated - *out.free_bytes;
  return out;
}

Memory MemoryOfCalls(const timeline::Timeline& timeline, timeline::EventIndex moment,
                     const std::optional<std::uint64_t>& total_bytes) {
  const char* const when =
      timeline.oom_events().empty() ? "the peak of allocated memory, event " : "the failed allocation, event ";
  Memory out;
  out.moment = absl::StrCat(when, FormatCount(moment));
  out.accounting = AccountingOfCalls(timeline, moment, total_bytes);
  out.peak = PeaksOf(timeline);
  out.peak.utilisation.reset();  // no cache stands behind what is reserved
  return out;
}

Failure FailureOfCalls(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  if (timeline.oom_events().empty()) return {};
  const std::uint64_t bytes = timeline.events()[static_cast<std::size_t>(moment)].size_bytes;
  return {.tried_bytes = bytes, .request_bytes = bytes};
}

Verdict JudgeFailedCall(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  const trace::Event& event = timeline.events()[static_cast<std::size_t>(moment)];
  const std::uint64_t free_bytes = event.address;
  Verdict out{.headline = absl::StrCat("OUT OF MEMORY  device ", timeline.device(), ", event ", FormatCount(moment),
                                       " of the recording: ", FormatBytes(event.size_bytes), " requested, ",
                                       FormatBytes(free_bytes), " free on the device")};
  if (event.size_bytes > free_bytes) {
    out.kind = OomVerdict::kCapacity;
    out.evidence = {absl::StrCat("capacity: ", FormatBytes(event.size_bytes - free_bytes),
                                 " are missing, and no allocator holds any back")};
  } else {
    out.evidence = {
        "unknown: the device had more free than was asked for: the limit of a memory pool, or memory that others took "
        "and gave back at that moment"};
  }
  const std::size_t failures = timeline.oom_events().size();
  if (failures > 1) out.evidence.push_back(absl::StrCat("it is the last of ", FormatCount(failures), " that failed"));
  return out;
}

// A state without events: what lived when it was taken.
Verdict JudgeState(const LiveAtEnd& live, int device) {
  return {.headline = absl::StrCat("HELD  device ", device, ": ", FormatBytes(live.bytes), " in ",
                                   FormatCount(live.blocks), live.blocks == 1 ? " allocation" : " allocations"),
          .evidence = {"unknown: a profile tells who holds memory, not whether an allocation failed"}};
}

Verdict JudgeCalls(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  if (!timeline.oom_events().empty()) return JudgeFailedCall(timeline, moment);
  if (!timeline.HasAllocations()) {
    return {.headline = absl::StrCat("NO ALLOCATIONS RECORDED  device ", timeline.device()),
            .evidence = {"unknown: no call that allocates is in this trace"}};
  }
  return {.headline = absl::StrCat("NO FAILURE  device ", timeline.device(), ": no allocation failed in ",
                                   FormatCount(timeline.event_count()), " events"),
          .kind = OomVerdict::kHealthy,
          .evidence = {absl::StrCat("healthy: peak allocated ", FormatBytes(timeline.allocated_peak().bytes))}};
}

// What can be said of another device without a replay.
std::optional<Elsewhere> AskedElsewhere(const ExplainSettings& options, const Explanation& so_far) {
  const std::optional<OtherDevice>& device = options.other_device;
  const OomAccounting& recorded = so_far.memory.accounting;
  const std::optional<std::uint64_t>& tried = so_far.failure.tried_bytes;
  if (!device.has_value() || !IsElsewhere(*device, recorded, tried.has_value())) return std::nullopt;
  return HeldElsewhere(*device, recorded, tried);
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

std::vector<trace::Note> NotesOnUsedDevices(const timeline::DeviceTrace& trace, OomVerdict verdict) {
  std::uint64_t used = 0;
  for (const auto& events : trace.snapshot->device_traces) used += events.empty() ? 0 : 1;
  if (used < 2) return {};
  return {{"several_devices",
           absl::StrCat("the program used ", used, " devices; this is device ", trace.device,
                        verdict == OomVerdict::kHealthy ? ", which held most" : ", where an allocation failed last",
                        "; choose another with --device"),
           used}};
}

// Those that came with the trace, whatever format it was kept in.
std::vector<trace::Note> NotesOfTrace(const trace::Snapshot& snapshot) {
  std::vector<trace::Note> out;
  for (const auto& [key, value] : snapshot.settings->values) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, trace::kDeviceCallsNote)) continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(value, absl::MaxSplits(' ', 1));
    trace::Note note{std::string(name), std::string(parts.second), 0};
    if (absl::SimpleAtoi(parts.first, &note.count)) out.push_back(std::move(note));
  }
  out.insert(out.end(), snapshot.notes.begin(), snapshot.notes.end());
  return out;
}

}  // namespace

absl::StatusOr<Explanation> ExplainCalls(const trace::Snapshot& snapshot, const ExplainSettings& options) {
  const ReplaySettings& settings = options.replay;
  const absl::StatusOr<timeline::DeviceTrace> trace = ChooseDevice(snapshot, settings.device);
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<ObservedRun> run = ObserveDevice(*trace, settings);
  if (!run.ok()) return run.status();
  const timeline::Timeline& timeline = run->timeline;
  const timeline::EventIndex moment = analyses::MomentOf(timeline);
  Tell(settings, "accounting for every byte");
  LiveAtEnd live = LiveAtEndOf(timeline, snapshot.stacks);
  const bool is_state_alone = timeline.event_count() == 0 && live.blocks > 0;
  Explanation out;
  out.source = run->source;
  out.verdict = is_state_alone ? JudgeState(live, trace->device) : JudgeCalls(timeline, moment);
  out.memory = is_state_alone ? MemoryOfState(live) : MemoryOfCalls(timeline, moment, TotalOfDevice(*trace, settings));
  out.memory.holders.stacks = analyses::LiveLines(timeline.StateAt(moment), snapshot.stacks, kMostCallLines);
  if (snapshot.stacks.stack_count() > 0) {
    out.memory.by_library = ByLibraryAt(timeline.StateAt(moment), snapshot, trace->device);
  }
  if (!is_state_alone) {
    out.failure = FailureOfCalls(timeline, moment);
    out.memory.at_end = std::move(live);
  }
  out.program =
      ViewSteps(analyses::FindSteps(timeline, &snapshot.stacks, snapshot.annotations), moment, &snapshot.stacks);
  out.what_ifs.advice.sentence = is_state_alone ? kNoHistory : kNoSettings;
  if (!settings.device.has_value()) out.notes = NotesOnUsedDevices(*trace, out.verdict.kind);
  for (trace::Note& note : NotesOfTrace(snapshot)) out.notes.push_back(std::move(note));
  out.elsewhere = AskedElsewhere(options, out);
  if (options.picture.has_value()) {
    out.picture = PictureMaker(*options.picture, timeline, &snapshot.stacks, {}).Draw(out);
  }
  return out;
}

namespace {

std::string Headline(const formats::OomMessage& message, OomVerdict verdict) {
  if (message.FindNote("not_out_of_memory") != nullptr) return "NOT OUT OF MEMORY";
  if (message.told > 1 && message.Detail("largest_tried") != nullptr) {
    return absl::StrCat("REFUSED BY THE DEVICE  device ", message.device.value_or(0), ": ", FormatCount(message.told),
                        " times, no error after them");
  }
  std::string out = verdict == OomVerdict::kHostMemory ? "OUT OF HOST MEMORY"
                    : verdict == OomVerdict::kHealthy  ? "NO FAILURE"
                                                       : "OUT OF MEMORY";
  if (message.device.has_value()) absl::StrAppend(&out, "  device ", *message.device);
  if (message.tried.has_value()) absl::StrAppend(&out, ": tried to allocate ", message.tried->InWords());
  if (message.free.has_value()) absl::StrAppend(&out, ", ", message.free->InWords(), " free");
  return out;
}

bool SameCauses(const Why& a, const Why& b) {
  const auto parts = [](const analyses::CauseFinding& of) {
    return std::tie(of.kind, of.finding, of.confidence, of.bytes, of.evidence, of.counter_evidence, of.missing);
  };
  return std::equal(
      a.causes.begin(), a.causes.end(), b.causes.begin(), b.causes.end(),
      [&parts](const ExplainedCause& x, const ExplainedCause& y) { return parts(x.finding) == parts(y.finding); });
}

// Of two explanations of messages with the same figures: whether they tell one failure. A log prints what it then
// raises, and each handler raises it again from another line. Without figures that would tell apart two failures, the
// lines do, unless one has none or was raised while the other was handled.
bool TellsTheSame(const Explanation& a, const Explanation& b, bool is_chained) {
  const auto parts = [](const Explanation& of) {
    return std::tie(of.verdict, of.memory.moment, of.memory.accounting, of.failure.tried_bytes,
                    of.failure.request_bytes, of.failure.request_interval, of.failure.headroom);
  };
  const bool is_one_family = a.failure.message->family == b.failure.message->family;
  if (parts(a) != parts(b) || !SameCauses(a.why, b.why) || !is_one_family) return false;
  const bool has_figures = a.failure.tried_bytes.has_value() && a.memory.accounting.free_bytes.has_value();
  const std::optional<RaisedAt>& raised = a.failure.raised_at;
  const std::optional<RaisedAt>& other = b.failure.raised_at;
  return has_figures || is_chained || !raised.has_value() || !other.has_value() || raised->path == other->path;
}

// Of the device, by the size that the message tells.
std::string UnifiedMemoryCardOf(const formats::OomMessage& message) {
  if (!message.total.has_value()) return "";
  return std::string(UnifiedMemoryCard(message.total->MiddleBytes()));
}

}  // namespace

Explanation ExplainMessage(const formats::OomMessage& message, const ExplainSettings& options) {
  const analyses::OomMessageVerdict verdict = analyses::JudgeOomMessage(
      message, {.capacity_bytes = options.replay.capacity_bytes, .unified_memory_card = UnifiedMemoryCardOf(message)});
  Explanation out;
  out.source = absl::StrCat("out-of-memory message (", message.family, ")", message.truncated ? ", cut off" : "");
  out.verdict = {Headline(message, verdict.kind),
                 verdict.kind,
                 verdict.verdict_certain,
                 verdict.evidence,
                 {verdict.next_step, verdict.next_lines}};
  out.memory.moment = "the moment of the message";
  if (verdict.gap.has_value()) absl::StrAppend(&out.memory.moment, ", after the cache had returned what it could");
  out.memory.accounting = verdict.accounting;
  out.failure = {.tried_bytes = verdict.tried_bytes,
                 .request_bytes = verdict.request_bytes,
                 .request_interval = verdict.request_interval,
                 .headroom = verdict.headroom,
                 .message = FactsOf(message),
                 .raised_at = RaisedAtOf(message)};
  out.why = WhyOfMessage(verdict);
  out.failure.message->tries = verdict.tries;
  out.what_ifs.advice.sentence = verdict.levers;
  out.notes = verdict.notes;
  const bool is_of_device = verdict.kind != OomVerdict::kHostMemory && verdict.kind != OomVerdict::kHealthy;
  if (is_of_device && out.failure.tried_bytes.has_value()) out.elsewhere = AskedElsewhere(options, out);
  return out;
}

std::vector<Explanation> ExplainMessages(absl::Span<const formats::OomMessage> messages,
                                         const ExplainSettings& options) {
  std::vector<Explanation> out;
  std::vector<std::uint64_t> times;
  // Headline and evidence, where the figures of a message stand -> those of `out` that have them: few.
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::size_t>> seen;
  std::uint64_t left_out = 0;
  for (const formats::OomMessage& message : messages) {
    if (out.size() == kMostExplainedMessages) {
      ++left_out;
      continue;
    }
    Explanation explanation = ExplainMessage(message, options);
    std::vector<std::size_t>& alike = seen[{explanation.verdict.headline, explanation.verdict.evidence}];
    const auto known = std::find_if(alike.begin(), alike.end(), [&](std::size_t i) {
      return TellsTheSame(out[i], explanation, message.is_chained && i + 1 == out.size());
    });
    if (known != alike.end()) {
      Failure& first = out[*known].failure;
      first.message->told += explanation.failure.message->told;
      ++times[*known];
      if (!first.raised_at.has_value()) first.raised_at = std::move(explanation.failure.raised_at);
      continue;
    }
    alike.push_back(out.size());
    out.push_back(std::move(explanation));
    times.push_back(1);
  }
  if (left_out > 0) {
    out.back().notes.push_back(
        {"left_out", absl::StrCat("messages behind the ", out.size(), "th of other figures, which are not explained"),
         left_out});
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (times[i] > 1) out[i].notes.push_back({"repeated", "times that this same message stands in the text", times[i]});
  }
  return out;
}

}  // namespace ashlar::answers
