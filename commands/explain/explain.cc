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
#include "analyzer/formats/rmm/rmm_log.h"
#include "commands/explain/explain_parts.h"
#include "commands/explain/picture/picture_maker.h"
#include "commands/explain/verdict.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

using Explanations = std::vector<Explanation>;

absl::StatusOr<Explanations> OneOf(absl::StatusOr<Explanation> explanation) {
  if (!explanation.ok()) return explanation.status();
  return Explanations{*std::move(explanation)};
}

}  // namespace

absl::StatusOr<Explanations> Explain(const Input& input, const ExplainOptions& options) {
  if (input.snapshot() != nullptr) return OneOf(ExplainSnapshot(*input.snapshot(), options));
  if (input.requests() != nullptr) return OneOf(ExplainRequests(*input.requests(), options));
  if (input.messages() != nullptr) return ExplainMessages(*input.messages(), options);
  return absl::InvalidArgumentError("a packing problem has nothing to explain");
}

absl::StatusOr<Explanations> ExplainBytes(absl::string_view bytes, const ExplainOptions& options) {
  const absl::StatusOr<Input> input = LoadInput(bytes, ExplainedInputs());
  if (!input.ok()) return input.status();
  return Explain(*input, options);
}

namespace {

// A replay that needs no memory of the log's device does not fail where the program did.
void TellOfFailuresInLog(absl::string_view failed, Explanation& out) {
  if (failed.empty()) return;
  const bool is_healthy = out.verdict == OomVerdict::kHealthy;
  if (is_healthy) {
    out.headline = absl::StrCat("NO FAILURE IN THE REPLAY", absl::StripPrefix(out.headline, "NO FAILURE"),
                                "; the log has ", failed);
    out.verdict = OomVerdict::kUnknown;
    out.evidence.clear();
  }
  out.evidence.push_back(absl::StrCat(is_healthy ? "unknown: " : "", failed, " in the log itself ",
                                      absl::EndsWith(failed, "s") ? "are" : "is",
                                      " not replayed: the log does not tell how much memory there was"));
}

}  // namespace

absl::StatusOr<Explanation> ExplainRequests(const trace::RequestTrace& requests, const ExplainOptions& options) {
  std::vector<std::uint32_t> ops;
  const absl::StatusOr<ReplayedRun> run =
      ReplayRequests(requests, options.replay, options.picture.has_value() ? &ops : nullptr);
  if (!run.ok()) return run.status();

  Explanation out;
  const whatif::WhatIfInput input = whatif::InputWithoutRequests(requests, run->options, LimitsOf(options.replay));
  out.source = DescribeRequests(requests);
  out.replayed_as = input.replayed_as;
  TimelineContext context{&run->options, nullptr, options.replay.capacity_bytes, std::nullopt};
  if (options.replay.capacity_bytes.has_value()) context.outside_bytes = 0;
  analyses::CauseContext causes = CausesOf(*run);
  ExplainTimeline(run->timeline, context, *causes.history, out);
  const trace::LabelTable no_labels;
  std::optional<PictureMaker> picture;
  if (options.picture.has_value()) {
    picture.emplace(*options.picture, run->timeline, nullptr, no_labels);
    picture->SetPlaces({ops.begin(), ops.end()});
  }
  absl::StatusOr<std::vector<whatif::WhatIfRow>> rows = whatif::RunWhatIfs(
      requests, input.settings, options.replay.progress, nullptr, picture.has_value() ? picture->watch() : nullptr);
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  out.what_if_capacity_bytes = AllocatorBytes(options.replay);
  out.advice = whatif::Advise(out.what_if);
  absl::StatusOr<std::optional<whatif::OwnAllocator>> own =
      whatif::TryOwnAllocator(requests, input.settings, nullptr, {out.what_if, out.advice, /*is_pytorch=*/false});
  if (!own.ok()) return own.status();
  out.own = *std::move(own);
  if (absl::Status status = AddCauses(std::move(causes), requests, options, out); !status.ok()) return status;
  SetLastVerdict(out);
  TellOfFailuresInLog(formats::FailedInRmmLog(requests), out);
  out.notes.insert(out.notes.end(), requests.notes.begin(), requests.notes.end());
  if (!options.replay.capacity_bytes.has_value()) {
    out.notes.push_back({"capacity_unknown",
                         "a request trace does not say how much memory the device has; give --capacity 16GiB to see "
                         "whether it fits",
                         1});
  }
  out.notes.push_back({"no_stacks", "call stacks are not in this trace", 1});
  if (picture.has_value()) picture->Finish(out);
  return out;
}

