#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/program_memory.h"
#include "analyzer/formats/rmm/rmm_log.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/by_library.h"
#include "commands/explain/explain.h"
#include "commands/explain/other_backends.h"
#include "commands/explain/picture/picture_maker.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostLabels = 5;

using Notes = std::vector<trace::Note>;

// "device 0 has 3.20 GiB reserved and 1 failed request".
std::string DeviceInWords(const timeline::DeviceTrace& trace) {
  std::uint64_t reserved = 0;
  for (const trace::SnapshotSegment* segment : trace.segments) reserved += segment->size_bytes;
  const std::uint64_t failed = replay::FailedRequests(trace);
  std::string out = absl::StrCat("device ", trace.device, " has ", FormatBytes(reserved), " reserved");
  if (failed > 0)
    absl::StrAppend(&out, " and ", FormatCount(failed), failed == 1 ? " failed request" : " failed requests");
  return out;
}

Notes NotesOnOtherDevices(const timeline::DeviceTrace& trace) {
  const std::vector<int> used = replay::UsedDevices(*trace.snapshot);
  if (used.size() < 2) return {};
  const bool has_failed = replay::FailedRequests(trace) > 0;
  std::string others;
  for (const int other : used) {
    if (other == trace.device) continue;
    absl::StrAppend(&others, others.empty() ? "" : ", ", DeviceInWords({*trace.snapshot, other}));
  }
  return {{"several_devices",
           absl::StrCat("the snapshot has ", used.size(), " devices; this is device ", trace.device,
                        has_failed ? ", where a request failed last" : ", which holds most", "; ", others,
                        "; choose another with --device"),
           used.size()}};
}

// Memory ran out on one of several devices, and some hold nothing of the process.
Notes NotesOnIdleDevices(const timeline::DeviceTrace& trace) {
  const std::size_t seen = trace.snapshot->device_traces.size();
  const std::size_t used = replay::UsedDevices(*trace.snapshot).size();
  if (replay::FailedRequests(trace) == 0 || used >= seen) return {};
  return {{"idle_devices",
           absl::StrCat("the process sees ", seen, " devices, and on ",
                        seen - used == 1 ? "one" : absl::StrCat(seen - used), " of them it holds nothing"),
           seen - used}};
}

// A pass that is larger than all before it, as that of one batch of long texts; empty: it is not.
std::string LargerPass(const analyses::CauseContext& context) {
  constexpr double kLeastTimes = 3;
  if (!context.history->HasStacks() || !HasFailure(*context.history)) return "";
  const std::optional<double> times = analyses::ProgramMemory(context).TimesEarlierPasses();
  if (times.value_or(0) < kLeastTimes) return "";
  return absl::StrFormat(
      "the pass under way is of a batch about %.0f times as large as any before it, as the blocks of its lines are",
      *times);
}

// What the recorded window leaves open, and what was told from elsewhere.
Notes NotesOnStart(const replay::SnapshotProgram& program) {
  if (program.start.segments.empty()) return {};
  const std::uint64_t blocks = program.start_ids.size();
  Notes out = {
      {"starts_warm",
       absl::StrCat("the trace starts on an allocator that already holds ", FormatCount(program.start.segments.size()),
                    " segments and ", FormatCount(blocks), " blocks; what came before is not in this trace"),
       blocks}};
  if (program.start.unknown_tails > 0) {
    out.push_back({"unknown_tails", "blocks older than the trace whose unsplit rest (at most 1 MiB each) never showed",
                   program.start.unknown_tails});
  }
  return out;
}

Notes NotesOnMissing(const ObservedRun& run) {
  if (run.missing.empty()) return {};
  return {{"history_lacks_events",
           absl::StrCat("this history lacks ", absl::StrJoin(run.missing, " and "),
                        " events (skip_actions): it cannot be replayed, and its final state alone is shown"),
           run.missing.size()}};
}

