#include "analyzer/cli/convert.h"

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/answers/convert.h"
#include "analyzer/answers/input.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/report/printable.h"

namespace ashlar::cli {
namespace {

using answers::OutputFormat;

struct FormatName {
  OutputFormat format;
  const char* name;        // of --to
  const char* endings[2];  // of files
};
constexpr FormatName kFormats[] = {{OutputFormat::kRecording, "ashlar", {".ashlar", ".ashlar"}},
                                   {OutputFormat::kPickle, "pickle", {".pickle", ".pkl"}},
                                   {OutputFormat::kTrace, "trace", {".trace", ".txt"}},
                                   {OutputFormat::kCsv, "csv", {".csv", ".csv"}}};

struct ConvertFlags {
  std::string input;
  std::string output;
  std::string to;
  ReplayFlags replay;
};

absl::StatusOr<OutputFormat> FormatOf(const ConvertFlags& flags) {
  for (const FormatName& format : kFormats) {
    if (flags.to == format.name) return format.format;
    if (!flags.to.empty()) continue;
    for (const char* ending : format.endings) {
      if (absl::EndsWith(flags.output, ending)) return format.format;
    }
  }
  return absl::InvalidArgumentError(
      flags.to.empty() ? absl::StrCat("the name ", flags.output,
                                      " does not tell the format: end it in .ashlar, .pickle, .trace or "
                                      ".csv, or give --to ashlar, pickle, trace or csv")
                       : absl::StrCat("--to: '", flags.to, "' is none of ashlar, pickle, trace and csv"));
}

absl::StatusOr<answers::Converted> ConvertInput(const answers::Input& input, OutputFormat to, const ConvertFlags& flags,
                                                const answers::ReplaySettings& settings) {
  if (input.snapshot() == nullptr) {
    if (absl::Status status = NoSnapshotFlags(flags.replay); !status.ok()) return status;
  }
  return answers::Convert(input, to, NamingProgress(flags.input, settings));
}

int RunConvert(const ConvertFlags& flags) {
  const absl::StatusOr<OutputFormat> to = FormatOf(flags);
  if (!to.ok()) return Fail(kUsage, to.status());
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  ProgressLine line;
  settings->progress = line.Shower();
  const absl::StatusOr<std::string> bytes = LoadBytes(flags.input, *settings);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  const absl::StatusOr<answers::Input> input = answers::LoadInput(*bytes, answers::ConvertedInputs());
  if (!input.ok()) return FailInput(flags.input, input.status());
  line.Show(absl::StrCat("converting ", flags.input));
  const absl::StatusOr<answers::Converted> converted = ConvertInput(*input, *to, flags, *settings);
  if (!converted.ok()) return FailInput(flags.input, converted.status());
  line.Show(absl::StrCat("writing ", flags.output));
  if (flags.output == "-") {
    if (!Print(converted->bytes)) return kUnreadable;
  } else if (absl::Status status = WriteFile(flags.output, converted->bytes); !status.ok()) {
    return Fail(kUnreadable, status);
  }
  ProgressLine::End();
  for (const trace::Note& note : converted->notes) {
    std::fprintf(stderr, "%s: %s (%s)\n", flags.output.c_str(), report::Printable(note.message).c_str(),
                 FormatCount(note.count).c_str());
  }
  return kOk;
}

}  // namespace

void AddConvert(CommandLine& line) {
  Command app = line.AddCommand("convert", "write a recording, snapshot, trace or packing problem in another format");
  app.Example("ashlar convert snapshot.pickle run.ashlar");
  auto flags = std::make_shared<ConvertFlags>();
  app.Add("input", flags->input, "a file, or - for standard input").Required();
  app.Add("output", flags->output, "a file that ends in .ashlar, .pickle, .trace or .csv; or - with --to").Required();
  app.Add("--to", flags->to, "ashlar, pickle, trace or csv, whatever the output is called");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunConvert(*flags); });
}

}  // namespace ashlar::cli