namespace {

constexpr std::size_t kMostCallLines = 5;

constexpr char kNoHistory[] =
    "a profile has no history to replay: hold less of what the lines above made, or take another profile later, and "
    "ashlar diff says what grew";

// As asked for, else as the program was told when an allocation failed.
std::optional<std::uint64_t> TotalOfDevice(const trace::Snapshot& snapshot, int device,
                                           const ReplaySettings& settings) {
  if (settings.capacity_bytes.has_value()) return settings.capacity_bytes;
  const auto it = snapshot.settings->values.find(trace::DeviceTotalKey(device));
  std::uint64_t bytes = 0;
  const bool is_known = it != snapshot.settings->values.end() && absl::SimpleAtoi(it->second, &bytes);
  return is_known ? std::optional(bytes) : std::nullopt;
}

// A state without events: what is reserved behind it is not known.
void SetStateBytes(std::uint64_t live_bytes, Explanation& out) {
  out.accounting.allocated_bytes = out.accounting.live_bytes = live_bytes;
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

// A state without events: what lived when it was taken.
void JudgeState(const LiveAtEnd& live, int device, Explanation& out) {
  out.moment = "the time of the profile";
  out.headline = absl::StrCat("HELD  device ", device, ": ", FormatBytes(live.bytes), " in ", FormatCount(live.blocks),
                              live.blocks == 1 ? " allocation" : " allocations");
  out.verdict = OomVerdict::kUnknown;
  out.evidence.push_back("unknown: a profile tells who holds memory, not whether an allocation failed");
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
  LiveAtEnd live = LiveAtEndOf(timeline, snapshot.stacks);
  const bool is_state_alone = timeline.event_count() == 0 && live.blocks > 0;
  if (is_state_alone) {
    JudgeState(live, run->device, out);
  } else if (timeline.oom_events().empty()) {
    JudgeSuccess(timeline, moment, out);
  } else {
    JudgeFailure(timeline, moment, out);
  }
  if (is_state_alone) {
    SetStateBytes(live.bytes, out);
  } else {
    SetCallBytes(timeline, moment, TotalOfDevice(snapshot, run->device, settings), out);
  }
  const timeline::State state = timeline.StateAt(moment);
  out.stacks = analyses::LiveLines(state, snapshot.stacks, kMostCallLines);
  if (!is_state_alone) out.at_end = std::move(live);
  out.program =
      ViewProgram(analyses::FindSteps(timeline, &snapshot.stacks, snapshot.annotations), moment, &snapshot.stacks);
  out.advice.sentence = is_state_alone ? kNoHistory : kNoSettings;
  if (!settings.device.has_value()) NoteUsedDevices(snapshot, run->device, out);
  AddTraceNotes(snapshot, out);
  if (options.picture.has_value()) PictureMaker(*options.picture, timeline, &snapshot.stacks, {}).Finish(out);
  return out;
}

namespace {

std::string Headline(const formats::OomMessage& message, OomVerdict verdict) {
  if (message.FindNote("not_out_of_memory") != nullptr) return "NOT OUT OF MEMORY";
  if (message.told > 1 && message.Detail("largest_tried") != nullptr) {
    return absl::StrCat("REFUSED BY THE DEVICE  device ", message.device.value_or(0), ": ", FormatCount(message.told),
                        " times, no error after them");
  }
  std::string out = verdict == OomVerdict::kHostMemory ? "OUT OF HOST MEMORY" : "OUT OF MEMORY";
  if (message.device.has_value()) absl::StrAppend(&out, "  device ", *message.device);
  if (message.tried.has_value()) absl::StrAppend(&out, ": tried to allocate ", message.tried->InWords());
  if (message.free.has_value()) absl::StrAppend(&out, ", ", message.free->InWords(), " free");
  return out;
}

bool SameCauses(const Explanation& a, const Explanation& b) {
  const auto parts = [](const analyses::CauseFinding& of) {
    return std::tie(of.kind, of.finding, of.confidence, of.bytes, of.evidence, of.counter_evidence, of.missing);
  };
  return std::equal(
      a.causes.begin(), a.causes.end(), b.causes.begin(), b.causes.end(),
      [&parts](const ExplainedCause& x, const ExplainedCause& y) { return parts(x.finding) == parts(y.finding); });
}

MessageFacts FactsOf(const formats::OomMessage& message) {
  MessageFacts out{message.family, message.device, message.truncated, message.told, {}};
  if (message.limit.has_value()) out.figures.push_back({"limit", *message.limit});
  out.figures.insert(out.figures.end(), message.details.begin(), message.details.end());
  for (const formats::ProcessUse& process : message.processes) {
    if (!process.used.has_value()) continue;
    const std::string name =
        process.is_this_process ? "this_process" : absl::StrCat("process_", process.pid.value_or(0));
    out.figures.push_back({name, *process.used});
  }
  return out;
}

// Of two explanations of messages with the same figures: whether they tell one failure. A log prints what it then
// raises, and each handler raises it again from another line. Without figures that would tell apart two failures, the
// lines do, unless one has none or was raised while the other was handled.
bool TellsTheSame(const Explanation& a, const Explanation& b, bool is_chained) {
  const auto parts = [](const Explanation& of) {
    return std::tie(of.headline, of.verdict, of.verdict_certain, of.evidence, of.moment, of.accounting, of.tried_bytes,
                    of.request_bytes, of.request_interval, of.headroom, of.next_step, of.next_lines);
  };
  if (parts(a) != parts(b) || !SameCauses(a, b) || a.message->family != b.message->family) return false;
  const bool has_figures = a.tried_bytes.has_value() && a.accounting.free_bytes.has_value();
  if (has_figures || is_chained || !a.raised_at.has_value() || !b.raised_at.has_value()) return true;
  return a.raised_at->path == b.raised_at->path;
}

}  // namespace

std::optional<RaisedAt> RaisedAtOf(const formats::OomMessage& message) {
  std::vector<trace::Frame> frames;
  for (const formats::TracebackLine& line : message.traceback) frames.push_back(line.frame);
  // A compiled library tells its sources by paths that look like the program's own.
  for (trace::Frame& frame : frames) {
    if (absl::EndsWith(frame.file, ".pyx")) frame.file = absl::StrCat("/site-packages/", frame.file);
  }
  const std::vector<std::size_t> own = analyses::NearestFrames(frames);
  if (own.empty()) return std::nullopt;
  const auto label = [&frames](std::size_t i) {
    return std::string(absl::StripTrailingAsciiWhitespace(analyses::FrameLabel(frames[i])));
  };
  RaisedAt out{label(own.back()), message.traceback[own.back()].code, {}};
  for (const std::size_t i : own) out.path.push_back(label(i));
  return out;
}

Explanation ExplainMessage(const formats::OomMessage& message, const ExplainOptions& options) {
  const analyses::OomMessageVerdict verdict =
      analyses::JudgeOomMessage(message, {.capacity_bytes = options.replay.capacity_bytes});
  Explanation out;
  out.source = absl::StrCat("out-of-memory message (", message.family, ")", message.truncated ? ", cut off" : "");
  out.headline = Headline(message, verdict.kind);
  out.verdict = verdict.kind;
  out.verdict_certain = verdict.verdict_certain;
  out.evidence = verdict.evidence;
  out.moment = "the moment of the message";
  if (verdict.gap.has_value()) absl::StrAppend(&out.moment, ", after the cache had returned what it could");
  out.accounting = verdict.accounting;
  out.tried_bytes = verdict.tried_bytes;
  out.request_bytes = verdict.request_bytes;
  out.request_interval = verdict.request_interval;
  out.headroom = verdict.headroom;
  out.next_step = verdict.next_step;
  out.next_lines = verdict.next_lines;
  out.notes = verdict.notes;
  out.raised_at = RaisedAtOf(message);
  out.message = FactsOf(message);
  out.advice.sentence = verdict.levers;
  AddCauses(verdict, out);
  return out;
}

std::vector<Explanation> ExplainMessages(absl::Span<const formats::OomMessage> messages,
                                         const ExplainOptions& options) {
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
    std::vector<std::size_t>& alike = seen[{explanation.headline, explanation.evidence}];
    const auto known = std::find_if(alike.begin(), alike.end(), [&](std::size_t i) {
      return TellsTheSame(out[i], explanation, message.is_chained && i + 1 == out.size());
    });
    if (known != alike.end()) {
      Explanation& first = out[*known];
      first.message->told += explanation.message->told;
      ++times[*known];
      if (!first.raised_at.has_value()) first.raised_at = std::move(explanation.raised_at);
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