// Frees after the last error: the file was written when the program had let go of much of what it held.
Notes NotesOnUnwinding(const timeline::Timeline& observed) {
  if (observed.oom_events().empty()) return {};
  const timeline::EventIndex failed = observed.oom_events().back();
  const std::uint64_t then = observed.TotalsAfter(failed).allocated_bytes;
  const std::uint64_t at_end = observed.TotalsAfter(observed.last_event()).allocated_bytes;
  if (at_end >= then - then / 10) return {};
  return {
      {"dumped_after_unwinding",
       absl::StrCat("the file was written after the error had been handled: the program had given back ",
                    FormatBytes(then - at_end),
                    " by then; the state at the error is worked out from the events. A ring that is too short loses "
                    "them: an observer writes the file in time"),
       static_cast<std::uint64_t>(observed.last_event() - failed)}};
}

// How the state at an error can be kept, before Python's frames are left, and with the variables that hold it.
NextStep ObserverInTime(bool is_unwound) {
  return {
      .sentence =
          is_unwound ? "to have the state at the error itself, before the failure is handled, and who holds it by name:"
                     : "to have in the file who holds the memory by name:",
      .lines = {"import ashlar_gpu", "def dump(device, allocated, device_total, device_free):",
                "    torch.cuda.memory._dump_snapshot(f'oom-{device}.pickle')",
                "    ashlar_gpu.names(f'oom-{device}.pickle')", "torch._C._cuda_attach_out_of_memory_observer(dump)"},
      .is_of_names = !is_unwound};
}

// Of a file that PyTorch itself wrote.
bool MayGetNames(const trace::Snapshot& snapshot, const ObservedRun& run) {
  return !snapshot.recording.has_value() && !snapshot.holders.has_value() && snapshot.traits.has_stacks &&
         trace::BackendOf(snapshot) == trace::Backend::kCuda && !run.timeline.oom_events().empty();
}

// Most of what is reserved was taken before the window, and the window does not say by what: a ring that is too short.
Notes NotesOnEarlierPeak(const timeline::Timeline& observed) {
  const std::uint64_t reserved = observed.reserved_peak().bytes;
  const bool is_earlier = observed.oom_events().empty() && observed.HasAllocations() &&
                          observed.reserved_peak().event == timeline::kBeforeWindow;
  if (!is_earlier || observed.allocated_peak().bytes >= reserved / 2) return {};
  return {
      {"peak_before_window",
       absl::StrCat("the trace begins with ", FormatBytes(reserved), " reserved, of which at most ",
                    FormatBytes(observed.allocated_peak().bytes),
                    " were in use within it: what took the rest, and whether a request failed then, is not in this "
                    "trace; a larger max_entries, or a file written by torch._C._cuda_attach_out_of_memory_observer, "
                    "has it"),
       1}};
}

// A recording of our own says what was called.
Notes NotesOnReleases(const replay::SnapshotProgram& program, bool is_recording) {
  Notes out;
  if (is_recording) return out;
  if (program.user_releases > 0) {
    out.push_back({"empty_cache_told_from_frees", "empty_cache calls, told from segments that were freed",
                   program.user_releases});
  }
  if (program.maybe_releases > 0) {
    out.push_back({"releases_before_growth",
                   "times that segments were freed right before a new one was needed: by the allocator itself (a "
                   "retry), or by an empty_cache call just before; this trace does not tell which",
                   program.maybe_releases});
  }
  return out;
}

// A recording of our own knows the device; a dry run's may be one that never runs out.
std::optional<std::uint64_t> TotalOf(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  if (settings.capacity_bytes.has_value() || !snapshot.recording.has_value()) return settings.capacity_bytes;
  const std::uint64_t total = snapshot.recording->device_total_bytes;
  const bool is_known = total != 0 && total != replay::kAmpleBytes;
  return is_known ? std::optional(total) : std::nullopt;
}

// What the causes look at, made once for all stages. What is given must outlive it.
analyses::CauseContext ContextOfRecord(const trace::Snapshot& snapshot, const ObservedRun& run) {
  analyses::CauseFacts facts;
  facts.options = &run.recorded.options;
  facts.stacks = &snapshot.stacks;
  if (snapshot.settings.has_value()) facts.settings = &*snapshot.settings;
  facts.annotations = snapshot.annotations;
  facts.named = &snapshot;
  return analyses::ContextOf(run.timeline, facts);
}

