#include "analyzer/cli/replay.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/readers/plain/plain_trace.h"
#include "analyzer/readers/snapshot.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/replay/event_log.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/report/explain_calls.h"
#include "analyzer/report/replay_report.h"
#include "analyzer/report/traced_run.h"
#include "analyzer/timeline/observed.h"

namespace ashlar::cli {
namespace {

struct ReplayCommandFlags {
  std::string input;
  bool json = false;
  bool print_events = false;
  bool warm = false;
  bool cold = false;
  bool events_complete_immediately = false;
  ReplayFlags replay;
};

struct Context {
  const ReplayCommandFlags& flags;
  const report::ExplainOptions& options;
};

report::ReplayReport ReportOf(const policy::Options& options, std::string source) {
  report::ReplayReport out;
  out.source = std::move(source);
  out.compat = std::string(policy::CompatName(options.compat));
  out.free_order = std::string(policy::FreeOrderName(options.free_order));
  out.conf = options.conf;
  for (const std::string& note : options.notes) out.notes.push_back({"setting", note, 1});
  return out;
}

// From an empty allocator; prints the exact log when asked. Returns the text to print.
absl::StatusOr<report::ReplayReport> ReplayCold(const trace::RequestTrace& requests, const policy::Options& options,
                                                const Context& context, std::string source, std::string& log_text) {
  replay::RequestReplayOptions replay_options{options, {}, context.options.memory_fraction};
  replay_options.device.capacity_bytes = context.options.capacity_bytes.value_or(remedies::kAmpleCapacityBytes);
  replay_options.device.address_order = context.options.segment_addresses;
  replay_options.device.cost = context.options.device_costs;
  replay_options.device.events_complete_immediately = context.flags.events_complete_immediately;
  report::Tell(context.options, absl::StrCat("replaying ", FormatCount(requests.requests.size()), " requests"));
  replay::RequestReplay replay(std::move(replay_options));
  replay::EventLog log;
  if (absl::Status status = replay.Run(requests, context.flags.print_events ? &log : nullptr); !status.ok()) {
    return status;
  }
  if (context.flags.print_events) log_text = log.Finish();
  report::ReplayReport out = ReportOf(options, std::move(source));
  out.capacity_bytes = context.options.capacity_bytes;
  out.requests = requests.requests.size();
  out.stats = replay.allocator().stats();
  out.calls = replay.device().calls();
  out.cost_ns = replay.device().cost_ns();
  return out;
}

absl::StatusOr<report::ReplayReport> ReplaySnapshot(const std::string& bytes, const Context& context,
                                                    std::string& log_text) {
  const absl::StatusOr<trace::Snapshot> snapshot = readers::ReadSnapshot(bytes);
  if (!snapshot.ok()) return snapshot.status();
  if (trace::RecordsDeviceCalls(*snapshot)) return absl::InvalidArgumentError(report::kNoSettings);
  const absl::StatusOr<int> chosen = report::ChooseDevice(*snapshot, context.options.device);
  if (!chosen.ok()) return chosen.status();
  const int device = *chosen;
  report::Tell(context.options, "replaying as recorded");
  absl::StatusOr<replay::RecordedReplay> recorded = replay::ReplayAsRecorded(*snapshot, device, context.options.wishes);
  if (!recorded.ok()) return recorded.status();
  const std::string source = report::DescribeSource(*snapshot, device);
  const trace::Note guess{"replayed_as", recorded->guess, 1};
  absl::StatusOr<timeline::Timeline> observed =
      timeline::MakeObservedTimeline(*snapshot, device, replay::SizeRuleOf(recorded->options));
  const std::size_t window = recorded->program.requests.requests.size() - recorded->program.start_count;
  absl::StatusOr<report::ReplayReport> out;
  if (context.flags.cold || context.flags.print_events) {
    out = ReplayCold(recorded->program.requests, recorded->options, context, absl::StrCat(source, ", cold"), log_text);
    if (!out.ok()) return out;
    if (recorded->program.start_count > 0) {
      out->notes.push_back({"starts_cold",
                            "blocks older than the window were allocated first, in address order; what the cache held "
                            "besides is not in this trace, so peaks differ from the record",
                            recorded->program.start_count});
    }
  } else {
    out = ReportOf(recorded->options, absl::StrCat(source, ", warm: from the state in which the window begins"));
    out->requests = window;
    out->stats = recorded->warm.stats;
    out->calls = recorded->warm.calls;
    out->fidelity = recorded->warm.fidelity;
  }
  if (observed.ok()) out->recorded_peak_reserved_bytes = observed->reserved_peak().bytes;
  out->notes.push_back(guess);
  out->notes.insert(out->notes.end(), snapshot->notes.begin(), snapshot->notes.end());
  return out;
}

absl::StatusOr<report::ReplayReport> ReplayBytes(const std::string& bytes, const Context& context, std::string& log) {
  const readers::InputKind kind = readers::Sniff(bytes);
  if (readers::IsSnapshot(kind)) return ReplaySnapshot(bytes, context, log);
  if (kind != readers::InputKind::kPlainTrace) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is ", readers::InputKindName(kind), ", not a PyTorch memory snapshot or a request trace"));
  }
  if (context.flags.warm) {
    return absl::OutOfRangeError("--warm needs a snapshot: a request trace has no state to start from");
  }
  if (absl::Status status = NoSnapshotFlags(context.flags.replay); !status.ok()) return status;
  const absl::StatusOr<trace::RequestTrace> requests = readers::ParsePlainTrace(bytes);
  if (!requests.ok()) return requests.status();
  const absl::StatusOr<policy::Options> options = remedies::WishedOptions(context.options.wishes);
  if (!options.ok()) return options.status();
  return ReplayCold(*requests, *options, context,
                    absl::StrCat("request trace, ", FormatCount(requests->requests.size()), " requests"), log);
}

int RunReplay(const ReplayCommandFlags& flags) {
  absl::StatusOr<report::ExplainOptions> options = ReadReplayFlags(flags.replay);
  if (!options.ok()) return Fail(kUsage, options.status());
  if (flags.warm && flags.cold) return Fail(kUsage, absl::InvalidArgumentError("--warm and --cold exclude each other"));
  if (flags.warm && flags.print_events) {
    return Fail(kUsage, absl::InvalidArgumentError("--print-events prints a cold replay: leave out --warm"));
  }
  ProgressLine line;
  options->progress = line.Shower();
  const absl::StatusOr<std::string> bytes = LoadBytes(flags.input, *options);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  std::string log;
  const report::ExplainOptions naming = NamingProgress(flags.input, *options);
  const absl::StatusOr<report::ReplayReport> report = ReplayBytes(*bytes, {flags, naming}, log);
  if (!report.ok()) return FailInput(flags.input, report.status());
  if (flags.print_events) return Print(log) ? kOk : kUnreadable;
  return Print(flags.json ? report::ToJson(*report) : report::ToText(*report)) ? kOk : kUnreadable;
}

}  // namespace

void AddReplay(CommandLine& line) {
  Command app = line.AddCommand("replay", "replay a request trace or a snapshot under one setting");
  auto flags = std::make_shared<ReplayCommandFlags>();
  app.Add("trace", flags->input, "a file, or - for standard input").Required();
  app.Add("--json", flags->json, "print JSON (docs/guide/replay.md)");
  app.Add("--print-events", flags->print_events, "print every decision, one a line, and nothing else");
  app.Add("--warm", flags->warm, "a snapshot from the state in which its window begins (default)");
  app.Add("--cold", flags->cold, "a snapshot from an empty allocator");
  app.Add("--events-complete-immediately", flags->events_complete_immediately,
          "work on other streams is done as soon as it is recorded");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunReplay(*flags); });
}

}  // namespace ashlar::cli
