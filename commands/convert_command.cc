#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "commands/commands.h"
#include "commands/convert/convert.h"
#include "commands/convert_output.h"
#include "commands/shared/input.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/progress_line.h"

namespace ashlar::cli {
namespace {

struct ConvertFlags {
  std::string input;
  std::string output;
  std::string to;
  std::string least_size;
  std::string stack;
  ReplayFlags replay;
};

// What of a snapshot goes into a pickle.
absl::StatusOr<answers::CutRule> ReadCut(const ConvertFlags& flags, const ConvertFormat& format) {
  answers::CutRule out{.device = flags.replay.DeviceIndex(), .stack_text = flags.stack};
  std::optional<std::uint64_t> least;
  if (absl::Status status = ReadSize("--least-size", flags.least_size, SizeRange{.least_plain_bytes = 0}, least);
      !status.ok()) {
    return status;
  }
  out.least_bytes = least.value_or(0);
  const auto* own = std::get_if<answers::OutputFormat>(&format);
  const bool is_pickle = own != nullptr && *own == answers::OutputFormat::kPickle;
  if (is_pickle || out.KeepsAllBlocks()) return out;
  return absl::InvalidArgumentError(
      absl::StrCat(flags.stack.empty() ? "--least-size" : "--stack", ": only a pickle can be cut; add --to pickle"));
}

int Converted(const ConvertFlags& flags, const std::vector<trace::Note>& notes) {
  ProgressLine::End();
  for (const trace::Note& note : notes) {
    std::fprintf(stderr, "%s: %s (%s)\n", report::Printable(flags.output).c_str(),
                 report::Printable(note.message).c_str(), FormatCount(note.count).c_str());
  }
  return kOk;
}

int RunConvert(const ConvertFlags& flags) {
  const absl::StatusOr<ConvertFormat> format = FindConvertFormat(flags.output, flags.to);
  if (!format.ok()) return Fail(kUsage, format.status());
  const absl::StatusOr<answers::CutRule> cut = ReadCut(flags, *format);
  if (!cut.ok()) return Fail(kUsage, cut.status());
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  if (absl::Status status = KeepsInput(*format, flags.input, flags.output); !status.ok()) return Fail(kUsage, status);
  ProgressLine line;
  settings->progress = line.Shower();
  absl::StatusOr<formats::InputBytes> bytes = LoadBytes(flags.input, *settings);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  answers::InputRule rule = answers::ConvertedInputs();
  rule.limits = WholeWhereItFits(flags.replay);
  absl::StatusOr<answers::Input> whole = answers::LoadInput(*bytes, rule);
  if (!whole.ok()) return FailInput(flags.input, whole.status());
  absl::StatusOr<answers::Input> input = PartOf(flags.input, std::move(whole), *settings);
  if (!input.ok()) return FailLoad(input.status());
  bytes->Clear();
  if (input->snapshot() == nullptr) {
    if (absl::Status status = NoSnapshotFlags(flags.replay); !status.ok()) return FailInput(flags.input, status);
  }
  line.Show(absl::StrCat("converting ", flags.input));
  const absl::StatusOr<std::vector<trace::Note>> notes =
      WriteConverted(*format, *std::move(input), NamingProgress(flags.input, *settings), *cut, flags.output);
  if (notes.ok()) return Converted(flags, *notes);
  if (absl::IsUnavailable(notes.status())) return Fail(kUnreadable, notes.status());
  return FailInput(flags.input, notes.status());
}

}  // namespace

void AddConvert(CommandLine& line) {
  Command app = line.AddCommand("convert", "write a recording, snapshot, trace or packing problem in another format");
  app.Example("ashlar convert snapshot.pickle run.ashlar");
  app.Example("ashlar convert snapshot.pickle run.sqlite");
  auto flags = std::make_shared<ConvertFlags>();
  app.Add("input", flags->input, "a file, or - for standard input").Required();
  app.Add("output", flags->output, "a file whose ending names the format; or any name, or -, with --to").Required();
  app.Add("--to", flags->to, ConvertFormatNames() + ": whatever the output is called");
  app.Add("--least-size", flags->least_size, "of a snapshot into a pickle: blocks of at least that size, such as 10MiB")
      .Takes("SIZE")
      .NotEmpty();
  app.Add("--stack", flags->stack, "of a snapshot into a pickle: blocks with that text in a frame of their stack")
      .NotEmpty();
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunConvert(*flags); });
}

}  // namespace ashlar::cli
