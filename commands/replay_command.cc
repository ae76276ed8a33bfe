#include <memory>
#include <string>

#include "commands/commands.h"
#include "commands/replay/replay.h"
#include "commands/shared/input.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/progress_line.h"

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

answers::ReplayMode ModeOf(const ReplayCommandFlags& flags) {
  return {flags.cold, flags.print_events, flags.events_complete_immediately};
}

// Which flags go with which input.
absl::Status ReplayFlagsFit(const ReplayCommandFlags& flags, formats::InputKind kind) {
  if (kind != formats::InputKind::kPlainTrace) return absl::OkStatus();
  if (flags.warm) return absl::OutOfRangeError("--warm needs a snapshot: a request trace has no state to start from");
  return NoSnapshotFlags(flags.replay);
}

int RunReplay(const ReplayCommandFlags& flags) {
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  if (flags.warm && flags.cold) return Fail(kUsage, absl::InvalidArgumentError("--warm and --cold exclude each other"));
  if (flags.warm && flags.print_events) {
    return Fail(kUsage, absl::InvalidArgumentError("--print-events prints a cold replay: leave out --warm"));
  }
  ProgressLine line;
  settings->progress = line.Shower();
  absl::StatusOr<formats::InputBytes> bytes = LoadBytes(flags.input, *settings);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  absl::StatusOr<answers::Input> input =
      answers::LoadInput(*bytes, {.limits = LimitsOf(flags.replay),
                                  .fits = [&flags](formats::InputKind kind) { return ReplayFlagsFit(flags, kind); }});
  bytes->Clear();
  if (!input.ok()) return FailInput(flags.input, input.status());
  const absl::StatusOr<answers::Input> part = PartOf(flags.input, std::move(input), *settings);
  if (!part.ok()) return FailLoad(part.status());
  const absl::StatusOr<answers::ReplayAnswer> answer =
      answers::Replay(*part, NamingProgress(flags.input, *settings), ModeOf(flags));
  if (!answer.ok()) return FailInput(flags.input, answer.status());
  if (flags.print_events) return Print(answer->event_log) ? kOk : kUnreadable;
  return Print(flags.json ? report::ToJson(*answer) : report::Fitted(report::ToText(*answer), {})) ? kOk : kUnreadable;
}

}  // namespace

void AddReplay(CommandLine& line) {
  Command app = line.AddCommand("replay", "replay a request trace or a snapshot under one setting");
  app.Example("ashlar replay snapshot.pickle --conf expandable_segments:True");
  auto flags = std::make_shared<ReplayCommandFlags>();
  app.Add("trace", flags->input, "a file, or - for standard input").Required();
  app.Add("--json", flags->json, "print JSON (ashlar guide replay)");
  app.Add("--print-events", flags->print_events, "print every decision, one a line, and nothing else");
  app.Add("--warm", flags->warm, "a snapshot from the state in which its window begins (default)");
  app.Add("--cold", flags->cold, "a snapshot from an empty allocator");
  app.Add("--events-complete-immediately", flags->events_complete_immediately,
          "work on other streams is done as soon as it is recorded");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunReplay(*flags); });
}

}  // namespace ashlar::cli