analyses::CauseContext ContextOfReplay(const ReplayedRun& run) {
  return analyses::ContextOf(run.timeline, {.options = &run.options});
}

// The parts that every timeline gives, whoever made it.
Explanation OfTimeline(const analyses::CauseContext& context, const KnownDevice& device) {
  const analyses::CauseHistory& history = *context.history;
  Explanation out;
  out.memory = MemoryAt(history, device);
  out.failure = FailureAt(history, out.memory.accounting);
  out.program = ViewProgram(context);
  out.verdict = FirstVerdict(history, out.memory.accounting);
  return out;
}

// Of the device, by all, when the snapshot was made: known where that was at the failed request.
std::optional<std::uint64_t> InUseWhenMade(const analyses::CauseContext& context, const OomAccounting& then) {
  const analyses::CauseHistory& history = *context.history;
  if (history.moment != history.timeline->last_event()) return std::nullopt;
  if (!then.total_bytes.has_value() || !then.free_bytes.has_value()) return std::nullopt;
  return *then.total_bytes - std::min(*then.total_bytes, *then.free_bytes);
}

// And those that a snapshot gives beside it.
Explanation OfRecord(const analyses::CauseContext& context, const KnownDevice& device, const trace::Snapshot& snapshot,
                     const ObservedRun& run) {
  Explanation out = OfTimeline(context, device);
  out.source = run.source;
  out.memory.holders.labels = LinesByLabel(run.timeline, context.history->moment, snapshot.labels, kMostLabels);
  out.memory.holders.names = context.history->held;
  out.memory.host = FiguresOf(snapshot.host);
  out.memory.by_library = ByLibraryBeside(snapshot, run.device, InUseWhenMade(context, out.memory.accounting));
  const bool is_unwound = !NotesOnUnwinding(run.timeline).empty();
  if (is_unwound || MayGetNames(snapshot, run)) out.verdict.next = ObserverInTime(is_unwound);
  return out;
}

// The other ranks were given; this process is the first.
std::vector<analyses::RankPeak> AllRanks(const timeline::Timeline& timeline, const ExplainSettings& options) {
  if (options.other_ranks.empty()) return {};
  std::vector<analyses::RankPeak> out = {{0, timeline.allocated_peak().bytes, timeline.reserved_peak().bytes}};
  out.insert(out.end(), options.other_ranks.begin(), options.other_ranks.end());
  return out;
}

// In the device and the capacity of the parts that are there.
absl::StatusOr<Why> WhyOf(const Explanation& so_far, analyses::CauseContext context,
                          const whatif::RecordedRequests& requests, const ExplainSettings& options) {
  Tell(options.replay, "looking for causes");
  context.device = {so_far.memory.accounting.total_bytes, options.device_used_bytes,
                    AllRanks(*context.history->timeline, options), options.calls_fused_attention,
                    options.shared_device};
  context.fails_again = options.run_again.has_value() && !options.run_again->ends;
  whatif::WhatIfSettings settings;
  settings.baseline = *context.history->options;
  settings.capacity_bytes = so_far.what_ifs.capacity_bytes;
  settings.memory_fraction = options.replay.memory_fraction;
  settings.device.address_order = options.replay.segment_addresses.value_or(device::AddressOrder::kAscending);
  return FindWhy(context, requests, settings, options.replay.progress);
}

absl::StatusOr<Why> WhyOfRecord(const Explanation& so_far, analyses::CauseContext context, const ObservedRun& run,
                                const std::optional<analyses::Continuation>& next, const ExplainSettings& options) {
  if (run.recorded.warm.fidelity.total == 0) return WhyOf(so_far, std::move(context), {}, options);
  const std::shared_ptr<const trace::RequestTrace> without_retries =
      whatif::SharedWhatIfRequests(run.recorded.program, /*is_capacity_known=*/true);
  return WhyOf(so_far, std::move(context),
               {without_retries.get(), &run.recorded.program.requests, next.has_value() ? &*next : nullptr}, options);
}

// Of the cause to mend first: what a replay cannot take away, and is no sign of holes.
bool IsProgramFirst(const Why& why) {
  if (why.causes.empty()) return false;
  const analyses::CauseFinding& first = why.causes.front().finding;
  const analyses::CauseSpec& spec = analyses::SpecOf(first.kind);
  const bool is_found = first.finding == analyses::Finding::kFound && first.is_sickness && !first.is_footnote;
  return is_found && spec.change != nullptr && spec.holes == analyses::CauseHoles::kNothing &&
         spec.fixes.front() == analyses::CauseFix::kNone;
}

Explanation WithLastWord(Explanation all_else, const ExplainSettings& options) {
  LastWord word = LastWordOn({.first = all_else.verdict,
                              .accounting = all_else.memory.accounting,
                              .headroom = all_else.failure.headroom,
                              .growing = all_else.program.growing,
                              .what_ifs = all_else.what_ifs,
                              .to_come_bytes = all_else.why.to_come_bytes,
                              .is_program_first = IsProgramFirst(all_else.why),
                              .device_bytes = options.device_bytes});
  all_else.verdict = std::move(word.verdict);
  if (word.withheld.has_value()) {
    all_else.what_ifs = Withheld(std::move(all_else.what_ifs), *std::move(word.withheld));
  }
  return all_else;
}

Notes Joined(std::initializer_list<Notes> parts) {
  Notes out;
  for (const Notes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

Notes NotesOnWindow(const trace::Snapshot& snapshot, const ObservedRun& run) {
  const replay::SnapshotProgram& program = run.recorded.program;
  return Joined({NotesOnStart(program), NotesOnMissing(run), NotesOnUnwinding(run.timeline),
                 NotesOnEarlierPeak(run.timeline), NotesOnReleases(program, snapshot.recording.has_value())});
}

}  // namespace

absl::StatusOr<Explanation> ExplainSnapshot(const trace::Snapshot& snapshot, const ExplainSettings& asked) {
  if (trace::RecordsDeviceCalls(snapshot)) return ExplainCalls(snapshot, asked);
  ExplainSettings options = asked;
  const absl::StatusOr<timeline::DeviceTrace> trace = ChooseDevice(snapshot, options.replay.device);
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<ObservedRun> run = ObserveDevice(*trace, options.replay);
  if (!run.ok()) return run.status();
  const timeline::Timeline& observed = run->timeline;
  if (!options.replay.segment_addresses.has_value()) {
    options.replay.segment_addresses = replay::RecordedAddressOrder(observed.segments());
  }
  std::optional<PictureMaker> picture;
  if (options.picture.has_value()) picture.emplace(*options.picture, observed, &snapshot.stacks, snapshot.labels);

  Tell(options.replay, "accounting for every byte");
  analyses::CauseContext context = ContextOfRecord(snapshot, *run);
  const KnownDevice device = {.total_bytes = TotalOf(snapshot, options.replay)};
  Explanation out = OfRecord(context, device, snapshot, *run);
  absl::StatusOr<NotedWhatIfs> tried =
      TrySettings(snapshot, *run, context.history->steps, options.replay, picture.has_value() ? &*picture : nullptr);
  if (!tried.ok()) return tried.status();
  out.what_ifs = std::move(tried->what_ifs);
  out.what_ifs.run_again = options.run_again;
  if (options.other_device.has_value() && run->recorded.warm.fidelity.total > 0 &&
      IsElsewhere(*options.other_device, out.memory.accounting, !observed.oom_events().empty())) {
    absl::StatusOr<Elsewhere> elsewhere =
        TryElsewhere(snapshot, *run, context.history->steps, options.replay, *options.other_device);
    if (!elsewhere.ok()) return elsewhere.status();
    out.elsewhere = *std::move(elsewhere);
  }
  const std::string larger_pass = LargerPass(context);
  absl::StatusOr<Why> why = WhyOfRecord(out, std::move(context), *run, tried->next, options);
  if (!why.ok()) return why.status();
  out.why = *std::move(why);
  out.notes =
      Joined({NotesOfSettings(run->recorded.options),
              options.replay.device.has_value() ? Notes{} : NotesOnOtherDevices(*trace), NotesOnIdleDevices(*trace),
              NotesOnCapacity(out.memory, device), NotesOnWindow(snapshot, *run), tried->notes, snapshot.notes});
  out = WithLastWord(std::move(out), options);
  if (!larger_pass.empty()) out.verdict.evidence.push_back(larger_pass);
  SayFor(trace::BackendOf(snapshot), out);
  if (picture.has_value()) {
    Tell(options.replay, "drawing");
    picture->AddRecord(snapshot);
    out.picture = picture->Draw(out);
  }
  return out;
}

namespace {

// A replay that needs no memory of the log's device does not fail where the program did.
Verdict WithFailuresInLog(Verdict verdict, absl::string_view failed) {
  if (failed.empty()) return verdict;
  const bool is_healthy = verdict.kind == OomVerdict::kHealthy;
  if (is_healthy) {
    verdict.headline = absl::StrCat("NO FAILURE IN THE REPLAY", absl::StripPrefix(verdict.headline, "NO FAILURE"),
                                    "; the log has ", failed);
    verdict.kind = OomVerdict::kUnknown;
    verdict.evidence.clear();
  }
  verdict.evidence.push_back(absl::StrCat(is_healthy ? "unknown: " : "", failed, " in the log itself ",
                                          absl::EndsWith(failed, "s") ? "are" : "is",
                                          " not replayed: the log does not tell how much memory there was"));
  return verdict;
}

Notes NotesOnRequests(bool is_capacity_known) {
  Notes out;
  if (!is_capacity_known) {
    out.push_back({"capacity_unknown",
                   "a request trace does not say how much memory the device has; give --capacity 16GiB to see whether "
                   "it fits",
                   1});
  }
  out.push_back({"no_stacks", "call stacks are not in this trace", 1});
  return out;
}

}  // namespace

absl::StatusOr<Explanation> ExplainRequests(const trace::RequestTrace& requests, const ExplainSettings& asked) {
  ExplainSettings options = asked;
  // They were recorded on no device: the one that is asked about is the one that they run on.
  if (options.other_device.has_value()) options.replay = On(*options.other_device, std::move(options.replay));
  std::vector<std::uint32_t> ops;
  const absl::StatusOr<ReplayedRun> run =
      ReplayRequests(requests, options.replay, options.picture.has_value() ? &ops : nullptr);
  if (!run.ok()) return run.status();
  const trace::LabelTable no_labels;
  std::optional<PictureMaker> picture;
  if (options.picture.has_value()) {
    picture.emplace(*options.picture, run->timeline, nullptr, no_labels);
    picture->SetPlaces({ops.begin(), ops.end()});
  }

  const bool is_capacity_known = options.replay.capacity_bytes.has_value();
  analyses::CauseContext context = ContextOfReplay(*run);
  const KnownDevice device = {options.replay.capacity_bytes,
                              is_capacity_known ? std::optional<std::uint64_t>(0) : std::nullopt};
  Explanation out = OfTimeline(context, device);
  out.source = DescribeRequests(requests);
  absl::StatusOr<WhatIfs> tried =
      TrySettingsOnRequests(requests, *run, options.replay, picture.has_value() ? &*picture : nullptr);
  if (!tried.ok()) return tried.status();
  out.what_ifs = *std::move(tried);
  absl::StatusOr<Why> why = WhyOf(out, std::move(context), {&requests, &requests}, options);
  if (!why.ok()) return why.status();
  out.why = *std::move(why);
  out = WithLastWord(std::move(out), options);
  out.verdict = WithFailuresInLog(std::move(out.verdict), formats::FailedInRmmLog(requests));
  out.notes = Joined({NotesOnCapacity(out.memory, device), requests.notes, NotesOnRequests(is_capacity_known)});
  if (picture.has_value()) out.picture = picture->Draw(out);
  return out;
}

}  // namespace ashlar::answers
